"""NumPy's ufuncs over bfloat16 and float16 numbers: loops of loops.cpp in place of those that were there, bit for bit.

NumPy knows bfloat16 by the loops that ml_dtypes registers, which go number by number, as its own of float16 do: a sum of two arrays
takes eight times as long as that of float32 ones, of float16 thirty times.  Formulas, optimizers and whoever else writes `a + b` call
those loops, so that they are exchanged here, once, by functions of NumPy's C interface: `PyUFunc_RegisterLoopForType`, which takes the
place of a loop that is there, and for NumPy's own dtypes `PyUFunc_ReplaceLoopBySignature`, which tells the loop that was there: ours
hand on to it what is not a row without gaps.  See docs/decisions/0021-loops-of-bfloat16.md.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

__all__ = ["TAKEN", "install"]

PAIRS = ("add", "subtract", "multiply", "true_divide", "maximum", "minimum")
SINGLES = ("negative", "absolute", "square", "sqrt", "reciprocal", "floor", "ceil", "trunc", "rint")
TRUTHS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal")
KINDS = ("isnan", "isinf", "isfinite")

BFLOAT16, FLOAT16, BOOL = (np.dtype(t).num for t in (bfloat16, np.float16, np.bool_))
TAKEN: set[tuple[str, int]] = set()  # the ufuncs that have them, and of which dtype

REGISTER, REPLACE = 2, 30  # the places of both functions in the table of NumPy's interface for ufuncs


def install(lib: Any) -> bool:
    """Give NumPy the loops of a library; whether it took them. Without them all is as it was, and slower."""
    with contextlib.suppress(AttributeError, ImportError, ValueError, OSError):
        table = interface()
        for give, number in ((_register(table), BFLOAT16), (_replace(table), FLOAT16)):
            for name, kinds in _signatures(number):
                if not give(lib, name, kinds):
                    return False
                TAKEN.add((name, number))
    return bool(TAKEN)


def _signatures(number: int) -> list[tuple[str, list[int]]]:
    """The ufuncs, and the dtypes of their arguments and results."""
    shapes = ((PAIRS, [number] * 3), (SINGLES, [number] * 2), (TRUTHS, [number, number, BOOL]), (KINDS, [number, BOOL]))
    return [(name, kinds) for names, kinds in shapes for name in names]


def interface() -> Any:
    """The table of NumPy's C interface for ufuncs."""
    import ctypes

    inner: Any = importlib.import_module("numpy._core._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(inner._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))


def _loop(lib: Any, name: str, suffix: str) -> Any:
    import ctypes

    return ctypes.cast(getattr(lib, f"rl_loop_{name}_{suffix}"), ctypes.c_void_p)


def _register(table: Any) -> Any:
    """What registers a loop of a library under the name of a ufunc and numbers of dtypes."""
    import ctypes

    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p)  # fmt: skip
    register = kind(table[REGISTER] or 0)

    def give(lib: Any, name: str, kinds: list[int]) -> bool:
        numbers = (ctypes.c_int * len(kinds))(*kinds)
        return bool(register(getattr(np, name), kinds[0], _loop(lib, name, "bf16"), numbers, None) == 0)

    return give


def _replace(table: Any) -> Any:
    """The same where NumPy has a loop of its own: it becomes the one that the library's hands on to, unless there is one already."""
    import ctypes

    numbers = ctypes.POINTER(ctypes.c_int)
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, numbers, ctypes.POINTER(ctypes.c_void_p))
    replace = kind(table[REPLACE] or 0)

    def give(lib: Any, name: str, kinds: list[int]) -> bool:
        former = ctypes.c_void_p.in_dll(lib, f"rl_former_{name}")
        signature = (ctypes.c_int * len(kinds))(*kinds)
        return bool(
            former.value or replace(getattr(np, name), _loop(lib, name, "f16"), signature, ctypes.byref(former)) == 0
        )

    return give
