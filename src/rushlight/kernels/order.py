"""The first elements of each row in order, the first of the largest or smallest along a dimension, and where values belong in sorted rows."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, dense, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import order as reference

__all__ = ["first_extreme", "search", "top_k"]

exports(
    # order.cpp: input, values, indices, rows, elements of each, how many, whether the largest
    top_k="aaannni",
    # extrema.cpp: input, values, indices; elements before, in and behind the dimension; whether the smallest
    first_extreme="aaannni",
    # search.cpp: sorted rows, values, places; rows, elements and values of each; whether behind equal ones
    search="aaannni",
)

SHORT_ROW = 64  # elements of a row up to which NumPy's vectors gain nothing
_MOST = 256  # that are kept in order one by one
_SOUGHT = 128  # values up to which NumPy's search costs less


def first_extreme(x: Array, dim: int, least: bool) -> tuple[Array, Array]:
    """(values, indices) of the elements that np.argmax or np.argmin finds along `dim`, which stays, of size 1.

    x: (*) with elements -> (*), (*) of int64
    """
    outer, count, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    by_rows = inner == 1 and count <= SHORT_ROW
    table = native(x.dtype) if (by_rows or inner > 1) and count < 1 << 31 and dense(x) else None
    if table is None:
        return reference.first_extreme(x, dim, least)
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    values, index = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    table.first_extreme(x, values, index, outer, count, inner, int(least))
    return values, index


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
