"""Batch and instance normalisation, and their running statistics.

What is saved: the input, and mean and variance by channel, in float32 for 16-bit inputs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.state import Setting, modes, special
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.formats import kept_made, kept_order, turning
from rushlight.dispatch.keeping.shown import always
from rushlight.dispatch.meta import beside
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.operands import check_tensor
from rushlight.dispatch.options import shape_alone
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.dispatch.rules import Making
from rushlight.engine import inplace
from rushlight.engine.saved import Stop
from rushlight.kernels.dispatch import up
from rushlight.levels import owned
from rushlight.ops.elementwise.floats import constant, require, widened
from rushlight.ops.norm.normalization import (
    bias_gradient,
    by_feature,
    check_precision,
    group_norm_op,
    made_of_planes,
    standardized,
    verify_batch,
    zero_gradients,
)
from rushlight.signs import to_hold
from rushlight.tensor import Tensor, wrap

F = "nn.functional"


def reciprocal_deviation(variance: Array, eps: float) -> Array:
    """1 / sqrt(variance + eps) of an array, in float32 of 16 bits."""
    (wide,) = up(variance)
    return np.asarray(1 / np.sqrt(wide + wide.dtype.type(eps)))


@op(
    aten_call="norm_of_channels",
    aten_more=True,
    name="native_batch_norm",
    saved_as={"training": always(True)},
    outputs=("out", "mean", "variance"),
    differentiable=(0,),
    half=None,
    repeatable=True,
    batch=families.by_channels,
    cheap=True,
    again=25,
    passes=1.5,
)
def batch_norm_op(input: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    """Normalisation by channel with the batch's statistics.  (N, C, *), (C,), (C,) -> (N, C, *), (C,), (C,)"""
    mean, variance = backend.batch_stats(input)
    made = backend.batch_apply(input, mean, reciprocal_deviation(variance, eps), weight, bias)
    return (made if input.flags.c_contiguous else kept_order(made, input)), mean, variance


@batch_norm_op.shape
def _(input: Array) -> list[shapes.Made]:
    statistics = [shapes.Made((input.shape[1],), shapes.statistics_dtype(input.dtype))] * 2
    return [kept_made(shapes.packed(input), input), *statistics]


@batch_norm_op.work
def _(input: Array) -> int:
    return turning(shapes.packed(input), input)  # what is laid out for the kernel becomes the result


