"""Exponentials, logarithms, trigonometric and hyperbolic functions, the logistic function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import families, shapes
from rushlight.dispatch import functions as ops
from rushlight.dispatch.compute import beside_number
from rushlight.dispatch.declare import Array, Op
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import elementwise, function, op
from rushlight.ops.elementwise.arith import by, conj, own_conj
from rushlight.ops.elementwise.complex_log import complex_log1p
from rushlight.ops.elementwise.divide import per
from rushlight.ops.elementwise.shared import complex_refused, floating_into, keep, over, times
from rushlight.tensor import Tensor

F = "nn.functional"
ndarray, FLOAT32, FLOAT64 = np.ndarray, np.dtype(np.float32), np.dtype(np.float64)
LN2, LN10 = math.log(2.0), math.log(10.0)
SMALL = 4096  # elements below which NumPy's own loops are as fast as the kernels


def kernel(name: str) -> Callable[..., Any]:
    """A forward: NumPy's function for small or complex arrays, this project's kernel for large ones; takes `out`."""
    plain = getattr(np, name)

    def run(x: Array, out: Array | None = None) -> Any:
        if x.size < SMALL or x.dtype.kind == "c":
            return plain(x, out=out)
        return getattr(backend, name)(x, out=out)

    return run


def inplace_kernel(of: Op, fn: Callable[..., Any]) -> Callable[..., Any]:
    """An `into` of operator `of` from a forward that takes `out`."""
    return floating_into(of, lambda x: fn(x, out=x))


# Exponentials ----------------------------------------------------------------------------------------

_exp = kernel("exp")


@elementwise(half=None, foreach=True, passes=2.0)
def exp(input: Array) -> Array:
    """e to the power of each element.  input: (*) -> (*); keeps its result for the backward.

    >>> import rushlight as torch
    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return _exp(input)


exp.grad("input")(lambda g, out: by(g, conj(out)))
exp.into(inplace_kernel(exp.op, _exp))


@elementwise(half=None)
def exp2(input: Array) -> Array:
    """2 to the power of each element.  input: (*) -> (*); keeps its result for the backward."""
    return backend.exp2(input) if input.dtype.kind != "c" else np.exp(_scaled(input, LN2))


def _scaled(x: Array, factor: float) -> Array:
    """A complex array times a real number, part by part: infinities meet no zeros."""
    out = np.empty_like(x)
    np.multiply(x.real, factor, out=out.real)
    np.multiply(x.imag, factor, out=out.imag)
    return out


exp2.grad("input")(lambda g, out: times(g, own_conj(by(out, LN2))))


@elementwise(ufunc="expm1", grads={"input": lambda g, out: times(g, own_conj(out + 1))}, foreach=True)
def expm1(input: Array) -> Array:
    """e^input - 1, exact near 0.  input: (*) -> (*); keeps its result for the backward."""


# Logarithms ------------------------------------------------------------------------------------------

_log = kernel("log")


