"""Functions of two variables: atan2, logaddexp, xlogy, lerp, gcd, lcm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.dispatch import call
from rushlight.dispatch.compute import check_factors
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.plan import held_number
from rushlight.dispatch.registry import elementwise, function, publish_inplace
from rushlight.kernels.dispatch import in_float32_blocks, is_half, up
from rushlight.ops.elementwise.arith import by, conj
from rushlight.ops.elementwise.complex_log import complex_logaddexp
from rushlight.ops.elementwise.power import in_dtype
from rushlight.ops.elementwise.shared import in_blocks, keep, number, require_tensors
from rushlight.ops.elementwise.unary import exp, exp2
from rushlight.tensor import Tensor

# atan2 -----------------------------------------------------------------------------------------------


@elementwise(promote="float", ufunc="arctan2", half="float32", aliases=("arctan2",), refuse="c", strict=True)
def atan2(input: Array, other: Array) -> Array:
    """The angle of the point (other, input) in (-pi, pi], broadcast.  (*), (*) -> (*)"""
    return np.arctan2(input, other)


def _slope(g: Any, leg: Array | Tensor, other: Array | Tensor, sign: int) -> Array | Tensor:
    """The gradient by one of two legs, `other` being the one beside it."""
    leg, other = (in_dtype(x, raw(g).dtype) for x in (leg, other))
    square = leg * leg + other * other
    return keep(g * ((other * sign) / square), square != 0)


atan2.grad("input")(lambda g, input, other: _slope(g, input, other, 1))
atan2.grad("other")(lambda g, input, other: _slope(g, other, input, -1))


# Logarithms of sums ----------------------------------------------------------------------------------


@elementwise(promote="arith", half=None, refuse="bi", strict=True, inplace=False)
def logaddexp(input: Array, other: Array) -> Array:
    """log(e^input + e^other), broadcast, without overflow.  (*), (*) -> (*)"""
    if input.dtype.kind != "c":
        return backend.logaddexp(input, other)
    return complex_logaddexp(input, other)


logaddexp.grad("input")(lambda g, input, other: g / conj(exp(other - input) + 1))
logaddexp.grad("other")(lambda g, input, other: g / conj(exp(input - other) + 1))


@elementwise(promote="arith", half=None, refuse="bic", strict=True, inplace=False)
def logaddexp2(input: Array, other: Array) -> Array:
    """log2(2^input + 2^other), broadcast, without overflow.  (*), (*) -> (*)"""
    return backend.logaddexp2(input, other)


logaddexp2.grad("input")(lambda g, input, other: g / (exp2(other - input) + 1))
logaddexp2.grad("other")(lambda g, input, other: g / (exp2(input - other) + 1))


def _product_with_log(x: Array, logarithm: Array, y: Array) -> Array:
    """x * logarithm, 0 where x is 0 and y a number."""
    out = np.asarray(np.multiply(x, logarithm))
    np.copyto(out, out.dtype.type(0), where=np.equal(x, 0) & ~np.isnan(y))
    return out


def _array(x: Array, like: Array) -> Array:
    """A number as an array in the dtype of another operand; an array itself."""
    return x if isinstance(x, np.ndarray) else np.asarray(x, like.dtype)


def _some_tensor(name: str) -> Callable[..., Any]:
    def check(operands: list[Any]) -> None:
        if not any(isinstance(x, (np.ndarray, np.generic)) for x in operands):
            raise TypeError(f"{name}(): one of 'input' and 'other' must be Tensor, got two numbers")

    return check


@elementwise(aten=("xlogy.Tensor",), promote="float", refuse="c", cut=True)
def xlogy(input: Array, other: Array) -> Array:
    """input * log(other), 0 where `input` is 0, broadcast; either may be a number.  (*), (*) -> (*)"""
    return _product_with_log(input, np.log(_array(other, input)), other)


xlogy.grad("input")(lambda g, input, other: keep(xlogy(g, other), ~((input == 0) & (other <= 0))))


xlogy.grad("other")(lambda g, input, other: g * input / other)


@elementwise(promote="float", refuse="c", ns="special", method=False, inplace=False, cut=True)
def xlog1py(input: Array, other: Array) -> Array:
    """input * log1p(other), 0 where `input` is 0, broadcast; either may be a number.  (*), (*) -> (*)"""
    return _product_with_log(input, np.log1p(_array(other, input)), other)


@xlog1py.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, other: Array | Tensor) -> Any:
    other = in_dtype(other, raw(g).dtype)  # of bytes all are below -1, which wraps around
    return keep(xlog1py(g, other), ~((input == 0) & (other <= -1)))


# Divided last: the slope of the quotient is then of numbers that have been divided already, or float16 overflows.
xlog1py.grad("other")(lambda g, input, other: g * input / (in_dtype(other, raw(g).dtype) + 1))
xlogy.check(_some_tensor("xlogy"))
xlog1py.check(_some_tensor("xlog1py"))


# lerp ------------------------------------------------------------------------------------------------


def _between(x: Array, end: Array, weight: Array) -> Array:
    """x + weight * (end - x), exact at both ends.  All arrays, or `weight` a number."""
    if x.dtype.kind == "f" and x.shape == end.shape and x.dtype == end.dtype:
        if np.ndim(weight) == 0:
            return backend.lerp(x, end, float(weight))
        return backend.lerp_each(x, end, weight)
    step: Any = np.asarray(end - x)
    near: Any = np.abs(weight) < 0.5
    if not isinstance(near, np.ndarray) or near.ndim == 0:
        if near:
            return np.add(x, np.multiply(step, weight))
        return np.subtract(end, np.multiply(step, 1 - weight))
    return np.where(near, x + step * weight, end - step * (1 - weight))


@elementwise(aten=("lerp.Scalar", "lerp.Tensor"), promote="arith", half=None, ns=None, refuse="bi",
             grads={"input": lambda g, weight: by(g, conj(1 - weight)), "end": lambda g, weight: by(g, conj(weight)),
                    "weight": lambda g, input, end: g * conj(end - input)}, exact=True, takes_number=held_number)  # fmt: skip
def lerp_op(input: Array, end: Array, weight: Array) -> Array:
    """input + weight * (end - input), broadcast; `weight` may be a number.  (*), (*), (*) -> (*)"""
    half = next((a.dtype for a in (input, end, weight) if isinstance(a, np.ndarray) and is_half(a.dtype)), None)
    if half is not None:  # of tensors without dimensions beside others the numbers come in float32
        return _between_halves(input, end, weight, half)
    return _between(input, end, weight)


def _between_halves(x: Array, end: Array, weight: Array, half: np.dtype[Any]) -> Array:
    """`_between` of 16 bits: in float32, rounded once."""
    if x.shape == end.shape and x.ndim and np.ndim(weight) == 0:
        return backend.lerp(x, end, float(weight))
    if weight.__class__ is np.ndarray and weight.dtype == x.dtype == end.dtype and weight.shape == x.shape == end.shape:
        return backend.lerp_each(x, end, weight)
    arrays = [a if isinstance(a, np.ndarray) else np.asarray(a, np.float32) for a in (x, end, weight)]
    found = in_float32_blocks(_between, *arrays)
    return np.asarray(_between(*up(*arrays))).astype(half) if found is None else found


def _lerp_into(x: Array, end: Array, weight: Array) -> None:
    found = _between_halves(x, end, weight, x.dtype) if is_half(x.dtype) else _between(x, end, weight)
    x[...] = found  # to the last bit as out of place, wherever the memory is whose


lerp_op.into(in_blocks(lerp_op.op, _lerp_into))


def _weight(
    input: Tensor | list[Any], end: Tensor | complex, weight: Tensor | float | list[Any]
) -> Tensor | float | None:
    """The weight.  Raises RuntimeError unless all tensors are of one dtype and the weight of its kind."""
    require_tensors("lerp", input=input, end=end)
    have = raw(input).dtype
    if have.kind in "bui":  # a weight that is a number would make them floating point
        raise NotImplementedError(f"lerp(): expected tensors of floating point or complex values, got {dtypes.of(have)}: "
                                  "convert them")  # fmt: skip
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, (Tensor, np.ndarray)) and raw(x).dtype != have and raw(x).ndim + (name == "end"):
            raise RuntimeError(f"lerp(): expected dtype {dtypes.of(have)} for `{name}` but got dtype "
                               f"{dtypes.of(raw(x).dtype)}: convert one of them")  # fmt: skip
    if isinstance(weight, complex) and have.kind != "c":
        raise RuntimeError(f"lerp(): the weight {weight} is complex, the tensors are of {dtypes.of(have)}")
    if isinstance(weight, (Tensor, np.ndarray)):
        return weight
    check_factors("lerp", have, number(weight))
    return number(weight)


@function(method=True, out=True, elementwise=True)
def lerp(input: Tensor, end: Tensor | complex, weight: Tensor | float) -> Tensor:
    """input + weight * (end - input), broadcast; `weight` is a number or tensor.  (*), (*), (*) -> (*)

    >>> import rushlight as torch
    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.25)
    tensor([ 2.5000, 12.5000])
    """
    return lerp_op(input, end, _weight(input, end, weight))


def lerp_(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Move `input` toward `end` in place."""
    return call.apply_inplace(lerp_op.op, (input, end, _weight(input, end, weight)), ())


publish_inplace(lerp_, "lerp", "", ())


# Divisors --------------------------------------------------------------------------------------------


@elementwise(promote="arith", half=None, refuse="bfc", strict=True)
def gcd(input: Array, other: Array) -> Array:
    """The greatest common divisor, never negative, broadcast.  (*), (*) integer -> (*)"""
    return np.gcd(input, other)


@elementwise(promote="arith", half=None, refuse="bfc", strict=True)
def lcm(input: Array, other: Array) -> Array:
    """The least common multiple, never negative, broadcast.  (*), (*) integer -> (*)"""
    return np.abs(np.lcm(input, other))  # of the most negative ones it overflows
