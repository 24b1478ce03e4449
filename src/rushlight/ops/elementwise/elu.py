"""The exponential linear units: elu, selu, celu.  They save their result, which tells the sign of the input and the slope."""

from __future__ import annotations

import math

from rushlight.backends.numpy import backend
from rushlight.basics.dtypes import HALVES
from rushlight.dispatch import families, shapes
from rushlight.dispatch.compute import check_factors
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import NAMESPACES, function, inplace_of, op
from rushlight.kernels.dispatch import up
from rushlight.ops.elementwise.floats import is_float, require
from rushlight.ops.elementwise.rectifier import outside, publish_inplace
from rushlight.ops.elementwise.shared import factor
from rushlight.tensor import Tensor

F = "nn.functional"


def _elu(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    require(is_float(x.dtype), "elu", x)
    return backend.elu(x, alpha * scale, scale, input_scale)


def _elu_into(x: Array, alpha: float, scale: float, input_scale: float) -> None:
    require(is_float(x.dtype), "elu", x)
    backend.elu(x, alpha * scale, scale, input_scale, out=x)


@op(
    aten=("elu(input, alpha=1, scale=1, input_scale=1)",),
    aten_gradient="elu_backward(g, alpha, scale, input_scale, ''=False, input)",
    half=None,
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
    pointwise=True,
    steady_out=True,
)
def elu_op(input: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """scale * input where over 0, else scale * alpha * (e^(input_scale * input) - 1), alpha >= 0.  (*) -> (*)"""
    return _elu(input, alpha, scale, input_scale)


def _elu_raw(g: Array, out: Array, alpha: float, scale: float, input_scale: float) -> Array:
    return backend.elu_backward(*up(g, out), alpha * scale, scale, input_scale)


@elu_op.grad("input", raw=_elu_raw)
def _(g: Tensor, out: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    # Finite where it is not chosen: 0 times infinity is NaN in the derivative by g. At 0, no slope of the slope.
    below = ops.where(outside(out, 0.0, math.inf), out, 0.0)
    falling = g * ((below + alpha * scale) * input_scale)
    return ops.where(outside(out, -math.inf, 0.0), g * scale, falling)


@op(half=None, shape=shapes.same, repeatable=True, batch=families.targeted, pointwise=True)
def elu_of_input(input: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """`elu` whose result does not tell its slope: of alpha < 0 by its sign, of 16 bits by its digits.  (*) -> (*)"""
    return _elu(input, alpha, scale, input_scale)


def _of_input_raw(g: Array, input: Array, alpha: float, scale: float, input_scale: float) -> Array:
    return backend.elu_backward_of_input(g, input, alpha * scale, scale, input_scale)


@elu_of_input.grad("input", raw=_of_input_raw)
def _(g: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    below = ops.where(outside(input, 0.0, math.inf), input, 0.0)
    falling = ops.exp(below * input_scale) * (alpha * scale * input_scale)
    return ops.where(outside(input, -math.inf, 0.0), g * scale, g * falling)


def elu_any(input: Tensor, alpha: float, scale: float, input_scale: float, inplace: bool) -> Tensor:
    """The exponential linear units, by the sign of alpha and the size of the numbers."""
    check_factors("elu", raw(input).dtype, alpha, scale, input_scale)
    of_input = alpha < 0 or raw(input).dtype in HALVES
    return ((_elu_, _elu_of_input_) if inplace else (elu_op, elu_of_input))[of_input](input, alpha, scale, input_scale)


for _fn in (elu_op, elu_of_input):
    _fn.into(_elu_into)
_elu_, _elu_of_input_ = inplace_of(elu_op.op), inplace_of(elu_of_input.op)


@function(ns=F)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where over 0, else alpha * (e^input - 1).  (*) -> (*)"""
    return elu_any(input, alpha, 1.0, 1.0, inplace)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `elu`."""
    return elu(input, alpha, True)


publish_inplace("elu_", elu_, F)

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@function(ns=F)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * elu(input, alpha) with constants of Klambauer et al., Self-Normalizing Networks (2017).  (*) -> (*)"""
    return elu_any(input, SELU_ALPHA, SELU_SCALE, 1.0, inplace)


def selu_(input: Tensor) -> Tensor:
    """In-place version of `selu`."""
    return selu(input, True)


@function(ns=F)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where over 0, else alpha * (e^(input / alpha) - 1).  (*) -> (*).  Raises RuntimeError for alpha = 0."""
    alpha = factor("alpha", alpha)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU, got alpha=0")
    return elu_any(input, alpha, 1.0, 1.0 / alpha, inplace)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `celu`."""
    return celu(input, alpha, True)


NAMESPACES[""].update(selu=selu, celu=celu)
publish_inplace("selu_", selu_, "", F)
publish_inplace("celu_", celu_, "", F)
