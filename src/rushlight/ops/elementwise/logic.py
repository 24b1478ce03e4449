"""Logic: on truth values, and bit by bit."""

from __future__ import annotations

import numpy as np

from rushlight.dispatch.declare import Array
from rushlight.dispatch.registry import elementwise

# Truth values ----------------------------------------------------------------------------------------


@elementwise(promote="compare", ufunc="logical_and", strict=True)
def logical_and(input: Array, other: Array) -> Array:
    """Whether both are true (not zero), broadcast.  (*), (*) -> (*) bool"""


@elementwise(promote="compare", ufunc="logical_or", strict=True)
def logical_or(input: Array, other: Array) -> Array:
    """Whether either is true (not zero), broadcast.  (*), (*) -> (*) bool"""


@elementwise(promote="compare", ufunc="logical_xor", strict=True)
def logical_xor(input: Array, other: Array) -> Array:
    """Whether exactly one is true (not zero), broadcast.  (*), (*) -> (*) bool"""


@elementwise(promote="compare", ufunc="logical_not")
def logical_not(input: Array) -> Array:
    """Whether each element is false (zero).  input: (*) -> (*) bool"""


# Bits ------------------------------------------------------------------------------------------------


@elementwise(aten=("bitwise_and.Tensor", "bitwise_and.Scalar"), promote="arith", ufunc="bitwise_and", refuse="fc")
def bitwise_and(input: Array, other: Array) -> Array:
    """Bits set in both, broadcast; of bools, and.  (*), (*) -> (*)

    >>> import rushlight as torch
    >>> torch.bitwise_and(torch.tensor([6, 3]), 2)
    tensor([2, 2])
    """


@elementwise(aten=("bitwise_or.Tensor", "bitwise_or.Scalar"), promote="arith", ufunc="bitwise_or", refuse="fc")
def bitwise_or(input: Array, other: Array) -> Array:
    """Bits set in either, broadcast; of bools, or.  (*), (*) -> (*)"""


@elementwise(aten=("bitwise_xor.Tensor", "bitwise_xor.Scalar"), promote="arith", ufunc="bitwise_xor", refuse="fc")
def bitwise_xor(input: Array, other: Array) -> Array:
    """Bits set in exactly one, broadcast; of bools, exclusive or.  (*), (*) -> (*)"""


@elementwise(promote="arith", ufunc="invert", refuse="fc")
def bitwise_not(input: Array) -> Array:
    """Each bit, or of bools each truth value, the other way round.  input: (*) -> (*)"""


def _shift(ufunc: np.ufunc, x: Array, by: Array, beyond: Array | int) -> Array:
    """Shift, where shifts below 0 or of all bits give `beyond`."""
    bits = 8 * x.dtype.itemsize
    out = np.asarray(ufunc(x, by))
    outside = by >= bits
    if by.dtype.kind == "i":
        outside = outside | (by < 0)
    if np.any(outside):
        out = np.where(outside, beyond, out).astype(out.dtype)
    return out


@elementwise(aten=("bitwise_left_shift.Tensor",), promote="arith", half=None, refuse="bfc")
def bitwise_left_shift(input: Array, other: Array) -> Array:
    """input * 2^other by shifting bits, broadcast.  (*), (*) integer -> (*); 0 for shifts by all bits or below 0."""
    return _shift(np.left_shift, input, other, 0)


@elementwise(aten=("bitwise_right_shift.Tensor",), promote="arith", half=None, refuse="bfc")
def bitwise_right_shift(input: Array, other: Array) -> Array:
    """input / 2^other rounded down, by shifting bits, broadcast.  (*), (*) integer -> (*)

    Shifts by all bits or below 0 leave the sign alone: 0 or -1.
    """
    return _shift(np.right_shift, input, other, np.less(input, 0) * np.int8(-1))
