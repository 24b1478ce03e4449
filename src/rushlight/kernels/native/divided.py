"""NumPy's ufuncs over large arrays, on all threads: loops of divided.cpp in place of NumPy's own, which they call on parts.

An element comes from the same instructions as before, so that bits, warnings and `errstate` are NumPy's.  See
docs/decisions/0022-numpy-on-all-threads.md.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np

from rushlight.kernels.native.ufuncs import interface, replacing

__all__ = ["DIVIDED", "install"]

LIGHT, HEAVY = 1 << 17, 1 << 14  # bytes, or elements of what takes long, that are worth a thread

PAIRS = ("add", "subtract", "multiply", "true_divide", "maximum", "minimum", "fmax", "fmin", "copysign")
SINGLES = (
    *("negative", "absolute", "square", "sqrt", "reciprocal", "floor", "ceil", "trunc", "rint", "sign", "positive"),
)
EXTREMES = ("maximum", "minimum")  # which have loops of ours
TRUTHS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal")
KINDS = ("isnan", "isinf", "isfinite", "signbit")
FUNCTIONS = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt"),
)
FUNCTIONS_OF_TWO = ("power", "arctan2", "hypot", "logaddexp", "logaddexp2", "fmod", "remainder", "floor_divide")

DIVIDED: list[tuple[str, str]] = []  # the ufuncs that have them, and of which dtypes


def install(lib: Any) -> None:
    """Give NumPy the loops of a library. What it does not take stays as it was."""
    if DIVIDED:
        return
    with contextlib.suppress(AttributeError, ImportError, ValueError, OSError):
        give = _giving(lib)
        for name, kinds, grain in _wanted():
            if give(len(DIVIDED), name, kinds, grain):
                DIVIDED.append((name, kinds))


def _wanted() -> list[tuple[str, str, int]]:
    """Ufuncs, the letters of dtypes of their operands, and how many elements are worth a thread."""
    real = [(name, d * 3) for d in "fd" for name in PAIRS] + [(name, d * 2) for d in "fd" for name in SINGLES]
    truths = [(name, d * 2 + "?") for d in "fd" for name in TRUTHS] + [(name, d + "?") for d in "fd" for name in KINDS]
    heavy = [(name, d * 2) for d in "fd" for name in FUNCTIONS] + [
        (name, d * 3) for d in "fd" for name in FUNCTIONS_OF_TWO
    ]
    return [(name, kinds, LIGHT // np.dtype(kinds[0]).itemsize) for name, kinds in real + truths] + [
        (*both, HEAVY) for both in heavy
    ]


def _giving(lib: Any) -> Any:
    put = replacing(interface())
    lib.rl_divided.restype = lib.rl_divided_former.restype = ctypes.c_void_p
    lib.rl_divided_as.argtypes = lib.rl_divided_extremes.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long]

    def give(place: int, name: str, kinds: str, grain: int) -> bool:
        loop = lib.rl_divided(place)
        if not loop:
            return False
        former = ctypes.c_void_p.from_address(lib.rl_divided_former(place))
        lib.rl_divided_as(place, len(kinds), grain)
        if name in EXTREMES:
            lib.rl_divided_extremes(place, name == "maximum", np.dtype(kinds[0]).itemsize)
        return bool(put(name, loop, [np.dtype(letter).num for letter in kinds], former))

    return give
