"""How samples of the gamma distribution move with its shape: implicit reparameterisation.

A sample z of shape a at a fixed quantile F(z; a) = u moves by dz/da = -(dF/da) / p(z; a) (Figurnov, Mohamed and Mnih,
Implicit Reparameterization Gradients, NeurIPS 2018, equation 8). Here it is that of log z, dz/da / z, which stays finite
where z does not. Both come from integrals over p(t) (log t - psi(a)), whose whole is zero, so that either tail serves:
below z as the power series of the incomplete gamma function (Abramowitz and Stegun 6.5.29, differentiated term by
term) or by quadrature, above z by quadrature, each where all terms have one sign and no digits cancel.
"""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.reference.gamma import digamma

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_DEPTH = 45.0  # exp(-45) is below the last digit
_SERIES_BELOW = 12.0  # of larger shapes the series is long, and the quadrature exact
_BLOCK = 4096  # elements of a quadrature at a time: 2 MB


def log_gamma_slope(concentration: Array, log_z: Array) -> Array:
    """d log z / da of samples z of the gamma distribution of shape a and rate 1.  float64, (n), (n) -> (n)"""
    out = np.empty_like(log_z)
    z = np.exp(log_z)
    below = z < concentration + 0.5
    series = below & (concentration < _SERIES_BELOW)
    out[series] = _series(concentration[series], log_z[series])
    for mask, sign in ((below & ~series, -1.0), (~below, 1.0)):
        where = np.flatnonzero(mask)
        for start in range(0, len(where), _BLOCK):
            part = where[start : start + _BLOCK]
            out[part] = _quadrature(concentration[part], log_z[part], sign)
    return out


def _series(a: Array, log_z: Array) -> Array:
    """The sum over n of z^n / (a (a + 1) ... (a + n)) (psi(a + n + 1) - log z)."""
    z, term, psi = np.exp(log_z), 1 / a, digamma(a + 1)
    total: Array = term * (psi - log_z)
    for n in range(1, 400):
        term = term * z / (a + n)
        psi = psi + 1 / (a + n)
        step = term * (psi - log_z)
        total += step
        if not (np.abs(step) > 1e-17 * np.abs(total)).any():
            break
    return total


def _quadrature(a: Array, log_z: Array, sign: float) -> Array:
    """The integral over s of exp(a s - z (e^s - 1)) sign (log z + s - psi(a)), from 0 to the side of `sign`.

    That is the integral over t = z e^s of p(t) / p(z) (log t - psi(a)), over z.
    """
    z = np.exp(log_z)
    ends = _reach(a, z, sign)[:, None]
    s = ends * (0.5 + 0.5 * _NODES)
    density = np.exp(a[:, None] * s - z[:, None] * np.expm1(s))
    values = density * (s + (log_z - digamma(a))[:, None])
    return np.asarray(0.5 * np.abs(ends[:, 0]) * sign * (values @ _WEIGHTS))


def _reach(a: Array, z: Array, sign: float) -> Array:
    """The s on the side of `sign` where the density has fallen by exp(-45), by bisection to a few percent."""
    low, high = np.zeros_like(a), np.full_like(a, sign)
    for _ in range(60):
        short = a * high - z * np.expm1(high) > -_DEPTH
        if not short.any():
            break
        high = np.where(short, 2 * high, high)
    for _ in range(40):
        if (np.abs(high - low) < 0.05 * np.abs(high)).all():
            break
        middle = 0.5 * (low + high)
        short = a * middle - z * np.expm1(middle) > -_DEPTH
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high
