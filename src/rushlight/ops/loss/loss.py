"""Losses of pairs of numbers: squares, absolute values, Huber's, Kullback and Leibler's, Poisson's, Gauss's.

Each is one operator with its reduction, so that no array of losses outlives it; input and target are what is saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller, dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.state import modes
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.keeping.blocks import in_blocks
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.operands import check_tensor
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making
from rushlight.kernels.dispatch import AT_ONCE, BLOCK, FLOAT32, is_half, parts_in_float32, up
from rushlight.kernels.pointwise.errors import total_error
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.arith import by
from rushlight.ops.elementwise.floats import each_in_float32, widened
from rushlight.ops.elementwise.power import in_dtype
from rushlight.ops.elementwise.shared import dtype_of, opposite
from rushlight.ops.shape.reshape import broadcast
from rushlight.tensor import Tensor

F = "nn.functional"
REDUCTIONS = ("none", "mean", "sum")


def reduction_of(reduction: str, size_average: object = None, reduce: object = None) -> str:
    """The reduction, which the deprecated arguments decide if they are given.  Raises ValueError for unknown ones."""
    if size_average is not None or reduce is not None:
        average = size_average is None or size_average
        reduction = ("mean" if average else "sum") if reduce is None or reduce else "none"
        caller.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")  # fmt: skip
    elif reduction in REDUCTIONS:
        return reduction
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction: expected 'none', 'mean' or 'sum'")
    return reduction


def check_tensors(name: str, **tensors: object) -> None:
    """Raise TypeError for arguments that are not tensors."""
    for argument, x in tensors.items():
        check_tensor(name, argument, x)


def alike(name: str, input: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Both operands, with a warning where their shapes differ: neither counts as a number beside the other then."""
    if input._array.shape != target._array.shape:
        caller.warn(f"{name}: Using a target size ({target.size()}) that is different to the input size "
                    f"({input.size()}). This will likely lead to incorrect results due to broadcasting. Please "
                    "ensure they have the same size.")  # fmt: skip
        if input.dtype is not target.dtype:
            input, target = ops.broadcast_tensors(input, target)
    if (input.dtype is dtypes.bool) != (target.dtype is dtypes.bool):  # formulas subtract them
        input, target = (x.to(y.dtype) if x.dtype is dtypes.bool else x for x, y in ((input, target), (target, input)))
    return input, target


def require_castable(name: str, input: Tensor, target: Tensor) -> None:
    """Raise RuntimeError where losses in the dtype of both do not fit into that of the input."""
    if input.dtype.category < target.dtype.category:
        raise RuntimeError(f"{name}: result type {older(target.dtype)} can't be cast to the desired output type "
                           f"{older(input.dtype)}")  # fmt: skip


def folded(
    fn: Callable[..., Any],
    reduction: str,
    *arrays: Array,
    total_of: Callable[..., float | None] = lambda *_: None,
    dtype: np.dtype[Any] | None = None,
) -> Array:
    """The losses fn(*arrays) reduced: of equally shaped arrays block by block, so that they are never all in memory.

    total_of: the sum of all losses of arrays, where a kernel has it in one pass; else None.  dtype: of what is reduced, where that
    is not the arrays' own.
    """
    if reduction == "none":
        return each_in_float32(partial(in_blocks, fn, max(arrays, key=np.size)), *arrays)
    shape, half, total = arrays[0].shape, is_half(arrays[0].dtype), total_of(*arrays)
    if total is not None:
        count, own = arrays[0].size, arrays[0].dtype
    elif arrays[0].size > BLOCK and all(a.shape == shape and a.flags.c_contiguous for a in arrays):
        blocks = [parts_in_float32(a) for a in arrays]
        parts = (fn(*[block(i) for block in blocks]) for i in range(0, arrays[0].size, BLOCK))
        count, total = arrays[0].size, sum(float(np.add.reduce(p)) for p in parts)
        own = arrays[0].dtype if half else np.result_type(*arrays)
    else:
        values = np.asarray(in_blocks(fn, max(arrays, key=np.size), *up(*arrays)))
        count, total = values.size, np.add.reduce(values, axis=None)
        own = arrays[0].dtype if half else values.dtype
    with np.errstate(all="ignore"):
        return np.asarray(np.divide(total, count if reduction == "mean" else 1), own if dtype is None else dtype)


def reduced(values: Tensor, reduction: str) -> Tensor:
    """A tensor of losses reduced."""
    return values if reduction == "none" else ops.mean(values) if reduction == "mean" else ops.sum(values)


