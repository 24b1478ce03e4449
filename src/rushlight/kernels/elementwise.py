"""Activations and their gradients, elementwise: NumPy's form of each, whose native twins are in activations.cpp.

Arrays and results as in `rushlight.kernels.maps`.
"""

from __future__ import annotations

import numpy as np
from numpy import empty_like, uint16

from rushlight.kernels.dispatch import Array, dense, is_half, native, put
from rushlight.kernels.maps import _target, declared, each, map_pair, maps_of
from rushlight.kernels.piecewise import choose
from rushlight.kernels.reference import special

__all__ = [
    "erf",
    "exp",
    "gelu",
    "gelu_backward",
    "log",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "softplus",
    "softplus_backward",
    "tanh",
    "tanh_backward",
]

_SQRT_HALF = 0.70710678118654752440
_INV_SQRT_TWO_PI = 0.39894228040143267794
_TANH_SCALE = 0.79788456080286535588
_TANH_CUBE = 0.044715


def quiet() -> np.errstate:
    """NumPy without floating point warnings: overflow to infinity and NaN are results here."""
    return np.errstate(all="ignore")


erf = each()(special.erf)


@each(small=4096)
def exp(x: Array) -> Array:
    """e^x."""
    with quiet():
        return np.exp(x)


@each()
def log(x: Array) -> Array:
    """Natural logarithm; NaN below 0, -inf at 0, without warnings."""
    with quiet():
        return np.log(x)


@each(single=np.tanh)
def tanh(x: Array) -> Array:
    """Hyperbolic tangent."""
    return np.tanh(x)


@each()
def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), without overflow."""
    with quiet():
        out = np.asarray(np.negative(x))
        np.exp(out, out=out)
        out += 1
        return np.reciprocal(out, out=out)


@each()
def silu(x: Array) -> Array:
    """x * sigmoid(x)."""
    with quiet():
        out = np.asarray(np.negative(x))
        np.exp(out, out=out)
        out += 1
        return np.divide(x, out, out=out)


def _normal_cdf(x: Array) -> Array:
    out = special.erf(x * _SQRT_HALF)
    out += 1
    out *= 0.5
    return out


def _tanh_inner(x: Array) -> Array:
    return np.tanh(_TANH_SCALE * (x + _TANH_CUBE * x * x * x))


@each()
def gelu(x: Array, tanh_form: int = 0) -> Array:
    """x * Phi(x), Phi the normal distribution; by Hendrycks' formula where `tanh_form`."""
    with quiet():
        if tanh_form:
            return 0.5 * x * (1 + _tanh_inner(x))
        return x * _normal_cdf(x)


@each()
def gelu_backward(g: Array, x: Array, tanh_form: int = 0) -> Array:
    """g * gelu'(x)."""
    with quiet():
        if not tanh_form:
            return g * (_normal_cdf(x) + x * (np.exp(-0.5 * x * x) * _INV_SQRT_TWO_PI))
        t = _tanh_inner(x)
        inner_slope = _TANH_SCALE * (1 + 3 * _TANH_CUBE * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner_slope)


@each()
def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + e^(beta x)) / beta; x itself where beta x > threshold."""
    with quiet():
        scaled = x * beta
        return np.where(scaled > threshold, x, np.logaddexp(scaled, 0).astype(x.dtype, copy=False) / beta)


@each()
def softplus_backward(g: Array, x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """g * sigmoid(beta x); g itself where beta x > threshold."""
    scaled = x * beta
    return np.where(scaled > threshold, g, g * sigmoid.reference(scaled))


@each()
def silu_backward(g: Array, x: Array) -> Array:
    """g * silu'(x)."""
    s = sigmoid.reference(x)
    with quiet():
        return g * (s * (1 + x * (1 - s)))


@each()
def sigmoid_backward(g: Array, output: Array) -> Array:
    """g * output * (1 - output), ``output = sigmoid(x)``."""
    return g * ((1 - output) * output)


@each()
def tanh_backward(g: Array, output: Array) -> Array:
    """g * (1 - output^2), ``output = tanh(x)``."""
    return g * (1 - output * output)


def _relu_backward(g: Array, output: Array) -> Array:
    return np.where(output <= 0, g.dtype.type(0), g)


def _relu_backward_mask(g: Array, mask: Array) -> Array:
    return np.where(mask, g, g.dtype.type(0))


declared(_relu_backward, sixteen=True)
declared(_relu_backward_mask, sixteen=True)


def relu_backward(g: Array, output: Array, out: Array | None = None) -> Array:
    """g where ``output`` (the result or the input of relu) is not <= 0, else 0; a bool mask says where itself."""
    if output.dtype != bool:
        return map_pair(_relu_backward, g, output, out)
    table = native(g.dtype)
    fits = dense(g) and output.flags.c_contiguous and g.shape == output.shape
    if is_half(g.dtype) and fits and maps_of(g.dtype) is not None:
        made = empty_like(g)
        maps_of(g.dtype).relu_backward_mask(g.view(uint16), output, made.view(uint16), g.size)
        return put(made, out)
    if table is None or not fits:
        return put(choose(output, g, np.zeros((), g.dtype)), out)
    target = empty_like(g) if out is None else _target(out, g)
    table.relu_backward_mask(g, output, target, g.size)
    return put(target, out)
