"""Activations and their gradients, in NumPy.  See ``kernels.elementwise`` for what each computes."""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rushlight.kernels.reference.special import erf

__all__ = ["erf"]

Array = NDArray[Any]

_SQRT_HALF = 0.70710678118654752440
_INV_SQRT_TWO_PI = 0.39894228040143267794
_TANH_SCALE = 0.79788456080286535588
_TANH_CUBE = 0.044715


def quiet() -> np.errstate:
    """NumPy without floating point warnings: overflow to infinity and NaN are results here."""
    return np.errstate(all="ignore")


def exp(x: Array) -> Array:
    with quiet():
        return np.exp(x)


def log(x: Array) -> Array:
    with quiet():
        return np.log(x)


def tanh(x: Array) -> Array:
    return np.tanh(x)


def sigmoid(x: Array) -> Array:
    with quiet():
        out = np.asarray(np.negative(x))
        np.exp(out, out=out)
        out += 1
        return np.reciprocal(out, out=out)


def silu(x: Array) -> Array:
    with quiet():
        out = np.asarray(np.negative(x))
        np.exp(out, out=out)
        out += 1
        return np.divide(x, out, out=out)


def _normal_cdf(x: Array) -> Array:
    out = erf(x * _SQRT_HALF)
    out += 1
    out *= 0.5
    return out


def _tanh_inner(x: Array) -> Array:
    return np.tanh(_TANH_SCALE * (x + _TANH_CUBE * x * x * x))


def gelu(x: Array, tanh_form: int = 0) -> Array:
    with quiet():
        if tanh_form:
            return 0.5 * x * (1 + _tanh_inner(x))
        return x * _normal_cdf(x)


def gelu_backward(g: Array, x: Array, tanh_form: int = 0) -> Array:
    with quiet():
        if not tanh_form:
            return g * (_normal_cdf(x) + x * (np.exp(-0.5 * x * x) * _INV_SQRT_TWO_PI))
        t = _tanh_inner(x)
        inner_slope = _TANH_SCALE * (1 + 3 * _TANH_CUBE * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner_slope)


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    with quiet():
        scaled = x * beta
        return np.where(scaled > threshold, x, np.logaddexp(scaled, 0).astype(x.dtype, copy=False) / beta)


def softplus_backward(g: Array, x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    scaled = x * beta
    return np.where(scaled > threshold, g, g * sigmoid(scaled))


def silu_backward(g: Array, x: Array) -> Array:
    s = sigmoid(x)
    with quiet():
        return g * (s * (1 + x * (1 - s)))


def sigmoid_backward(g: Array, output: Array) -> Array:
    return g * ((1 - output) * output)


def tanh_backward(g: Array, output: Array) -> Array:
    return g * (1 - output * output)


def relu_backward(g: Array, output: Array) -> Array:
    return np.where(output <= 0, g.dtype.type(0), g)


def relu_backward_mask(g: Array, mask: Array) -> Array:
    return np.where(mask, g, g.dtype.type(0))