def share(reduction: str, *operands: Array | Tensor) -> float:
    """What the gradient of the reduction is multiplied by to be that of one element."""
    if reduction != "mean":
        return 1.0
    return 1 / max(math.prod(np.broadcast_shapes(*(tuple(x.shape) for x in operands))), 1)


def both(d: Array | Tensor, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    """The gradients of input and target, of which one is minus the other."""
    if not needs[0]:
        return None, opposite(d)
    return d, (-d if needs[1] else None)


# Squares and absolute values ------------------------------------------------------------------------------------


@op(
    aten=("mse_loss(input, target, reduction=1)",),
    aten_gradient={
        "input": "mse_loss_backward(g, input, target, reduction)",
        "target": "mse_loss_backward(g, target, input, reduction)",
    },
    autocast="float32",
    name="mse_loss",
    half=None,
    promote="arith",
    refuse="bic",
    broadcasts=("input", "target"),
    shape=shapes.loss,
    batch=families.pairs_of_elements,
)
def mse_op(input: Array, target: Array, reduction: str) -> Array:
    """(input - target)^2, reduced.  (*), (*) -> () or (*)"""
    return folded(_square, reduction, input, target, total_of=partial(total_error, "squared_errors"))


def _square(x: Array, t: Array) -> Array:
    d = np.asarray(x - t)
    return np.multiply(d, d, out=d)


def _mse_raw(g: Array, input: Array, target: Array, reduction: str, needs: tuple[bool, ...]) -> tuple[Array, ...]:
    return both(each_in_float32(partial(_mse_slope, 2 * share(reduction, input, target)), g, input, target), needs)


def _mse_slope(factor: float, g: Array, x: Array, t: Array) -> Array:
    d = np.asarray(x - t)
    d *= g * d.dtype.type(factor)
    return d


@mse_op.grad("input", "target", raw=_mse_raw, blocks=True)
def _(g: Tensor, input: Tensor, target: Tensor, reduction: str, needs: tuple[bool, ...]) -> tuple[Tensor, ...]:
    return both((input - target) * by(g, 2 * share(reduction, input, target)), needs)


@function(ns=F)
def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """(input - target)^2, reduced; with `weight`, a weighted mean.  (*), (*) -> () or (*)"""
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("mse_loss", input=input, target=target)
    input, target = alike("mse_loss", input, target)
    if weight is None:
        return mse_op(input, target, reduction)
    return weighted("mse_loss", mse_op(input, target, "none"), weight, input, reduction)


def weighted(name: str, values: Tensor, weight: Tensor, input: Tensor, reduction: str) -> Tensor:
    """Losses times weights, reduced; the mean divides by the weights' sum."""
    check_weight(name, weight, input)
    values = values * weight
    if reduction == "mean":
        return ops.sum(values) / ops.sum(weight)
    return reduced(values, reduction)


def check_weight(name: str, weight: Tensor, input: Tensor) -> None:
    """Raise ValueError unless there are as many weights as inputs."""
    if weight.shape != input.shape:
        raise ValueError(f"{name}: Weights and input must have the same size, got {list(weight.shape)} and "
                         f"{list(input.shape)}.")  # fmt: skip


@op(
    autocast="float32",
    name="l1_loss",
    half=None,
    promote="arith",
    refuse="bic",
    broadcasts=("input", "target"),
    shape=shapes.loss,
    batch=families.pairs_of_elements,
    sides=lambda x, t: (np.less(x, t), np.greater(x, t)),
)
def l1_op(input: Array, target: Array, reduction: str) -> Array:
    """|input - target|, reduced.  (*), (*) -> () or (*)"""
    total_of = partial(total_error, "absolute_errors")
    return folded(lambda x, t: np.absolute(x - t), reduction, input, target, total_of=total_of)


def _l1_raw(g: Array, input: Array, target: Array, reduction: str, needs: tuple[bool, ...]) -> tuple[Array, ...]:
    if input.dtype == np.int8:  # see `sides`
        d = each_in_float32(partial(_signs_times, share(reduction, input)), g, input)
    else:
        d = each_in_float32(partial(_l1_slope, share(reduction, input, target)), g, input, target)
    return both(d, needs)


def _signs_times(factor: float, g: Array, signs: Array) -> Array:
    d = np.asarray(signs.astype(g.dtype))
    d *= g * d.dtype.type(factor)
    return d


def _l1_slope(factor: float, g: Array, x: Array, t: Array) -> Array:
    d = np.asarray(x - t)
    backend.sign(d, out=d)  # 0 of NaN, as the slope of abs
    d *= g * d.dtype.type(factor)
    return d


@l1_op.grad("input", "target", raw=_l1_raw, blocks=True)
def _(g: Tensor, input: Tensor, target: Tensor, reduction: str, needs: tuple[bool, ...]) -> tuple[Tensor, ...]:
    signs = ops.sign(input - target)
    return both(signs * by(g, share(reduction, signs)), needs)


@function(ns=F)
def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """|input - target|, reduced; with `weight`, a weighted mean.  (*), (*) -> () or (*)"""
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("l1_loss", input=input, target=target)
    if (input.dtype is dtypes.bool) != (target.dtype is dtypes.bool):
        raise RuntimeError("l1_loss: Subtraction, the `-` operator, with a bool tensor is not supported: convert it with "
                           ".to(torch.float32)")  # fmt: skip
    input, target = alike("l1_loss", input, target)
    whole = input.dtype.category < 2 and target.dtype.category < 2 and (weight is None or weight.dtype.category < 2)
    if input.dtype.is_complex or target.dtype.is_complex or whole:
        values = ops.abs(input - target)
        return reduced(values, reduction) if weight is None else weighted("l1_loss", values, weight, input, reduction)
    if weight is None:
        return l1_op(input, target, reduction)
    return weighted("l1_loss", l1_op(input, target, "none"), weight, input, reduction)


# Squares near 0, absolute values elsewhere ----------------------------------------------------------------------


def _huber_slopes(
    g: Array, input: Array, target: Array, reduction: str, beta: float, needs: tuple[bool, ...]
) -> tuple[Array, ...]:
    return _huber_raw(g, input, target, reduction, beta, 1 / beta, needs)


def _huber_raw(
    g: Array, x: Array, t: Array, reduction: str, delta: float, scale: float, needs: tuple[bool, ...]
) -> tuple[Array, ...]:
    factor = scale * share(reduction, x, t)
    x, t = (a if a.dtype == g.dtype else a.astype(g.dtype) for a in (x, t))
    if not g.ndim:
        return both(backend.huber_slope(x, t, delta, factor * float(g)), needs)

    def slope(g: Array, x: Array, t: Array) -> Array:
        d = backend.huber_slope(x, t, delta, factor)
        return np.multiply(d, g, out=d)

    return both(each_in_float32(slope, g, x, t), needs)


def _huber_formula(
    g: Tensor, x: Tensor, t: Tensor, reduction: str, delta: float, scale: float, needs: tuple[bool, ...]
) -> tuple[Tensor, ...]:
    g, x, t = widened(g, x, t)
    d = x - t
    # Where |d| is delta, the slope is taken for constant, as in PyTorch: by clamp, it would be that of the square.
    slope = ops.where(ops.abs(d) >= delta, delta * ops.sign(d), d)
    return both(slope * by(g, scale * share(reduction, x, t)), needs)


@op(
    aten=("smooth_l1_loss(input, target, reduction=1, beta=1.0)",),
    aten_gradient={
        "input": "smooth_l1_loss_backward(g, input, target, reduction, beta)",
        "target": "smooth_l1_loss_backward(g, target, input, reduction, beta)",
    },
    name="smooth_l1_loss",
    half=None,
    promote="arith",
    refuse="bic",
    broadcasts=("input", "target"),
    shape=shapes.loss,
    batch=families.pairs_of_elements,
)
def smooth_l1_op(input: Array, target: Array, reduction: str, beta: float) -> Array:
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, reduced.  (*), (*) -> () or (*)"""
    return _huber(input, target, reduction, beta, 1 / beta)


def _huber(input: Array, target: Array, reduction: str, delta: float, scale: float) -> Array:
    if reduction == "none":
        return backend.huber(input, target, delta, scale)

    def total_of(x: Array, t: Array) -> float | None:
        total = total_error("huber_errors", x, t, delta)
        return None if total is None else scale * total

    return folded(lambda x, t: backend.huber(x, t, delta, scale), reduction, input, target, total_of=total_of)


@smooth_l1_op.grad("input", "target", raw=_huber_slopes, blocks=True)
def _(
    g: Tensor, input: Tensor, target: Tensor, reduction: str, beta: float, needs: tuple[bool, ...]
) -> tuple[Tensor, ...]:
    return _huber_formula(g, input, target, reduction, beta, 1 / beta, needs)


@function(ns=F, autocast="float32")
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                   reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0) -> Tensor:  # fmt: skip
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, of d = input - target, reduced.  (*), (*) -> () or (*)

    Source: Girshick, Fast R-CNN (2015).  Raises RuntimeError for a negative beta.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("smooth_l1_loss", input=input, target=target)
    input, target = alike("smooth_l1_loss", input, target)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}.")
    return smooth_l1_op(input, target, reduction, float(beta))


@op(
    aten=("huber_loss(input, target, reduction=1, delta=1.0)",),
    aten_gradient={
        "input": "huber_loss_backward(g, input, target, reduction, delta)",
        "target": "huber_loss_backward(g, target, input, reduction, delta)",
    },
    autocast="float32",
    name="huber_loss",
    half=None,
    promote="arith",
    refuse="bic",
    broadcasts=("input", "target"),
    shape=shapes.loss,
    batch=families.pairs_of_elements,
)
def huber_op(input: Array, target: Array, reduction: str, delta: float) -> Array:
    """d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2), reduced.  (*), (*) -> () or (*)"""
    return _huber(input, target, reduction, delta, 1.0)


@huber_op.grad("input", "target", blocks=True,
               raw=lambda g, input, target, reduction, delta, needs:
               _huber_raw(g, input, target, reduction, delta, 1.0, needs))  # fmt: skip
def _(
    g: Tensor, input: Tensor, target: Tensor, reduction: str, delta: float, needs: tuple[bool, ...]
) -> tuple[Tensor, ...]:
    return _huber_formula(g, input, target, reduction, delta, 1.0, needs)


@function(ns=F)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2), of d = input - target, reduced.  (*), (*) -> () or (*)

    With `weight` the mean still divides by the number of elements.  Raises RuntimeError unless delta > 0.
    """
    reduction = reduction_of(reduction)
    check_tensors("huber_loss", input=input, target=target)
    if modes.autocast is not None:
        input, target = modes.autocast("float32", [input, target])
    own = input.dtype
    require_castable("huber_loss", input, target)
    input, target = alike("huber_loss", input, target)
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got {delta}.")
    if weight is None:
        return huber_op(input, target, reduction, float(delta)).to(own)
    check_weight("huber_loss", weight, input)
    return reduced(huber_op(input, target, "none", float(delta)).to(own) * weight, reduction)


