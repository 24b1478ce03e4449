"""Powers whose exponents are whole numbers, and their gradients; their native twins are in powers.cpp.

Arrays and results as in `rushlight.kernels.maps`.
"""

from __future__ import annotations

import numpy as np

from rushlight.kernels.dispatch import FLOAT32, Array, summed_in
from rushlight.kernels.elementwise import quiet
from rushlight.kernels.maps import each

__all__ = ["has_whole_power", "whole_power", "whole_power_backward"]

_FEW = (1, 2, 3, -1, -2)  # exponents of powers that have few factors, and are made in the precision of their elements
_MOST = 64


def has_whole_power(dtype: np.dtype[np.floating], exponent: float) -> bool:
    """Whether products of elements are as exact as a power: of float32 and 16 bits, whose factors are double, and where there are few."""
    return exponent in _FEW or (summed_in(dtype) == FLOAT32 and 0 < abs(exponent) <= _MOST)


def _by_squares(x: Array, exponent: int) -> Array:
    square, rest = x.astype(np.float64), abs(exponent)
    found = np.ones(x.shape)
    while rest:
        if rest & 1:
            found = found * square
        rest >>= 1
        square = square * square if rest else square
    return np.asarray(1 / found if exponent < 0 else found).astype(x.dtype)


@each()
def whole_power(x: Array, exponent: int) -> Array:
    """x^exponent, where `has_whole_power` says so."""
    with quiet():
        if exponent not in _FEW:
            return _by_squares(x, exponent)
        power = x if abs(exponent) == 1 else np.multiply(x, x)
        power = np.multiply(x, power) if exponent == 3 else power
        return np.asarray(np.true_divide(1, power) if exponent < 0 else power)


@each()
def whole_power_backward(g: Array, x: Array, exponent: int) -> Array:
    """g * (x^(exponent - 1) * exponent), where `has_whole_power` says so of that power."""
    with quiet():
        slope = np.multiply(whole_power.reference(x, exponent - 1), x.dtype.type(exponent))
        return np.asarray(np.multiply(g, slope))
