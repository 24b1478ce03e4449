"""Special functions: erf and its relatives, Bessel functions, entropy; the names of torch.special."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import NAMESPACES, elementwise
from rushlight.ops.elementwise import rounding, two_variables, unary
from rushlight.ops.elementwise.arith import by
from rushlight.ops.elementwise.shared import keep, times
from rushlight.ops.elementwise.unary import exp, log
from rushlight.ops.special import gamma
from rushlight.ops.special.scipy_special import scipy_special
from rushlight.tensor import Tensor

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
PEAK = math.sqrt(0.5 / math.pi)
SPECIAL: dict[str, Any] = {"ns": "special", "method": False, "inplace": False, "refuse": "c"}

# The error function and the normal distribution ------------------------------------------------------


def _bell(g: Array | Tensor, x: Array | Tensor, scale: float) -> Array | Tensor:
    """g * scale * e^(-x^2)."""
    return times(g, by(exp(-(x * x)), scale))


@elementwise(half=None, refuse="c", grads={"input": lambda g, input: _bell(g, input, TWO_OVER_ROOT_PI)}, foreach=True)
def erf(input: Array) -> Array:
    """The error function.  input: (*) -> (*)

    >>> import rushlight as torch
    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return backend.erf(input)


@elementwise(refuse="c", grads={"input": lambda g, input: _bell(g, input, -TWO_OVER_ROOT_PI)}, foreach=True)
def erfc(input: Array) -> Array:
    """1 - erf(input), exact where that is small.  input: (*) -> (*)"""
    return backend.erfc(input)


@elementwise(refuse="c", grads={"input": lambda g, input: times(g, by(exp(erfinv(input) ** 2), 1 / TWO_OVER_ROOT_PI))})
def erfinv(input: Array) -> Array:
    """The inverse of erf.  input: (*) -> (*); infinite at -1 and 1, NaN beyond."""
    return backend.erfinv(input)


@elementwise(**SPECIAL, grads={"input": lambda g, input: g * erfcx_slope(input, 1)})
def erfcx(input: Array) -> Array:
    """e^(input^2) erfc(input), without overflow for large `input`.  input: (*) -> (*)"""
    return backend.erfcx(input)


@elementwise(ns=None, refuse="c", grads={"input": lambda g, input, n: g * erfcx_slope(input, n + 1)})
def erfcx_slope(input: Array, n: int) -> Array:
    """The n-th derivative of erfcx.  input: (*) -> (*)"""
    return backend.erfcx_slope(input, n)


@elementwise(**SPECIAL,
             grads={"input": lambda g, input: times(g, by(exp(input * input * -0.5), PEAK))})  # fmt: skip
def ndtr(input: Array) -> Array:
    """The normal distribution: the area below `input`.  input: (*) -> (*)"""
    return backend.ndtr(input)


@elementwise(**SPECIAL, grads={"input": lambda g, out: times(g, by(exp(out * out * 0.5), math.sqrt(2 * math.pi)))})
def ndtri(input: Array) -> Array:
    """The inverse of `ndtr`.  input: (*) -> (*); infinite at 0 and 1, NaN beyond."""
    return backend.ndtri(input)


FAR = {"float64": 37.0, "float16": 4.5}  # from where erfcx is infinite in a dtype, about; 13 in the others


def _slope_of_log_ndtr(g: Array | Tensor, input: Array | Tensor) -> Array | Tensor:
    """Beyond that it is 0, and so are its own slopes, which would be products of 0 and infinity."""
    far = FAR.get(raw(input).dtype.name, 13.0)
    within = by(named.clamp(input, None, far), -math.sqrt(0.5))
    return keep(by(g / erfcx(within), math.sqrt(2 / math.pi)), ~(raw(input) > far))


@elementwise(**SPECIAL, grads={"input": _slope_of_log_ndtr})
def log_ndtr(input: Array) -> Array:
    """The logarithm of the normal distribution, exact where that is small.  input: (*) -> (*)"""
    return backend.log_ndtr(input)


@elementwise(**SPECIAL, cut=True, grads={"input": lambda g, input: g * (-log(input) - 1)})
def entr(input: Array) -> Array:
    """-input * log(input): 0 at 0, -inf below.  input: (*) -> (*)"""
    out = np.asarray(np.log(input))
    out *= input
    np.negative(out, out=out)
    np.copyto(out, out.dtype.type(0), where=np.equal(input, 0))
    np.copyto(out, out.dtype.type(-np.inf), where=np.less(input, 0))
    return out


# Modified Bessel functions of the first kind ---------------------------------------------------------


