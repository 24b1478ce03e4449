"""Functions made of straight pieces and parabolas, and their gradients, elementwise; their native twins are in piecewise.cpp.

Arrays and results as in :mod:`rushlight.kernels.maps`.
"""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

import numpy as np

from rushlight.kernels.dispatch import Array
from rushlight.kernels.maps import each

__all__ = [
    "between_backward",
    "clamp",
    "hardswish",
    "hardswish_backward",
    "huber",
    "huber_slope",
    "leaky_relu",
    "leaky_relu_backward",
    "lerp",
    "sign",
]


@each(bfloat16=True)
def sign(x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN."""
    out = np.asarray(np.greater(x, 0)).astype(x.dtype)
    return np.subtract(out, np.less(x, 0), out=out)


@each()
def clamp(x: Array, low: float, high: float) -> Array:
    """x limited to [low, high], of which ``high`` wins where they cross; NaN stays."""
    return np.asarray(np.minimum(np.maximum(x, low), high))


@each()
def between_backward(g: Array, x: Array, low: float, high: float) -> Array:
    """g where x is over ``low`` and under ``high``, or NaN; else 0."""
    return np.where((x <= low) | (x >= high), np.zeros((), g.dtype), g)


@each()
def leaky_relu(x: Array, slope: float) -> Array:
    """x where over 0, else ``slope`` * x."""
    return np.where(x > 0, x, x * slope)


@each()
def leaky_relu_backward(g: Array, x: Array, slope: float) -> Array:
    """g where x is over 0, else ``slope`` * g."""
    return np.where(x > 0, g, g * slope)


@each(bfloat16=True)
def hardswish(x: Array) -> Array:
    """x * min(max(x + 3, 0), 6) / 6."""
    return np.clip(x + 3, 0, 6) * x * x.dtype.type(1 / 6)


@each(bfloat16=True)
def hardswish_backward(g: Array, x: Array) -> Array:
    """g * hardswish'(x)."""
    within = g * (x * x.dtype.type(1 / 3) + x.dtype.type(0.5))
    return np.where(x <= -3, g.dtype.type(0), np.where(x < 3, within, g))


@each()
def huber(x: Array, target: Array, delta: float, scale: float) -> Array:
    """scale * (d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2)) of d = x - target."""
    d = np.asarray(np.absolute(x - target))
    near = np.asarray(np.minimum(d, delta))
    d -= near * d.dtype.type(0.5)
    near *= scale
    return np.multiply(d, near, out=d)


@each()
def huber_slope(x: Array, target: Array, delta: float, scale: float) -> Array:
    """scale * (x - target), limited to [-delta, delta] before."""
    d = np.asarray(x - target)
    np.clip(d, -delta, delta, out=d)
    return np.multiply(d, d.dtype.type(scale), out=d)


@each()
def lerp(x: Array, end: Array, weight: float) -> Array:
    """x + weight * (end - x), exact at both ends."""
    step = np.asarray(end - x)
    if abs(weight) < 0.5:
        step *= weight
        return np.add(x, step, out=step)
    step *= 1 - weight
    return np.subtract(end, step, out=step)
