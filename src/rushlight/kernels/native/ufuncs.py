"""NumPy's ufuncs over bfloat16 and float16 numbers: loops of loops.cpp in place of those that were there, bit for bit.

NumPy knows bfloat16 by the loops that ml_dtypes registers, which go number by number, as its own of float16 do: a sum of two arrays
takes eight times as long as that of float32 ones, of float16 thirty times.  Formulas, optimizers and whoever else
writes `a + b` call those loops, so that they are exchanged here, once, by functions of NumPy's C interface:
`PyUFunc_RegisterLoopForType`, which takes the place of a loop that is there, and for NumPy's own dtypes
`PyUFunc_ReplaceLoopBySignature`, which tells the loop that was there: ours hand on to it sums of rows.  See
docs/decisions/0021-loops-of-bfloat16.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections import defaultdict
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

__all__ = ["TAKEN", "install"]

SUMS = ("add", "subtract", "multiply", "true_divide")  # whose loops over rows that become one number stay NumPy's
PAIRS = (*SUMS, "maximum", "minimum", "copysign", "nextafter")
SINGLES = ("negative", "absolute", "square", "sqrt", "reciprocal", "floor", "ceil", "trunc", "rint")
TRUTHS = (
    *("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"),
    *("logical_and", "logical_or", "logical_xor"),
)
KINDS = ("isnan", "isinf", "isfinite", "signbit", "logical_not")

# Those of borrowed.cpp, which call NumPy's loops over float32.
FUNCTIONS = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "deg2rad", "rad2deg"),
)
FUNCTIONS_OF_TWO = (
    *("power", "arctan2", "hypot", "logaddexp", "logaddexp2", "fmax", "fmin", "fmod", "remainder", "floor_divide"),
)
BORROWED = FUNCTIONS + FUNCTIONS_OF_TWO

BFLOAT16, FLOAT16, BOOL = (np.dtype(t).num for t in (bfloat16, np.float16, np.bool_))
KINDS_OF_16 = {dtype.num: dtype for dtype in (np.dtype(bfloat16), np.dtype(np.float16))}
TAKEN: set[tuple[str, int]] = set()  # the ufuncs that have them, and of which dtype
DTYPES: dict[str, set[np.dtype[Any]]] = defaultdict(set)  # the same by name

WORD = ctypes.sizeof(ctypes.c_void_p)
REGISTER, REPLACE = 2, 30  # the places of both functions in the table of NumPy's interface for ufuncs


def install(lib: Any) -> bool:
    """Give NumPy the loops of a library; whether it took them. Without them all is as it was, and slower."""
    with contextlib.suppress(AttributeError, ImportError, ValueError, TypeError, OSError):
        table = interface()
        lent = [name for name in BORROWED if _lend(lib, name)]
        for give, number in ((_register(table), BFLOAT16), (_replace(table), FLOAT16)):
            for name, kinds in _signatures(number):
                if name in BORROWED and name not in lent:
                    continue
                if not give(lib, name, kinds):
                    return False
                TAKEN.add((name, number))
                DTYPES[name].add(KINDS_OF_16[number])
        _copying(lib)
    return bool(TAKEN)


# The place in NumPy's C interface for arrays of the function that tells how a dtype is handled, and in what that returns, behind
# 21 conversions, reading and writing of one, the place of the function that copies elements.
FUNCTIONS_OF_DTYPE, COPIES = 365, 23
LAYOUT = 2 << 24  # the version of NumPy's interface that this holds of, told by the function at its first place


def _copying(lib: Any) -> None:
    """Have NumPy copy bfloat16 numbers by a function of a library: those that are broadcast are copied before a ufunc takes them."""
    import ctypes

    table = interface("_ARRAY_API")
    if ctypes.CFUNCTYPE(ctypes.c_uint)(table[0] or 0)() != LAYOUT:
        return
    functions = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[FUNCTIONS_OF_DTYPE] or 0)
    place = (ctypes.c_void_p * (COPIES + 1)).from_address(functions(np.dtype(bfloat16)))
    place[COPIES] = ctypes.cast(lib.rl_loop_copies, ctypes.c_void_p).value


def _signatures(number: int) -> list[tuple[str, list[int]]]:
    """The ufuncs, and the dtypes of their arguments and results."""
    pairs, singles = PAIRS + FUNCTIONS_OF_TWO, SINGLES + FUNCTIONS
    shapes = ((pairs, [number] * 3), (singles, [number] * 2), (TRUTHS, [number, number, BOOL]), (KINDS, [number, BOOL]))
    return [(name, kinds) for names, kinds in shapes for name in names]


def interface(name: str = "_UFUNC_API") -> Any:
    """The table of NumPy's C interface for ufuncs, or of another."""
    inner: Any = importlib.import_module("numpy._core._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(getattr(inner, name), None), ctypes.POINTER(ctypes.c_void_p))


def _lend(lib: Any, name: str) -> bool:
    """Show a library NumPy's loop of a ufunc over float32, and what that is called with; whether it was found.

    They lie in the ufunc, whose layout NumPy publishes: head, number of inputs, results, both, kind; loops, what they
    are called with, how many there are, room, name.
    """
    ufunc = getattr(np, name)
    head, pointer = id(ufunc) + object.__basicsize__, ctypes.c_void_p
    _, _, loops, data, _, called = (pointer * 6).from_address(head)
    wanted = "f" * ufunc.nin
    operands = [each.partition("->")[0] for each in ufunc.types]
    counts = tuple((ctypes.c_int * 3).from_address(head))
    if counts != (ufunc.nin, 1, ufunc.nin + 1) or wanted not in operands:
        return False
    if not called or ctypes.string_at(called) != name.encode():
        return False
    place = operands.index(wanted)
    lent = (pointer * 2).in_dll(lib, f"rl_wide_{name}")
    for i, table in enumerate((loops, data)):
        lent[i] = (pointer * (place + 1)).from_address(table)[place] if table else None
    return True


def _loop(lib: Any, name: str, suffix: str) -> Any:
    return ctypes.cast(getattr(lib, f"rl_loop_{name}_{suffix}"), ctypes.c_void_p)


def _register(table: Any) -> Any:
    """What registers a loop of a library under the name of a ufunc and numbers of dtypes.

    ml_dtypes registers loops of NumPy's newer kind from its version 0.7 on, which the function of the interface does not
    exchange: they are taken out of the ufunc before.
    """
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_int, ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_int), ctypes.c_void_p)  # fmt: skip
    register = kind(table[REGISTER] or 0)

    def give(lib: Any, name: str, kinds: list[int]) -> bool:
        ufunc, numbers = getattr(np, name), (ctypes.c_int * len(kinds))(*kinds)
        rest = ufunc, kinds[0], _loop(lib, name, "bf16"), numbers, None
        try:
            return bool(register(*rest) == 0)
        except TypeError:
            return _take_out(ufunc, kinds) and bool(register(*rest) == 0)

    return give


