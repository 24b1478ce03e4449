"""Activations made of straight pieces.

Where the sign of the result tells which piece an element fell on, the result is what is saved: the next layer keeps it
anyway, so it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import HALVES, finfo, of
from rushlight.dispatch import families, randomness, shapes
from rushlight.dispatch.compute import check_factors, fitted
from rushlight.dispatch.declare import Array
from rushlight.dispatch.keeping.blocks import LARGE, by_blocks, in_blocks
from rushlight.dispatch.operands import check_tensor, raw
from rushlight.dispatch.options import made
from rushlight.dispatch.registry import NAMESPACES, elementwise, function, inplace_of, known_as, op
from rushlight.dispatch.rules import Making, laid_out
from rushlight.generator import Generator, default_generator
from rushlight.kernels.dispatch import is_half, of_half_and_number, recast, widened
from rushlight.kernels.pointwise.prelu import PART
from rushlight.ops.elementwise.arith import by
from rushlight.ops.elementwise.floats import is_float, is_real, require, wide
from rushlight.ops.elementwise.shared import limited, recording
from rushlight.ops.random.random import source
from rushlight.tensor import Tensor

F = "nn.functional"


def publish_inplace(name: str, fn: Callable[..., Any], *spaces: str) -> Callable[..., Any]:
    """Publish `fn` as `name` in the namespaces given."""
    known_as(fn, name, spaces[-1])
    for space in spaces:
        NAMESPACES.setdefault(space, {})[name] = fn
    return fn


# What the gradients are made of -----------------------------------------------------------------------


@op(name="threshold_backward", half=None, masks=("gate",), shape=shapes.dense_grad, batch=families.targeted)
def gated(grad: Array, gate: Array) -> Array:
    """`grad` where `gate` (bool) is True, else 0.  (*), (*) -> (*)"""
    return backend.relu_backward(grad, gate)


gated.grad("grad")(lambda g, gate: gated(g, gate))


@op(shape=shapes.truths, batch=families.targeted)
def outside(input: Array, low: float, high: float) -> Array:
    """Where `input` is not in [low, high]: there too where it is NaN.  (*) -> (*) bool"""
    inside = np.asarray(input >= low)
    inside &= input <= high
    return np.logical_not(inside, out=inside)


@op(shape=shapes.truths, batch=families.targeted)
def between(input: Array, low: float, high: float) -> Array:
    """Where `input` is over `low` and under `high`, or NaN.  (*) -> (*) bool"""
    return _within(input, low, high)


def _within(x: Array, low: float, high: float) -> Array:
    return in_blocks(_between, x, x, low, high)


def _between(x: Array, low: float, high: float) -> Array:
    beyond = np.asarray(x <= low)
    beyond |= x >= high
    return np.logical_not(beyond, out=beyond)


@op(aten=("threshold_backward",), half=None, shape=shapes.dense_grad, batch=families.targeted)
def relu_backward(grad: Array, output: Array) -> Array:
    """`grad` where the result of relu is over 0, else 0.  (*), (*) -> (*)"""
    return backend.relu_backward(grad, output)


relu_backward.grad("grad")(lambda g, output: relu_backward(g, output))


@op(half=None, shape=shapes.dense_grad, batch=families.targeted)
def leaky_relu_backward(grad: Array, output: Array, slope: float) -> Array:
    """`grad`, times `slope` where `output` is not over 0.  (*), (*) -> (*)"""
    if output.dtype != bool or grad.size < LARGE:
        return backend.leaky_relu_backward(grad, output, slope)
    return by_blocks(_gated_or_scaled, grad, grad, output, slope)


def _gated_or_scaled(g: Array, over: Array, slope: float) -> Array:
    """As the kernel, of a mask: a product and a choice take a tenth of NumPy's time for both at once."""
    scaled = of_half_and_number(np.multiply, g, slope, False) if g.dtype in HALVES else np.asarray(g * slope)
    return (
        backend.leaky_relu_backward(g, over, slope) if scaled is None else backend.choose(over, g, scaled, out=scaled)
    )


leaky_relu_backward.grad("grad")(lambda g, output, slope: leaky_relu_backward(g, output, slope))


@op(shape=shapes.truths, batch=families.targeted)
def strictly(input: Array, low: float, high: float) -> Array:
    """Where `input` is over `low` and under `high`.  (*) -> (*) bool"""
    inside = np.asarray(input > low)
    inside &= input < high
    return inside


