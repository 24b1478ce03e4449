"""Losses of yes and no: binary cross entropy of probabilities and of logits, soft margins."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.state import modes
from rushlight.dispatch import families, shapes
from rushlight.dispatch.compute import check_broadcast
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import common_shape
from rushlight.dispatch.keeping.blocks import in_blocks, narrowing
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import function, op
from rushlight.kernels.dispatch import BLOCK, FLOAT32, is_half, parts_in_float32, recast, rounded, up
from rushlight.ops.elementwise.arith import by
from rushlight.ops.elementwise.floats import each_in_float32, still, widened
from rushlight.ops.elementwise.shared import opposite, plus, times
from rushlight.ops.loss.loss import check_tensors, folded, reduced, reduction_of, share
from rushlight.tensor import Tensor

F = "nn.functional"


# Of probabilities -------------------------------------------------------------------------------------------------


@op(
    aten=("binary_cross_entropy(input, target, weight=None, reduction=1)",),
    autocast="float32",
    name="binary_cross_entropy",
    refuse="bic",
    half=None,
    shape=shapes.loss,
    batch=families.pairs_of_elements,
)
def bce_op(input: Array, target: Array, weight: Array | None, reduction: str) -> Array:
    """-(target * log(input) + (1 - target) * log(1 - input)) * weight, reduced; logarithms are at least -100."""
    for name, x in (("input", input), ("target", target)):
        if x.size and not all(map(_are_probabilities, _parts(x))):
            raise RuntimeError(f"binary_cross_entropy: all elements of {name} should be between 0 and 1")
    given = (input, target) if weight is None else (input, target, weight)
    half = next((x.dtype for x in given if is_half(x.dtype)), None)
    if half is None:
        return folded(_entropy, reduction, *given)
    alike = all(x.dtype == half for x in given)
    found = folded(_entropy, reduction, *(given if alike else up(*given)), dtype=FLOAT32 if alike else None)
    return rounded(found, half) if found.dtype == FLOAT32 else found


def _parts(x: Array) -> Iterable[Array]:
    """An array, of 16 bits a part at a time in float32."""
    if not is_half(x.dtype):
        return (x,)
    part = parts_in_float32(x)
    return (part(start) for start in range(0, x.size, BLOCK))


def _are_probabilities(x: Array) -> bool:
    return bool(np.minimum.reduce(x, axis=None) >= 0 and np.maximum.reduce(x, axis=None) <= 1)


def _entropy(x: Array, t: Array, weight: Array | None = None) -> Array:
    one = np.asarray(np.maximum(np.log1p(-x), -100))
    out = np.asarray(np.maximum(backend.log(x), -100) - one)
    out *= t
    out += one
    np.negative(out, out=out)
    if weight is not None:
        out *= weight
    return out


def _bce_slope(g: Any, input: Any, target: Any, weight: Any = None) -> object:
    slope = (input - target) / ops.clamp_min(input * (1 - input), 1e-12)
    return slope * (g if weight is None else g * weight)


def _bce_raw(g: Array, input: Array, target: Array, weight: Array | None, reduction: str) -> object:
    factor, given = share(reduction, input), (g, input, target) if weight is None else (g, input, target, weight)
    return each_in_float32(lambda g, x, *others: in_blocks(_bce_slope, x, g * factor, x, *others), *given)


@bce_op.grad("input", raw=_bce_raw, blocks=True)
def _(g: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Any:
    return _bce_slope(*widened(by(g, share(reduction, input)), input, target, weight))


@bce_op.grad("target")
def _(g: Array | Tensor, input: Array | Tensor, weight: Array | Tensor | None, reduction: str) -> Any:
    g, input, weight = widened(by(g, share(reduction, input)), input, weight)
    slope = ops.clamp_min(ops.log1p(-input), -100.0) - ops.clamp_min(ops.log(input), -100.0)
    return slope * (g if weight is None else g * weight)


@function(ns=F)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """-(target * log(input) + (1 - target) * log(1 - input)) * weight, reduced.  (*), (*) -> () or (*)

    Logarithms below -100 count as that. Raises ValueError where shapes differ, RuntimeError for inputs and targets outside [0, 1].
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("binary_cross_entropy", input=input, target=target)
    if target.shape != input.shape:
        raise ValueError(f"binary_cross_entropy: Using a target size ({target.size()}) that is different to the input "
                         f"size ({input.size()}) is deprecated. Please ensure they have the same size.")  # fmt: skip
    if target.dtype != input.dtype:
        raise RuntimeError(f"binary_cross_entropy: Found dtype {target.dtype} of target but expected {input.dtype}")
    check_fits("binary_cross_entropy", input, weight)
    still("binary_cross_entropy", weight=weight)
    return bce_op(input, target, weight, reduction)


