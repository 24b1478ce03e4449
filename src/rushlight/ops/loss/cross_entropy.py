"""Cross entropy in all its forms, and the negative log likelihood.

Of logits and classes, what is saved are the logits (which the layer before made and nobody else keeps), the classes and
two numbers a row: the probabilities are never in memory between forward and backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import float64
from rushlight.basics.errors import explained
from rushlight.basics.state import modes
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.keeping.unmade import Unmade
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import converting, function, op
from rushlight.ops.elementwise.floats import require, still, wide
from rushlight.ops.index.raw_indices import UNSIGNED
from rushlight.ops.loss.loss import check_tensors, folded, reduction_of
from rushlight.ops.norm.softmax import log_softmax_op, softmax_op
from rushlight.tensor import Tensor, wrap

F = "nn.functional"


# Negative log likelihood ------------------------------------------------------------------------------------------


def checked(target: Array, classes: int, ignore_index: int) -> tuple[Any, Any]:
    """The targets with 0 for the ignored ones, and which those are, None where there are none.

    Raises IndexError for targets out of bounds.
    """
    if target.size and not 0 <= ignore_index < classes:
        # Negative ones are huge as unsigned numbers.
        if np.maximum.reduce(target.view(UNSIGNED.get(target.dtype, target.dtype)), None) < classes:
            return target, None
    ignored = target == ignore_index
    safe = np.where(ignored, 0, target)
    if safe.size and (safe.min() < 0 or safe.max() >= classes):
        bad = safe.min() if safe.min() < 0 else safe.max()
        error = IndexError(f"Target {bad} is out of bounds: expected [0, {classes}) or ignore_index={ignore_index}")
        raise explained(error, "targets-of-cross-entropy")
    return safe, ignored


def row_weights(
    target: Any, weight: Array | None, classes: int, ignore_index: int, dtype: np.dtype[Any] | type[Any]
) -> tuple[Any, Any]:
    """Safe targets, and the weight of each, 0 for the ignored; None where all count alike."""
    safe, ignored = checked(target, classes, ignore_index)
    if weight is None and ignored is None:
        return safe, None
    w = np.ones(safe.shape, dtype) if weight is None else weight[safe].astype(dtype, copy=False)
    if ignored is not None:
        w[ignored] = 0
    return safe, w


@op(
    aten_call="nll",
    aten_more=True,
    aten_gradient="nll",
    autocast="float32",
    name="nll_loss",
    half=None,
    masks=("target",),
    batch=families.classes,
)
def nll_op(input: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int) -> Array:
    """-input[target] * weight[target] by row, reduced.  (N, C, *), (N, *), (C,) -> () or (N, *)"""
    dtype = wide(input.dtype)
    safe, w = row_weights(target, weight, input.shape[1], ignore_index, dtype)
    loss = backend.gather_along(input, safe[:, None], 1)[:, 0].astype(dtype, copy=False)
    if w is None:
        np.negative(loss, out=loss)
    else:
        loss[w == 0] = 0  # also where the input is infinite
        loss *= -w
    if reduction == "mean":
        return np.asarray(np.add.reduce(loss, None) / (loss.size if w is None else w.sum())).astype(input.dtype)
    return np.asarray(folded(lambda values: values, reduction, loss)).astype(input.dtype, copy=False)


@nll_op.shape
def _(input: Array, reduction: str) -> list[shapes.Made]:
    return [shapes.lossy((input.shape[0], *input.shape[2:]), input.dtype, reduction)]


@nll_op.grad("input")
def _(
    g: Array | Tensor,
    target: Array | Tensor,
    weight: Array | Tensor | None,
    input_shape: tuple[int, ...],
    reduction: str,
    ignore_index: int,
) -> Any:
    return nll_backward(g, target, weight, input_shape, reduction, ignore_index)


@op(name="nll_loss_backward", half=None, masks=("target",), batch=families.classes_backward)
def nll_backward(grad: Array, target: Array, weight: Array | None, shape: tuple[int, ...], reduction: str,
                 ignore_index: int) -> Array:  # fmt: skip
    """Zeros but for the targets of each row.  () or (N, *), (N, *), (C,) -> (N, C, *)"""
    dtype = wide(grad.dtype)
    safe, w = row_weights(target, weight, shape[1], ignore_index, dtype)
    if w is None:
        w = np.full(safe.shape, 1 / safe.size if reduction == "mean" else 1, dtype)
    elif reduction == "mean":
        total = w.sum()
        np.divide(w, total, out=w, where=True if total else target != ignore_index)  # of what is ignored, 0 stays 0
    w *= -grad.astype(dtype, copy=False)
    out = np.zeros(shape, grad.dtype)
    backend.put_along(out, safe[:, None], 1, w.astype(grad.dtype, copy=False)[:, None])
    return out


@nll_backward.shape
def _(grad: Array, shape: Any) -> list[shapes.Made]:
    return [shapes.Made(tuple(shape), grad.dtype)]


@nll_backward.grad("grad")
def _(g: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int) -> Tensor:
    return nll_op(g, target, weight, reduction, ignore_index)


def check_target(name: str, shape: Any, target: Any, weight: Tensor | None) -> None:
    """Raise ValueError or RuntimeError where classes do not fit inputs of shape (N, C, *) or (C,)."""
    array = target._array
    if weight is None and len(shape) == 2 and array.shape == shape[:1] and array.dtype == np.int64:
        return  # the usual case
    shape, have = list(shape), list(target.shape)
    if not shape:
        raise ValueError(f"{name}: Expected 1 or more dimensions (got 0)")
    if len(shape) > 1 and have and have[0] != shape[0]:
        raise explained(
            ValueError(f"{name}: Expected input batch_size ({shape[0]}) to match target batch_size ({have[0]})."),
            "targets-of-cross-entropy",
        )
    wanted = [shape[0], *shape[2:]] if len(shape) > 1 else have[:1]
    if (len(shape) == 2 and len(have) != 1) or (len(shape) == 1 and len(have) > 1):
        raise explained(
            RuntimeError(f"{name}: 0D or 1D target tensor expected, multi-target not supported, got {have}"),
            "targets-of-cross-entropy",
        )
    if have != wanted:
        raise RuntimeError(f"{name}: Expected target size {wanted}, got {have}")
    if len(shape) == 1 and have not in ([], [1]):
        raise ValueError(f"{name}: For 1D input, 1D target must have size 1, but got target size: {have[0]}")
    if array.dtype != np.int64 and array.dtype != np.uint8:
        raise explained(
            RuntimeError(f"{name}: expected target dtype to be Long or Byte, but got {older(target.dtype)}"),
            "targets-of-cross-entropy",
        )
    classes = shape[min(len(shape), 2) - 1]
    if weight is not None and list(weight.shape) != [classes]:
        raise RuntimeError(f"{name}: weight tensor should be defined either for all {classes} classes or no classes "
                           f"but got weight tensor of shape: {list(weight.shape)}")  # fmt: skip


def check_class_weights(name: str, input: Tensor, weight: Tensor | None) -> None:
    """Raise RuntimeError for weights of classes of another dtype than the input's, which autocast does not make the same, and for
    such as require grad."""
    still(name, weight=weight)
    if weight is None or weight.dtype is input.dtype:
        return
    if modes.autocast is None or float64 in (weight.dtype, input.dtype):
        raise RuntimeError(
            f"{name}: expected scalar type {older(input.dtype)} but found {older(weight.dtype)} as weight"
        )


def rowed(fn: Callable[..., Any], input: Tensor, target: Tensor, *rest: object) -> Tensor:
    """`fn` of inputs (N, C, *), or of one row (C,) with its class () or (1,)."""
    if input.ndim > 1:
        return fn(input, target, *rest)
    loss = fn(input.reshape(1, -1), target.reshape(1), *rest)
    return loss.reshape(()) if loss.ndim else loss


@function(ns=F)
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """-input[target] * weight[target], reduced; the mean divides by the weights.  (N, C, *), (N, *) -> () or (N, *)

    input: logarithms of probabilities, or (C,) with a target () or (1,). Targets equal to ignore_index do not count.
    Raises IndexError for targets outside [0, C).
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("nll_loss", input=input, target=target)
    check_target("nll_loss", input.shape, target, weight)
    check_class_weights("nll_loss", input, weight)
    require(input.dtype.is_floating_point, "nll_loss", input)
    ignored = as_int(ignore_index, "nll_loss", "ignore_index")
    return rowed(nll_op, input, target, weight, reduction, ignored)


