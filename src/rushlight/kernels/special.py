"""Special functions of each element: the normal distribution, the gamma function's relatives, modified Bessel functions.

NumPy's forms are in ``reference``; the native twins, in normal.cpp, gamma.cpp and bessel.cpp, compute in float64 too and round
once.  Arrays and results as in `rushlight.kernels.maps`.
"""

from __future__ import annotations

from rushlight.kernels.dispatch import Array
from rushlight.kernels.maps import each
from rushlight.kernels.reference import bessel, gamma, normal, slopes

__all__ = [
    "digamma",
    "erfc",
    "erfcx",
    "erfcx_first_slope",
    "erfcx_slope",
    "erfinv",
    "i0",
    "i0e",
    "i1",
    "i1_first_slope",
    "i1_slope",
    "i1e",
    "i1e_first_slope",
    "i1e_slope",
    "lgamma",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "polygamma",
    "sinc_first_slope",
    "sinc_slope",
    "trigamma",
]


@each(sixteen=False)
def erfc(x: Array) -> Array:
    """1 - erf(x), exact where that is small."""
    return normal.erfc(x)


@each(sixteen=False)
def erfcx(x: Array) -> Array:
    """e^(x^2) erfc(x)."""
    return normal.erfcx(x)


@each(sixteen=False)
def erfcx_first_slope(x: Array) -> Array:
    """The derivative of erfcx."""
    return slopes.erfcx_slope(x, 1)


@each(sixteen=False)
def erfinv(x: Array) -> Array:
    """The inverse of erf; NaN beyond -1 and 1."""
    return normal.erfinv(x)


@each(sixteen=False)
def ndtr(x: Array) -> Array:
    """The normal distribution."""
    return normal.ndtr(x)


@each(sixteen=False)
def ndtri(x: Array) -> Array:
    """The inverse of ndtr; NaN beyond 0 and 1."""
    return normal.ndtri(x)


@each(sixteen=False)
def log_ndtr(x: Array) -> Array:
    """The logarithm of the normal distribution."""
    return normal.log_ndtr(x)


@each(sixteen=False)
def lgamma(x: Array) -> Array:
    """log |gamma(x)|."""
    return gamma.lgamma(x)


@each(sixteen=False)
def digamma(x: Array) -> Array:
    """The derivative of lgamma; infinite at 0, NaN at -1, -2 and so on."""
    return gamma.digamma(x)


@each(sixteen=False)
def trigamma(x: Array) -> Array:
    """The derivative of digamma."""
    return gamma.polygamma(1, x)


@each(sixteen=False)
def i0(x: Array) -> Array:
    """The modified Bessel function of the first kind of order 0."""
    return bessel.i0(x)


@each(sixteen=False)
def i0e(x: Array) -> Array:
    """e^-|x| i0(x)."""
    return bessel.i0e(x)


@each(sixteen=False)
def i1(x: Array) -> Array:
    """The modified Bessel function of the first kind of order 1."""
    return bessel.i1(x)


@each(sixteen=False)
def i1e(x: Array) -> Array:
    """e^-|x| i1(x)."""
    return bessel.i1e(x)


@each(sixteen=False)
def i1_first_slope(x: Array) -> Array:
    """The derivative of i1."""
    return bessel.i1_slope(x, 1)


@each(sixteen=False)
def i1e_first_slope(x: Array) -> Array:
    """The derivative of i1e; at 0, where e^-|x| has a kink, that of i1."""
    return bessel.i1e_slope(x, 1)


@each(sixteen=False)
def sinc_first_slope(x: Array) -> Array:
    """The derivative of sin(pi x) / (pi x)."""
    return slopes.sinc_slope(x, 1)


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma."""
    if n > 1:
        return gamma.polygamma(n, x)
    return trigamma(x) if n else digamma(x)


def erfcx_slope(x: Array, n: int) -> Array:
    """The n-th derivative of erfcx, n >= 1."""
    return erfcx_first_slope(x) if n == 1 else slopes.erfcx_slope(x, n)


def i1_slope(x: Array, n: int) -> Array:
    """The n-th derivative of i1, n >= 1."""
    return i1_first_slope(x) if n == 1 else bessel.i1_slope(x, n)


def i1e_slope(x: Array, n: int) -> Array:
    """The n-th derivative of i1e, n >= 1."""
    return i1e_first_slope(x) if n == 1 else bessel.i1e_slope(x, n)


def sinc_slope(x: Array, n: int) -> Array:
    """The n-th derivative of sin(pi x) / (pi x), n >= 1, of real or complex numbers."""
    return sinc_first_slope(x) if n == 1 else slopes.sinc_slope(x, n)
