"""The exponential linear units, the gradient of logit and roots below 1, elementwise; their native twins are in activations.cpp.

Arrays and results as in `rushlight.kernels.maps`.
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array
from rushlight.kernels.elementwise import quiet
from rushlight.kernels.maps import each

__all__ = ["elu", "elu_backward", "elu_backward_of_input", "logit_backward", "reciprocal_root"]


@each()
def reciprocal_root(x: Array) -> Array:
    """1 / sqrt(x)."""
    with quiet():
        out = np.asarray(np.sqrt(x))
        return np.divide(1, out, out=out)


@each()
def elu(x: Array, low: float = 1.0, scale: float = 1.0, inner: float = 1.0) -> Array:
    """scale * x where over 0, else ``low`` * (e^(inner x) - 1)."""
    with quiet():
        out = np.asarray(np.minimum(x, 0))  # keeps NaN
        out *= inner
        np.expm1(out, out=out)
        out *= low
        return np.add(out, np.maximum(x, 0) * x.dtype.type(scale), out=out)


@each()
def elu_backward(g: Array, y: Array, low: float = 1.0, scale: float = 1.0, inner: float = 1.0) -> Array:
    """g * elu'(x) by the result y, of ``low`` >= 0 and ``inner`` > 0; NaN counts as positive."""
    negative = y <= 0
    slope = np.asarray((np.fmin(y, 0) + y.dtype.type(low)) * y.dtype.type(inner))
    slope *= negative
    slope += np.multiply(~negative, scale, dtype=slope.dtype)
    return np.multiply(slope, g, out=slope)


@each()
def elu_backward_of_input(g: Array, x: Array, low: float = 1.0, scale: float = 1.0, inner: float = 1.0) -> Array:
    """g * elu'(x); NaN counts as positive."""
    with quiet():
        negative = x <= 0
        slope = np.asarray(np.exp(np.fmin(x, 0) * x.dtype.type(inner)) * x.dtype.type(low * inner))
        slope *= negative
        slope += np.multiply(~negative, scale, dtype=slope.dtype)
        return np.multiply(slope, g, out=slope)


@each()
def logit_backward(g: Array, x: Array, low: float = 0.0, high: float = 1.0, other: float = math.nan) -> Array:
    """g / (x (1 - x)) from ``low`` to ``high``, beyond them ``other``."""
    with quiet():
        return np.where((x >= low) & (x <= high), g / (x * (1 - x)), g.dtype.type(other))
