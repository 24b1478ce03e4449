"""What operators make, said from shapes alone: the words in which declarations say it (`shape=` and `@x.shape`).

A rule's parameter names are its request, as a formula's are: inputs (arrays, of which only shape, strides and dtype are read)
and statics. It returns the results and auxiliary results in the operator's order, each a `Made`. Where it returns None the
values decide, and the operator has to run. Rules that several operators share stand here, the others beside their operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex, real_of

INT64 = np.dtype(np.int64)
BOOL = np.dtype(bool)


class Made(NamedTuple):
    """An array that an operator makes.  order: its dimensions by decreasing stride, None for C order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        return int(math.prod(self.shape) * np.dtype(self.dtype).itemsize)


def order_of(array: Array) -> tuple[int, ...] | None:
    """The dimensions of an array by decreasing stride, None where it lies in C order."""
    if array.flags.c_contiguous:
        return None
    return tuple(sorted(range(array.ndim), key=lambda i: (-abs(array.strides[i]), i)))


def like(x: Array) -> Made:
    """Like an array, in its memory order."""
    return Made(x.shape, x.dtype, order_of(x))


def packed(x: Array) -> Made:
    """Like an array, in C order: what kernels write."""
    return Made(x.shape, x.dtype)


def statistics_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of means and deviations of values of a dtype."""
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


def with_size(x: Array, dim: int, n: int) -> tuple[int, ...]:
    """The shape of an array with `n` elements in one dimension."""
    return tuple(n if i == dim % x.ndim else size for i, size in enumerate(x.shape))


# Of the shape of the first input ------------------------------------------------------------------------------


def same(input: Array) -> list[Made]:
    """One result like the input, in its memory order."""
    return [like(input)]


def same_and_mask(input: Array) -> list[Made]:
    """One result like the input, and a mask of its elements."""
    return [like(input), like(input)._replace(dtype=np.dtype(bool))]


def dense(input: Array) -> list[Made]:
    """One result like the input, in C order."""
    return [packed(input)]


def dense_grad(grad: Array) -> list[Made]:
    """One result like the gradient, in C order."""
    return [packed(grad)]


def truths(input: Array) -> list[Made]:
    """A bool for each element of the input."""
    return [Made(input.shape, BOOL, order_of(input))]


def with_indices(input: Array) -> list[Made]:
    """One result like the input, and an index for each element."""
    return [packed(input), Made(input.shape, INT64)]


# Of a shape that is given ---------------------------------------------------------------------------------------


def number(input: Array) -> list[Made]:
    """One number of the input's dtype."""
    return [Made((), input.dtype)]


def sized(input: Array, size: Sequence[int]) -> list[Made]:
    """What has the static `size`."""
    return [Made(tuple(size), input.dtype)]


def shaped(input: Array, shape: Sequence[int]) -> list[Made]:
    """What has the static `shape`."""
    return [Made(tuple(shape), input.dtype)]


def indexed(input: Array, index: Array) -> list[Made]:
    """An element for each index."""
    return [Made(index.shape, input.dtype)]


def product(input: Array, mat2: Array) -> list[Made]:
    """Products of matrices over broadcast leading dimensions."""
    lead = np.broadcast_shapes(input.shape[:-2], mat2.shape[:-2])
    return [Made((*lead, input.shape[-2], mat2.shape[-1]), input.dtype)]


# Reductions -----------------------------------------------------------------------------------------------------


def reduced(x: Array, dim: int | tuple[int, ...] | None, keepdim: bool, dtype: np.dtype[Any] | None = None) -> Made:
    """The shape that a reduction over `dim` leaves; None is all."""
    dims = (
        range(x.ndim)
        if dim is None or dim == ()
        else {d % max(x.ndim, 1) for d in (dim if isinstance(dim, tuple) else (dim,))}
    )
    shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape) if keepdim or i not in dims)
    return Made(shape, dtype or x.dtype)


def reduction(input: Array, dim: int | tuple[int, ...] | None, keepdim: bool) -> list[Made]:
    """One value in the place of several; of integers, int64."""
    return [reduced(input, dim, bool(keepdim), INT64 if input.dtype.kind in "biu" else None)]


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """That of absolute values."""
    return real_of(np.empty(0, dtype)).dtype if is_complex(dtype) else dtype


def real_reduction(input: Array, dim: int | tuple[int, ...] | None, keepdim: bool) -> list[Made]:
    """One real value in the place of several."""
    return [reduced(input, dim, bool(keepdim), real_dtype(input.dtype))]


def own_reduction(input: Array, dim: int | tuple[int, ...] | None, keepdim: bool) -> list[Made]:
    """One value in the place of several, of their dtype."""
    return [reduced(input, dim, bool(keepdim))]


def variance_and_mean(input: Array, dim: int | tuple[int, ...] | None, keepdim: bool) -> list[Made]:
    """A real value and one of the input's dtype in the place of several."""
    return [*real_reduction(input, dim, keepdim), *own_reduction(input, dim, keepdim)]


def two_reductions(input: Array, dim: int | tuple[int, ...] | None, keepdim: bool) -> list[Made]:
    """Two values in the place of several."""
    return [reduced(input, dim, bool(keepdim))] * 2


def reduction_with_indices(input: Array, dim: int | tuple[int, ...] | None, keepdim: bool) -> list[Made]:
    """One value in the place of several, and where it was."""
    return [reduced(input, dim, keepdim), reduced(input, dim, keepdim, INT64)]


# Losses -----------------------------------------------------------------------------------------------------------


def lossy(shape: tuple[int, ...], dtype: np.dtype[Any], reduction: str) -> Made:
    """The result of a loss over `shape`."""
    return Made(tuple(shape) if reduction == "none" else (), dtype)


def loss(input: Array, target: Array, reduction: str) -> list[Made]:
    """The result of a loss over pairs of elements."""
    return [lossy(np.broadcast_shapes(input.shape, target.shape), input.dtype, reduction)]
