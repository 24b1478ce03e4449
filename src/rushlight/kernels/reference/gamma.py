"""The gamma function's relatives: lgamma, digamma, and the zeta function of Hurwitz.

Asymptotic series after a shift of the argument, reflection below zero (Abramowitz and Stegun, chapters 6 and 23);
lgamma near 1 and 2 by a Chebyshev series computed in 60 digits for this file.
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.reference.series import chebyshev, in_float64
from rushlight.kernels.reference.special import horner

_LGAMMA = (
    0.41418612492156676, 0.16322170068760064, -0.008658972394126285, 0.0006727515726001485, -6.139556963628233e-05,
    6.110065797003576e-06, -6.410003033826223e-07, 6.962242692768951e-08, -7.747248733788217e-09,
    8.774075140687239e-10, -1.0070266869830198e-10, 1.1678602130652374e-11, -1.3656871334744932e-12,
    1.6079351149711552e-13, -1.9039501088488732e-14, 2.2653768767833064e-15, -2.706656814831896e-16,
    3.245660731626191e-17, -3.904483378457447e-18, 4.710435641256405e-19,
)  # fmt: skip
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_STIRLING = tuple(b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(BERNOULLI[:8]))
_DIGAMMA = tuple(-b / (2 * k + 2) for k, b in enumerate(BERNOULLI[:8]))
_ZETA = tuple(b / math.factorial(2 * k + 2) for k, b in enumerate(BERNOULLI))
_HALF_LOG_TWO_PI = 0.91893853320467274178
_LARGE = 10.0


def _log_gamma_positive(x: Array) -> Array:
    """log of gamma for x > 0."""
    large = np.maximum(x, _LARGE)
    out = (large - 0.5) * (np.log(large)) - large + _HALF_LOG_TWO_PI
    out += horner(_STIRLING, 1 / (large * large)) / large
    small = x < _LARGE
    if small.any():
        out[small] = _log_gamma_small(x[small])
    out[np.isposinf(x)] = np.inf
    return out


def _log_gamma_small(x: Array) -> Array:
    """log of gamma for 0 < x < 10: the argument is moved into [1.5, 2.5]."""
    z, above = x.copy(), np.ones_like(x)
    for _ in range(8):
        high = z > 2.5
        if not high.any():
            break
        z[high] -= 1
        above[high] *= z[high]
    below = np.where(x < 0.5, x * (x + 1), np.where(x < 1.5, x, 1.0))
    z -= np.where(x < 0.5, 0.0, np.where(x < 1.5, 1.0, 2.0))  # exact, so that the zeros at 1 and 2 keep all digits
    return z * chebyshev(_LGAMMA, 2 * z) + np.log(above) - np.log(below)


def _sin_pi(x: Array) -> Array:
    """|sin(pi x)|, exact zeros at whole numbers."""
    part = np.abs(x - np.round(x))
    return np.sin(math.pi * part)


def _lgamma(x: Array) -> Array:
    below = x < 0.0
    out = _log_gamma_positive(np.where(below, 1 - x, x))
    if below.any():
        y = x[below]
        mirrored = math.log(math.pi) - np.log(_sin_pi(y)) - out[below]
        out[below] = np.where((y == np.floor(y)) | np.isinf(y), np.inf, mirrored)
    out[x == 0] = np.inf
    return out


def _digamma_positive(x: Array) -> Array:
    out = np.zeros_like(x)
    z = x.copy()
    for _ in range(10):
        small = z < _LARGE
        if not small.any():
            break
        out[small] -= 1 / z[small]
        z[small] += 1
    inverse = 1 / (z * z)
    return out + np.log(z) - 0.5 / z + inverse * horner(_DIGAMMA, inverse)


def _digamma(x: Array) -> Array:
    below = x < 0.0
    out = _digamma_positive(np.where(below, 1 - x, x))
    if below.any():
        y = x[below]
        part = y - np.round(y)
        out[below] = np.where((part == 0) | np.isinf(y), np.nan, out[below] - math.pi / np.tan(math.pi * part))
    zero = x == 0
    out[zero] = np.copysign(np.inf, -x[zero])
    out[np.isposinf(x)] = np.inf
    return out


def _zeta(s: Array, q: Array) -> Array:
    """Sum over n >= 0 of (q + n)^-s, by Euler and Maclaurin's formula after the first terms."""
    out, a = np.power(q, -s), q.copy()
    for _ in range(9):
        a += 1
        out += np.power(a, -s)
    below = (a <= 9) & (s > 1) & ~((q <= 0) & (q == np.floor(q)))
    while below.any():
        a[below] += 1
        out[below] += np.power(a[below], -s[below])
        below &= a <= 9
    last = np.power(a, -s)
    out += a * last / (s - 1) - 0.5 * last
    factor, power = s.copy(), last / a
    for k, c in enumerate(_ZETA):
        out += np.where(power == 0, 0.0, c * factor * power)
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2)
        power /= a * a
    pole = (q <= 0) & (q == np.floor(q))
    out[np.isposinf(q)] = 0
    out[((q <= 0) & (s != np.floor(s))) | np.isnan(s) | np.isnan(q)] = np.nan
    out[pole] = np.inf  # whatever s is
    out[s < 1] = np.nan
    out[s == 1] = np.inf  # whatever q is
    return out


lgamma = in_float64(_lgamma)
digamma = in_float64(_digamma)
zeta = in_float64(_zeta)


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n + 1, x)."""
    scale = math.exp(math.lgamma(n + 1.0)) * (1 if n % 2 else -1)

    def block(y: Array) -> Array:
        return scale * _zeta(np.full_like(y, n + 1.0), y)

    return in_float64(block)(x)
