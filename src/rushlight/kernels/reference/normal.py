"""Functions of the normal distribution: erfc, erfcx, erfinv, ndtr, ndtri, log_ndtr.

erfcx is a Chebyshev series in (x - 3.75) / (x + 3.75) after Schonfelder (Mathematics of Computation 32, 1978), its
coefficients computed in 60 digits for this file; erfinv and ndtri are Wichura's algorithm AS 241 (Applied Statistics
37, 1988). Relative errors are some units in the last place of float64.
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.reference.series import chebyshev, in_float64
from rushlight.kernels.reference.special import erf, horner

_ERFCX = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189, -0.026658668435305753,
    0.009074997670705265, -0.002413163540417608, 0.0004907758365258086, -6.916973302501207e-05,
    4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07, 1.076499946567091e-08,
    4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11, 2.86879501093067e-11,
    1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14, 3.3478119482868056e-14,
    -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17, 5.068148904796111e-17,
    -2.2370566594359995e-18, -2.187342944303018e-18,
)  # fmt: skip
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
_NEAR = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
     1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


def _scaled_tail(x: Array) -> Array:
    """e^(x^2) erfc(x) for x >= 0."""
    return np.asarray(chebyshev(_ERFCX, 1 - 7.5 / (x + 3.75)) / (1 + 2 * x))


def _exp_square(x: Array, sign: float = -1.0) -> Array:
    """e^(sign x^2), x not negative, with the error of the square made good."""
    high = np.round(x * 16) / 16
    return np.exp(sign * high * high) * np.exp(sign * (x - high) * (x + high))


def _erfc(x: Array) -> Array:
    size = np.minimum(np.abs(x), 30.0)
    tail = _exp_square(size) * _scaled_tail(size)
    out = np.where(x < 0, 2 - tail, tail)
    near = np.abs(x) < 0.5
    out[near] = 1 - erf(x[near])
    out[np.isnan(x)] = np.nan
    return out


def _erfcx(x: Array) -> Array:
    size = np.abs(x)
    tail = _scaled_tail(size)
    below = x < 0
    if below.any():
        y = x[below]
        tail[below] = 2 * _exp_square(np.minimum(-y, 30.0), 1.0) - tail[below]
    return tail


def _quantile(half: Array) -> Array:
    """The x at which the normal distribution is 1/2 + half, |half| <= 1/2; NaN beyond."""
    t = 0.180625 - half * half
    out = half * horner(_CENTRE[0], t) / horner(_CENTRE[1], t)
    outer = t < 0
    if outer.any():
        tail = 0.5 - np.abs(half[outer])
        r = np.sqrt(-np.log(tail))
        near, far = r - 1.6, r - 5.0
        size = np.where(r <= 5.0, horner(_NEAR[0], near) / horner(_NEAR[1], near),
                        horner(_FAR[0], far) / horner(_FAR[1], far))  # fmt: skip
        size[tail == 0] = np.inf
        out[outer] = np.copysign(size, half[outer])
    return out


def _quantile_of(p: Array) -> Array:
    """The x at which the normal distribution is p."""
    out = _quantile(p - 0.5)
    low = p < 1e-3  # where p - 1/2 has lost digits of p
    if low.any():
        r = np.sqrt(-np.log(p[low]))
        near, far = r - 1.6, r - 5.0
        size = np.where(r <= 5.0, horner(_NEAR[0], near) / horner(_NEAR[1], near),
                        horner(_FAR[0], far) / horner(_FAR[1], far))  # fmt: skip
        out[low] = np.where(p[low] == 0, -np.inf, -size)
    return out


def _log_ndtr(x: Array) -> Array:
    t = x * math.sqrt(0.5)
    low = x < -1
    out = np.log1p(-0.5 * _erfc(np.where(low, 0.0, t)))
    if low.any():
        y = t[low]
        out[low] = np.log(0.5 * _scaled_tail(-y)) - y * y
    return out


erfc = in_float64(_erfc)
erfcx = in_float64(_erfcx)
erfinv = in_float64(lambda y: _quantile(0.5 * y) * math.sqrt(0.5))
ndtr = in_float64(lambda x: 0.5 * _erfc(-x * math.sqrt(0.5)))
ndtri = in_float64(_quantile_of)
log_ndtr = in_float64(_log_ndtr)
