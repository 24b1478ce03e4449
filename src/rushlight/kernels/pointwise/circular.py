"""Sines and cosines: NumPy's, but for float64 numbers, which NumPy asks the C library for one by one (circular.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.naming import called
from rushlight.kernels.dispatch import gapless
from rushlight.kernels.maps import in_memory_order, like
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes
from rushlight.kernels.pointwise.copies import copied

__all__ = ["cos", "sin"]

exports_of_bytes(
    # circular.cpp: numbers of float64, results, elements
    sines="aan",
    cosines="aan",
)

FEW = 32  # numbers up to which NumPy's call is the cheaper one
FLOAT64 = np.dtype(np.float64)


def circular(plain: np.ufunc, name: str) -> Callable[..., Any]:
    """A kernel in the place of NumPy's function; `name`: its native twin's."""

    def run(x: Array, out: Array | None = None) -> Any:
        kernels = loader.of_bytes() if x.dtype is FLOAT64 and x.size > FEW else None
        if kernels is None or x.__class__ is not np.ndarray or not (out is None or (gapless(x) and like(x, out))):
            return plain(x, out=out)
        if not gapless(x) and x.ndim > 2:
            return in_memory_order(run, x)
        given = x if gapless(x) else copied(x)
        found = np.empty_like(given) if out is None else out
        getattr(kernels, name)(given, found, given.size)
        return found

    return called(run, plain.__name__, f"As :obj:`numpy.{plain.__name__}`; `out` may be the input.  (*) -> (*)")


sin, cos = circular(np.sin, "sines"), circular(np.cos, "cosines")