def check_fits(name: str, input: Tensor, weight: Tensor | None, argument: str = "weight") -> None:
    """Raise RuntimeError unless the weight, if there is one, broadcasts to the shape of the input."""
    if weight is None:
        return
    shape = common_shape(tuple(input.shape), tuple(weight.shape))
    if shape is None:
        check_broadcast(name, (input, weight))
    if shape != tuple(input.shape):
        raise RuntimeError(f"{name}: output with shape {list(input.shape)} doesn't match the broadcast shape "
                           f"{list(shape)} of input and a {argument} of shape {list(weight.shape)}")  # fmt: skip


# Of logits --------------------------------------------------------------------------------------------------------


def softplus_of_minus(x: Array) -> Array:
    """log(1 + e^-x) in an array of its own."""
    out = np.negative(x, out=np.empty_like(x))
    return backend.softplus(out, 1.0, math.inf, out=out)


@op(
    aten=("binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1)",),
    autocast="float32",
    name="binary_cross_entropy_with_logits",
    promote="arith",
    refuse="bic",
    broadcasts=("pos_weight", "target", "input", "weight"),
    half=None,
    shape=shapes.loss,
    batch=families.pairs_of_elements,
)
def logits_op(input: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str) -> Array:
    """Binary cross entropy of sigmoid(input), reduced.  (*), (*), broadcast, broadcast -> () or (*)"""
    if weight is None and pos_weight is None:
        return folded(_of_logits, reduction, input, target)
    x, t, w, pw = up(input, target, weight, pos_weight)
    like = max((a for a in (x, t, w, pw) if a is not None), key=np.size)
    out = np.asarray(in_blocks(_weighted, like, x, t, w, pw))
    return recast(folded(lambda values: values, reduction, out), input.dtype)


def _weighted(x: Array, t: Array, w: Array | None, pw: Array | None) -> Array:
    out = _of_logits(x, t, pw)
    return out if w is None else _onto(np.multiply, out, w)


def _of_logits(x: Array, t: Array, pos_weight: Array | None = None) -> Array:
    out = softplus_of_minus(x)
    if pos_weight is not None:
        out = times(out, _weight_of_log(pos_weight, t))
    return np.asarray(plus(times(x, 1 - t), out))


def _weight_of_log(pos_weight: Array, t: Array) -> Array:
    weight = _onto(np.multiply, np.asarray(pos_weight - 1), t)
    weight += 1
    return weight


def _onto(fn: np.ufunc, out: Array, other: Array) -> Array:
    """fn(out, other) in place of `out`, which is the formula's own, unless it is broadcast."""
    return np.asarray(fn(out, other, out=out if common_shape(out.shape, other.shape) == out.shape else None))


