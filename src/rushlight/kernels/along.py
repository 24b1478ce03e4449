"""Elements read, written and added at indices along one dimension, which other dimensions share."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array, bits, contiguous, dense, is_half, rounded, rows_of, widened
from rushlight.kernels.gather import JOINS, PIECE, index_add_rows
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes, exports_of_rows
from rushlight.kernels.pointwise.copies import WORDS
from rushlight.kernels.reference import along as reference
from rushlight.kernels.reference.along import along, element_index

__all__ = ["add_along", "along", "element_index", "gather_along", "join_along", "put_along"]

exports_of_bytes(
    # along.cpp: elements, index, where they go or come from, extents
    gather_along="aaannnn>n",
    put_along="aaannnn>n",
)

exports_of_rows(
    # along.cpp: values, index, values, extents and how they are joined
    join_along="aaannnnn>n",
)

_INT64 = np.dtype(np.int64)


def gather_along(x: Array, index: Array, dim: int) -> Array:
    """x at `index` along `dim`; other dimensions of `index` may be shorter.  (*), (*) int -> shape of index

    Callers have checked that indices lie in [0, size): native code raises IndexError for others, NumPy counts some from the end.
    """
    moved = _moved(x) if _fits(x, index, dim) else None
    if moved is None:
        return reference.gather_along(x, index, dim)
    table, word = moved
    out = np.empty(index.shape, x.dtype)
    found = table.gather_along(x.view(word), index, out.view(word), *_extents(x, index, dim))
    _check(found, index, x.shape[dim])
    return out


def put_along(x: Array, index: Array, dim: int, values: Array) -> None:
    """x at `index` along `dim` = values, the last of repeats, in place.  x: (*), index: (*) int, values: shape of index, of x's dtype

    Callers have checked that indices lie in [0, size): native code raises IndexError for others, NumPy counts some from the end.
    """
    moved = _moved(x) if _fits(x, index, dim) and values.dtype == x.dtype else None
    if moved is None:
        cut = tuple([slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape)])
        x[cut][along(index, dim)] = values
        return
    table, word = moved
    given = contiguous(values).view(word)
    _check(table.put_along(x.view(word), index, given, *_extents(x, index, dim)), index, x.shape[dim])


def add_along(x: Array, index: Array, dim: int, values: Array) -> None:
    """x at `index` along `dim` += values, repeats adding up.  x: (*) real, index: (*) int, values: shape of index

    Numbers of 16 bits are added in float32 and rounded once.
    Callers have checked that indices lie in [0, size): native code raises IndexError for others, NumPy counts some from the end.
    """
    if not dense(x):
        whole = contiguous(x)
        add_along(whole, index, dim, values)
        x[...] = whole
    elif values.size > PIECE and not values.flags.c_contiguous and not is_half(x.dtype):
        step = max(len(index) * PIECE // values.size, 1)
        for start in range(0, len(index), step):
            some = slice(start, start + step)
            add_along(x if dim == 0 else x[some], index[some], dim, np.ascontiguousarray(values[some]))
    elif not _joined(x, index, dim, values, "sum"):
        where = element_index(x.shape, index, dim).reshape(-1)
        index_add_rows(x.reshape(-1, 1), where, values.reshape(-1, 1))


def join_along(x: Array, index: Array, dim: int, values: Array, how: str) -> None:
    """As `add_along` with products ("prod"), greatest ("amax") or least ("amin") numbers, of which NaN is all."""
    whole, index = contiguous(x), contiguous(index)
    if not _joined(whole, index, dim, values, how):
        wide = widened(whole) if is_half(x.dtype) else whole
        reference.join_along(wide, index, dim, widened(values) if is_half(values.dtype) else values, how)
        if wide is not whole:
            rounded(wide, x.dtype, whole)
    if whole is not x:
        x[...] = whole


def _joined(x: Array, index: Array, dim: int, values: Array, how: str) -> bool:
    """Whether native code joined values with those of an array in C order."""
    table = rows_of(x.dtype) if _fits(x, index, dim) and values.dtype == x.dtype else None
    if table is None:
        return False
    given = bits(contiguous(values))
    _check(table.join_along(bits(x), index, given, *_extents(x, index, dim), JOINS[how]), index, x.shape[dim])
    return True


def _moved(x: Array) -> tuple[loader.Kernels, np.dtype[np.unsignedinteger]] | None:
    """The kernels that move elements as wide as those of x, and the dtype of which they take these to be; None where there are none."""
    word, table = WORDS.get(x.itemsize), loader.of_bytes()
    return None if table is None or word is None or x.dtype.hasobject else (table, word)


def _fits(x: Array, index: Array, dim: int) -> bool:
    """Whether the kernels are for these arrays: with dimensions, dense, and of one size but for `dim`."""
    if not x.ndim or x.ndim != index.ndim or index.dtype != _INT64 or not index.size or not (dense(x) and dense(index)):
        return False
    return x.shape[:dim] == index.shape[:dim] and x.shape[dim + 1 :] == index.shape[dim + 1 :]


def _extents(x: Array, index: Array, dim: int) -> tuple[int, int, int, int]:
    return math.prod(x.shape[:dim]), x.shape[dim], index.shape[dim], math.prod(x.shape[dim + 1 :])


def _check(outside: int, index: Array, size: int) -> None:
    if outside >= 0:
        raise IndexError(f"index {index.reshape(-1)[outside]} is out of bounds for dimension of size {size}")
