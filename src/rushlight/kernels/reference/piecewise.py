"""Functions made of straight pieces and parabolas, in NumPy.  See ``kernels.piecewise`` for what each computes."""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def sign(x: Array) -> Array:
    out = np.asarray(np.greater(x, 0)).astype(x.dtype)
    return np.subtract(out, np.less(x, 0), out=out)


def clamp(x: Array, low: float, high: float) -> Array:
    return np.asarray(np.minimum(np.maximum(x, low), high))


def between_backward(g: Array, x: Array, low: float, high: float) -> Array:
    return np.where((x <= low) | (x >= high), np.zeros((), g.dtype), g)


def leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, x * slope)


def leaky_relu_backward(g: Array, x: Array, slope: float) -> Array:
    return np.where(x > 0, g, g * slope)


def hardswish(x: Array) -> Array:
    return np.clip(x + 3, 0, 6) * x * x.dtype.type(1 / 6)


def hardswish_backward(g: Array, x: Array) -> Array:
    within = g * (x * x.dtype.type(1 / 3) + x.dtype.type(0.5))
    return np.where(x <= -3, g.dtype.type(0), np.where(x < 3, within, g))


def huber(x: Array, target: Array, delta: float, scale: float) -> Array:
    d = np.asarray(np.absolute(x - target))
    near = np.asarray(np.minimum(d, delta))
    d -= near * d.dtype.type(0.5)
    near *= scale
    return np.multiply(d, near, out=d)


def huber_slope(x: Array, target: Array, delta: float, scale: float) -> Array:
    d = np.asarray(x - target)
    np.clip(d, -delta, delta, out=d)
    return np.multiply(d, d.dtype.type(scale), out=d)


def lerp(x: Array, end: Array, weight: float) -> Array:
    step = np.asarray(end - x)
    if abs(weight) < 0.5:
        step *= weight
        return np.add(x, step, out=step)
    step *= 1 - weight
    return np.subtract(end, step, out=step)
