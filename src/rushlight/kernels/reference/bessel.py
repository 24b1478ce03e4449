"""Modified Bessel functions of the first kind, of order 0 and 1, plain and scaled by e^-|x|, and derivatives of any order.

Chebyshev series on [0, 8] and, in 1/x, beyond; the coefficients were computed in 60 digits for this file.  Higher orders,
of which derivatives are sums: the power series on [0, 8], the upward recurrence beyond, where it is stable.
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.reference.series import chebyshev, in_float64

TERMS = 30  # of the power series, at most at 8

_I0_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357,
    -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05,
    -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08,
    -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11,
    -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14,
    -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17,
    -4.4153416464793395e-18, 5.669178006921496e-19,
)  # fmt: skip
_I0_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14,
    -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
    -7.233180487874754e-18, 9.921475412173699e-19, 1.193650890845982e-18,
)  # fmt: skip
_I1_NEAR = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516,
    -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06,
    -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15,
    -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17, 2.7779141127610464e-18,
    -3.541581772542136e-19,
)  # fmt: skip
_I1_FAR = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18, -9.314178867326884e-19, -1.242193275194891e-18,
)  # fmt: skip


def _scaled(size: Array, near: tuple[float, ...], far: tuple[float, ...]) -> Array:
    """A series in x up to 8, and beyond one in 1/x divided by the root of x."""
    beyond = size > 8
    out = chebyshev(near, np.minimum(size, 8.0) / 4 - 1)
    if beyond.any():
        x = size[beyond]
        out[beyond] = chebyshev(far, 16 / x - 1) / np.sqrt(x)
    return out


def _i0e(x: Array) -> Array:
    return _scaled(np.abs(x), _I0_NEAR, _I0_FAR)


def _i1e(x: Array) -> Array:
    size = np.abs(x)
    out = _scaled(size, _I1_NEAR, _I1_FAR)
    out *= np.minimum(size, np.where(size > 8, 1.0, size))
    return np.copysign(out, x)


def _grown(scaled: Array, x: Array) -> Array:
    """A scaled function times e^|x|, in two steps so that it overflows no earlier than the result."""
    half = np.exp(np.abs(x) / 2)
    out = scaled * half * half
    out[np.isinf(x)] = np.copysign(np.inf, scaled[np.isinf(x)])
    return out


i0e = in_float64(_i0e)
i1e = in_float64(_i1e)
i0 = in_float64(lambda x: _grown(_i0e(x), x))
i1 = in_float64(lambda x: _grown(_i1e(x), x))


def _orders(size: Array, highest: int) -> list[Array]:
    """The scaled functions of orders 0 to `highest` >= 1 at numbers that are not negative."""
    near = [_by_powers(size, order) for order in range(highest + 1)]
    beyond = [_i0e(size), _i1e(size)]
    for order in range(1, highest):
        beyond.append(beyond[-2] - 2 * order / size * beyond[-1])
    return [np.where(size > 8, *pair) for pair in zip(beyond, near)]


def _by_powers(size: Array, order: int) -> Array:
    """e^-x times the sum of (x / 2)^(2k + order) / (k! (k + order)!), where x is at most 8."""
    square, out = size * size / 4, np.zeros_like(size)
    for k in range(TERMS, -1, -1):
        out = out * square + 1 / (math.factorial(k) * math.factorial(k + order))
    return out * (size / 2) ** order * np.exp(-size)


def _i1_slopes(x: Array, n: int) -> list[Array]:
    """e^-|x| times i1 and its first n derivatives: each the mean of those before it at the orders beside its own."""
    orders = _orders(np.abs(x), n + 1)
    slopes = []
    for k in range(n + 1):
        terms = (math.comb(k, j) / 2**k * orders[abs(1 - k + 2 * j)] for j in range(k + 1))
        slopes.append(sum(terms) * (np.sign(x) if k % 2 == 0 else 1.0))
    return slopes


def i1_slope(x: Array, n: int) -> Array:
    """The n-th derivative of i1, n >= 1: no terms of it cancel, near 0 or anywhere else."""
    slope = in_float64(lambda part: _grown(_i1_slopes(part, n)[n], part))
    return np.asarray(slope(x))


def i1e_slope(x: Array, n: int) -> Array:
    """The n-th derivative of i1e, n >= 1; at 0, where e^-|x| has a kink, that of i1."""
    if n == 1:
        return np.asarray(_i1e_first_slope(x))
    slope = in_float64(lambda part: sum(
        math.comb(n, k) * (-np.sign(part)) ** (n - k) * slope for k, slope in enumerate(_i1_slopes(part, n))
    ))  # fmt: skip
    return np.asarray(slope(x))


def _slope_of(series: tuple[float, ...]) -> list[float]:
    """The derivative of a Chebyshev series."""
    out = [0.0] * (len(series) + 1)
    for k in range(len(series) - 1, 0, -1):
        out[k - 1] = out[k + 1] + 2 * k * series[k]
    return [out[0] / 2, *out[1:-2]]


@in_float64
def _i1e_first_slope(x: Array) -> Array:
    """Beyond 8, where the sum of the others cancels, by the derivative of the series itself."""
    size = np.abs(x)
    slopes = _i1_slopes(x, 1)
    at, sixteenth = 16 / size - 1, 16 / size
    far = 0.5 * chebyshev(_I1_FAR, at) + sixteenth * chebyshev(_slope_of(_I1_FAR), at)
    return np.asarray(np.where(size > 8, -far / (size * np.sqrt(size)), slopes[1] - np.sign(x) * slopes[0]))
