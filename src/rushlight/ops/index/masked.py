"""Reading and writing where a mask is true: masked_fill, masked_select, masked_scatter, nonzero, argwhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import in_c, older
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import call, dims, families, shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import check_output
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import shape_alone
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import function, op
from rushlight.kernels.pointwise.copies import copied
from rushlight.levels.batch import everything, of_one_shape
from rushlight.ops.index.index_select import constant
from rushlight.ops.index.scatter import number
from rushlight.ops.reduce.sums import sum_op
from rushlight.ops.shape.reshape import broadcast, reshape_op, slice_op
from rushlight.tensor import Tensor, wrap


def _filled(input: Array, mask: Array, value: Any) -> Array:
    return backend.choose(mask, np.asarray(value, input.dtype), input)


def _filled_shape(input: Array, mask: Array) -> list[shapes.Made]:
    shape = np.broadcast_shapes(input.shape, mask.shape)
    return shapes.same(input) if shape == input.shape else [shapes.Made(shape, input.dtype)]


def _fill_into(out: Array, mask: Array, value: Any) -> None:
    backend.choose(mask, np.asarray(value, out.dtype), out, out=out)


@op(
    aten=("masked_fill.Scalar",),
    masks=("mask",),
    complex_half="moves",
    shape=_filled_shape,
    repeatable=True,
    batch=families.targeted,
    pointwise=True,
)
def masked_fill_op(input: Array, mask: Array, value: object) -> Array:
    """`input` with a number where `mask` is true, broadcast.  (*), (*) -> (*)"""
    return _filled(input, mask, value)


masked_fill_op.into(_fill_into)
masked_fill_op.grad("input")(lambda g, mask: masked_fill_op(g, mask, 0))


@op(
    aten=("masked_fill.Tensor",),
    linear=True,
    masks=("mask",),
    complex_half="moves",
    shape=_filled_shape,
    repeatable=True,
    batch=families.masked,
)
def masked_fill_tensor(input: Array, mask: Array, value: Array) -> Array:
    """`input` with a 0-d `value` where `mask` is true, broadcast.  (*), (*), () -> (*)"""
    return _filled(input, mask, value)


masked_fill_tensor.into(_fill_into)
masked_fill_tensor.grad("input")(lambda g, mask: masked_fill_op(g, mask, 0))
masked_fill_tensor.grad("value")(lambda g, mask: sum_op(masked_select_op(g, expanded(mask, g)), None, False))


def expanded(mask: Array | Tensor, like: Array | Tensor) -> Array | Tensor:
    """The mask in the shape of `like`."""
    return mask if raw(mask).shape == raw(like).shape else broadcast(mask, raw(like).shape)


@op(
    linear=True,
    masks=("mask",),
    complex_half="moves",
    batch=families.masked_select,
)
def masked_select_op(input: Array, mask: Array) -> Array:
    """The elements where `mask`, of the same shape, is true.  (*), (*) -> (N)"""
    return backend.mask_take(input, mask)


masked_select_op.grad("input")(lambda g, mask, input_shape: masked_put(g, mask, input_shape))


@op(
    linear=True,
    masks=("mask",),
    grads={"input": lambda g, mask: masked_select_op(g, mask)},
    complex_half="moves",
    batch=families.masked_put,
)
def masked_put(input: Array, mask: Array, size: tuple[int, ...]) -> Array:
    """Zeros of shape `size` with `input` where `mask` is true: the adjoint of masked_select.  (N), (*) -> size"""
    return backend.mask_put(input, mask)


def _scatter_into(out: Array, source: Array, mask: Array) -> None:
    count = int(np.count_nonzero(mask))
    backend.mask_write(out, mask, source.reshape(-1)[:count])


@op(
    aten=("masked_scatter(input, mask, source)",),
    half=None,
    linear=True,
    masks=("mask",),
    shape=shapes.same,
    batch=families.masked_scatter,
)
def masked_scatter_op(input: Array, source: Array, mask: Array) -> Array:
    """`input` with the first elements of `source` where `mask` is true.  (*), (*), (*) -> (*)"""
    out = copied(input)
    _scatter_into(out, source, mask)
    return out


masked_scatter_op.into(_scatter_into)
masked_scatter_op.grad("input")(lambda g, mask: masked_fill_op(g, mask, 0))
masked_scatter_op.grad("source")(lambda g, mask, source_shape: first_of(masked_select_op(g, mask), source_shape))


@op(linear=True, complex_half="moves", shape=shapes.sized, batch=families.padded)
def first_of(input: Array, size: tuple[int, ...]) -> Array:
    """Zeros of shape `size` whose first elements are those of `input`.  (N) -> size"""
    out = np.zeros(size, input.dtype)
    out.reshape(-1)[: input.size] = input
    return out


first_of.grad("input")(lambda g, input_shape: _first(g, input_shape))


def _first(g: Any, shape: Any) -> Any:
    return slice_op(reshape_op(g, (raw(g).size,)), (slice(shape[0]), ...))


# Arguments -----------------------------------------------------------------------------------------


def check_mask(name: str, mask: Tensor) -> None:
    """Raise unless `mask` is a tensor of bool."""
    if not isinstance(raw(mask), np.ndarray):
        raise TypeError(f"{name}(): argument 'mask' (position 2) must be Tensor, not {kind_of(mask)}")
    dtype = raw(mask).dtype
    if dtype != np.bool_:
        called, kind = name.removesuffix("_"), in_c(dtype) if "fill" in name else older(dtype)
        words = f"{called}_ only supports boolean masks, but got mask with dtype {kind}"
        raise RuntimeError(
            words
            if called != "masked_select"
            else f"masked_select: expected BoolTensor for mask, got {dtypes.of(dtype)}"
        )


def common_shape(name: str, input: Tensor, mask: Tensor) -> tuple[int, ...]:
    """The shape to which input and mask broadcast.  Raises RuntimeError if there is none."""
    shape = dims.common_shape(raw(input).shape, raw(mask).shape)
    if shape is None:
        words = dims.two_sizes(raw(input).shape, raw(mask).shape)
        raise RuntimeError(f"{name}(): {words}: those of the input and the mask do not broadcast")
    return shape


def fill(run: Callable[..., Any], name: str, input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Check the arguments of masked_fill and have `run` carry it out."""
    check_mask(name, mask)
    common_shape(name, input, mask)
    if number(value):
        return run(masked_fill_op.op, (input, mask), (constant(name, value, input)[()],))
    if raw(value).ndim:
        raise RuntimeError(f"{name} only supports a 0-dimensional value tensor, but got tensor with {raw(value).ndim} "
                           "dimension(s).")  # fmt: skip
    return run(masked_fill_tensor.op, (input, mask, constant(name, value, input)), ())