# Cross entropy of logits and classes ----------------------------------------------------------------------------------


def class_rows(x: Array) -> Array:
    """(N, C, *) as a matrix with a row for each (N, *) where these lie in memory so, else as (N, C, I)."""
    if x.ndim == 2:
        return x
    last, each = np.moveaxis(x, 1, -1), math.prod(x.shape[2:])
    rows = last.flags.c_contiguous
    return last.reshape(len(x) * each, x.shape[1]) if rows else x.reshape(*x.shape[:2], each)


def by_class(rows: Array, shape: tuple[int, ...]) -> Array:
    """The inverse of `class_rows`, for inputs of that shape."""
    if len(shape) == 2 or rows.ndim == 3:
        return rows.reshape(shape)
    return np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


@op(
    autocast="float32",
    half=None,
    steady=True,
    aux=("denominator", "total"),
    masks=("target",),
    batch=families.classes,
    passes=2.0,
)
def cross_entropy_op(input: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int,
                     label_smoothing: float) -> tuple[Array | float, ...]:  # fmt: skip
    """-log(softmax(input))[target] by row, reduced.  (N, C, *), (N, *), (C,) -> () or (N, *)

    Keeps the denominator of each row's softmax, and what the mean divides by.
    """
    require(input.dtype.kind == "f" or input.dtype.itemsize == 2, "cross_entropy", input)
    rows = class_rows(input)
    flat = target if target.ndim == 1 else target.reshape(-1)
    weight = _of_dtype(weight, wide(rows.dtype))
    loss, denominator, sums = backend.cross_entropy(rows, flat, weight, ignore_index, label_smoothing)
    if reduction == "none":
        return loss.reshape(target.shape).astype(input.dtype, copy=False), denominator, 1.0
    total = float(sums[1]) if reduction == "mean" else 1.0
    return np.array(over(float(sums[0]), total), input.dtype), denominator, total


