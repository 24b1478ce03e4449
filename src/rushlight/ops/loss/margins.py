"""Losses with a margin: hinges, rankings, triplets, classes that should lead the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.basics.dtype_words import older
from rushlight.dispatch import shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.meta import beside
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import function, op
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.shared import times
from rushlight.ops.loss.loss import check_tensors, reduced, reduction_of
from rushlight.tensor import Tensor, wrap

F = "nn.functional"
BLOCK = 1 << 17  # pairs of a label and a class that are made at a time


@function(ns=F, autocast="float32")
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """input where the target is 1, max(0, margin - input) where it is -1, reduced.  (*), (*) -> () or (*)"""
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("hinge_embedding_loss", input=input, target=target)
    zero = ops.zeros_like(input.detach())
    far = ops.where(target != 1, ops.clamp_min(margin - input, 0).to(input.dtype), zero)
    return reduced(far + ops.where(target != -1, input, zero), reduction)


@function(ns=F, autocast="float32")
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:  # fmt: skip
    """max(0, -target * (input1 - input2) + margin), reduced.  (*), (*), (*) -> () or (*)

    target: 1 where input1 should be the larger, -1 where input2. Raises RuntimeError where dimensions differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{input1.size()}, input2: {input2.size()}, target: {target.size()}")  # fmt: skip
    return reduced(ops.clamp_min(-target * (input1 - input2) + float(margin), 0), reduction)


@function(ns=F, autocast="float32")
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:  # fmt: skip
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1, reduced.  (N, D) twice, (N,) -> () or (N,)"""
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    if target.ndim > 1:
        raise RuntimeError(f"cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not supported, got "
                           f"{list(target.shape)}")  # fmt: skip
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(f"cosine_embedding_loss: {target.ndim}D target tensor expects {target.ndim + 1}D input "
                           f"tensors, but found {list(input1.shape)} and {list(input2.shape)}.")  # fmt: skip
    cos = _cosine(input1, input2)
    zero = ops.zeros_like(cos.detach())
    near = ops.where(target == 1, 1 - cos, zero)
    return reduced(near + ops.where(target == -1, ops.clamp_min(cos - margin, 0), zero), reduction)


def _cosine(x1: Tensor, x2: Tensor) -> Tensor:
    """The cosine along the last dimension, with 1e-12 added to the squares."""
    squares = (ops.sum(x1 * x1, -1) + 1e-12) * (ops.sum(x2 * x2, -1) + 1e-12)
    return ops.sum(x1 * x2, -1) / ops.sqrt(squares)


# Triplets -----------------------------------------------------------------------------------------------------------


@function(ns=F, autocast="float32")
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced.  (N, D) or (D,) each -> () or (N,)

    d: the distance of order `p` with `eps` added to differences. swap: use d(positive, negative) where it is smaller.
    Source: Balntas et al., Learning shallow convolutional feature descriptors with triplet losses (2016).
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_triplet("triplet_margin_loss", margin, anchor, positive, negative)

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return ops.pairwise_distance(x, y, p, eps)

    return triplets(distance, anchor, positive, negative, margin, swap, reduction)


def check_triplet(name: str, margin: float, anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    """Raise ValueError unless the margin is over 0, RuntimeError where numbers of dimensions differ."""
    check_tensors(name, anchor=anchor, positive=positive, negative=negative)
    if margin <= 0:
        raise ValueError(f"{name}: margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(f"{name}: The anchor, positive, and negative tensors are expected to have the same number "
                           f"of dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
                           f"{negative.ndim}D inputs")  # fmt: skip


def triplets(distance: Callable[..., Any], anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, swap: bool,
             reduction: str) -> Tensor:  # fmt: skip
    """The loss of triplets with a given distance."""
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduced(ops.clamp_min(margin + near - far, 0), reduction)


@function(ns=F)
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """As `triplet_margin_loss` with a distance of one's own, by default the Euclidean.  (N, *) each -> () or (N,)"""
    reduction = reduction_of(reduction)
    check_triplet("triplet_margin_with_distance_loss", margin, anchor, positive, negative)
    distance = ops.pairwise_distance if distance_function is None else distance_function
    return triplets(distance, anchor, positive, negative, margin, swap, reduction)


# Classes ------------------------------------------------------------------------------------------------------------


def check_classes(input: Tensor, target: Tensor, p: int, weight: Any) -> None:
    """Raise ValueError or RuntimeError where the arguments of multi_margin_loss do not fit."""
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: only p == 1 and p == 2 supported, got {p}")
    shape = list(input.shape)
    if input.ndim > 2 or not all(shape[1:]) or (input.ndim < 2 and not input.numel()):
        raise RuntimeError("multi_margin_loss: Expected non-empty vector or matrix with optional 0-dim batch size, "
                           f"but got: {shape}")  # fmt: skip
    rows, classes = shape if input.ndim == 2 else (1, input.numel())
    if target.ndim > 1 or target.numel() != rows:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples. "
                           f"Expected target size [{rows}], but got {list(target.shape)}")  # fmt: skip
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"multi_margin_loss: weight must be one-dimensional, got {list(weight.shape)}")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"multi_margin_loss: inconsistent weight size, expected {classes} but got "
                           f"{list(weight.shape)}")  # fmt: skip
    array = everything(target._array)
    if array.dtype != np.int64:
        raise RuntimeError(f"multi_margin_loss: expected scalar type Long but found {older(target.dtype)} as target")
    if array.size and (array.min() < 0 or array.max() >= classes):
        raise RuntimeError(f"multi_margin_loss: target out of range: got {array.min()} to {array.max()} for {classes} "
                           "classes")  # fmt: skip