@elementwise(half=None, grads={"input": lambda g, input: per(g, conj(input))}, foreach=True)
def log(input: Array) -> Array:
    """Natural logarithm.  input: (*) -> (*); -inf at 0, NaN below.

    >>> import rushlight as torch
    >>> torch.log(torch.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    return _log(input)


log.into(inplace_kernel(log.op, _log))


@elementwise(ufunc="log2", grads={"input": lambda g, input: over(g, own_conj(by(input, LN2)))}, foreach=True)
def log2(input: Array) -> Array:
    """Logarithm to base 2.  input: (*) -> (*); -inf at 0, NaN below."""


@elementwise(ufunc="log10", grads={"input": lambda g, input: over(g, own_conj(by(input, LN10)))}, foreach=True)
def log10(input: Array) -> Array:
    """Logarithm to base 10.  input: (*) -> (*); -inf at 0, NaN below."""


@elementwise(half=None, grads={"input": lambda g, input: over(g, own_conj(input + 1))}, foreach=True)
def log1p(input: Array) -> Array:
    """log(1 + input), exact near 0.  input: (*) -> (*), -inf at -1 and NaN below"""
    return np.log1p(input) if input.dtype.kind != "c" else complex_log1p(input)


# Trigonometric functions and their inverses ----------------------------------------------------------


@elementwise(half=None, grads={"input": lambda g, input: times(g, own_conj(cos(input)))}, foreach=True)
def sin(input: Array) -> Array:
    """Sine.  input: (*) in radians -> (*)

    >>> import rushlight as torch
    >>> torch.sin(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """
    return backend.sin(input)


@elementwise(half=None, grads={"input": lambda g, input: times(g, own_conj(-sin(input)))}, foreach=True)
def cos(input: Array) -> Array:
    """Cosine.  input: (*) in radians -> (*)"""
    return backend.cos(input)


sin.into(inplace_kernel(sin.op, backend.sin))
cos.into(inplace_kernel(cos.op, backend.cos))


@elementwise(ufunc="tan", grads={"input": lambda g, out: times(g, own_conj(out * out + 1))}, foreach=True)
def tan(input: Array) -> Array:
    """Tangent.  input: (*) in radians -> (*); keeps its result for the backward."""


def _one_minus_square(x: Any) -> Any:
    return 1 - x * x


@elementwise(ufunc="arcsin", aliases=("arcsin",),
             grads={"input": lambda g, input: times(g, own_conj(ops.rsqrt(_one_minus_square(input))))}, foreach=True)  # fmt: skip
def asin(input: Array) -> Array:
    """Inverse sine in radians.  input: (*) -> (*), NaN outside [-1, 1]."""


@elementwise(ufunc="arccos", aliases=("arccos",),
             grads={"input": lambda g, input: times(g, own_conj(-ops.rsqrt(_one_minus_square(input))))}, foreach=True)  # fmt: skip
def acos(input: Array) -> Array:
    """Inverse cosine in radians.  input: (*) -> (*), NaN outside [-1, 1]."""


@elementwise(ufunc="arctan", aliases=("arctan",),
             grads={"input": lambda g, input: over(g, own_conj(input * input + 1))}, foreach=True)  # fmt: skip
def atan(input: Array) -> Array:
    """Inverse tangent in radians.  input: (*) -> (*)"""


# Hyperbolic functions and their inverses -------------------------------------------------------------


@elementwise(ufunc="sinh", grads={"input": lambda g, input: times(g, own_conj(cosh(input)))}, foreach=True)
def sinh(input: Array) -> Array:
    """Hyperbolic sine.  input: (*) -> (*)"""


@elementwise(ufunc="cosh", grads={"input": lambda g, input: times(g, own_conj(sinh(input)))}, foreach=True)
def cosh(input: Array) -> Array:
    """Hyperbolic cosine.  input: (*) -> (*)"""


_tanh = kernel("tanh")


@elementwise(aten_gradient="tanh_backward(g, out)", half=None, foreach=True, passes=3.0)
def tanh(input: Array) -> Array:
    """Hyperbolic tangent.  input: (*) -> (*); keeps its result for the backward.

    >>> import rushlight as torch
    >>> torch.tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return _tanh(input)


def _tanh_raw(g: Array, out: Array) -> Array:
    if out.size < SMALL or out.dtype.kind == "c":
        return times(g, own_conj(1 - out * out))
    return backend.tanh_backward(g, out)


@op(shape=shapes.dense_grad, batch=families.targeted)
def tanh_backward(grad: Array, output: Array) -> Array:
    """grad * (1 - output^2), of real numbers: one operator, so that derivatives of it save and compute less.  (*), (*) -> (*)"""
    return _tanh_raw(grad, output)


tanh_backward.grad("grad")(lambda g, output: tanh_backward(g, output))
tanh_backward.grad("output", blocks=True)(lambda g, grad, output: g * grad * (output * -2))


@tanh.grad("input", raw=_tanh_raw)
def _(g: Tensor, out: Tensor) -> Tensor:
    return g * conj(1 - out * out) if raw(out).dtype.kind == "c" else tanh_backward(g, out)


tanh.into(inplace_kernel(tanh.op, _tanh))


@function(ns=F, name="tanh")
def functional_tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent: as torch.tanh.  (*) -> (*)"""
    return tanh(input)


@elementwise(ufunc="arcsinh", aliases=("arcsinh",),
             grads={"input": lambda g, input: times(g, own_conj(ops.rsqrt(input * input + 1)))})  # fmt: skip
def asinh(input: Array) -> Array:
    """Inverse hyperbolic sine.  input: (*) -> (*)"""


def _root_of_square_less_one(x: Any) -> Array | Tensor:
    return ops.sqrt(x - 1) * ops.sqrt(x + 1)


@elementwise(ufunc="arccosh", aliases=("arccosh",),
             grads={"input": lambda g, input: over(g, own_conj(_root_of_square_less_one(input)))})  # fmt: skip
def acosh(input: Array) -> Array:
    """Inverse hyperbolic cosine.  input: (*) -> (*), NaN below 1."""


@elementwise(ufunc="arctanh", aliases=("arctanh",),
             grads={"input": lambda g, input: over(g, own_conj(_one_minus_square(input)))})  # fmt: skip
def atanh(input: Array) -> Array:
    """Inverse hyperbolic tangent.  input: (*) -> (*), NaN outside [-1, 1]."""


# The logistic function and its inverse ---------------------------------------------------------------


def _sigmoid(x: Array, out: Array | None = None) -> Array:
    if x.dtype is FLOAT32 or x.dtype is FLOAT64 or (x.size >= SMALL and x.dtype.kind != "c"):
        return backend.sigmoid(x, out=out)
    if x.dtype.itemsize == 2:
        t = np.exp(-x.astype(np.float32))
        t += 1
        result = np.true_divide(1, t).astype(x.dtype)
        if out is None:
            return result
        out[...] = result
        return out
    # not into strided memory: there NumPy 2.4's negative writes wrong elements (see call.fits_into)
    t = np.negative(x, out=out) if out is None or out.flags.forc else np.multiply(x, -1, out=out)
    if t.__class__ is not ndarray:
        return 1 / (1 + np.exp(t))
    np.exp(t, out=t)
    t += 1
    return np.true_divide(1, t, out=t)


@elementwise(aten_gradient="sigmoid_backward(g, out)", half=None, foreach=True, passes=3.0)
def sigmoid(input: Array) -> Array:
    """1 / (1 + e^-input).  input: (*) -> (*); keeps its result for the backward.

    >>> import rushlight as torch
    >>> torch.sigmoid(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """
    return _sigmoid(input)


def _sigmoid_raw(g: Array, out: Array) -> Array:
    if out.size < SMALL or out.dtype.kind == "c":
        slope = 1 - out
        slope *= out
        return times(g, own_conj(slope))
    return backend.sigmoid_backward(g, out)


@op(shape=shapes.dense_grad, batch=families.targeted)
def sigmoid_backward(grad: Array, output: Array) -> Array:
    """grad * (1 - output) * output, of real numbers.  (*), (*) -> (*)"""
    return _sigmoid_raw(grad, output)


sigmoid_backward.grad("grad")(lambda g, output: sigmoid_backward(g, output))
sigmoid_backward.grad("output", blocks=True)(lambda g, grad, output: g * grad * (1 - output * 2))


@sigmoid.grad("input", raw=_sigmoid_raw)
def _(g: Tensor, out: Tensor) -> Tensor:
    return g * conj((1 - out) * out) if raw(out).dtype.kind == "c" else sigmoid_backward(g, out)


sigmoid.into(inplace_kernel(sigmoid.op, _sigmoid))


@function(ns=F, name="sigmoid")
def functional_sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + e^-input): as torch.sigmoid.  (*) -> (*)"""
    return sigmoid(input)


@elementwise(aten=("logit(input, eps=None)",), refuse="c", cut=True)
def logit(input: Array, eps: float | None = None) -> Array:
    """log(input / (1 - input)).  input: (*) -> (*), NaN outside [0, 1]

    eps: if given, `input` is clamped to [eps, 1 - eps] first.
    """
    x = input
    if eps is not None:  # the lower bound comes first where they cross
        low, high = input.dtype.type(eps), input.dtype.type(1 - eps)
        x = np.clip(input, low, high) if low <= high else np.where(input < low, low, np.minimum(input, high))
    return np.log(np.true_divide(x, 1 - x))


def _logit_raw(g: Array, input: Array, eps: float | None) -> Array:
    if eps is None:
        return backend.logit_backward(g, input)
    return backend.logit_backward(g, input, eps, 1 - eps, 0.0)


@logit.grad("input", raw=_logit_raw)
def _(g: Array | Tensor, input: Any, eps: float | None) -> Any:
    slope = g / (input * (1 - input))
    if eps is None:
        return ops.where((input >= 0) & (input <= 1), slope, math.nan)
    return keep(slope, (input >= eps) & (input <= 1 - eps))


# Angles, sinc ----------------------------------------------------------------------------------------


def _times(x: Array, number: float) -> Array:
    found = beside_number(np.multiply, x, number)
    return x * number if found is None else found


@elementwise(half=None, refuse="c", refusal=complex_refused(RuntimeError, "deg2rad is not supported for complex tensors"),
             grads={"input": lambda g: by(g, math.pi / 180)})  # fmt: skip
def deg2rad(input: Array) -> Array:
    """Degrees as radians.  input: (*) -> (*)"""
    return _times(input, math.pi / 180)


@elementwise(half=None, refuse="c", refusal=complex_refused(RuntimeError, "rad2deg is not supported for complex tensors"),
             grads={"input": lambda g: by(g, 180 / math.pi)})  # fmt: skip
def rad2deg(input: Array) -> Array:
    """Radians as degrees.  input: (*) -> (*)"""
    return _times(input, 180 / math.pi)


@elementwise(cut=True)
def sinc(input: Array) -> Array:
    """sin(pi input) / (pi input), 1 at 0.  input: (*) -> (*)"""
    t = np.asarray(input * math.pi)
    out = np.asarray(np.sin(t))
    with np.errstate(invalid="ignore"):
        np.true_divide(out, t, out=out)
    out[t == 0] = 1
    return out


@sinc.grad("input")
def _(g: Array | Tensor, input: Array | Tensor) -> Any:
    return g * conj(sinc_slope(input, 1))


@elementwise(ns=None, grads={"input": lambda g, input, n: g * conj(sinc_slope(input, n + 1))})
def sinc_slope(input: Array, n: int) -> Array:
    """The n-th derivative of sinc.  input: (*) -> (*)"""
    return backend.sinc_slope(input, n)