@cross_entropy_op.shape
def _(input: Array, reduction: str) -> list[shapes.Made]:
    rows = (input.shape[0], *input.shape[2:])
    wide = shapes.statistics_dtype(input.dtype)
    kept = shapes.Made((math.prod(rows), 2), wide)
    return [shapes.lossy(rows, input.dtype, reduction), kept, shapes.Made((), wide)]


def over(value: float, total: float) -> float:
    """value / total as floating-point units divide."""
    return value / total if total else math.nan if value == 0 or value != value else math.copysign(math.inf, value)


def _of_dtype(x: Array | None, dtype: np.dtype[Any]) -> Array | None:
    return None if x is None else x.astype(dtype, copy=False)


def _cross_entropy_raw(g: Array, input_spare: Array | None, input: Array, target: Array, weight: Array | None,
                       denominator: Array, total: float, reduction: str, ignore_index: int, label_smoothing: float) -> Array:  # fmt: skip
    each = g.reshape(-1) / g.dtype.type(total or math.nan)
    each = each if each.dtype is denominator.dtype else each.astype(denominator.dtype)
    rows = backend.cross_entropy_backward(each, class_rows(input), denominator, target.reshape(-1), _of_dtype(weight,
                                     denominator.dtype), ignore_index, label_smoothing,
                                     None if input_spare is None else class_rows(input_spare))  # fmt: skip
    return by_class(rows, input.shape)


@cross_entropy_op.grad("input", raw=_cross_entropy_raw)
def _(g: Array, input: Tensor, target: Tensor, weight: Tensor | None, total: float, reduction: str, ignore_index: int,
      label_smoothing: float) -> Array:  # fmt: skip
    g = g if reduction != "none" else ops.unsqueeze(g, 1)
    if any(getattr(x._array, "interpreted", False) for x in (target, weight, total) if isinstance(x, Tensor)):
        both = hidden_coefficients(input, target, weight, total, ignore_index, label_smoothing)
        return g * (softmax_op(input, 1) * ops.sum(both, 1, True) - both)
    both, sums = coefficients(input, target, weight, ignore_index, label_smoothing, total)
    return g * (softmax_op(input, 1) * sums - both)


def hidden_coefficients(
    x: Tensor, target: Tensor, weight: Tensor | None, total: float | Tensor, ignore: int, smoothing: float
) -> Tensor:
    """The first of the `coefficients`, by operators: for levels that hide values."""
    classes, rest = x.shape[1], (1,) * (len(x.shape) - 2)
    target = target if isinstance(target, Tensor) else wrap(target)
    by_class = ops.ones(classes, dtype=x.dtype) if weight is None else weight.to(x.dtype)
    by_class = by_class.reshape(1, classes, *rest)
    number = wrap(np.arange(classes).reshape(1, classes, *rest))
    chosen = (ops.unsqueeze(target, 1) == number).to(x.dtype) * (1 - smoothing) + smoothing / max(classes, 1)
    counts = ops.unsqueeze(target != ignore, 1) & (chosen != 0)  # the weights of other classes may be infinite
    return ops.where(counts, chosen * by_class / total, wrap(np.zeros((), x.dtype.numpy)))