# Distributions ----------------------------------------------------------------------------------------------------


@op(
    name="kl_div",
    half=None,
    promote="float",
    refuse="c",
    broadcasts=("target", "input"),
    shape=shapes.loss,
    batch=families.pairs_of_elements,
)
def kl_op(input: Array, target: Array, reduction: str, log_target: bool) -> Array:
    """target * (log(target) - input), or of a target given as logarithms; reduced.  (*), (*) -> () or (*)"""
    return folded(lambda x, t: _divergence(x, t, log_target), reduction, input, target)


def _divergence(x: Array, t: Array, log_target: bool) -> Array:
    if log_target:
        out = np.asarray(t - x)
        out *= backend.exp(t)
        return out
    out = np.asarray(backend.log(t))
    out *= t
    np.copyto(out, out.dtype.type(0), where=t == 0)
    rest = np.asarray(t * x)
    return np.subtract(out, rest, out=rest) if rest.dtype == out.dtype else out - rest


def _divergence_raw(g: Array, target: Array, input_shape: tuple[int, ...], reduction: str, log_target: bool) -> Any:
    if target.dtype != g.dtype or target.shape != tuple(input_shape):
        return _divergence_slope(g, target, input_shape, reduction, log_target)
    factor = -_share_of(reduction, input_shape)

    def slope(g: Array, t: Array) -> Array:
        p = backend.exp(t) if log_target else t
        return np.multiply(p, g * g.dtype.type(factor), out=p if log_target and p.ndim else None)

    return each_in_float32(slope, g, target)


