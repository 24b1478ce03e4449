"""Substitution, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def substitute(A: Array, x: Array, upper: bool) -> None:
    """Solve row by row, in place of x; what is divided by 0 becomes infinite.  A: (*, N, N), x: (*, N, M)"""
    n = A.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        x[..., i, :] -= np.matmul(A[..., i : i + 1, known], x[..., known, :])[..., 0, :]
        x[..., i, :] /= A[..., i, i][..., None]