@op(shape=shapes.truths, batch=families.targeted)
def not_under(input: Array, level: float) -> Array:
    """Where `input` is not under `level`: there too where it is NaN.  (*) -> (*) bool"""
    under = np.asarray(input < level)
    return np.logical_not(under, out=under)


def rounded(number: float, like: Array | Tensor) -> float:
    """A number as 16 bits hold it, where `like` is of these."""
    dtype = raw(like).dtype
    return float(np.asarray(number).astype(dtype)) if dtype in HALVES else number


# relu, leaky_relu and relatives -------------------------------------------------------------------------


def _over_0(x: Array, *slope: float) -> Array:
    """Where elements are not <= 0."""
    under = np.less_equal(x, 0)
    return np.logical_not(under, out=under)


def require_real(name: str, x: Array) -> None:
    """Raise NotImplementedError for complex numbers, RuntimeError for bools."""
    bools = (
        f" ({'Boolean' if name == 'relu' else 'Bool'} inputs not supported for {name})" if x.dtype.kind == "b" else ""
    )
    refused = RuntimeError if bools else NotImplementedError
    require(is_real(x.dtype), name, x, f"a real number's dtype{bools}", refused)


@elementwise(
    aten_gradient="threshold_backward(g, out, ''=0)",
    promote=None,
    half=None,
    again=15,
    behind="input",
    over=True,
    gates=_over_0,
    takes_out=False,
)
def relu(input: Array) -> Array:
    """max(input, 0).  input: (*) -> (*); keeps its result for the backward.

    >>> import rushlight as torch
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    require_real("relu", input)
    return backend.maximum(input, 0)


@relu.grad("input", raw=lambda g, out: backend.relu_backward(g, out))
def _(g: Tensor, out: Tensor) -> Tensor:
    return gated(g, out) if raw(out).dtype == bool else relu_backward(g, out)  # see `gates`


@relu.into
def _(x: Array) -> None:
    require_real("relu_", x)
    backend.maximum(x, 0, out=x)


relu_ = publish_inplace("relu_", inplace_of(relu.op), "", F)
Tensor.relu_ = relu_  # type: ignore[method-assign]


@function(ns=F, name="relu")
def functional_relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0), written into `input` if `inplace`.  (*) -> (*)"""
    return relu_(input) if inplace else relu(input)


def _leaky(x: Array, slope: float, out: Array | None = None) -> Array:
    require(is_float(x.dtype), "leaky_relu", x)
    check_factors("leaky_relu", x.dtype, slope)
    return backend.leaky_relu(x, slope, out=out)


@op(
    aten=("leaky_relu(input, negative_slope=0.01)",),
    aten_gradient="leaky_relu_backward(g, input, negative_slope, ''=False)",
    grads={"input": lambda g, out, negative_slope: leaky_relu_backward(g, out, negative_slope)},
    half=None,
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
    again=15,
    behind="input",
    over=True,
    pointwise=True,
    gates=lambda x, slope: np.greater(x, 0),
    steady_out=True,
)
def leaky_relu_op(input: Array, negative_slope: float) -> Array:
    """input where over 0, else negative_slope * input, of a slope >= 0.  (*) -> (*)"""
    return _leaky(input, negative_slope)


@op(
    grads={"input": lambda g, input, negative_slope: leaky_relu_backward(g, input, negative_slope)},
    half=None,
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
)
def falling_leaky_relu(input: Array, negative_slope: float) -> Array:
    """`leaky_relu` of a slope < 0, whose result does not tell the sign of the input.  (*) -> (*)"""
    return _leaky(input, negative_slope)


leaky_relu_op.into(lambda x, slope: _leaky(x, slope, x))
falling_leaky_relu.into(leaky_relu_op.op.into)
_leaky_, _falling_ = inplace_of(leaky_relu_op.op), inplace_of(falling_leaky_relu.op)


@function(ns=F)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where over 0, else negative_slope * input; written into `input` if `inplace`.  (*) -> (*)"""
    if inplace:
        return leaky_relu_(input, negative_slope)
    return (leaky_relu_op if negative_slope >= 0 else falling_leaky_relu)(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place version of `leaky_relu`."""
    check_factors("leaky_relu_", raw(input).dtype, negative_slope)
    return (_leaky_ if negative_slope >= 0 else _falling_)(input, negative_slope)


publish_inplace("leaky_relu_", leaky_relu_, F)