def _divergence_bytes(g: Array, target: Array, make: Making) -> Array:
    """The gradient; of 16 bits what a block of it is computed of in float32, its slopes and what they are rounded of."""
    made = make.gradient(0)
    if is_half(g.dtype) and g.dtype == target.dtype:
        make.work(3 * min(target.size, AT_ONCE) * FLOAT32.itemsize)
    return made


@kl_op.grad("input", raw=_divergence_raw, shapes=_divergence_bytes)
def _divergence_slope(
    g: Array | Tensor, target: Array | Tensor, input_shape: tuple[int, ...], reduction: str, log_target: bool
) -> Any:
    target = in_dtype(target, dtype_of(g))
    p = ops.exp(target) if log_target else target
    slope = p * by(g, -_share_of(reduction, target.shape, input_shape))
    whole = np.broadcast_shapes(tuple(slope.shape), tuple(input_shape))
    return slope if whole in (tuple(slope.shape), tuple(input_shape)) else broadcast(slope, whole)


@kl_op.grad("target")
def _(g: Array | Tensor, input: Array | Tensor, target: Array | Tensor, reduction: str, log_target: bool) -> Any:
    g = by(g, share(reduction, input, target))
    input, target = (in_dtype(x, dtype_of(g)) for x in (input, target))
    if log_target:
        return g * ops.exp(target) * (target - input + 1)
    return g * (ops.log(target) + 1 - input)


