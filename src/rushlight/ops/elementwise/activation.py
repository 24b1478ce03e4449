"""Smooth activations: gelu, silu, mish, softplus, logsigmoid, softsign, tanhshrink, glu.

They save their input; kernels compute the first derivatives, the formulas of operators the higher ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import families, shapes
from rushlight.dispatch.compute import check_factors
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.keeping import rebuilt
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import elementwise, function, inplace_of, op
from rushlight.dispatch.rules import of_laid_out
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.elementwise.floats import each_in_float32, is_float, mapped, require, widened
from rushlight.ops.elementwise.shared import in_blocks
from rushlight.tensor import Tensor

F = "nn.functional"


# gelu ------------------------------------------------------------------------------------------------------


@op(
    aten=("gelu(input, *, approximate='none')",),
    aten_gradient="gelu_backward(g, input, *, approximate='none')",
    ns=F,
    half=None,
    method=False,
    shape=shapes.dense,
    repeatable=True,
    batch=families.targeted,
    cheap=True,
    saver=rebuilt.keep_watched,
    again=60,
    pointwise=True,
    same_out=True,
    passes=3.0,
)
def gelu(input: Array, approximate: str = "none") -> Array:
    """input * Phi(input), Phi the normal distribution; "tanh" approximates it.  (*) -> (*)

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016).

    >>> import rushlight as torch
    >>> torch.nn.functional.gelu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    require(is_float(input.dtype), "gelu", input)
    return backend.gelu(input, _tanh_form(approximate))


def _tanh_form(approximate: str) -> int:
    """1 where Hendrycks' formula is wanted, 0 where the normal distribution is.  Raises RuntimeError for another word."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate argument must be either none or tanh, got {approximate!r}")
    return int(approximate == "tanh")


@gelu.grad("input", raw=lambda g, input, approximate: backend.gelu_backward(g, input, _tanh_form(approximate)))
def _(g: Tensor, input: Tensor, approximate: str) -> Tensor:
    g, x = widened(g, input)
    if approximate == "none":
        cdf = (ops.erf(x * math.sqrt(0.5)) + 1) * 0.5
        return g * (cdf + x * ops.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi)))
    scale, cube = math.sqrt(2 / math.pi), 0.044715
    t = ops.tanh((x + x * x * x * cube) * scale)
    return g * ((t + 1) * 0.5 + x * (1 - t * t) * (x * x * (3 * cube) + 1) * (0.5 * scale))


# silu, mish -------------------------------------------------------------------------------------------------


@elementwise(
    aten_gradient="silu_backward(g, input)",
    ns=None,
    promote=None,
    half=None,
    cheap=True,
    again=60,
    passes=3.0,
)
def silu_op(input: Array) -> Array:
    """input * sigmoid(input).  (*) -> (*)"""
    require(is_float(input.dtype) or input.dtype.kind == "c", "silu", input, "a floating-point or complex dtype")
    return backend.silu(input)


def _silu_raw(g: Array, input: Array) -> object:
    return _silu_grad(g, input) if input.dtype.kind == "c" else backend.silu_backward(g, input)


def _silu_grad(g: Array | Tensor, input: Array | Tensor) -> Tensor:
    s = ops.sigmoid(input)
    return g * conj(s * (input * (1 - s) + 1))


silu_op.grad("input", raw=_silu_raw)(_silu_grad)
silu_op.into(lambda x: backend.silu(x, out=x))
_silu_ = inplace_of(silu_op.op)


@function(ns=F)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input), written into `input` if `inplace`.  (*) -> (*)"""
    return _silu_(input) if inplace else silu_op(input)


@elementwise(aten_gradient="mish_backward(g, input)", ns=None, promote=None, cheap=True, again=120)
def mish_op(input: Array) -> Array:
    """input * tanh(softplus(input)).  (*) -> (*)"""
    require(input.dtype.kind == "f", "mish", input)
    return mapped(lambda x: _tanh_softplus(x) * x, input)


mish_op.into(in_blocks(mish_op.op, lambda x: np.multiply(_tanh_softplus(x), x, out=x)))


def _tanh_softplus(x: Array) -> Array:
    out = backend.softplus(x)
    return backend.tanh(out, out=out)


def _mish_raw(g: Array, input: Array) -> Any:
    return each_in_float32(lambda d, x: mapped(_mish_slope, d, x), g, input)


def _mish_slope(g: Array, x: Array) -> Array:
    t = _tanh_softplus(x)
    slope = 1 - t * t
    slope *= x
    slope *= backend.sigmoid(x)
    slope += t
    return np.multiply(slope, g, out=slope)


@mish_op.grad("input", raw=_mish_raw)
def _(g: Array | Tensor, input: Array | Tensor) -> Any:
    t = ops.tanh(softplus(input))
    return g * (t + input * (1 - t * t) * ops.sigmoid(input))


_mish_ = inplace_of(mish_op.op)


