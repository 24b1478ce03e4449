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
LOGIC = ("logical_and", "logical_or", "logical_xor")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
WHOLE = "liB"  # int64, int32, uint8.  Their power stays NumPy's: it raises errors of Python, which threads would lose
WHOLE_PAIRS = (
    *("add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin", *BITWISE, "left_shift", "right_shift"),
)
WHOLE_SINGLES = ("negative", "absolute", "square", "sign", "invert")
QUOTIENTS = ("fmod", "remainder", "floor_divide")

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
    pairs = _of("fd", 3, (*PAIRS, "heaviside")) + _of(WHOLE, 3, WHOLE_PAIRS) + _of("?", 3, BITWISE)
    singles = _of("fd", 2, SINGLES) + _of(WHOLE, 2, WHOLE_SINGLES) + _of("?", 2, ("invert",))
    truths = _of("fd" + WHOLE, 2, (*TRUTHS, *LOGIC), "?") + _of("?", 3, ("equal", "not_equal", *LOGIC))
    kinds_of_one = _of("fd", 1, KINDS, "?") + _of("fd?" + WHOLE, 1, ("logical_not",), "?")
    heavy = _of("fd", 2, FUNCTIONS) + _of("fd", 3, FUNCTIONS_OF_TWO) + _of(WHOLE, 3, QUOTIENTS)
    light = [*pairs, *singles, *truths, *kinds_of_one]
    return [(name, kinds, LIGHT // np.dtype(kinds[0]).itemsize) for name, kinds in light] + [
        (*both, HEAVY) for both in heavy
    ]


def _of(letters: str, operands: int, names: tuple[str, ...], result: str = "") -> list[tuple[str, str]]:
    """Ufuncs over so many operands of each dtype, the result among them unless it has a letter of its own."""
    return [(name, letter * operands + result) for letter in letters for name in names]


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
        if name in EXTREMES and kinds[0] in "fd":
            lib.rl_divided_extremes(place, name == "maximum", np.dtype(kinds[0]).itemsize)
        return bool(put(name, loop, [np.dtype(letter).num for letter in kinds], former))

    return give
