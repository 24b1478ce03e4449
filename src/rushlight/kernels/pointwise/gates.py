"""Gated linear units: the first half of an array along a dimension times the sigmoid of the second (glu.cpp)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import bits, contiguous, dense, is_half, rows_of, through_float32
from rushlight.kernels.elementwise import quiet
from rushlight.kernels.native.signatures import exports_of_rows

__all__ = ["glu", "glu_backward"]

exports_of_rows(
    # glu.cpp: input, result, elements before the dimension, in half of it and behind; gradient before both
    glu="aann",
    glu_backward="aaann",
)
SMALL = 1 << 11  # elements up to which NumPy's calls cost less


def glu(x: Array, dim: int) -> Array:
    """a * sigmoid(b) of the halves a, b of ``x`` along ``dim``.  (*, 2n, *) -> (*, n, *)"""
    table, sizes = _native(x, dim)
    if table is None:
        return through_float32(_glu, x.dtype, x, dim) if is_half(x.dtype) else _glu(x, dim)
    out = np.empty((*x.shape[:dim], x.shape[dim] // 2, *x.shape[dim + 1 :]), x.dtype)
    table.glu(bits(x), bits(out), *sizes)
    return out


def glu_backward(g: Array, x: Array, dim: int) -> Array:
    """The gradient of both halves.  (*, n, *), (*, 2n, *) -> (*, 2n, *)"""
    table, sizes = _native(x, dim) if g.dtype == x.dtype else (None, ())
    if table is None:
        return through_float32(_backward, x.dtype, g, x, dim) if is_half(x.dtype) else _backward(g, x, dim)
    out = np.empty(x.shape, x.dtype)
    table.glu_backward(bits(contiguous(g)), bits(x), bits(out), *sizes)
    return out


def _native(x: Array, dim: int) -> tuple[Any, tuple[int, ...]]:
    """The native table for a large array, and what lies before the halves and in each of them."""
    table = rows_of(x.dtype) if x.size > SMALL and dense(x) else None
    return table, (math.prod(x.shape[:dim]), x.size // (2 * math.prod(x.shape[:dim]))) if table is not None else ()


def _halves(x: Array, dim: int) -> tuple[Array, Array]:
    half, lead = x.shape[dim] // 2, (slice(None),) * dim
    return x[(*lead, slice(None, half))], x[(*lead, slice(half, None))]


def _opened(gate: Array) -> Array:
    """1 / (1 + e^-gate)."""
    with quiet():
        out = np.asarray(np.exp(-gate))
        out += 1
        return np.divide(1, out, out=out)


def _glu(x: Array, dim: int) -> Array:
    a, b = _halves(x, dim)
    out = _opened(b)
    return np.multiply(out, a, out=out)


def _backward(g: Array, x: Array, dim: int) -> Array:
    out = np.empty(x.shape, x.dtype)
    a, b = _halves(x, dim)
    of_a, of_b = _halves(out, dim)
    s = _opened(b)
    np.multiply(g, s, out=of_a)
    np.subtract(1, s, out=s)
    s *= of_a
    np.multiply(s, a, out=of_b)
    return out
