"""The first elements of each row in order, the first of the largest or smallest along a dimension, and where values belong in sorted rows."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array, bits, contiguous, dense, is_half, native, rounded, rows_of, summed_in, up
from rushlight.kernels.native.signatures import exports, exports_of_rows
from rushlight.kernels.reference import order as reference

__all__ = ["first_extreme", "has_short_rows", "of_rank", "search", "short_rows_in_order", "top_k"]

exports(
    # order.cpp: input, values, indices, rows, elements of each, how many, whether the largest
    top_k="aaannni",
    # search.cpp: sorted rows, values, places; rows, elements and values of each; whether behind equal ones
    search="aaannni",
    # select.cpp: input, ranks or None, values, indices; rows, elements of each, the rank of all
    select="aaaannn",
    # input, values, indices; elements of a row; whether from the largest on
    short_order="aaani",
)
exports_of_rows(
    # extrema.cpp: input, values, indices; elements before, in and behind the dimension; whether the smallest
    first_extreme="aaannni",
)

SHORT_ROW = 64  # elements of a row up to which NumPy's vectors gain nothing
_MOST = 256  # that are kept in order one by one
_SHORT = 16  # elements of a row up to which they are put in order one by one
_SOUGHT = 128  # values up to which NumPy's search costs less


def first_extreme(x: Array, dim: int, least: bool) -> tuple[Array, Array]:
    """(values, indices) of the elements that np.argmax or np.argmin finds along `dim`, which stays, of size 1.

    x: (*) with elements -> (*), (*) of int64
    """
    outer, count, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    by_rows = inner == 1 and count <= SHORT_ROW
    table = rows_of(x.dtype) if (by_rows or inner > 1) and count < 1 << 31 and dense(x) else None
    if table is None:
        return _found_by_numpy(x, dim, least)
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    values, index = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    table.first_extreme(bits(x), bits(values), index, outer, count, inner, int(least))
    return values, index


def _found_by_numpy(x: Array, dim: int, least: bool) -> tuple[Array, Array]:
    values, index = reference.first_extreme(up(x)[0], dim, least)
    return (rounded(values, x.dtype) if is_half(x.dtype) else values), index


def top_k(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    """The k largest or smallest elements along `dim`, in order, and where they are; NaN counts as the largest.

    x: (*), 0 < k <= its size along `dim` -> (*), (*) of int64.  Of equal elements native code gives the first.
    """
    table = native(x.dtype) if k <= _MOST else None
    if table is None:
        return reference.top_k(x, k, dim, largest)
    last = dim in (-1, x.ndim - 1)
    rows = contiguous(x if last else np.moveaxis(x, dim, -1))
    shape, n = (*rows.shape[:-1], k), rows.shape[-1]
    values, index = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    table.top_k(rows, values, index, rows.size // n, n, k, int(largest))
    if last:
        return values, index
    return np.ascontiguousarray(np.moveaxis(values, -1, dim)), np.ascontiguousarray(np.moveaxis(index, -1, dim))


def search(x: Array, values: Array, right: bool) -> Array:
    """Where values belong in rows that are sorted: before elements equal to them, or, with `right`, behind; NaN counts as the largest.

    x: (N), values: (*), or x: (R, N), values: (R, M) -> the shape of `values`, of int64
    """
    table = native(x.dtype) if x.dtype == values.dtype and 0 < x.shape[-1] < 1 << 31 and values.size > _SOUGHT else None
    if table is None:
        return reference.search(x, values, right)
    places, rows = np.empty(values.shape, np.int64), 1 if x.ndim == 1 else len(x)
    table.search(contiguous(x), contiguous(values), places, rows, x.shape[-1], values.size // rows, int(right))
    return places


def of_rank(x: Array, dim: int, k: int | Array) -> tuple[Array, Array]:
    """The k-th smallest elements (from 0) along `dim`, which stays, of size 1, and where they are; NaN counts as the largest.

    x: (*) with elements; k: a number, or an array with size 1 along `dim` -> (*), (*) of int64.  Of equal elements
        native code gives that which a stable order puts there.
    """
    table = native(x.dtype) if x.size else None
    if table is None:
        return reference.of_rank(x, dim, k)
    last = dim in (-1, x.ndim - 1)
    rows = contiguous(x if last else np.moveaxis(x, dim, -1))
    values, index = np.empty((*rows.shape[:-1], 1), x.dtype), np.empty((*rows.shape[:-1], 1), np.int64)
    ranks = None if isinstance(k, int) else np.array(k if last else np.moveaxis(k, dim, -1), np.int64, order="C")
    table.select(rows, ranks, values, index, index.size, rows.shape[-1], k if isinstance(k, int) else 0)
    return (values, index) if last else (np.moveaxis(values, -1, dim), np.moveaxis(index, -1, dim))


def bytes_of_rank(input: Array, dim: int | None) -> int:
    """Bytes that `of_rank` works with along a dimension, or, without one, along all of them as one."""
    if not input.ndim or not input.size:
        return 0
    if native(input.dtype) is None:
        return reference.bytes_of_rank(input, dim)
    if dim is None:
        return input.nbytes
    return int(input.shape[dim] * input.itemsize + (0 if dim in (-1, input.ndim - 1) else input.nbytes))


def has_short_rows(x: Array, dim: int) -> bool:
    """Whether `short_rows_in_order` sorts an array along `dim`, one of 16 bits in float32."""
    last = x.ndim > 0 and dim in (-1, x.ndim - 1)
    return bool(
        last
        and 0 < x.shape[-1] <= _SHORT
        and x.size
        and x.flags.c_contiguous
        and native(summed_in(x.dtype)) is not None
    )


def short_rows_in_order(x: Array, descending: bool) -> tuple[Array, Array]:
    """Rows of few elements in order, and where they were; equal ones stay as they were, NaN counts as the largest.  (*) -> (*), (*) of int64"""
    table, n = native(x.dtype), x.shape[-1]
    if table is None:
        index = reference.order_of(x, x.ndim - 1, descending)
        return np.take_along_axis(x, index, -1), index
    values, index = np.empty(x.shape, x.dtype), np.empty(x.shape, np.int64)
    table.short_order(x, values, index, n, int(descending))
    return values, index
