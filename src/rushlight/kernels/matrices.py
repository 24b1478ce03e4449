"""Products of matrices: by the native kernel where it pays, else by NumPy's BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, native
from rushlight.kernels.products import of_halves
from rushlight.kernels.rows import add_row

_SMALL = 1 << 18  # multiplications up to which the call of NumPy's costs less


def matmul(a: Array, b: Array, out: Any = None, row: Any = None) -> Any:
    """The product of matrices; float16 goes through float32, blocks at a time, and bfloat16 where the processor has nothing for it.

    a: (*, M, K), b: (*, K, N) -> (*, M, N); one-dimensional operands as in :func:`numpy.matmul`.  row: (N), or what broadcasts
    to it, added to the rows of a product of two-dimensional factors; to 16-bit ones before it is rounded.
    """
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        return of_halves(a, b, out, row)
    if a.size + b.size > 4096:
        found = _multiplied(a, b, row) if out is None else None
        if found is not None:
            return found
        a, b = _ready(a), _ready(b)
    found = a @ b if out is None else np.matmul(a, b, out=out)
    return found if row is None else add_row(found, row)


def _multiplied(a: Array, b: Array, row: Array | None) -> Array | None:
    """The product by the native kernel; None where NumPy shall do it.  Factors as in `matmul`."""
    if a.dtype != b.dtype or a.ndim != b.ndim or not 2 <= a.ndim <= 3:
        return None
    *lead, rows, steps = a.shape
    columns = b.shape[-1]
    if rows < 8 or columns < 8 or rows * steps * columns < _SMALL:
        return None
    table = native(a.dtype)
    if table is None or b.shape[:-1] != (*lead, steps):
        return None
    beside = row is None or (row.dtype == a.dtype and row.shape == (columns,) and row.flags.c_contiguous)
    out = np.empty((*lead, rows, columns), a.dtype)
    if not table.multiply(a, b, row if beside else None, out):
        return None
    return out if beside else add_row(out, row)


def _ready(a: Array) -> Array:
    """``a``, copied if the strides of its last two axes are such that NumPy would not hand it to BLAS."""
    if a.flags.c_contiguous or a.ndim < 2:
        return a
    rows, columns = a.strides[-2:]
    size = a.itemsize
    plain = columns == size and rows >= size * a.shape[-1] and not rows % size
    turned = rows == size and columns >= size * a.shape[-2] and not columns % size
    return a if plain or turned else a.copy(order="C")
