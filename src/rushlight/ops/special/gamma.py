"""The gamma function's relatives: lgamma, digamma, polygamma, mvlgamma, igamma, zeta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.dispatch import call
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import elementwise, function, known_as, publish_inplace
from rushlight.kernels.reference import gamma
from rushlight.ops.elementwise.shared import require_tensors
from rushlight.ops.elementwise.unary import exp, log
from rushlight.ops.special.scipy_special import scipy_special
from rushlight.tensor import Tensor


@elementwise(refuse="c", grads={"input": lambda g, input: g * digamma(input)}, foreach=True)
def lgamma(input: Array) -> Array:
    """log |gamma(input)|.  input: (*) -> (*), infinite at 0, -1, -2 and so on.

    >>> import rushlight as torch
    >>> torch.lgamma(torch.tensor([0.5, 5.0]))
    tensor([0.5724, 3.1781])
    """
    return backend.lgamma(input)


@elementwise(refuse="c", grads={"input": lambda g, input: g * polygamma_op(input, 1)})
def digamma(input: Array) -> Array:
    """The derivative of lgamma.  input: (*) -> (*); infinite at 0, NaN at -1, -2 and so on."""
    return backend.digamma(input)


@elementwise(aten=("polygamma(n, input)",), refuse="c", ns=None,
             grads={"input": lambda g, input, n: g * polygamma_op(input, n + 1)})  # fmt: skip
def polygamma_op(input: Array, n: int) -> Array:
    """The n-th derivative of digamma.  (*) -> (*)"""
    return backend.polygamma(n, input)


def _order(n: int, input: Tensor | list[Any]) -> int:
    require_tensors("polygamma", input=input)
    n = whole("polygamma", "n", n)
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got {n}")
    return n


def whole(name: str, argument: str, n: Any) -> int:
    """An int, or what stands for one.  Raises TypeError for other numbers and for bools."""
    if (
        n.__class__ is bool
        or not hasattr(n, "__index__")
        or (isinstance(n, Tensor) and n.dtype.category >= dtypes.FLOAT)
    ):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(n).__name__}")
    return int(n)


@function(out=True, elementwise=True)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma, n >= 0.  input: (*) -> (*)"""
    return polygamma_op(input, _order(n, input))


def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma, n >= 0."""
    return polygamma(n, self)


def polygamma_(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma in place."""
    return call.apply_inplace(polygamma_op.op, (input,), (_order(n, input),))


Tensor.polygamma = known_as(polygamma_method, "polygamma", "Tensor")  # type: ignore[method-assign]
publish_inplace(polygamma_, "polygamma", "", ())


# The multivariate log-gamma function -----------------------------------------------------------------


@elementwise(refuse="c", ns=None)
def mvlgamma_op(input: Array, p: int) -> Array:
    """log of the gamma function of dimension p.  (*) -> (*)"""
    total = np.full(input.shape, 0.25 * p * (p - 1) * math.log(math.pi))
    for j in range(p):
        total += backend.lgamma(np.asarray(input - input.dtype.type(0.5 * j)))
    return total.astype(input.dtype)


@mvlgamma_op.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, p: int) -> Any:
    total = digamma(input)
    for j in range(1, p):
        total = total + digamma(input - 0.5 * j)
    return g * total


def _dimension(input: Tensor, p: int) -> int:
    require_tensors("mvlgamma", input=input)
    p = whole("mvlgamma", "p", p)
    if raw(input).dtype.kind == "b":
        raise RuntimeError("mvlgamma(): not implemented for torch.bool: convert it to a floating-point dtype")
    if p < 1:
        raise RuntimeError(f"mvlgamma(): p has to be greater than or equal to 1, got {p}")
    if raw(input).dtype.kind == "c":
        raise RuntimeError(f"mvlgamma(): not implemented for {input.dtype}")
    return p


@function(method=True, out=True, elementwise=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """log of the multivariate gamma function of dimension p >= 1.  input: (*), over (p - 1) / 2 -> (*)"""
    return mvlgamma_op(input, _dimension(input, p))


def mvlgamma_(input: Tensor, p: int) -> Tensor:
    """log of the multivariate gamma function, in place."""
    return call.apply_inplace(mvlgamma_op.op, (input,), (_dimension(input, p),))


publish_inplace(mvlgamma_, "mvlgamma", "", ())


# Incomplete gamma functions, by SciPy ----------------------------------------------------------------


def _no_order(name: str) -> Callable[..., Any]:
    def formula(g: Array | Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{name}: input' is not implemented: detach() it where it is "
                                  "a constant")  # fmt: skip

    return formula


def _density(g: Array | Tensor, a: Array | Tensor, x: Array | Tensor) -> Array | Tensor:
    """g times the gamma distribution's density of shape `a` at `x`."""
    return g * exp((a - 1) * log(x) - x - lgamma(a))


@elementwise(promote="arith", refuse="bic", strict=True,
             grads={"input": _no_order("igamma"),
                    "other": lambda g, input, other: _density(g, input, other)})  # fmt: skip
def igamma(input: Array, other: Array) -> Array:
    """The regularized lower incomplete gamma function of order `input` at `other`, broadcast.  (*), (*) -> (*)"""
    return scipy_special("igamma").gammainc(input, other)


@elementwise(promote="arith", refuse="bic", strict=True,
             grads={"input": _no_order("igammac"),
                    "other": lambda g, input, other: -_density(g, input, other)})  # fmt: skip
def igammac(input: Array, other: Array) -> Array:
    """The regularized upper incomplete gamma function of order `input` at `other`, broadcast.  (*), (*) -> (*)"""
    return scipy_special("igammac").gammaincc(input, other)


# The zeta function of Hurwitz ------------------------------------------------------------------------


def _no_exponent(g: Array | Tensor) -> object:
    raise NotImplementedError("the derivative for 'zeta: input' is not implemented: detach() it where it is a constant")


def _exponents(input: Any, g: Any) -> Array | Tensor:
    """Exponents as floating-point numbers: small integers would wrap around where 1 is added.  Python's numbers do not."""
    values = raw(input)
    if not hasattr(values, "dtype") or values.dtype.kind == "f":
        return input
    return input.to(g.dtype) if isinstance(input, Tensor) else input.astype(g.dtype)


def _by_base(g: Array | Tensor, exponent: Array | Tensor, other: Array | Tensor) -> Array | Tensor:
    """The gradient by what is raised to the exponents, and added to.  (*), (*), (*) -> (*)"""
    return g * (-exponent * zeta(exponent + 1, other))


@elementwise(ns="special", method=False, inplace=False, refuse="c",
             grads={"input": _no_exponent,
                    "other": lambda g, input, other: _by_base(g, _exponents(input, g), other)})  # fmt: skip
def zeta(input: Array, other: Array) -> Array:
    """Sum over n >= 0 of (other + n)^-input, broadcast; either may be a number.  (*), (*) -> (*)"""
    return gamma.zeta(np.asarray(input), np.asarray(other))
