"""The first elements of each row in order."""

from __future__ import annotations

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import order as reference

__all__ = ["top_k"]

exports(
    # order.cpp: input, values, indices, rows, elements of each, how many, whether the largest
    top_k="aaannni",
)

_MOST = 256  # that are kept in order one by one


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
