"""Which BLAS runs, and with which core type.  (First form: the owner of this file replaces it.)"""

from __future__ import annotations

from typing import Any


def prepare() -> None:
    """Choose the core type before NumPy loads its BLAS."""


def matmul(a: Any, b: Any) -> Any:
    """The matrix product of NumPy.  a: (*, M, K), b: (*, K, N) -> (*, M, N)"""
    import numpy as np

    return np.matmul(a, b)