LOOPS = 26  # the place of a ufunc's list of loops behind its head, in words, as NumPy's headers publish its layout
_taken_out: list[tuple[Any, ...]] = []  # a ufunc remembers which it found for dtypes, and does not keep that alive


def _take_out(ufunc: Any, kinds: list[int]) -> bool:
    """Take what a ufunc computes numbers of dtypes with out of its list of pairs (dtypes, loop); whether it was there."""
    address = (ctypes.c_void_p * (LOOPS + 1)).from_address(id(ufunc) + object.__basicsize__)[LOOPS]
    if not address or ctypes.c_void_p.from_address(address + object.__basicsize__ - WORD).value != id(list):
        return False
    loops: list[tuple[Any, ...]] = ctypes.cast(address, ctypes.py_object).value
    wanted = tuple(type(KINDS_OF_16.get(kind, np.dtype(bool))) for kind in kinds)
    found = [each for each in loops if each[0] == wanted]
    _taken_out.extend(found)
    for each in found:
        loops.remove(each)
    return bool(found)


def replacing(table: Any) -> Any:
    """What puts a loop of ours in the place of NumPy's own, by ufunc and numbers of dtypes; `former` becomes that which was there."""
    numbers = ctypes.POINTER(ctypes.c_int)
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, numbers, ctypes.POINTER(ctypes.c_void_p))
    replace = kind(table[REPLACE] or 0)

    def put(name: str, loop: Any, kinds: list[int], former: Any) -> bool:
        return bool(replace(getattr(np, name), loop, (ctypes.c_int * len(kinds))(*kinds), ctypes.byref(former)) == 0)

    return put


def _replace(table: Any) -> Any:
    """The same where NumPy has a loop of its own: it becomes the one that the library's hands on to, unless there is one already."""
    put = replacing(table)

    def give(lib: Any, name: str, kinds: list[int]) -> bool:
        former = ctypes.c_void_p.in_dll(lib, f"rl_former_{name}") if name in SUMS else ctypes.c_void_p()
        return bool(former.value or put(name, _loop(lib, name, "f16"), kinds, former))

    return give
