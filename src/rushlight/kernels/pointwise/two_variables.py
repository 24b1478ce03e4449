"""Functions of two variables, elementwise, by their names in NumPy: natively where both are large arrays alike.

Remainders and quotients are computed natively by one number, too.  Their twins are in division.cpp and two_variables.cpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, is_half, through_float32
from rushlight.kernels.maps import each, like, paired

__all__ = [
    "copysign",
    "floor_divide",
    "fmod",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "nextafter",
    "remainder",
    "truncated_quotient",
]

fmod = paired(np.fmod, by_number=True)
remainder = paired(np.remainder, by_number=True)
floor_divide = paired(np.floor_divide, by_number=True)
logaddexp, logaddexp2, hypot = paired(np.logaddexp), paired(np.logaddexp2), paired(np.hypot)
copysign, nextafter = paired(np.copysign, sixteen=False), paired(np.nextafter, sixteen=False)


@each()
def _truncated_quotient(x: Array, y: Array) -> Array:
    found = np.asarray(np.true_divide(x, y))
    return np.trunc(found, out=found)


def truncated_quotient(x: Array, y: Any) -> Array:
    """x / y without what comes after the point, rounded once.  (*), (*) -> (*)"""
    if x.__class__ is np.ndarray and like(x, y):
        return _truncated_quotient(x, y)
    half = next((z.dtype for z in (x, y) if z.__class__ is np.ndarray and is_half(z.dtype)), None)
    plain = _truncated_quotient.reference
    return np.asarray(plain(x, y) if half is None else through_float32(plain, half, x, y))
