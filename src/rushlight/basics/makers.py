"""Making objects without calling their constructors, at the least cost: most of a small operator is making objects."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")

_NOARGS = 4  # METH_NOARGS: the function is called as function(self, NULL)


class _Method(ctypes.Structure):
    """PyMethodDef: a function in C as Python's built-in functions are declared."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_declared: _Method | None = None  # lives as long as the functions made from it


def maker(cls: type[T]) -> Callable[[], T]:
    """A function without arguments that makes an instance of `cls` with nothing in it, as ``object.__new__(cls)`` does.

    In CPython it is the allocator of the type itself, declared as a built-in function that is bound to the type: half
    the time of ``object.__new__``, which packs and unpacks its argument and, until Python 3.13, makes room for
    attributes in ``__dict__`` that a result of an operator rarely gets (here they get it when the first is set).
    """
    if sys.implementation.name != "cpython":
        return partial(object.__new__, cls)
    global _declared
    api = ctypes.pythonapi
    if _declared is None:
        allocate = ctypes.cast(api.PyType_GenericAlloc, ctypes.c_void_p)  # (type, number of items: NULL is 0)
        _declared = _Method(b"make", allocate.value, _NOARGS, b"An instance with nothing in it.")
    bind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", api)
    )
    made: Callable[[], T] = bind(ctypes.addressof(_declared), cls, None)
    return made