def _logits_raw(
    g: Array, input: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Array:
    slope = partial(_logits_slope, share(reduction, input))
    if weight is None and pos_weight is None:
        return np.asarray(each_in_float32(lambda g, x, t: in_blocks(slope, x, g, x, t), g, input, target))
    g, x, t, w, pw = up(g, input, target, weight, pos_weight)
    return in_blocks(slope, x, g, x, t, w, pw)


def _logits_slope(
    factor: float, g: Array, x: Array, t: Array, w: Array | None = None, pw: Array | None = None
) -> Array:
    out = backend.sigmoid(x)
    if pw is not None:
        out = times(out, _weight_of_log(pw, t))
        t = t * pw
    out = _onto(np.subtract, out, t)
    if w is not None:
        out = _onto(np.multiply, out, w)
    return _onto(np.multiply, out, g * out.dtype.type(factor))


@logits_op.grad("input", raw=_logits_raw, blocks=True)
def _(
    g: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: str
) -> Tensor:
    slope = ops.sigmoid(input)
    if pos_weight is not None:
        slope = slope * ((pos_weight - 1) * target + 1) - pos_weight * target
    else:
        slope = slope - target
    g = by(g, share(reduction, input))
    return slope * (g if weight is None else g * weight)


@logits_op.grad("target")
def _(
    g: Array | Tensor,
    input: Array | Tensor,
    weight: Array | Tensor | None,
    pos_weight: Array | Tensor | None,
    reduction: str,
) -> Any:
    g = by(g if weight is None else g * weight, share(reduction, input))
    if pos_weight is None:
        return opposite(g * input)  # bytes have no opposite
    return g * ((pos_weight - 1) * minus_logsigmoid(input) - input)


@logits_op.grad("weight")
def _(
    g: Array | Tensor, input: Array | Tensor, target: Array | Tensor, pos_weight: Array | Tensor, reduction: str
) -> Any:
    log_weight = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    return ((1 - target) * input + minus_logsigmoid(input) * log_weight) * by(g, share(reduction, input))


@logits_op.grad("pos_weight")
def _(
    g: Array | Tensor, input: Array | Tensor, target: Array | Tensor, weight: Array | Tensor | None, reduction: str
) -> Any:
    g = by(g, share(reduction, input))
    return target * minus_logsigmoid(input) * (g if weight is None else g * weight)


def minus_logsigmoid(x: Array | Tensor) -> Array | Tensor:
    """log(1 + e^-x) of an array or tensor."""
    from rushlight.ops.elementwise.activation import logsigmoid

    return opposite(logsigmoid(x))


@function(ns=F)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Binary cross entropy of sigmoid(input), without its loss of digits, reduced.  (*), (*) -> () or (*)

    weight, pos_weight: factors of the losses and of the positive targets, broadcast to the shape of input. Raises
    ValueError where the shapes of input and target differ, RuntimeError for a target of integers or bools and for
    factors that do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("binary_cross_entropy_with_logits", input=input, target=target)
    if target.shape != input.shape:
        raise ValueError(f"binary_cross_entropy_with_logits: Target size ({target.size()}) must be the same as input "
                         f"size ({input.size()})")  # fmt: skip
    if input.dtype.category < dtypes.FLOAT:
        raise NotImplementedError(f"binary_cross_entropy_with_logits: not implemented for '{older(input.dtype)}': convert "
                                  "input with .to(torch.float32)")  # fmt: skip
    if target.dtype.category < dtypes.FLOAT:
        raise RuntimeError(f"binary_cross_entropy_with_logits: result type {older(input.dtype)} can't be cast to the "
                           f"desired output type {older(target.dtype)} of target: give target.to({input.dtype})")  # fmt: skip
    check_fits("binary_cross_entropy_with_logits", input, weight)
    check_fits("binary_cross_entropy_with_logits", input, pos_weight)
    return logits_op(input, target, weight, pos_weight, reduction)


@function(ns=F)
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:  # fmt: skip
    """The mean over classes of binary cross entropy with logits, reduced.  (*, C), (*, C) -> () or (*)"""
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("multilabel_soft_margin_loss", input=input, target=target)
    if input.dtype.category < dtypes.FLOAT:
        raise NotImplementedError(f"multilabel_soft_margin_loss: not implemented for '{older(input.dtype)}': convert input "
                                  "with .to(torch.float32)")  # fmt: skip
    if target.dtype is dtypes.bool:
        raise RuntimeError("multilabel_soft_margin_loss: Subtraction, the `-` operator, with a bool tensor is not "
                           "supported: convert target with .to(input.dtype)")  # fmt: skip
    if not input.ndim:
        raise IndexError("multilabel_soft_margin_loss: input has no dimensions, and needs one of classes")
    loss = logits_op(input, target, None, None, "none")
    if weight is not None:
        loss = loss * weight
    return reduced(ops.sum(loss, -1) / input.shape[-1], reduction)


# Soft margin ------------------------------------------------------------------------------------------------------


@op(
    aten=("soft_margin_loss(input, target, reduction=1)",),
    autocast="float32",
    name="soft_margin_loss",
    half=None,
    promote="arith",
    refuse="bic",
    broadcasts=("input", "target"),
    shape=shapes.loss,
    batch=families.pairs_of_elements,
)
def soft_margin_op(input: Array, target: Array, reduction: str) -> Array:
    """log(1 + e^(-target * input)), reduced.  (*), (*) -> () or (*)"""
    return folded(lambda x, t: softplus_of_minus(np.asarray(t * x)), reduction, input, target)


def _soft_margin_slopes(g: Any, input: Any, target: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    slope = ops.sigmoid(-(target * input)) * g
    return (slope * target if needs[0] else None), (slope * input if needs[1] else None)


def _soft_margin_raw(g: Array, input: Array, target: Array, reduction: str, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    g = by(g, -share(reduction, input, target))
    if input.shape != target.shape:
        return _soft_margin_slopes(g, input, target, needs)
    return in_blocks(narrowing(_soft_margin_slopes, input), input, g, input, target, needs)


@soft_margin_op.grad("input", "target", raw=_soft_margin_raw, blocks=True)
def _(g: Tensor, input: Tensor, target: Tensor, reduction: str, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    return _soft_margin_slopes(by(g, -share(reduction, input, target)), input, target, needs)


@function(ns=F)
def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """log(1 + e^(-target * input)) with targets 1 and -1, reduced.  (*), (*) -> () or (*)"""
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("soft_margin_loss", input=input, target=target)
    if modes.autocast is not None:
        input, target = modes.autocast("float32", [input, target])
    if input.dtype.category < dtypes.FLOAT or input.dtype.category < target.dtype.category:
        wanted = target.dtype if target.dtype.category >= dtypes.FLOAT else dtypes.float32
        raise RuntimeError(f"soft_margin_loss: result type {older(wanted)} can't be cast to the desired output type "
                           f"{older(input.dtype)}: give input.to({wanted})")  # fmt: skip
    check_fits("soft_margin_loss", input, target, "target")
    return soft_margin_op(input, target, reduction).to(input.dtype)
