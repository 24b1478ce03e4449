"""Sums of the errors of pairs of numbers, as losses need them: natively (errors.cpp) no array of errors is made."""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import bits, dense, rows_of
from rushlight.kernels.native.signatures import exports_of_rows

__all__ = ["total_error"]

exports_of_rows(
    # errors.cpp: input, target, total, elements, where squares end
    squared_errors="aaand",
    absolute_errors="aaand",
    huber_errors="aaand",
)
SMALL = 1 << 13  # elements up to which NumPy's calls cost less


def total_error(errors: str, x: Array, target: Array, delta: float = 0.0) -> float | None:
    """The sum of the errors of large arrays that lie alike; None of any others, which are the caller's.

    errors: "squared_errors", "absolute_errors", or "huber_errors": half the square of a difference up to `delta`,
    beyond that linear.
    x, target: (*)
    """
    if x.size <= SMALL or x.dtype != target.dtype or x.shape != target.shape or not (dense(x) and dense(target)):
        return None
    table = rows_of(x.dtype)
    if table is None:
        return None
    found = np.empty(1)
    getattr(table, errors)(bits(x), bits(target), found, x.size, delta)
    return float(found[0])
