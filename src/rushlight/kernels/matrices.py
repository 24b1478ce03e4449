"""Products of matrices, by the native kernel where it pays, else by NumPy's BLAS."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.pointwise.copies import copied
from rushlight.kernels.products import of_halves
from rushlight.kernels.rows import across, add_row

__all__ = ["column_by_row", "matmul", "multiplies"]

exports(
    # matrices.cpp: two factors, row or None, result
    multiply="aaaa>n",
    # whether the processor has it done at all
    multiply_pays=">n",
)

_multiply = across(np.multiply)
_SMALL = (
    1 << 19
)  # multiplications up to which the call of NumPy's costs less; from here on its BLAS has threads of its own
_SMALL_NARROW = 3 << 18  # the same of few columns
_SMALL_TURNED = 1 << 17  # the same where memory runs along the sum in both factors
_LARGE = 1 << 16  # elements of a result from which on it is no product
_FEW = 8  # rows or columns below which a product does little but read its factors


def matmul(a: Array, b: Array, out: Any = None, row: Array | None = None) -> Any:
    """The product of matrices; float16 goes through float32, blocks at a time, and bfloat16 where the processor has nothing for it.

    a: (*, M, K), b: (*, K, N) -> (*, M, N); one-dimensional operands as in `numpy.matmul`.  row: (N), or what broadcasts
    to it, added to the rows of a product of two-dimensional factors; to 16-bit ones before it is rounded.
    """
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        return of_halves(a, b, out, row)
    if b.shape[-2:-1] == a.shape[-1:] == (1,) and a.ndim > 1 and a.size * b.shape[-1] >= _LARGE:
        found = column_by_row(a, b, out)  # nothing is added up
        return found if row is None else add_row(found, row)
    if a.size + b.size > 4096:
        found = _natively(a, b, row) if out is None else None
        if found is not None:
            return found
        a, b = _ready(a), _ready(b)
    found = a @ b if out is None else np.matmul(a, b, out=out)
    return found if row is None else add_row(found, row)


def column_by_row(a: Array, b: Array, out: Any = None) -> Any:
    """a * b, of which nothing is added up.  a: (*, M, 1), b: (*, 1, N) -> (*, M, N)"""
    return _multiply(a, b, out=out)


def _natively(a: Array, b: Array, row: Array | None) -> Array | None:
    """The product by the native kernel; None where NumPy shall do it.  Arguments as of `matmul`."""
    if a.ndim < 2 or b.ndim < 2 or a.dtype != b.dtype:
        return None
    rows, steps, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    if rows < _FEW or columns < _FEW or steps != b.shape[-2] or _small(a, b):
        return None
    table = native(a.dtype)
    if table is None or not multiplies(a.dtype):
        return None
    if a.ndim == b.ndim == 2:
        return _multiplied(table, a, b, row)
    if a.shape[:-2] != b.shape[:-2]:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    left, right = _batch(a), _batch(b)
    if left is None or right is None:
        return None
    found = _multiplied(table, left, right, None)
    return None if found is None else found.reshape(*a.shape[:-1], columns)


def _small(a: Array, b: Array) -> bool:
    """Whether BLAS is the faster one for so few multiplications."""
    columns = b.shape[-1]
    work, narrow = a.size * columns, columns < 2 * _FEW
    if work >= (_SMALL_NARROW if narrow else _SMALL):
        return False
    return work < _SMALL_TURNED or b.strides[-2] != b.itemsize or narrow


@cache
def multiplies(dtype: np.dtype[Any]) -> bool:
    """Whether the native kernel multiplies matrices of a dtype faster than BLAS does on this processor.

    To have each product refused takes 4 us.
    """
    table = native(dtype)
    return table is not None and bool(table.multiply_pays())


def _batch(x: Array) -> Array | None:
    """x (*, R, C) as (B, R, C) on the same memory; None where its strides do not allow that."""
    if any(x.strides[i] != x.strides[i + 1] * x.shape[i + 1] for i in range(x.ndim - 3)):
        return None
    return x if x.ndim == 3 else x.reshape(-1, *x.shape[-2:])


def _multiplied(table: Any, a: Array, b: Array, row: Array | None) -> Array | None:
    """a (M, K) @ b (K, N) + row, or a (B, M, K) @ b (B, K, N); None where the strides are not such that it can be done."""
    out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    beside = None if row is None or not _fits(row, out) else row
    if not table.multiply(a, b, beside, out):
        return None
    return out if row is None or beside is not None else add_row(out, row)


def _fits(row: Array, out: Array) -> bool:
    """Whether a row is one that the kernel adds itself."""
    return row.dtype == out.dtype and row.shape == out.shape[1:] and row.flags.c_contiguous and row.flags.aligned


def _ready(a: Array) -> Array:
    """``a``, copied if the strides of its last two axes are such that NumPy would not hand it to BLAS."""
    if a.ndim < 2 or (a.flags.forc if a.ndim == 2 else a.flags.c_contiguous):
        return a
    rows, columns = a.strides[-2:]
    size = a.itemsize
    plain = columns == size and rows >= size * a.shape[-1] and not rows % size
    turned = rows == size and columns >= size * a.shape[-2] and not columns % size
    return a if plain or turned else copied(a)
