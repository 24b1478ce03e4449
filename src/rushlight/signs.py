"""Tensors that show the conjugates or the negatives of what their memory holds: views that take no bytes.

NumPy has no such array, so it is the tensor that knows.  Its class is a subclass of the one that it says it is of, made
when it is first needed, in which `_array` is computed at every reading: a copy that cannot be written to, so that a write
that forgot the bits is an error and not lost.  `_held` is the memory itself, of every tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.dtypes import is_complex

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.tensor import Tensor

CONJ, NEG = 1, 2  # bits of `Tensor._bits`
_set_class: Any = object.__dict__["__class__"].__set__


def turned(array: Array, bits: int) -> Array:
    """What a tensor with these bits shows of `array`, as an array of its own; the reverse too.  (*) -> (*)"""
    if not bits & CONJ or not is_complex(array.dtype):
        return np.asarray(np.negative(array)) if bits & NEG else array.copy()
    out = np.asarray(np.conjugate(array))
    return np.negative(out, out=out) if bits & NEG else out


def shown(array: Array, bits: int) -> Array:
    """As `turned`, read-only, and without repeating what an expanded array repeats."""
    if 0 in array.strides and array.size:
        once = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
        return np.broadcast_to(turned(once, bits), array.shape)
    out = turned(array, bits)
    out.flags.writeable = False
    return out


def to_hold(tensor: Tensor, value: Array) -> Array:
    """The array that the memory of a tensor has to hold, so that the tensor shows `value`.  (*) -> (*)"""
    return turned(value.astype(tensor._held.dtype, copy=False), tensor._bits) if tensor._bits else value


class Signed:
    """What the class of a tensor with bits has before that of any other."""

    __slots__ = ()
    _unusual = True
    _bits = 0
    _plain: type
    _held: Any

    @property
    def __class__(self) -> type[Any]:
        return self._plain

    @__class__.setter
    def __class__(self, value: type[Any]) -> None:
        _set_class(self, signed(value, self._bits))

    @property
    def _array(self) -> Array:
        return shown(self._held, self._bits)

    @_array.setter
    def _array(self, value: object) -> None:
        raise RuntimeError(
            "a tensor with a conjugate or negative bit cannot take the array of another: resolve_conj() it"
        )


def signed(cls: Any, bits: int) -> Any:
    """The class of the tensors of class `cls` that have these bits."""
    if not bits:
        return cls
    known = cls.__dict__.get("_signed")
    if known is None:
        cls._signed = known = {}
    if bits not in known:
        names = {"__slots__": (), "_plain": cls, "_bits": bits, "__module__": cls.__module__, "__doc__": cls.__doc__}
        known[bits] = type(cls)(cls.__name__, (Signed, cls), names)
    return known[bits]


def turn(tensor: Tensor, bits: int) -> Any:
    """Give a tensor these bits in place of those that it has: it shows something else of the same memory."""
    if tensor._bits != bits:
        _set_class(tensor, signed(tensor.__class__, bits))
    return tensor