@function(ns=F)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input)), written into `input` if `inplace`.  (*) -> (*)"""
    return _mish_(input) if inplace else mish_op(input)


# softplus, logsigmoid ----------------------------------------------------------------------------------------


@op(
    aten=("softplus(input, beta=1, threshold=20)",),
    aten_gradient="softplus_backward(g, input, beta, threshold)",
    ns=F,
    half=None,
    method=False,
    shape=shapes.dense,
    repeatable=True,
    batch=families.targeted,
    pointwise=True,
    same_out=True,
)
def softplus(input: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + e^(beta * input)) / beta; input itself where beta * input > threshold.  (*) -> (*)"""
    require(is_float(input.dtype), "softplus", input)
    check_factors("softplus", input.dtype, beta, threshold)
    return backend.softplus(input, float(beta), float(threshold))


def _softplus_raw(g: Array, input: Array, beta: float, threshold: float) -> Array:
    return backend.softplus_backward(g, input, float(beta), float(threshold))


@softplus.grad("input", raw=_softplus_raw)
def _(g: Tensor, input: Tensor, beta: float, threshold: float) -> Tensor:
    scaled = input * beta
    return ops.where(scaled > threshold, g, g * ops.sigmoid(scaled))


@elementwise(
    aten=("log_sigmoid_forward(input)",),
    aten_more=True,
    aten_gradient="log_sigmoid",
    ns=F,
    name="log_sigmoid",
    public="logsigmoid",
    method=False,
    inplace=False,
    promote=None,
    same_out=True,
)
def logsigmoid(input: Array) -> Array:
    """log(sigmoid(input)), without overflow.  (*) -> (*)"""
    require(input.dtype.kind == "f", "logsigmoid", input)
    out = np.negative(input, out=np.empty_like(input))
    out = backend.softplus(out, 1.0, math.inf, out=out)
    return np.negative(out, out=out)


def _logsigmoid_raw(g: Array, input: Array) -> Any:
    return each_in_float32(_logsigmoid_slope, g, input)


def _logsigmoid_slope(g: Array, x: Array) -> Array:
    out = np.negative(x, out=np.empty_like(x))
    out = backend.sigmoid(out, out=out)
    return np.multiply(out, g, out=out)


logsigmoid.grad("input", raw=_logsigmoid_raw)(lambda g, input: g * ops.sigmoid(-input))


# softsign, tanhshrink ----------------------------------------------------------------------------------------


@elementwise(ns=F, half=None, method=False, inplace=False, takes_out=False)
def softsign(input: Array) -> Array:
    """input / (1 + |input|).  (*) -> (*)"""
    return input / (np.abs(input) + 1) if input.dtype.kind == "c" else backend.softsign(input)


@softsign.grad("input")
def _(g: Array | Tensor, input: Array | Tensor) -> Any:
    size = ops.abs(input)
    below = size + 1
    if input.dtype.is_complex if not isinstance(input, np.ndarray) else input.dtype.kind == "c":
        return g / below - ops.sgn(input) * (ops.real(g * conj(input)) / (below * below))
    return g / (below * below)


@elementwise(ns=F, method=False, inplace=False, takes_out=False)
def tanhshrink(input: Array) -> Array:
    """input - tanh(input).  (*) -> (*)"""
    out = backend.tanh(input)
    return np.subtract(input, out, out=out)


@tanhshrink.grad("input")
def _(g: Array | Tensor, input: Array | Tensor) -> Any:
    t = ops.tanh(input)
    return g * conj(t * t)


# glu ---------------------------------------------------------------------------------------------------------


def _halves(x: Array | Tensor, dim: int) -> tuple[Any, ...]:
    half = x.shape[dim] // 2
    lead = (slice(None),) * dim
    return x[(*lead, slice(None, half))], x[(*lead, slice(half, None))]


@op(
    aten=("glu(input, dim=-1)",),
    aten_gradient="glu_backward(g, input, dim)",
    half=None,
    repeatable=True,
    batch=families.shifted,
)
def glu_op(input: Array, dim: int) -> Array:
    """The first half of `input` along `dim` times the sigmoid of the second.  (*, 2n, *) -> (*, n, *)"""
    require(is_float(input.dtype), "glu", input)
    return backend.glu(input, dim)


@glu_op.shape
def _(input: Array, dim: int) -> list[shapes.Made]:
    return [shapes.Made(shapes.with_size(input, dim, input.shape[dim] // 2), input.dtype)]


@glu_op.grad("input", raw=lambda g, input, dim: backend.glu_backward(g, input, dim), shapes=of_laid_out(0))
def _(g: Tensor, input: Tensor, dim: int) -> Tensor:
    a, b = _halves(input, dim)
    s = ops.sigmoid(b)
    return ops.cat((g * s, g * a * s * (1 - s)), dim)


@function(ns=F)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `input` along `dim` times the sigmoid of the second.  (*, 2n, *) -> (*, n, *)

    Raises RuntimeError for tensors without dimensions and for an odd size.
    """
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even, got a 0-dimensional input")
    dim = wrap_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise RuntimeError(f"glu: Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    return glu_op(input, dim)
