"""Functions made of straight pieces and parabolas, and their gradients, elementwise.

Arrays and results as in :mod:`rushlight.kernels.elementwise`.
"""

from __future__ import annotations

from rushlight.kernels.dispatch import Array
from rushlight.kernels.elementwise import map_one, map_pair
from rushlight.kernels.reference import piecewise as reference


def sign(x: Array, out: Array | None = None) -> Array:
    """-1, 0 or 1; 0 for NaN."""
    return map_one(reference.sign, x, out)


def clamp(x: Array, low: float, high: float, out: Array | None = None) -> Array:
    """x limited to [low, high], of which ``high`` wins where they cross; NaN stays."""
    return map_one(reference.clamp, x, out, low, high)


def between_backward(g: Array, x: Array, low: float, high: float, out: Array | None = None) -> Array:
    """g where x is over ``low`` and under ``high``, or NaN; else 0."""
    return map_pair(reference.between_backward, g, x, out, low, high)


def leaky_relu(x: Array, slope: float, out: Array | None = None) -> Array:
    """x where over 0, else ``slope`` * x."""
    return map_one(reference.leaky_relu, x, out, slope)


def leaky_relu_backward(g: Array, x: Array, slope: float, out: Array | None = None) -> Array:
    """g where x is over 0, else ``slope`` * g."""
    return map_pair(reference.leaky_relu_backward, g, x, out, slope)


def hardswish(x: Array, out: Array | None = None) -> Array:
    """x * min(max(x + 3, 0), 6) / 6."""
    return map_one(reference.hardswish, x, out)


def hardswish_backward(g: Array, x: Array, out: Array | None = None) -> Array:
    """g * hardswish'(x)."""
    return map_pair(reference.hardswish_backward, g, x, out)


def huber(x: Array, target: Array, delta: float, scale: float, out: Array | None = None) -> Array:
    """scale * (d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2)) of d = x - target."""
    return map_pair(reference.huber, x, target, out, delta, scale)


def huber_slope(x: Array, target: Array, delta: float, scale: float, out: Array | None = None) -> Array:
    """scale * (x - target), limited to [-delta, delta] before."""
    return map_pair(reference.huber_slope, x, target, out, delta, scale)


def lerp(x: Array, end: Array, weight: float, out: Array | None = None) -> Array:
    """x + weight * (end - x), exact at both ends."""
    return map_pair(reference.lerp, x, end, out, weight)
