"""A row added to every row of a matrix, the sum of a matrix's rows (what a bias needs), and sums of large arrays.

NumPy's own where it is the faster: for small matrices, other dtypes and layouts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import (
    Array,
    blocks_of_rows,
    dense,
    gapless,
    in_float32_blocks,
    is_half,
    native,
    put,
    rounded,
    rows_of,
    widened,
)
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.sums import add_up

__all__ = ["add_large", "add_row", "sum_rows"]

exports(
    # rows.cpp: matrix, row, rows, columns
    add_row="aann",
    add="aaan",
)

_SMALL = 1 << 16  # elements up to which NumPy's call costs less


def _table(x: Array, row: Array) -> Any:
    if x.size <= _SMALL or x.dtype != row.dtype or not (dense(x) and dense(row)):
        return None
    return native(x.dtype)


def add_row(x: Array, row: Array) -> Array:
    """x + row, in ``x``.  x: (R, C), row: (C,), or what broadcasts to it"""
    table = _table(x, row) if x.size > _SMALL and row.shape == x.shape[1:] else None
    if table is None:
        x += row
    else:
        table.add_row(x, row, *x.shape)
    return x


def sum_rows(x: Array) -> Array:
    """The sum of the rows.  (R, C) -> (C,)"""
    if is_half(x.dtype) and x.size > _SMALL and rows_of(x.dtype) is None:
        return rounded(np.asarray(sum(sum_rows(widened(x[some])) for some in blocks_of_rows(x))), x.dtype)
    return add_up(x, (0,))


LARGE = 1 << 20  # bytes from which on threads pay for a sum, which does nothing but read and write memory


def add_large(x: Array, y: Any, out: Array | None = None) -> Any:
    """x + y on all threads where they are alike; else as NumPy does it.  (*), (*) -> (*)"""
    alike = y.__class__ is np.ndarray and y.shape == x.shape and y.dtype is x.dtype and y.strides == x.strides
    found = in_float32_blocks(np.add, x, y) if alike and is_half(x.dtype) and gapless(x) else None
    if found is not None:
        return put(found, out)
    table = native(x.dtype) if alike and gapless(x) and y.flags.aligned and (out is None or out is x) else None
    if table is None:
        return np.add(x, y, out=out)
    result = np.empty_like(x) if out is None else out
    table.add(x, y, result, x.size)
    return result