@function(method=True)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | complex) -> Tensor:
    """`input` with `value`, a number or 0-d tensor, where `mask` is true; both broadcast.  (*), (*) -> (*)"""
    return fill(call.by_function, "masked_fill", input, mask, value)


@function(method=True)
def masked_fill_(input: Tensor, mask: Tensor, value: Tensor | complex) -> Tensor:
    """In-place version of `masked_fill`; the mask is broadcast to the tensor."""
    check_into("masked_fill_", input, mask)
    return fill(call.apply_inplace, "masked_fill_", input, mask, value)


def check_into(name: str, input: Tensor, mask: Tensor) -> None:
    """Raise RuntimeError unless the mask broadcasts to the shape of the tensor that is changed."""
    check_mask(name, mask)
    check_output(f"{name}()", raw(input).shape, common_shape(name, input, mask))


@function(method=True)
@moving(same_dtype="self and result must have the same scalar type: ")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` is true, in order; both broadcast.  (*), (*) -> (N)"""
    check_mask("masked_select", mask)
    shape = common_shape("masked_select", input, mask)
    return masked_select_op(*[x if raw(x).shape == shape else broadcast(x, shape) for x in (input, mask)])


def scattered(run: Callable[..., Any], name: str, input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Check the arguments of masked_scatter and have `run` carry it out."""
    check_mask(name, mask)
    x, s = raw(input), raw(source)
    shape = common_shape(name, input, mask)
    if x.dtype != s.dtype:
        raise RuntimeError(f"{name}: expected self and source to have same dtypes but got {dtypes.of(x.dtype)} and "
                           f"{dtypes.of(s.dtype)}")  # fmt: skip
    input, mask = (t if raw(t).shape == shape else broadcast(t, shape) for t in (input, mask))
    known = everything(raw(mask))
    ones = int(np.max(np.count_nonzero(known.reshape(*known.shape[: known.ndim - len(shape)], -1), -1), initial=0))
    if ones > s.size:
        raise RuntimeError(f"{name}: Number of elements of source ({s.size}) < number of ones in mask ({ones})")
    return run(masked_scatter_op.op, (input, source, mask), ())


@function(method=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements of `source`, in order, where `mask` is true; input and mask broadcast."""
    return scattered(call.by_function, "masked_scatter", input, mask, source)


@function(method=True)
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """In-place version of `masked_scatter`."""
    check_into("masked_scatter_", input, mask)
    return scattered(call.apply_inplace, "masked_scatter_", input, mask, source)


@function(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row each.  (*) -> (N, ndim) int64"""
    array = of_one_shape("nonzero", raw(input))
    return wrap(backend.mask_places(array) if array.ndim else np.zeros((int(bool(array)), 0), np.int64))


@function(method=True, out="same", out_where=lambda args, kwargs: not kwargs.get("as_tuple"))
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The indices of the elements that are not zero: a row each, or with `as_tuple` a vector for each dimension."""
    if not as_tuple:
        return argwhere(input)
    array = of_one_shape("nonzero", raw(input))
    found = backend.mask_places(array.reshape(1) if array.ndim == 0 else array)
    # They are columns of one array, which each of them would keep.
    return tuple([wrap(i.copy()) for i in found.T])


@function(method=True, out=True)
@per_sample
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """As nonzero, but always `size` rows: the first ones, or filled up with `fill_value`.  (*) -> (size, ndim) int64"""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be a non-negative integer, got {size}")
    if input._meta:
        return shape_alone((size, input.ndim), np.int64)
    found = argwhere(input)._array[:size]
    rest = np.full((size - len(found), raw(input).ndim), fill_value, np.int64)
    return wrap(np.concatenate([found, rest]))