def _share_of(reduction: str, *shapes: tuple[int, ...]) -> float:
    return 1 / max(math.prod(np.broadcast_shapes(*map(tuple, shapes))), 1) if reduction == "mean" else 1.0


@function(ns=F, autocast="float32")
def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:  # fmt: skip
    """target * (log(target) - input) with `input` logarithms of probabilities, reduced.  (*), (*) -> () or (*)

    reduction: also "batchmean", the sum divided by the first size, which is the divergence. log_target: `target` are
    logarithms too.
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    elif reduction == "mean":
        caller.warn("reduction: 'mean' divides the total loss by both the batch size and the support size. "
                    "'batchmean' divides only by the batch size, and aligns with the KL math definition.")  # fmt: skip
    if reduction == "batchmean":
        total = divergence(input, target, "sum", log_target)
        return total / input.shape[0] if input.ndim else total
    return divergence(input, target, reduction_of(reduction), log_target)


def divergence(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """`kl_div` without its warning."""
    check_tensors("kl_div", input=input, target=target)
    if input.dtype.category < dtypes.FLOAT or target.dtype.category < dtypes.FLOAT:
        raise RuntimeError(f"kl_div: Integral inputs not supported: got {input.dtype} and {target.dtype}, convert them "
                           "with .to(torch.float32)")  # fmt: skip
    return kl_op(input, target, reduction, bool(log_target))


@function(ns=F, autocast="float32")
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """-log of Poisson's density of `target` at the rate e^input (or input), reduced.  (*), (*) -> () or (*)

    full: add Stirling's approximation of log(target!).
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("poisson_nll_loss", input=input, target=target)
    loss = ops.exp(input) - target * input if log_input else input - target * ops.log(input + eps)
    if full:
        stirling = target * ops.log(target) - target + 0.5 * ops.log(2 * math.pi * target)
        loss = loss + ops.masked_fill(stirling, target <= 1, 0).to(loss.dtype)
    return reduced(loss, reduction)


@function(ns=F)
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """-log of the normal density of `target` at mean `input` and variance `var`, reduced.  (*), (*) -> () or (*)

    var: of the shape of `input`, without its last dimension or with one of size 1, or a number; at least eps. full:
    with the constant. Raises ValueError for a variance of another shape or below 0.
    """
    check_tensors("gaussian_nll_loss", input=input, target=target)
    var = fitted_variance(input, var)
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid as reduction: expected 'none', 'mean' or 'sum'")
    if (everything(var._array) < 0).any():
        raise ValueError("gaussian_nll_loss: var has negative entry/entries: variances are at least 0")
    var = var + ops.clamp_min(eps - var.detach(), 0)  # what it is short of eps is not differentiated
    loss = 0.5 * (ops.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def fitted_variance(input: Tensor, var: Tensor | float) -> Tensor:
    """The variance as a tensor that broadcasts with `input`."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: var has negative entry/entries: got {var}")
        return ops.full_like(input.detach(), var)
    if var.shape == input.shape:
        return var
    if tuple(input.shape[:-1]) == tuple(var.shape):
        return ops.unsqueeze(var, -1)
    differing = [b for a, b in zip(input.shape, var.shape) if a != b]
    if input.ndim == var.ndim and differing == [1]:
        return var
    raise ValueError(f"gaussian_nll_loss: var is of incorrect size: got {list(var.shape)}, expected "
                     f"{list(input.shape)}, the same without the last dimension, or with one dimension 1")  # fmt: skip