def coefficients(
    x: Tensor, target: Tensor, weight: Tensor | None, ignore: int, smoothing: float, total: float
) -> tuple[Tensor, Tensor]:
    """What the logarithms of the probabilities are multiplied by, (N, C, *), and the sums of that over classes, (N, 1, *)."""
    classes, dtype = x.shape[1], x.dtype.numpy
    total = total._array if isinstance(total, Tensor) else total
    t, w = (None if y is None else y._array if isinstance(y, Tensor) else y for y in (target, weight))
    safe, own = row_weights(t, w, classes, ignore, np.float64)
    each = np.full(safe.shape, 1 - smoothing) if own is None else own * (1 - smoothing)
    by_feature = w.astype(np.float64) if w is not None and smoothing else np.ones(classes)  # else they have no part
    spread = by_feature.reshape(-1, *(1,) * (len(x.shape) - 2)) * (smoothing / max(classes, 1))
    counts = np.expand_dims(t != ignore, 1)
    both = np.zeros(tuple(x.shape))  # added up like this: in 16 bits a sum over many classes stays where it is
    np.put_along_axis(both, safe[:, None], each[:, None], 1)
    both = (both + spread * counts) / total
    if not total:  # nothing counts: the mean is no number, and what is ignored has no part in it
        both = np.where(counts, both, 0)
    return wrap(both.astype(dtype)), wrap(both.sum(1, keepdims=True).astype(dtype))


# Cross entropy of logits and probabilities ------------------------------------------------------------------------


@partial(converting, kind="float32")
def with_probabilities(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int,
                       smoothing: float) -> Tensor:  # fmt: skip
    """-sum(target * log(softmax(input)) * weight) over classes, reduced.  (N, C, *), (N, C, *) -> () or (N, *)"""
    if not target.dtype.is_floating_point:
        raise RuntimeError(f"cross_entropy: Expected floating point type for target with class probabilities, got "
                           f"{target.dtype}")  # fmt: skip
    if ignore_index >= 0:
        raise RuntimeError("cross_entropy: ignore_index is not supported for floating point target, got "
                           f"{ignore_index}")  # fmt: skip
    dim = 1 if input.ndim > 1 else 0
    classes = input.shape[dim]
    if weight is not None and list(weight.shape) != [classes]:
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
                           f"classes but got weight tensor of shape: {list(weight.shape)}")  # fmt: skip
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    values = log_softmax_op(input, dim) * target
    if weight is not None:  # after that: what the caller has is saved, and no product of it
        values = values * (weight.reshape(-1, *(1,) * (input.ndim - 2)) if input.ndim > 2 else weight)
    if reduction == "none":
        return -ops.sum(values, dim)
    total = -ops.sum(values)
    return total / (max(input.numel() // classes, 1) if input.numel() else math.nan) if reduction == "mean" else total


unmade: dict[str, Any] = {}  # what computes it of logits that are not made: `unmade_logits` sets that


def check_smoothing(name: str, label_smoothing: float) -> None:
    """Raise RuntimeError unless the weight of all classes together is none or a part of one."""
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"{name}: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")


@function(ns=F)
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """-log(softmax(input))[target], reduced; the mean divides by the weights.  (N, C, *), (N, *) -> () or (N, *)

    input: logits, also (C,) of one sample. target: classes, () or (1,) for one sample, or probabilities of the shape of `input`.
    weight: (C,) by class. Classes equal to ignore_index do not count. label_smoothing: the share, in [0, 1], of the
    target that is spread over all classes. Raises IndexError for classes outside [0, C).

    >>> import rushlight as torch
    >>> torch.nn.functional.cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.6931)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("cross_entropy", input=input, target=target)
    check_smoothing("cross_entropy", label_smoothing)
    if type(input) is Unmade and (weight is None or not weight.requires_grad):
        loss = unmade["cross_entropy"](input, target, weight, reduction, ignore_index, float(label_smoothing))
        if loss is not None:
            return loss
    if input._array.shape == target._array.shape and input._array.ndim:
        return with_probabilities(input, target, weight, reduction, ignore_index, label_smoothing)
    check_target("cross_entropy", input._array.shape, target, weight)
    check_class_weights("cross_entropy", input, weight)
    return rowed(cross_entropy_op, input, target, weight, reduction, ignore_index, float(label_smoothing))
