"""A copy of a tensor with one part replaced: slice_scatter, select_scatter, diagonal_scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, numpy_names, wrap_dim
from rushlight.dispatch.keeping.shown import SLICE
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function, op
from rushlight.kernels.pointwise.copies import copied
from rushlight.ops.shape.diagonal import diagonal_of, diagonal_op, two_dims
from rushlight.ops.shape.reshape import slice_op
from rushlight.tensor import Tensor


@op(
    saved_as=SLICE,
    linear=True,
    complex_half="moves",
    shape=shapes.same,
    batch=families.shifted,
)
def slice_scatter_op(input: Array, src: Array, index: tuple[Any, ...]) -> Array:
    """`input` with `src` at a basic index.  (*), (*) -> (*)"""
    out = copied(input)
    out[index] = src
    return out


slice_scatter_op.grad("input")(
    lambda g, src_shape, index: slice_scatter_op(g, np.zeros(src_shape, raw(g).dtype), index)
)
slice_scatter_op.grad("src")(lambda g, index: slice_op(g, index))


@op(
    linear=True,
    complex_half="moves",
    shape=shapes.same,
    batch=families.shifted,
)
def diagonal_scatter_op(input: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    """`input` with `src` on a diagonal.  (*), (*, N) -> (*)"""
    out = copied(input)
    diagonal_of(out, offset, dim1, dim2)[...] = src
    return out


@diagonal_scatter_op.grad("input")
def _(g: Array, src_shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    return diagonal_scatter_op(g, np.zeros(src_shape, raw(g).dtype), offset, dim1, dim2)


diagonal_scatter_op.grad("src")(lambda g, offset, dim1, dim2: diagonal_op(g, offset, dim1, dim2))


def check_part(name: str, src: Tensor, shape: tuple[int, ...]) -> None:
    """Raise RuntimeError unless `src` has the shape of the part it replaces."""
    if raw(src).shape != shape:
        raise RuntimeError(f"{name}(): expected src to have a size equal to the slice of self. src size = "
                           f"{list(raw(src).shape)}, slice size = {list(shape)}")  # fmt: skip


def same_kind(input: Tensor, src: Tensor) -> Tensor:
    """The source in the dtype of the input."""
    from rushlight.ops.elementwise.convert import cast

    return src if raw(src).dtype == raw(input).dtype else cast(src, raw(input).dtype)


@function(method=True, out="same")
@numpy_names
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: Tensor | complex | None = None,
    end: Tensor | complex | None = None,
    step: int = 1,
) -> Tensor:
    """A copy of `input` with `src` at start:end:step of dimension `dim`.  (*), (*) -> (*)"""
    dim = wrap_dim(dim, raw(input).ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    index: Any = (*[slice(None)] * dim, slice(start, end, step), ...)
    check_part("slice_scatter", src, np.broadcast_to(False, raw(input).shape)[index].shape)
    return slice_scatter_op(input, same_kind(input, src), index)


@function(method=True)
@numpy_names
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` at `index` of dimension `dim`.  (*), (*) -> (*)"""
    shape = raw(input).shape
    if not shape:
        raise IndexError("select_scatter() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if not -shape[dim] <= as_int(index, "select_scatter", "index") < shape[dim]:
        raise IndexError(
            f"select_scatter(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}"
        )
    place = (*[slice(None)] * dim, int(index), ...)
    check_part("select_scatter", src, (*shape[:dim], *shape[dim + 1 :]))
    return slice_scatter_op(input, same_kind(input, src), place)


@function(method=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` on the diagonal of two dimensions.  (*), (*, N) -> (*)"""
    array = raw(input)
    first, second = two_dims(dim1, dim2, array.ndim)
    check_part("diagonal_scatter", src, diagonal_of(np.broadcast_to(False, array.shape), offset, first, second).shape)
    return diagonal_scatter_op(input, same_kind(input, src), offset, first, second)
