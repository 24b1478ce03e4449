"""NumPy's ufuncs over bfloat16 numbers: loops of loops.cpp in place of those that ml_dtypes brings, bit for bit.

NumPy knows bfloat16 by the loops that ml_dtypes registers, which go number by number: a sum of two arrays takes eight times as
long as that of float32 ones.  Formulas, optimizers and whoever else writes `a + b` call those loops, so that they are exchanged
here, once, by the function of NumPy's C interface that registers them (`PyUFunc_RegisterLoopForType`, which takes the place of a
loop that is there).  See docs/decisions/0021-loops-of-bfloat16.md.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

__all__ = ["TAKEN", "install"]

PAIRS = ("add", "subtract", "multiply", "true_divide", "maximum", "minimum")
SINGLES = ("negative", "absolute", "square", "sqrt", "reciprocal")
TRUTHS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal")

TAKEN: set[str] = set()  # the ufuncs that have them

REGISTER = 2  # the place of PyUFunc_RegisterLoopForType in the table of NumPy's interface for ufuncs


def install(lib: Any) -> bool:
    """Give NumPy the loops of a library; whether it took them. Without them all is as it was, and slower."""
    with contextlib.suppress(AttributeError, ImportError, ValueError, OSError):
        register, number = _register(), np.dtype(bfloat16).num
        done = [_exchange(lib, register, name, [number, number, number]) for name in PAIRS]
        done += [_exchange(lib, register, name, [number, number]) for name in SINGLES]
        done += [_exchange(lib, register, name, [number, number, np.dtype(np.bool_).num]) for name in TRUTHS]
        TAKEN.update(PAIRS + SINGLES + TRUTHS if all(done) else ())
    return bool(TAKEN)


def _register() -> Any:
    """NumPy's function, of a ufunc, a dtype, a loop, the dtypes of its arguments and nothing."""
    import ctypes

    inner: Any = importlib.import_module("numpy._core._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(inner._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p)  # fmt: skip
    return kind(table[REGISTER] or 0)


def _exchange(lib: Any, register: Any, name: str, kinds: list[int]) -> bool:
    import ctypes

    loop = ctypes.cast(getattr(lib, f"rl_loop_{name}"), ctypes.c_void_p)
    return bool(register(getattr(np, name), kinds[0], loop, (ctypes.c_int * len(kinds))(*kinds), None) == 0)
