"""A row added to every row of a matrix, the sum of a matrix's rows (what a bias needs), and arithmetic of arrays that are broadcast.

NumPy's own where it is the faster: for small matrices, other dtypes and layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.naming import called
from rushlight.kernels.dispatch import (
    Array,
    dense,
    is_half,
    memory_order,
    native,
    rounded,
)
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.sums import add_up

__all__ = ["across", "add_row", "sum_rows"]

exports(
    # rows.cpp: matrix, row, rows, columns
    add_row="aann",
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
    """The sum of the rows; of 16 bits it is made in float32, and rounded once.  (R, C) -> (C,)"""
    if is_half(x.dtype):
        return rounded(add_up(x, (0,), dtype=np.float32), x.dtype)
    return add_up(x, (0,))


LARGE = 1 << 9  # bytes of the first of two arrays from which on it pays to look whether they are broadcast
_SPREAD = 1 << 14  # elements of a result from which on NumPy, which goes row by row, takes longer
_SHORT_SPREAD = 1 << 10  # where its rows are of up to _SHORT elements
_SHORT = 16


def across(plain: np.ufunc) -> Callable[..., Any]:
    """A kernel in the place of NumPy's function of two, for large arrays that are broadcast or lie otherwise.

    That is, with gaps between rows or in another order; all else is left to NumPy's.  NumPy calls its loop for every row,
    which takes as long as 100 numbers do, and on one thread.
    """
    name = f"{plain.__name__}_across"
    exports(**{name: "aaa>n"})

    def run(x: Array, y: Any, out: Array | None = None) -> Any:
        if out is None and (y.__class__ is not np.ndarray or (x.size < _SPREAD and x.shape == y.shape)):
            return plain(x, y)
        table = native(x.dtype) if y.__class__ is np.ndarray and y.dtype is x.dtype and _by_rows(x, y) else None
        if table is None:
            return plain(x, y, out=out)
        both = np.broadcast(x, y)
        if both.size < (_SPREAD if both.shape[-1] > _SHORT else _SHORT_SPREAD) or not (
            out is None or _takes(out, x, y, both.shape)
        ):
            return plain(x, y, out=out)
        order = _own_order(x, y) if out is None or out is x else None
        if order is not None:
            lying = x.transpose(order)
            found = run(lying, y.transpose(order), None if out is None else lying)
            return found.transpose([order.index(i) for i in range(x.ndim)]) if out is None else out
        result = np.empty(both.shape, x.dtype) if out is None else out
        if getattr(table, name)(x, y, result):
            return result
        del result
        return plain(x, y, out=out)

    return called(run, name, f"As :obj:`numpy.{plain.__name__}`; `out` may be the first.  (*), (*) -> (*)")


def _by_rows(x: Array, y: Array) -> bool:
    """Whether NumPy goes row by row, since arrays are broadcast or have gaps."""
    a, b = x.flags, y.flags
    return (
        (x.shape != y.shape or not ((a.c_contiguous and b.c_contiguous) or (a.f_contiguous and b.f_contiguous)))
        and x.ndim + y.ndim > 2
        and a.aligned
        and b.aligned
    )


def _own_order(x: Array, y: Array) -> list[int] | None:
    """The dimensions of `x` as they lie in memory without gaps, where those of the result do as well: `y` is broadcast to `x`."""
    if x.flags.c_contiguous or x.ndim != y.ndim or x.ndim < 3 or x.shape == y.shape:
        return None
    if any(n not in (1, m) for m, n in zip(x.shape, y.shape, strict=True)):
        return None
    order = memory_order(x)
    return order if x.transpose(order).flags.c_contiguous else None


def _takes(out: Array, x: Array, y: Array, shape: tuple[int, ...]) -> bool:
    """Whether `out`, which may be `x`, can take the result while operands are read."""
    shared = np.may_share_memory(out, y) or (out is not x and np.may_share_memory(out, x))
    return out.shape == shape and out.dtype is x.dtype and out.flags.carray and not shared
