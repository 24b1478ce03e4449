"""A row added to every row of a matrix, and the sum of a matrix's rows: what a bias needs.

NumPy's own where it is the faster: for small matrices, other dtypes and layouts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, native

_SMALL = 1 << 16  # elements up to which NumPy's call costs less


def _table(x: Array, row: Array) -> Any:
    if x.size <= _SMALL or x.dtype != row.dtype or not (x.flags.c_contiguous and row.flags.c_contiguous):
        return None
    return native(x.dtype)


def add_row(x: Array, row: Array) -> Array:
    """x + row, in ``x``.  x: (R, C), row: (C,)"""
    table = _table(x, row)
    if table is None:
        x += row
    else:
        table.add_row(x, row, *x.shape)
    return x


def sum_rows(x: Array) -> Array:
    """The sum of the rows.  (R, C) -> (C,)"""
    table = _table(x, x)
    if table is None:
        return np.asarray(np.add.reduce(x, 0))
    total = np.empty(x.shape[1], x.dtype)
    table.sum_rows(x, total, *x.shape)
    return total
