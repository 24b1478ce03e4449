"""Splitting: several views of one tensor, recorded as one node whose backward fills one buffer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.dispatch import families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, numpy_names, wrap_dim
from rushlight.dispatch.fast_views import at_once, made_views
from rushlight.dispatch.keeping.shown import first
from rushlight.dispatch.operands import held, raw
from rushlight.dispatch.registry import function, known_as, op
from rushlight.dispatch.rules import Making
from rushlight.ops.shape.join import cat_op, stack_op
from rushlight.tensor import Tensor


@op(
    aten=("split.Tensor",),
    aten_call="pieces",
    saved_as={"split_size": first("sizes"), "split_sizes": "sizes"},
    view=True,
    linear=True,
    outputs=None,
    batch=families.shifted,
)
def split_op(input: Array, sizes: tuple[int, ...], dim: int) -> Any:
    """Consecutive pieces of `sizes` along `dim`, views.  (*) -> [(*), ...]"""
    lead, start, parts = (slice(None),) * dim, 0, []
    for n in sizes:
        parts.append(input[(*lead, slice(start, start + n))])
        start += n
    return parts


def _split_raw(gs: list[Array], input_shape: tuple[int, ...], sizes: tuple[int, ...], dim: int) -> Array:
    """One buffer, zeros where no gradient arrived."""
    out = np.empty(input_shape, next(g.dtype for g in gs if g is not None))
    if not [None for g in gs if g is None]:
        return np.concatenate(gs, dim, out=out)
    lead, start = (slice(None),) * dim, 0
    for n, g in zip(sizes, gs, strict=True):
        out[(*lead, slice(start, start + n))] = 0 if g is None else g
        start += n
    return out


@split_op.grad("input", raw=_split_raw)
def _(gs: list[Tensor], input_shape: tuple[int, ...], sizes: tuple[int, ...], dim: int) -> Tensor:
    dtype = next(raw(g).dtype for g in gs if g is not None)
    lead, tail = input_shape[:dim], input_shape[dim + 1 :]
    return cat_op([np.zeros((*lead, n, *tail), dtype) if g is None else g for n, g in zip(sizes, gs, strict=True)], dim)


@op(
    aten=("unbind.int(input, dim=0)",),
    view=True,
    linear=True,
    outputs=None,
    batch=families.shifted,
)
def unbind_op(input: Array, dim: int, order: tuple[int, ...] | None = None) -> list[Any]:
    """The parts at each index of dimension `dim`, views.  (*) -> [(*), ...]

    order: the dimensions by decreasing stride, None for C order: how the gradient will lie in memory.
    """
    lead: tuple[Any, ...] = (slice(None),) * dim
    return [input[(*lead, i, ...)] for i in range(input.shape[dim])]


def whole(gs: Any, dim: int) -> Array | None:
    """The array whose parts along `dim` the arrays `gs` are, if they are slices of one at equal distances; else None."""
    first = gs[0]
    base = None if first is None or len(gs) < 2 else first.base
    if base is None or base.__class__ is not np.ndarray or not base.flags.c_contiguous:
        return None
    if any(g is None or g.base is not base or g.strides != first.strides or g.shape != first.shape for g in gs):
        return None
    if any(g.dtype != base.dtype for g in gs):
        return None
    starts = [g.__array_interface__["data"][0] for g in gs]
    step = starts[1] - starts[0]
    if step <= 0 or any(b - a != step for a, b in itertools.pairwise(starts)):
        return None
    shape, strides = list(first.shape), list(first.strides)
    shape.insert(dim, len(gs))
    strides.insert(dim, step)
    return np.ndarray(shape, first.dtype, base, starts[0] - base.__array_interface__["data"][0], strides)


def _unbind_raw(gs: list[Array], input_shape: tuple[int, ...], dim: int, order: Any) -> Array:
    found = whole(gs, dim)
    if found is not None:
        return found
    dtype = next(g.dtype for g in gs if g is not None)
    if order is None or len(order) != len(input_shape):
        out = np.empty(input_shape, dtype)
    else:  # as the input lies: a permutation before, undone in the backward, then costs no copy
        out = np.empty([input_shape[i] for i in order], dtype).transpose(np.argsort(order))
    lead: tuple[Any, ...] = (slice(None),) * dim
    for i, g in enumerate(gs):
        out[(*lead, i)] = 0 if g is None else g
    return out


def _unbind_shapes(gs: list[Array], input_shape: tuple[int, ...], dim: int, order: Any, make: Making) -> Array:
    found: Array | None = whole(gs, dim)
    if found is not None:
        return found
    return make.gradient(0, order if order is not None and len(order) == len(input_shape) else None)


@unbind_op.grad("input", raw=_unbind_raw, shapes=_unbind_shapes)
def _(gs: list[Tensor | None], input_shape: tuple[int, ...], dim: int) -> Tensor:
    dtype = next(raw(g).dtype for g in gs if g is not None)
    shape = (*input_shape[:dim], *input_shape[dim + 1 :])
    return stack_op([np.zeros(shape, dtype) if g is None else g for g in gs], dim)


def parts_of(op: Any, input: Any, statics: tuple[Any, ...]) -> tuple[Array | Tensor, ...]:
    """The views that a splitting operator makes, as a tuple."""
    if not at_once(input):
        return tuple(op.call(input, *statics))
    return made_views(op, input, op.forward(input._held, *statics), statics)


@function(method=True)
def unbind(input: Tensor, dim: int = 0, *, axis: int | None = None) -> Any:
    """A tuple of the parts at each index of dimension `dim`, views.  (*) -> [(*), ...]"""
    if held(input).ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    array = held(input)
    order = None if array.flags.c_contiguous else tuple(sorted(range(array.ndim), key=lambda i: -array.strides[i]))
    return parts_of(unbind_op.op, input, (wrap_dim(dim if axis is None else axis, array.ndim), order))


def pieces(size: int, each: int) -> tuple[int, ...]:
    """The sizes of pieces of `each`, the last one smaller, that make up `size`."""
    if each == 0:
        return (0,)
    full, rest = divmod(size, each)
    return (each,) * full + ((rest,) if rest or not size else ())


@function(method=True)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """A tuple of pieces along `dim`, views: of one size, the last smaller, or of the sizes listed.  (*) -> [(*), ...]"""
    if not hasattr(split_size_or_sections, "__index__"):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    each, shape = int(split_size_or_sections), held(tensor).shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, len(shape))
    if each < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={each}")
    if each == 0 and shape[dim]:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {shape[dim]}")
    return parts_of(split_op.op, tensor, (pieces(shape[dim], each), dim))


def _split_method(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """A tuple of pieces along `dim`, views: of one size, the last smaller, or of the sizes listed.  (*) -> [(*), ...]"""
    return split(self, split_size, dim)


Tensor.split = known_as(_split_method, "split", "Tensor")  # type: ignore[method-assign]


@function(method=True)
@numpy_names
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """A tuple of pieces of the given sizes along `dim`, views.  (*) -> [(*), ...]"""
    shape = held(input).shape
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    dim, wanted = wrap_dim(dim, len(shape)), tuple(as_int(n, "split_with_sizes", "split_sizes") for n in split_sizes)
    if any(n < 0 for n in wanted):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got {list(wanted)}"
        )
    if sum(wanted) != shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[dim]} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(wanted)}"
        )
    return parts_of(split_op.op, input, (wanted, dim))


@function(method=True)
@numpy_names
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """A tuple of at most `chunks` pieces of equal size along `dim`, views.  (*) -> [(*), ...]"""
    shape = held(input).shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = as_int(chunks, "chunk", "chunks", 2)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    each = -(-size // chunks)
    return parts_of(split_op.op, input, ((0,) * chunks if size == 0 else pieces(size, each), dim))


def _iterate(self: Tensor) -> Any:
    """The parts along the first dimension, as `unbind` gives them."""
    if self._held.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


Tensor.__iter__ = _iterate  # type: ignore[method-assign]
