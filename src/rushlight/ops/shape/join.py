"""Joining tensors: cat and stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes, special, way_of
from rushlight.dispatch import families, observed, shapes
from rushlight.dispatch.declare import Array, Arrays
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.fast_views import joined
from rushlight.dispatch.formats import channels_last, channels_last_3d, channels_last_order, has_format
from rushlight.dispatch.operands import raw
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import function, op
from rushlight.kernels.pointwise.copies import LARGE, move
from rushlight.ops.shape.reshape import reshape_op, slice_op
from rushlight.overrides.public import Unnoticed, public_of, retried, unfit
from rushlight.tensor import Tensor


def in_c_order(arrays: list[Any] | tuple[Array, ...]) -> bool:
    """Whether NumPy joins arrays in C order: where all lie so."""
    return False not in [a.flags.c_contiguous for a in arrays]


def concatenated(arrays: list[Any], dim: int) -> Array:
    """Arrays of one dtype one after another, in C order; images with channels last stay so."""
    large = arrays[0].nbytes >= LARGE
    if not large and in_c_order(arrays):
        return np.concatenate(arrays, dim)
    shape, ndim = [*arrays[0].shape], arrays[0].ndim
    if not -ndim <= dim < ndim or [None for a in arrays if a.ndim != ndim]:
        return np.concatenate(arrays, dim)  # which says what is wrong
    if ndim in RANKS and all(has_format(a, RANKS[ndim]) for a in arrays):
        return np.concatenate(arrays, dim)
    shape[dim] = sum([a.shape[dim] for a in arrays])
    out = np.empty(shape, arrays[0].dtype)
    return joined_into(out, arrays, dim) if large else np.concatenate(arrays, dim, out=out)


def joined_into(out: Array, arrays: list[Any] | tuple[Array, ...], dim: int) -> Array:
    """Arrays one after another in `out`, whose sizes but that of `dim` they are to have."""
    start, sizes = 0, {a.shape[:dim] + a.shape[dim:][1:] for a in arrays}
    if len(sizes) > 1:
        return np.concatenate(arrays, dim, out=out)  # which says what is wrong
    lead = (slice(None),) * (dim if dim >= 0 else dim + out.ndim)
    for a in arrays:
        move(a, out[(*lead, slice(start, start + a.shape[dim]))])
        start += a.shape[dim]
    return out


def stacked(arrays: list[Any] | tuple[Array, ...], dim: int) -> Array:
    """Arrays of one shape and dtype side by side along a new dimension, in C order."""
    shape = list(arrays[0].shape)
    large = arrays[0].nbytes >= LARGE
    place = dim if dim >= 0 else dim + len(shape) + 1
    if not large and 0 <= place <= len(shape) and in_c_order(arrays) and len({a.shape for a in arrays}) == 1:
        at = (*[slice(None)] * place, None)
        return np.concatenate([a[at] for a in arrays], place)
    if not 0 <= place <= len(shape):
        return np.stack(arrays, dim)  # which says what is wrong
    shape.insert(place, len(arrays))
    out = np.empty(shape, arrays[0].dtype)
    if not large or any(a.shape != arrays[0].shape for a in arrays):
        return np.stack(arrays, place, out=out)
    lead: tuple[Any, ...] = (slice(None),) * place
    for i, a in enumerate(arrays):
        move(a, out[(*lead, i)])
    return out


RANKS = {4: channels_last, 5: channels_last_3d}


@op(
    aten=("cat(tensors, dim=0)",),
    linear=True,
    complex_half="moves",
    batch=families.joined,
)
def cat_op(tensors: Arrays, dim: int) -> Array:
    """The tensors one after another along `dim`.  [(*), ...] -> (*)"""
    shaped = [a for a in tensors if a.shape != (0,)]  # one that counts for nothing is here for its gradient
    return concatenated(shaped, dim) if shaped else tensors[0].copy()


@cat_op.shape
def _(tensors: tuple[Array, ...], dim: int) -> list[shapes.Made]:
    shaped = [t for t in tensors if t.shape != (0,)]
    if not shaped:
        return [shapes.Made((0,), np.result_type(*tensors))]
    shape = list(shaped[0].shape)
    shape[dim] = sum(t.shape[dim] for t in shaped)
    last = len(shape) in RANKS and all(has_format(t, RANKS[len(shape)]) and not t.flags.c_contiguous for t in shaped)
    return [shapes.Made(tuple(shape), np.result_type(*tensors), channels_last_order(len(shape)) if last else None)]


@cat_op.grad("tensors")
def _(g: Array | Tensor, tensors_shape: tuple[Any, ...], dim: int) -> tuple[Any, ...]:
    lead, start, parts = (slice(None),) * dim, 0, []
    for shape in tensors_shape:
        if tuple(shape) == (0,):
            parts.append(reshape_op(slice_op(g, (slice(0, 0), ...)), (0,)))
            continue
        parts.append(slice_op(g, (*lead, slice(start, start + shape[dim]), ...)))
        start += shape[dim]
    return tuple(parts)


@op(
    aten=("stack(tensors, dim=0)",),
    linear=True,
    complex_half="moves",
    batch=families.joined,
)
def stack_op(tensors: Arrays, dim: int) -> Array:
    """The tensors side by side along a new dimension `dim`.  [(*), ...] -> (*)"""
    return stacked(tensors, dim)


@stack_op.shape
def _(tensors: tuple[Array, ...], dim: int) -> list[shapes.Made]:
    shape = tensors[0].shape
    dim %= len(shape) + 1
    return [shapes.Made((*shape[:dim], len(tensors), *shape[dim:]), np.result_type(*tensors))]


@stack_op.grad("tensors")
def _(g: Array | Tensor, tensors_shape: tuple[Any, ...], dim: int) -> tuple[Any, ...]:
    lead = (slice(None),) * dim
    return tuple([slice_op(g, (*lead, i, ...)) for i in range(len(tensors_shape))])


def plain_arrays(tensors: Sequence[Array | Tensor]) -> list[Array] | None:
    """The arrays of a list of tensors of one dtype, where nothing but recording is unusual; None otherwise."""
    if (
        (tensors.__class__ is not list and tensors.__class__ is not tuple)
        or not tensors
        or (special.count and special.count != special.observing and (special.observing or not way_of(tensors)))
    ):
        return None
    arrays, dtype = [], None
    for x in tensors:
        if not isinstance(x, Tensor) or x._inference:
            return None
        array = x._array
        if array.dtype is not dtype:
            if dtype is not None:
                return None
            dtype = array.dtype
        arrays.append(array)
    return arrays


def gathered(name: str, tensors: Sequence[Array | Tensor]) -> list[Any]:
    """The tensors of a sequence, all in their common dtype.  Raises TypeError, RuntimeError or ValueError for the rest."""
    if not isinstance(tensors, (tuple, list)):
        raise unfit(tensors)(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    found = list(tensors)
    if not found:
        if name == "cat":
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    arrays = all(isinstance(x, np.ndarray) for x in found)  # as formulas give them
    for i, x in enumerate(found):
        foreign = hasattr(type(x), "__torch_function__") and not isinstance(x, Tensor)  # it may answer to any name
        if foreign or (not hasattr(x, "_array") and not arrays):
            raise unfit(x)(f"expected Tensor as element {i} in argument 0, but got {kind_of(x)}")
    if any(raw(x).dtype != raw(found[0]).dtype for x in found):
        found = converted(found)
    return found


def converted(tensors: list[Any]) -> list[Any]:
    """The tensors in the dtype to which they promote together."""
    from rushlight.ops.elementwise.convert import cast

    target = dtypes.result_dtype([raw(x) for x in tensors]).numpy
    return [x if raw(x).dtype == target else cast(x, target) for x in tensors]


def check_cat(found: list[Any], dim: int) -> None:
    """Raise RuntimeError where sizes besides `dim` differ."""
    first = raw(found[0]).shape
    for i, x in enumerate(found):
        shape = raw(x).shape
        if len(shape) != len(first):
            raise explained(
                RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"),
                "sizes-to-join",
            )
        for d, (a, b) in enumerate(zip(first, shape, strict=True)):
            if a != b and d != dim:
                raise explained(
                    RuntimeError(
                        f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} for "
                        f"tensor number {i} in the list."
                    ),
                    "sizes-to-join",
                )


@function(aliases=("concat", "concatenate"))
@moving()
def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | Sequence[int] | None = None) -> Array | Tensor:
    """The tensors one after another along `dim`; they promote together.  [(*), ...] -> (*)

    Empty 1-d tensors are skipped.  Raises RuntimeError where other sizes differ, ValueError for no tensors.
    """
    arrays = plain_arrays(tensors)
    if arrays is not None and axis is None and not [None for a in arrays if not a.ndim or a.shape == (0,)]:
        try:
            if special.observing:
                return observed.joined(cat_op.op, concatenated, tensors, arrays, dim)
            result = concatenated(arrays, dim)
        except (TypeError, ValueError):
            pass  # the errors are raised below
        else:
            return joined(cat_op.op, tensors, result, (dim if dim >= 0 else dim + result.ndim,))
    try:
        found = gathered("cat", tensors)
    except Unnoticed as error:
        return retried(public_of(cat), error, tensors, *((dim,) if dim else ()))
    for i, x in enumerate(found):
        if raw(x).ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    shaped = [x for x in found if raw(x).shape != (0,)]
    if not shaped:
        return cat_op(found, 0)
    dim = wrap_dim(dim if axis is None else axis, raw(shaped[0]).ndim)
    check_cat(shaped, dim)
    tracked = not modes.levels and any(isinstance(x, Tensor) and x.requires_grad for x in found)
    return cat_op(found if tracked else shaped, dim)


@function()
@moving()
def stack(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """The tensors, all of one shape, side by side along a new dimension `dim`.  [(*), ...] -> (*)"""
    arrays = plain_arrays(tensors)
    if arrays is not None and axis is None:
        try:
            if special.observing:
                return observed.joined(stack_op.op, stacked, tensors, arrays, dim)
            result = stacked(arrays, dim)
        except (TypeError, ValueError):
            pass  # the errors are raised below
        else:
            return joined(stack_op.op, tensors, result, (dim if dim >= 0 else dim + result.ndim,))
    try:
        found = gathered("stack", tensors)
    except Unnoticed as error:
        return retried(public_of(stack), error, tensors, *((dim,) if dim else ()))
    first = raw(found[0]).shape
    for i, x in enumerate(found):
        if raw(x).shape != first:
            raise explained(RuntimeError(f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                               f"{list(raw(x).shape)} at entry {i}"), "sizes-to-join")  # fmt: skip
    return stack_op(found, wrap_dim(dim if axis is None else axis, len(first) + 1))
