"""Diagonals and triangles: diagonal, diag, diag_embed, diagflat, trace, tril, triu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, wrap_dim
from rushlight.dispatch.formats import contiguous_format
from rushlight.dispatch.memory_views import view_at
from rushlight.dispatch.operands import held
from rushlight.dispatch.registry import function, op
from rushlight.ops.elementwise.convert import copy
from rushlight.ops.reduce.sums import sum_op
from rushlight.ops.shape.reshape import reshape_op
from rushlight.tensor import Tensor


def length(rows: int, columns: int, offset: int) -> int:
    """The number of elements of a diagonal."""
    return max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)


def diagonal_of(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal of two dimensions as a new last dimension, a view."""
    n = length(array.shape[dim1], array.shape[dim2], offset)
    keep = [d for d in range(array.ndim) if d not in (dim1, dim2)]
    start = 0 if n == 0 else offset * array.strides[dim2] if offset >= 0 else -offset * array.strides[dim1]
    shape = (*[array.shape[d] for d in keep], n)
    return view_at(array, shape, (*[array.strides[d] for d in keep], array.strides[dim1] + array.strides[dim2]), start)


@op(
    aten=("diagonal(input, offset=0, dim1=0, dim2=1)",),
    view=True,
    linear=True,
    batch=families.shifted,
)
def diagonal_op(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal of two dimensions as a new last dimension, a view.  (*) -> (*, N)"""
    return diagonal_of(input, offset, dim1, dim2)


diagonal_op.grad("input")(lambda g, input_shape, offset, dim1, dim2: diagonal_zeros(g, input_shape, offset, dim1, dim2))


@op(linear=True, complex_half="moves", shape=shapes.sized, batch=families.shifted)
def diagonal_zeros(input: Array, size: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    """Zeros of shape `size` with `input` on a diagonal: the adjoint of diagonal.  (*, N) -> size"""
    out = np.zeros(size, input.dtype)
    diagonal_of(out, offset, dim1, dim2)[...] = input
    return out


diagonal_zeros.grad("input")(lambda g, offset, dim1, dim2: diagonal_op(g, offset, dim1, dim2))


def two_dims(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Two dimensions, counted from the first.  Raises RuntimeError where they are the same."""
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


@function(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of dimensions `dim1` and `dim2` as a new last dimension, a view.  (*) -> (*, N)"""
    first, second = two_dims(dim1, dim2, held(input).ndim)
    return diagonal_op(input, as_int(offset, "diagonal", "offset"), first, second)


@function(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with the last dimension of `input` on a diagonal of two new dimensions.  (*, N) -> (*)"""
    first, second = two_dims(dim1, dim2, held(input).ndim + 1)
    side = held(input).shape[-1] + abs(offset)
    size = list(held(input).shape[:-1])
    for d in sorted((first, second)):
        size.insert(d, side)
    return diagonal_zeros(input, tuple(size), offset, first, second)


@function(method=True, out="same")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as the diagonal of a matrix of zeros, or the diagonal of a matrix as a vector, a copy."""
    ndim = held(input).ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return copy(diagonal_op(input, diagonal, 0, 1), contiguous_format)


@function(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The elements, flat, as the diagonal of a matrix of zeros.  (*) -> (N, N)"""
    return diag_embed(reshape_op(input, (held(input).size,)), offset)


@function(method=True, autocast="float32")
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.  (M, N) -> ()"""
    if held(input).ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {held(input).ndim}")
    if held(input).dtype == np.bool_:
        raise NotImplementedError(
            "trace(): expected a matrix of numbers, got torch.bool: convert it, with .long() to count"
        )
    return sum_op(diagonal_op(input, 0, 0, 1), None, False)


@op(
    ns="",
    aten=("tril(input, diagonal=0)",),
    same_out=True,
    linear=True,
    inplace=True,
    complex_half="moves",
    shape=shapes.same,
    repeatable=True,
    batch=families.shifted,
)
def tril(input: Array, diagonal: int = 0) -> Array:
    """The matrices with zeros above a diagonal.  (*, M, N) -> (*, M, N)"""
    check_matrix("tril", input)
    return backend.triangle(input, as_int(diagonal, "tril", "diagonal"), False)


@op(
    ns="",
    aten=("triu(input, diagonal=0)",),
    same_out=True,
    linear=True,
    inplace=True,
    complex_half="moves",
    shape=shapes.same,
    repeatable=True,
    batch=families.shifted,
)
def triu(input: Array, diagonal: int = 0) -> Array:
    """The matrices with zeros below a diagonal.  (*, M, N) -> (*, M, N)"""
    check_matrix("triu", input)
    return backend.triangle(input, as_int(diagonal, "triu", "diagonal"), True)


def check_matrix(name: str, array: Array) -> None:
    """Raise RuntimeError for fewer than two dimensions."""
    if array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions, got {array.ndim}")


def _into(name: str, upper: bool) -> Callable[..., Any]:
    def into(out: Array, diagonal: int) -> None:
        check_matrix(name, out)
        backend.clear_triangle(out, as_int(diagonal, f"{name}_", "diagonal"), upper)

    return into


tril.into(_into("tril", False))
triu.into(_into("triu", True))
tril.grad("input")(lambda g, diagonal: tril(g, diagonal))
triu.grad("input")(lambda g, diagonal: triu(g, diagonal))
