"""Derivatives of any order of functions whose formulas cancel: sinc near 0, erfcx far from it.

The derivatives of sin(t) / t are by their Taylor series where t is small, else by t f_n + n f_(n-1) = sin(t + n pi / 2).
Those of erfcx are (-2)^n n! times the scaled repeated integrals of erfc: by their recurrence upward where that is stable,
else by the continued fraction of their ratios (Gautschi, Mathematics of Computation 15, 1961).
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.reference.normal import erfcx
from rushlight.kernels.reference.series import in_float64

TERMS = 20  # of the series, at most at |t| = n + 3
RATIOS = 60  # of the continued fraction, from 2 on


def sinc_slope(x: Array, n: int) -> Array:
    """The n-th derivative of sin(pi x) / (pi x), n >= 1, of real or complex numbers."""
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        t = np.asarray(x, wide) * math.pi
        out = np.asarray(np.where(np.abs(t) < n + 2, _series(t, n), _upward(t, n)) * math.pi**n)
    return out.astype(x.dtype)


def _series(t: Array, n: int) -> Array:
    """The n-th derivative of sin(t) / t near 0: sum over k >= n / 2 of (-1)^k t^(2k - n) / ((2k + 1) (2k - n)!)."""
    first = (n + 1) // 2
    square, out = t * t, np.zeros_like(t)
    for k in range(first + TERMS, first - 1, -1):
        out = out * square + (-1) ** k / ((2 * k + 1) * math.factorial(2 * k - n))
    return out * t if n % 2 else out


def _upward(t: Array, n: int) -> Array:
    """The n-th derivative of sin(t) / t where t is not small beside n."""
    out = np.sin(t) / t
    for k in range(1, n + 1):
        wave = np.cos(t) if k % 2 else np.sin(t)
        out = ((-1) ** (k // 2) * wave - k * out) / t
    return np.asarray(out)


def erfcx_slope(x: Array, n: int) -> Array:
    """The n-th derivative of erfcx, n >= 1, of real numbers."""
    slope = in_float64(lambda part: np.where(part < 2, _erfcx_upward(part, n), _erfcx_ratios(part, n)))
    return np.asarray(slope(x))


def _erfcx_upward(x: Array, n: int) -> Array:
    """By f_(k+1) = 2 x f_k + 2 k f_(k-1), where x is at most about 2."""
    before, out = erfcx(x), 2 * x * erfcx(x) - 2 / math.sqrt(math.pi)
    for k in range(1, n):
        before, out = out, 2 * x * out + 2 * k * before
    return np.asarray(out)


def _erfcx_ratios(x: Array, n: int) -> Array:
    """As erfcx times the ratios of each derivative to the one before it, where x is at least about 2."""
    ratio, out = np.zeros_like(x), erfcx(x)
    for k in range(n + RATIOS, 0, -1):
        ratio = 1 / (2 * x + 2 * (k + 1) * ratio)  # of the repeated integrals of order k and k - 1
        if k <= n:
            out = out * ratio * (-2 * k)
    return np.asarray(out)