@elementwise(refuse="c", grads={"input": lambda g, input: g * i1(input)})
def i0(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 0.  input: (*) -> (*)"""
    return backend.i0(input)


@elementwise(**SPECIAL, grads={"input": lambda g, input, out: g * (i1e(input) - rounding.sgn(input) * out)})
def i0e(input: Array) -> Array:
    """e^-|input| i0(input).  input: (*) -> (*)"""
    return backend.i0e(input)


@elementwise(**SPECIAL, grads={"input": lambda g, input: g * i1_slope(input, 1)})
def i1(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 1.  input: (*) -> (*)"""
    return backend.i1(input)


@elementwise(ns=None, refuse="c", grads={"input": lambda g, input, n: g * i1_slope(input, n + 1)})
def i1_slope(input: Array, n: int) -> Array:
    """The n-th derivative of i1.  input: (*) -> (*)"""
    return backend.i1_slope(input, n)


@elementwise(**SPECIAL, grads={"input": lambda g, input: g * i1e_slope(input, 1)})
def i1e(input: Array) -> Array:
    """e^-|input| i1(input).  input: (*) -> (*)"""
    return backend.i1e(input)


@elementwise(ns=None, refuse="c", grads={"input": lambda g, input, n: g * i1e_slope(input, n + 1)})
def i1e_slope(input: Array, n: int) -> Array:
    """The n-th derivative of i1e.  input: (*) -> (*)"""
    return backend.i1e_slope(input, n)


# Functions by SciPy ----------------------------------------------------------------------------------


def _no_derivative(name: str) -> Callable[..., Any]:
    def formula(g: Array | Tensor) -> Any:
        raise NotImplementedError(f"the derivative of special.{name} is not implemented: detach() its argument where "
                                  "it is a constant")  # fmt: skip

    return formula


def by_scipy(name: str, scipy_name: str, doc: str) -> Callable[..., Any]:
    """Publish a function of SciPy as torch.special.NAME, without a derivative."""

    def forward(input: Array) -> Array:
        return getattr(scipy_special(f"special.{name}"), scipy_name)(input)

    forward.__name__, forward.__doc__ = name, f"{doc}  input: (*) -> (*).  Needs SciPy."
    forward.__annotations__ = {"input": "Array"}
    return elementwise(**SPECIAL, grads={"input": _no_derivative(name)})(forward)


BY_SCIPY = {
    "bessel_j0": ("j0", "The Bessel function of the first kind of order 0."),
    "bessel_j1": ("j1", "The Bessel function of the first kind of order 1."),
    "bessel_y0": ("y0", "The Bessel function of the second kind of order 0."),
    "bessel_y1": ("y1", "The Bessel function of the second kind of order 1."),
    "modified_bessel_k0": ("k0", "The modified Bessel function of the second kind of order 0."),
    "modified_bessel_k1": ("k1", "The modified Bessel function of the second kind of order 1."),
    "scaled_modified_bessel_k0": ("k0e", "e^input times the modified Bessel function of the second kind of order 0."),
    "scaled_modified_bessel_k1": ("k1e", "e^input times the modified Bessel function of the second kind of order 1."),
}
for _name, (_scipy_name, _doc) in BY_SCIPY.items():
    by_scipy(_name, _scipy_name, _doc)


@elementwise(**SPECIAL, cut=True, grads={"input": _no_derivative("airy_ai")})
def airy_ai(input: Array) -> Array:
    """The Airy function Ai.  input: (*) -> (*).  Needs SciPy."""
    return scipy_special("special.airy_ai").airy(input)[0]


@elementwise(**SPECIAL, cut=True, grads={"input": _no_derivative("spherical_bessel_j0")})
def spherical_bessel_j0(input: Array) -> Array:
    """The spherical Bessel function of the first kind of order 0: sin(input) / input.  input: (*) -> (*)"""
    out = np.asarray(np.sin(input) / input)
    np.copyto(out, out.dtype.type(1), where=np.equal(input, 0))
    np.copyto(out, out.dtype.type(0), where=np.isinf(input))
    return out


# Names of torch.special ------------------------------------------------------------------------------

NAMESPACES.setdefault("special", {}).update(
    erf=erf, erfc=erfc, erfinv=erfinv, i0=i0, modified_bessel_i0=i0, modified_bessel_i1=i1,
    gammaln=gamma.lgamma, digamma=gamma.digamma, psi=gamma.digamma, polygamma=gamma.polygamma,
    multigammaln=gamma.mvlgamma, gammainc=gamma.igamma, gammaincc=gamma.igammac, xlogy=two_variables.xlogy,
    expit=unary.sigmoid, logit=unary.logit, exp2=unary.exp2, expm1=unary.expm1, log1p=unary.log1p, sinc=unary.sinc,
    round=rounding.round_,
)  # fmt: skip