@op(
    aten=("_prelu_kernel",),
    name="prelu_kernel",
    half=None,
    shape=shapes.dense,
    repeatable=True,
    batch=families.targeted,
)
def prelu_op(input: Array, weight: Array) -> Array:
    """input where over 0, else weight * input, broadcast.  (*), (*) -> (*)"""
    if weight.size == 1 and weight.dtype == input.dtype and weight.ndim <= input.ndim:
        return backend.leaky_relu(input, float(weight.reshape(())))
    return backend.prelu(input, weight)


def _prelu_raw(
    g: Array, input: Array, weight: Any, weight_shape: tuple[int, ...], needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    slopes = (
        np.zeros(weight_shape, input.dtype) if weight is None else weight
    )  # not kept where the input has no gradient
    return backend.prelu_backward(g, input, slopes, *needs)


def _prelu_made(g: Array, needs: tuple[bool, ...], make: Making) -> tuple[Any, ...]:
    made = tuple([make.gradient(i) if need else None for i, need in enumerate(needs)])
    make.work(min(laid_out(g), 2 * PART * g.itemsize))  # what repeats is laid out piece by piece
    return made


@prelu_op.grad("input", "weight", raw=_prelu_raw, shapes=_prelu_made, uses={"input": "input weight", "weight": "input"})
def _(g: Tensor, input: Tensor, weight: Tensor, weight_shape: tuple[int, ...], needs: tuple[bool, ...]) -> object:
    below = gated(g, outside(input, 0.0, math.inf))
    above = gated(g, outside(input, -math.inf, 0.0)) if needs[0] else None
    return (above + below * weight if needs[0] else None), below * input


@function(ns="", method=True, autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where over 0, else weight * input.  input: (N, C, *), weight: (1,) or (C,) -> (N, C, *)"""
    check_tensor("prelu", "weight", weight)
    if input.dtype != weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    count = weight.numel()
    if count != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if input.ndim == 0:
            raise RuntimeError("prelu: Not allow zero-dim input tensor.")
        if channels != count:
            raise RuntimeError("prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers "
                               f"= {count} and channel size = {channels}.")  # fmt: skip
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.ndim == 1:
        weight = weight.reshape((1,) * min(input.ndim, 1) + (count,) + (1,) * (input.ndim - 2)
                                if input.ndim > 1 else (count,) * input.ndim)  # fmt: skip
    return prelu_op(input, weight)


NAMESPACES.setdefault(F, {})["prelu"] = prelu


@op(grads={"input": lambda g, noise: g * noise}, shape=shapes.same, repeatable=True, batch=families.targeted)
def rrelu_with_noise(input: Array, noise: Array) -> Array:
    """input times its slopes, which alone are kept.  (*), (*) -> (*)"""
    return input * noise


rrelu_with_noise.into(lambda x, noise: np.multiply(x, noise, out=x))
_rrelu_ = inplace_of(rrelu_with_noise.op)


def _slopes(x: Array, lower: float, upper: float, generator: Generator | None) -> Array:
    """1 where `x` is over 0, else uniform in [lower, upper)."""
    if getattr(x, "nowhere", False):
        return x
    noise, below = np.ones(x.shape, x.dtype), x <= 0
    numbers = (generator or default_generator).numpy
    noise[below] = numbers.random(int(np.count_nonzero(below))) * (upper - lower) + lower
    return noise


@function(ns="")
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          inplace: bool = False, generator: Generator | None = None) -> Tensor:  # fmt: skip
    """input where over 0, else input * a, with a uniform in [lower, upper] in training, else their mean.  (*) -> (*)"""
    for which, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {which} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            f"rrelu: Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    if randomness.innermost() is not None:
        rng, kind = source(generator), input._array.dtype
        drawn = randomness.fresh(lambda s: (rng.random(s) * (upper - lower) + lower).astype(kind), input._array.shape)
        noise = NAMESPACES[""]["where"](input.detach() > 0, 1.0, drawn)
    else:
        noise = made(_slopes(input._array, lower, upper, generator))
    return _rrelu_(input, noise) if inplace else rrelu_with_noise(input, noise)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
           generator: Generator | None = None) -> Tensor:  # fmt: skip
    """In-place version of `rrelu`."""
    return rrelu(input, lower, upper, training, True, generator)


NAMESPACES[F]["rrelu"] = rrelu
publish_inplace("rrelu_", rrelu_, "", F)


# Limits ------------------------------------------------------------------------------------------------


@op(
    aten=("hardtanh(input, min_val=-1, max_val=1)",),
    aten_gradient="hardtanh_backward(g, input, min_val, max_val)",
    half=None,
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
    again=15,
    behind="input",
    over=True,
    pointwise=True,
    gates=lambda x, low, high: _within(x, rounded(low, x), rounded(high, x)),
    steady_out=True,
)
def hardtanh_op(input: Array, min_val: float, max_val: float) -> Array:
    """input limited to [min_val, max_val].  (*) -> (*)"""
    require_real("hardtanh", input)
    return limited(
        input, fitted("hardtanh", min_val, input.dtype, True), fitted("hardtanh", max_val, input.dtype, True)
    )


def _hardtanh_raw(g: Array, out: Array, min_val: float, max_val: float) -> Array:
    if out.dtype == bool:
        return backend.relu_backward(g, out)
    return backend.between_backward(g, out, rounded(min_val, out), rounded(max_val, out))


@hardtanh_op.grad("input", raw=_hardtanh_raw)
def _(g: Tensor, out: Tensor, min_val: float, max_val: float) -> Tensor:
    if raw(out).dtype == bool:  # see `gates`
        return gated(g, out)
    return gated(g, between(out, rounded(min_val, out), rounded(max_val, out)))


@hardtanh_op.into
def _(x: Array, low: float, high: float) -> None:
    require_real("hardtanh_", x)
    limited(x, fitted("hardtanh_", low, x.dtype, True), fitted("hardtanh_", high, x.dtype, True), out=x)


_hardtanh_ = inplace_of(hardtanh_op.op)


@function(ns=F)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """input limited to [min_val, max_val].  (*) -> (*).  Raises ValueError unless min_val <= max_val."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val cannot be greater than max_val, got min_val={min_val} and "
                         f"max_val={max_val}")  # fmt: skip
    if min_val < 0 and raw(input).dtype.kind == "u":
        raise RuntimeError(f"hardtanh: {input.dtype} has no negative numbers, got min_val={min_val}")
    return (_hardtanh_ if inplace else hardtanh_op)(input, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place version of `hardtanh`."""
    return hardtanh(input, min_val, max_val, True)


publish_inplace("hardtanh_", hardtanh_, F)


@function(ns=F)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input, 0), 6).  (*) -> (*)"""
    return hardtanh(input, 0.0, 6.0, inplace)


def _sixth(g: Array | Tensor, out: Array | Tensor) -> object:
    return by(gated(g, out if raw(out).dtype == bool else strictly(out, 0.0, 1.0)), 1 / 6)  # see `gates`


@elementwise(aten_gradient="hardsigmoid_backward(g, input)", ns=None, half=None, promote=None, grads={"input": _sixth},
             gates=lambda x: strictly.op.forward(x, 0.0, 1.0), steady_out=True)  # fmt: skip
def hardsigmoid_op(input: Array) -> Array:
    """min(max(input + 3, 0), 6) / 6.  (*) -> (*)"""
    require(is_float(input.dtype), "hardsigmoid", input)
    return backend.hardsigmoid(input)


hardsigmoid_op.into(lambda x: backend.hardsigmoid(x, out=x))
_hardsigmoid_ = inplace_of(hardsigmoid_op.op)


@function(ns=F)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input + 3, 0), 6) / 6.  (*) -> (*)"""
    return _hardsigmoid_(input) if inplace else hardsigmoid_op(input)


@elementwise(
    aten_gradient="hardswish_backward(g, input)",
    ns=None,
    promote=None,
    half=None,
    cheap=True,
    again=20,
)
def hardswish_op(input: Array) -> Array:
    """input * min(max(input + 3, 0), 6) / 6.  (*) -> (*)"""
    require(is_float(input.dtype), "hardswish", input)
    return backend.hardswish(input)


hardswish_op.into(lambda x: backend.hardswish(x, out=x))


@hardswish_op.grad("input", raw=lambda g, input: backend.hardswish_backward(g, input))
def _(g: Tensor, input: Tensor) -> Tensor:
    return gated(g * (input / 3 + 0.5), strictly(input, -3.0, 3.0)) + gated(g, not_under(input, 3.0))


_hardswish_ = inplace_of(hardswish_op.op)


@function(ns=F)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * min(max(input + 3, 0), 6) / 6.  (*) -> (*)"""
    return _hardswish_(input) if inplace else hardswish_op(input)


