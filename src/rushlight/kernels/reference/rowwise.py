"""Softmax and its logarithm along an axis, in NumPy."""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array


def _shifted(x: Array, axis: int) -> Array:
    # fmax passes over NaN as the native kernel does; NaN then comes out of the sum
    return x - np.fmax.reduce(x, axis=axis, keepdims=True, initial=-np.inf)


def softmax(x: Array, axis: int) -> Array:
    with np.errstate(invalid="ignore", under="ignore"):
        out = _shifted(x, axis)
        np.exp(out, out=out)
        out /= out.sum(axis=axis, keepdims=True)
        return out


def log_softmax(x: Array, axis: int) -> Array:
    with np.errstate(invalid="ignore", under="ignore"):
        out = _shifted(x, axis)
        out -= np.log(np.exp(out).sum(axis=axis, keepdims=True))
        return out


def softmax_backward(g: Array, output: Array, axis: int) -> Array:
    out = g - (g * output).sum(axis=axis, keepdims=True)
    out *= output
    return out


def log_softmax_backward(g: Array, output: Array, axis: int) -> Array:
    out = np.exp(output)
    out *= -g.sum(axis=axis, keepdims=True)
    out += g
    return out
