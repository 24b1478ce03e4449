"""Softmax and its logarithm along an axis, in NumPy."""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


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