@op(
    aten=("threshold(input, threshold, value)",),
    aten_gradient="threshold_backward(g, input, threshold)",
    aux=("above",),
    planes=1,
    grads={"input": lambda g, above: gated(g, above)},
    shape=shapes.same_and_mask,
    half=None,
    repeatable=True,
    batch=families.targeted,
    pointwise=True,
)
def threshold_op(input: Array, threshold: float, value: float) -> tuple[Any, ...]:
    """input where over `threshold`, else `value`.  (*) -> (*)"""
    require(is_real(input.dtype), "threshold", input, "a real number's dtype")
    out = input.copy("K")
    return out, *_raised("threshold", out, threshold, value)


def _raised(name: str, x: Array, threshold: float, value: float) -> tuple[Array | None]:
    """Put `value` into an array where it is not over `threshold`; where that is."""
    if x.dtype.kind == "u" and isinstance(value, float) and value < 0:
        raise RuntimeError(f"{name}: value {value} cannot be converted to {of(x.dtype)} without overflow")
    dtype = wide(x.dtype) if is_half(x.dtype) else x.dtype
    limit, instead = (fitted(name, number, dtype, True) for number in (threshold, value))
    under = in_blocks(_not_over, x, x, limit)
    backend.choose(under, recast(np.asarray(instead, dtype), x.dtype), x, out=x)
    return (np.logical_not(under, out=under) if recording() else None,)