@function(ns=F, autocast="float32")
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """sum over i != y of max(0, margin - x[y] + x[i])^p * weight[y] / C, reduced.  (N, C), (N,) -> () or (N,)"""
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("multi_margin_loss", input=input, target=target)
    check_classes(input, target, p, weight)
    x = input if input.ndim == 2 else input.reshape(1, -1)
    y = target.reshape(-1, 1)
    classes = x.shape[1]
    loss = ops.clamp_min(margin - ops.gather(x, 1, y) + x, 0)
    if p == 2:
        loss = loss * loss
    if weight is not None:
        loss = loss * ops.index_select(weight.reshape(-1), 0, y.reshape(-1)).unsqueeze(1)
    others = ops.ne(y, beside(wrap(np.arange(classes)), y))
    loss = ops.sum(ops.where(others, loss, ops.zeros_like(loss.detach())), 1) / classes
    return reduced(loss if target.ndim else loss.reshape(()), reduction)


def check_labels(input: Tensor, target: Tensor) -> None:
    """Raise RuntimeError where the arguments of multilabel_margin_loss do not fit."""
    if input.ndim > 2 or (input.ndim == 2 and not input.shape[1]) or (input.ndim < 2 and not input.numel()):
        raise RuntimeError("multilabel_margin_loss: Expected non-empty vector or matrix with optional 0-dim batch "
                           f"size, but got: {list(input.shape)}")  # fmt: skip
    if (target.shape if target.ndim or input.numel() != 1 else input.shape) != input.shape and not (
            input.ndim == 0 and target.numel() == 1):  # fmt: skip
        raise RuntimeError(f"multilabel_margin_loss: inconsistent target size: {list(target.shape)} for input of size: "
                           f"{list(input.shape)}")  # fmt: skip
    array, classes = everything(target._array), (input.shape[-1] if input.ndim else 1)
    if array.dtype != np.int64:
        raise RuntimeError(f"multilabel_margin_loss: expected scalar type Long of target but found {target.dtype}")
    if array.size and (array.min() < -1 or array.max() >= classes):
        raise RuntimeError(f"multilabel_margin_loss: target out of range: got {array.min()} to {array.max()} for "
                           f"{classes} classes")  # fmt: skip


@function(ns=F, autocast="float32")
@per_sample
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                           reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """sum over labels y and other classes i of max(0, 1 - (x[y] - x[i])) / C, reduced.  (N, C), (N, C) -> () or (N,)

    target: the labels of a row, ended by a -1 if they are fewer than the classes.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensors("multilabel_margin_loss", input=input, target=target)
    check_labels(input, target)
    classes = input.shape[-1] if input.ndim else 1
    loss = labels_op(input.reshape(-1, classes), target.reshape(-1, classes))
    return reduced(loss if input.ndim == 2 else loss.reshape(()), reduction)


def margins(x: Array, target: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
    """For some rows at a time, and for one of the labels that each has: which rows, which of them have it, it, and 1 - (x[y] - x[i])
    of all other classes i, 0 of labels.  (N, C), (N, C)"""
    step = max(1, BLOCK // x.shape[1])
    for start in range(0, len(x), step):
        at = slice(start, start + step)
        listed = np.logical_and.accumulate(target[at] >= 0, axis=1)
        rows, columns = np.nonzero(listed)
        labels = np.zeros(listed.shape, bool)
        labels[rows, target[at][rows, columns]] = True
        for k in range(int(listed.sum(1).max(initial=0))):
            (having,) = np.nonzero(listed[:, k])
            label = target[at][having, k]
            apart = 1 - (x[at][having, label][:, None] - x[at][having])
            apart[labels[having]] = 0
            yield at, having, label, apart


@op(masks=("target",), shape=lambda input: [shapes.Made(input.shape[:1], input.dtype)])
def labels_op(input: Array, target: Array) -> Array:
    """The sum over labels and other classes of what they are apart less than 1, by the classes.  (N, C), (N, C) -> (N,)"""
    found = np.zeros(len(input), input.dtype)
    for at, having, _, apart in margins(input, target):
        found[at][having] += np.maximum(apart, 0, out=apart).sum(1)
    return found / input.dtype.type(input.shape[1])


@op(masks=("target",), shape=shapes.dense)
def labels_slope(input: Array, target: Array) -> Array:
    """The gradient of `labels_op` for each row, which changes where classes are 1 apart alone.  (N, C), (N, C) -> (N, C)"""
    found = np.zeros(input.shape, input.dtype)
    for at, having, label, apart in margins(input, target):
        near = apart > 0
        found[at][having] += near
        found[at][having, label] -= near.sum(1)
    return np.divide(found, input.shape[1], out=found)


@labels_op.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, target: Array | Tensor) -> Array | Tensor:
    return times(g[:, None], labels_slope(input, target))
