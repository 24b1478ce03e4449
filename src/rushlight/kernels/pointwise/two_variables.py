"""Functions of two variables, elementwise, by their names in NumPy: natively where both are large arrays alike.

Remainders and quotients are computed natively by one number, too.  Their twins are in division.cpp and two_variables.cpp.
"""

from __future__ import annotations

import numpy as np

from rushlight.kernels.maps import paired

__all__ = [
    "copysign",
    "floor_divide",
    "fmod",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "nextafter",
    "remainder",
]

fmod = paired(np.fmod, by_number=True)
remainder = paired(np.remainder, by_number=True)
floor_divide = paired(np.floor_divide, by_number=True)
logaddexp, logaddexp2, hypot = paired(np.logaddexp), paired(np.logaddexp2), paired(np.hypot)
copysign, nextafter = paired(np.copysign), paired(np.nextafter, sixteen=False)