def _not_over(x: Array, limit: Array) -> Array:
    """Where elements are not over a limit, those of 16 bits one of float32."""
    return np.asarray((widened(x) if is_half(x.dtype) else x) <= limit)


threshold_op.into(partial(_raised, "threshold_"))
_threshold_ = inplace_of(threshold_op.op)


@function(ns=F)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where over `threshold`, else `value`.  (*) -> (*)"""
    return (_threshold_ if inplace else threshold_op)(input, threshold, value)


NAMESPACES[""]["threshold"] = threshold_op
known_as(threshold_op, "threshold")
publish_inplace("threshold_", _threshold_, "", F)


def _not_0(x: Array, *limit: float) -> Array:
    """Where elements are not 0: there too where they are NaN."""
    return np.not_equal(x, 0)


@op(
    aten=("hardshrink(input, lambd=0.5)",),
    aten_gradient="hardshrink_backward(g, input, lambd)",
    ns="",
    half=None,
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
    pointwise=True,
    same_out=True,
    gates=_not_0,
    steady_out=True,
)
def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """input where outside [-lambd, lambd], else 0.  (*) -> (*)"""
    require(is_float(input.dtype), "hardshrink", input)
    return backend.hardshrink(input, float(fitted("hardshrink", lambd, input.dtype, True)))


def _shrunk(g: object, out: object, lambd: float) -> object:
    """The gradient where the result is not 0."""
    return g if lambd < 0 else gated(g, out if raw(out).dtype == bool else outside(out, 0.0, 0.0))


def _shrunk_raw(g: Array, out: Array, lambd: float) -> Array:
    if lambd < 0:
        return g
    return (backend.relu_backward if out.dtype == bool else backend.not_0_backward)(g, out)


hardshrink.grad("input", raw=_shrunk_raw)(_shrunk)
NAMESPACES[F]["hardshrink"] = hardshrink


@op(
    aten=("softshrink(input, lambd=0.5)",),
    aten_gradient="softshrink_backward(g, input, lambd)",
    half=None,
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
    pointwise=True,
    gates=_not_0,
    steady_out=True,
)
def softshrink_op(input: Array, lambd: float) -> Array:
    """input moved towards 0 by `lambd`, 0 in between.  (*) -> (*)"""
    return backend.softshrink(input, lambd)


softshrink_op.grad("input", raw=lambda g, out, lambd: _shrunk_raw(g, out, 0.0))(
    lambda g, out, lambd: _shrunk(g, out, 0.0)
)


@function(ns=F, out="same", elementwise=True)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input moved towards 0 by `lambd`, 0 in between.  (*) -> (*).  Raises RuntimeError unless lambd >= 0 is finite."""
    dtype = raw(input).dtype
    require(is_float(dtype), "softshrink", raw(input))
    most = finfo(of(dtype)).max
    if not 0 <= lambd <= most:
        raise RuntimeError(f"softshrink: lambda must be in range [0, {most:g}] for input dtype {older(of(dtype))}, but found "
                           f"{lambd:g}")  # fmt: skip
    return softshrink_op(input, lambd)