def _train_raw(
    g: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    variance: Array,
    eps: float,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    # The bias is asked for so that it is saved: the result may have to be computed again (see `rebuilt`).
    if input is None:
        return None, None, bias_gradient(g, (0, *range(2, g.ndim)))
    if not input.size:
        return zero_gradients(input, weight)
    return backend.batch_norm_backward(g, input, mean, reciprocal_deviation(variance, eps), weight, needs, True)


@batch_norm_op.grad("input", "weight", "bias", raw=_train_raw, shapes=made_of_planes,
                    uses={"input": "input weight bias mean variance", "weight": "input mean variance", "bias": ""})  # fmt: skip
def _(g: Tensor, input: Tensor, weight: Tensor | None, eps: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    if input is None:
        return None, None, ops.sum(widened(g)[0], (0, *range(2, g.ndim)))
    g, input, weight = widened(g, input, weight)
    dims = (0, *range(2, input.ndim))
    hat, rstd = standardized(input, dims, eps)
    t = g if weight is None else g * by_feature(weight, input.ndim)
    gx = rstd * (t - ops.mean(t, dims, True) - hat * ops.mean(t * hat, dims, True)) if needs[0] else None
    gw = ops.sum(g * hat, dims) if needs[1] else None
    return gx, gw, ops.sum(g, dims) if needs[2] else None


@op(
    aten_call="evaluated",
    aten_more=True,
    name="native_batch_norm_eval",
    saved_as={"training": always(False), "running_mean": "mean", "running_var": "variance"},
    half=None,
    repeatable=True,
    batch=families.by_known_channels,
    passes=1.5,
)
def batch_norm_eval_op(input: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array,
                       eps: float) -> Array:  # fmt: skip
    """Normalisation by channel with given statistics.  (N, C, *), each of the others (C,) -> (N, C, *)"""
    made = backend.batch_apply(input, mean, reciprocal_deviation(variance, eps), weight, bias)
    return made if input.flags.c_contiguous else kept_order(made, input)


def _eval_raw(
    g: Array, input: Array, weight: Array, mean: Array, variance: Array, eps: float, needs: tuple[bool, ...]
) -> object:
    if variance is None:
        return None, None, bias_gradient(g, (0, *range(2, g.ndim)))
    rstd = reciprocal_deviation(variance, eps)
    if not needs[1]:  # without the input, which frozen weights make unnecessary
        gx = backend.batch_apply(g, np.zeros_like(rstd), rstd, weight, None) if needs[0] else None
        gb = bias_gradient(g, (0, *range(2, g.ndim))) if needs[2] else None
        return gx, None, gb
    mean = mean.astype(rstd.dtype, copy=False)
    return backend.batch_norm_backward(g, input, mean, rstd, weight, needs, False)


batch_norm_op.op.declare("remade", (batch_norm_eval_op.op, ("mean", "variance")))


def _then_relu(
    input: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, eps: float
) -> Array:
    """relu of the normalised input, in one pass."""
    return backend.batch_apply(input, mean, reciprocal_deviation(variance, eps), weight, bias, True)


batch_norm_eval_op.op.declare("then", {"relu": _then_relu})


@batch_norm_eval_op.shape
def _(input: Array) -> list[shapes.Made]:
    return [kept_made(shapes.packed(input), input)]


@batch_norm_eval_op.work
def _(input: Array) -> int:
    return turning(shapes.packed(input), input)


def _eval_made(g: Array, input: Array | None, needs: tuple[bool, ...], make: Making) -> Any:
    if needs[1]:
        return made_of_planes(g, input, needs, make)
    return [make.gradient(i) if need else None for i, need in enumerate(needs)]  # over the copy, where there is one


@batch_norm_eval_op.grad("input", "weight", "bias", raw=_eval_raw, shapes=_eval_made,
                         uses={"input": "weight variance", "weight": "input mean variance", "bias": ""})  # fmt: skip
def _(
    g: Tensor, input: Tensor, weight: Tensor, mean: Tensor, variance: Tensor, eps: float, needs: tuple[bool, ...]
) -> object:
    dims, n = (0, *range(2, g.ndim)), g.ndim
    if needs[1]:
        g, input, weight, mean, variance = widened(g, input, weight, mean, variance)
    else:
        g, weight, variance = widened(g, weight, variance)
    if variance is None:
        return None, None, ops.sum(g, dims)
    rstd = by_feature(ops.rsqrt(variance + eps), n)
    gx = g * rstd if weight is None else g * (by_feature(weight, n) * rstd)
    gw = ops.sum(g * ((input - by_feature(mean, n)) * rstd), dims) if needs[1] else None
    return gx, gw, ops.sum(g, dims) if needs[2] else None


def check_batch(input: Tensor, **features: Tensor | None) -> None:
    """Raise RuntimeError or IndexError unless each of the tensors by feature has one number a channel."""
    check_tensor("batch_norm", "input", input, 1)
    array = input._array
    if array.ndim < 2:
        raise IndexError("batch_norm: Dimension out of range: expected an input of at least 2 dimensions (N, C, *), "
                         f"got {array.ndim}")  # fmt: skip
    require(input.dtype.is_floating_point, "batch_norm", input)
    channels = array.shape[1]
    for name, x in features.items():
        if x is not None and x.numel() != channels:
            raise RuntimeError(f"batch_norm: {name} should contain {channels} elements not {x.numel()}")
    check_precision(input, *features.values())
    constant("native_batch_norm", running_mean=features.get("running_mean"), running_var=features.get("running_var"))


def update_running(
    running_mean: Tensor | None, running_var: Tensor | None, mean: Tensor, variance: Tensor, count: int, momentum: float
) -> None:
    """Move running statistics towards the batch's mean and unbiased variance, in place; an empty batch has none."""
    if count == 0 or mean._meta:
        return
    if special.count and owned((running_mean, running_var, mean, variance)):
        move_running(running_mean, running_var, mean, variance, count, momentum)
        return
    mean, variance = mean._array, variance._array
    unbiased = variance * (count / (count - 1) if count > 1 else math.nan)
    moved = [(running, new) for running, new in ((running_mean, mean), (running_var, unbiased)) if running is not None]
    for running, _ in moved:  # both, before either moves
        inplace.check(running, False)
    for running, new in moved:
        running._held[...] = to_hold(running, running._array * (1 - momentum) + momentum * new)
        inplace.written(running, "batch_norm")


def move_running(
    running_mean: Tensor | None, running_var: Tensor | None, mean: Tensor, variance: Tensor, count: int, momentum: float
) -> None:
    """`update_running` by operators, for levels that hide values."""
    variance = variance * (count / (count - 1) if count > 1 else math.nan)
    with Setting("grad", False):
        for running, new in ((running_mean, mean), (running_var, variance)):
            if running is None:
                continue
            if getattr(new._array, "interpreted", False) and not getattr(running._array, "interpreted", False):
                raise RuntimeError(
                    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated "
                    "in place, were not batched. Use track_running_stats=False, another norm, or vmap over the buffers too."
                )
            running.mul_(1 - momentum).add_(new.to(running.dtype), alpha=momentum)


def check_constant(name: str, *statistics: Tensor | None) -> None:
    """Raise RuntimeError for running statistics with tangents, which would be lost: there is no derivative by them."""
    if modes.levels and any(isinstance(x, Tensor) and x._tangents for x in statistics):
        raise RuntimeError(
            f"{name} is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )


def normalized(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
               bias: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Any, Any, Any]:  # fmt: skip
    """(batch_norm, mean, variance) with the running statistics, if there are any, updated."""
    if isinstance(input, Tensor) and input._array.shape == (0,):
        return input.clone(), running_mean, running_var
    check_batch(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not training:
        for name, x in (("running_mean", running_mean), ("running_var", running_var)):
            if x is None:
                raise RuntimeError(f"batch_norm: {name} must be defined in evaluation mode")
        check_constant("batch_norm", running_mean, running_var)
        return batch_norm_eval_op(input, weight, bias, running_mean, running_var, eps), running_mean, running_var
    try:
        out, mean, variance = batch_norm_op(input, weight, bias, eps)
    except Stop:  # a checkpoint has what it saves: the statistics move nevertheless, as often as batches are counted
        with Setting("grad", False):
            _, mean, variance = batch_norm_op(input, None, None, eps)
        follow(running_mean, running_var, input, mean, variance, momentum)
        raise
    follow(running_mean, running_var, input, mean, variance, momentum)
    return out, mean, variance


def follow(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    input: Tensor,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
) -> None:
    """`update_running` by a batch, where there are running statistics and it has elements."""
    if input._array.size and (running_mean is not None or running_var is not None):
        shape = input._array.shape
        update_running(running_mean, running_var, mean, variance, shape[0] * math.prod(shape[2:]), momentum)


@function(ns=F)
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) * weight + bias by channel.  input: (N, C, *), the others (C,) -> (N, C, *)

    training: take mean and variance of the batch, and move running_mean and running_var by `momentum` towards them, in
    place; otherwise take the running ones. Raises ValueError for one value a channel in training.
    Source: Ioffe and Szegedy, Batch Normalization (2015).
    """
    if eps < 0 or (training and eps == 0):
        expected = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {expected}, but got {eps}")
    if training:
        shape = list(input.shape)
        verify_batch(shape, shape[0] * math.prod(shape[2:]) if shape else 0)
        if (running_mean is None) != (running_var is None):
            raise ValueError("batch_norm: running_mean and running_var must either both be None or neither be None")
    return normalized(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def torch_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                     running_var: Tensor | None, training: bool, momentum: float, eps: float,
                     cudnn_enabled: bool = True) -> Tensor:  # fmt: skip
    """As torch.nn.functional.batch_norm, parameters before statistics."""
    return normalized(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


known_as(torch_batch_norm, "batch_norm")
NAMESPACES[""]["batch_norm"] = torch_batch_norm


@function(out="same")
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Tensor, ...]:  # fmt: skip
    """(batch_norm, mean, 1 / sqrt(variance + eps)), the last two empty unless `training`."""
    out, mean, variance = normalized(input, running_mean, running_var, weight, bias, training, momentum, eps)
    dtype = input._array.dtype
    if not training:
        return out, beside(wrap(np.empty(0, dtype)), input), beside(wrap(np.empty(0, dtype)), input)
    if input._meta:
        return out, shape_alone(input.shape[1:2], dtype), shape_alone(input.shape[1:2], dtype)
    if getattr(mean._array, "interpreted", False) or getattr(variance._array, "interpreted", False):
        return out, mean.to(input.dtype), ops.rsqrt(variance + eps).to(input.dtype)
    return (
        out,
        wrap(mean._array.astype(dtype, copy=False)),
        wrap(reciprocal_deviation(variance._array, eps).astype(dtype)),
    )


# Instance norm ------------------------------------------------------------------------------------------------


def check_instance(
    input: Tensor, running_mean: Any, running_var: Any, use_input_stats: bool, **features: object
) -> None:
    """Raise RuntimeError where statistics lack or shapes do not fit."""
    if (running_mean is None) != (running_var is None):
        raise ValueError("instance_norm: running_mean and running_var must either both be None or neither be None")
    if input.ndim < 2:
        raise RuntimeError(f"instance_norm: Expected an input of at least 2 dimensions (N, C, *), got {input.ndim}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("instance_norm: Expected running_mean and running_var to be defined when use_input_stats is "
                           "false")  # fmt: skip
    channels = input.shape[1]
    for name, x in {"running_mean": running_mean, "running_var": running_var, **features}.items():
        if x is not None and x.numel() != channels:
            raise RuntimeError(f"instance_norm: {name} should contain {channels} elements not {x.numel()}")


def instance_stats(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float) -> None:
    """Update running statistics with the mean over the batch of every instance's."""
    if input._meta:
        return
    n, c = input._array.shape[:2]
    if special.count and owned((input, running_mean, running_var)):
        dims, known = tuple(range(2, input.ndim)), input.detach()
        mean, variance = ops.mean(ops.mean(known, dims), 0), ops.mean(ops.var(known, dims, correction=0), 0)
        move_running(running_mean, running_var, mean, variance, math.prod(input.shape[2:]), momentum)
        return
    rows = input._array.reshape(1, n * c, -1)
    mean, variance = backend.batch_stats(rows)
    mean, variance = mean.reshape(n, c).mean(0), variance.reshape(n, c).mean(0)
    update_running(running_mean, running_var, wrap(mean), wrap(variance), rows.shape[2], momentum)


@function(ns=F)
def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalisation of each channel of each sample.  input: (N, C, *), the others (C,) -> (N, C, *)

    use_input_stats: take the statistics of the input (and update running ones), otherwise the running ones.
    Source: Ulyanov, Vedaldi and Lempitsky, Instance Normalization (2016).
    """
    if use_input_stats:
        shape = list(input.shape)
        if math.prod(shape[2:]) == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size torch.Size({shape})")
    check_instance(input, running_mean, running_var, use_input_stats, weight=weight, bias=bias)
    check_precision(input, running_mean, running_var, weight, bias)
    constant("native_batch_norm", running_mean=running_mean, running_var=running_var)
    if not use_input_stats:
        return normalized(input, running_mean, running_var, weight, bias, False, momentum, eps)[0]
    out = group_norm_op(input, weight, bias, input.shape[1], eps)
    # After it: the second run of a checkpoint may end there, and PyTorch's statistics stay as they are then.
    if input._array.size and (running_mean is not None or running_var is not None):
        instance_stats(input, running_mean, running_var, momentum)
    return out


def torch_instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                        running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
                        cudnn_enabled: bool = True) -> Tensor:  # fmt: skip
    """As torch.nn.functional.instance_norm, parameters before statistics."""
    return instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


known_as(torch_instance_norm, "instance_norm")
NAMESPACES[""]["instance_norm"] = torch_instance_norm
