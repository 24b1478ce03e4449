"""Losses: computed without a reduction, then reduced sample by sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.shape.reshape import broadcast
from rushlight.tensor import Tensor, wrap
from rushlight.transforms.batching.given import Given, Results, reshaped
from rushlight.transforms.batching.loop import looped
from rushlight.transforms.batching.pointwise import aligned, promoted
from rushlight.transforms.batching.windows import folded


def reduced(c: Given, loss: Tensor, reduction: str) -> Tensor:
    """The sum or mean of each sample's losses."""
    dims = tuple(range(1, len(loss.shape)))
    return loss if reduction == "none" else c.run((loss,), (dims, False), OPS[reduction]) if dims else loss


@families.pairs_of_elements.batched
def elementwise(c: Given) -> Tensor:
    """Losses of pairs of elements."""
    values = promoted(c, aligned(c))
    if not c.batched[0]:
        rank = len(next(x for x, b in zip(values, c.batched, strict=True) if b).shape)
        values[0] = reshaped(broadcast(c.values[0], (c.size, *c.shapes[0])),
                             (c.size, *[1] * (rank - 1 - len(c.shapes[0])), *c.shapes[0]))  # fmt: skip
    return reduced(c, c.run(values, c.changed(reduction="none")), c["reduction"])


def rows(c: Given) -> list[Any]:
    """Scores and targets with the samples folded into the rows; the weight of classes as it is."""
    return [folded(c, c.full(0), 0), folded(c, c.full(1), 1), c.values[2]]


def totals(c: Given, target: Tensor, weight: Any, dtype: np.dtype[Any]) -> Any:
    """What the mean of each sample divides by: the weights of its targets."""
    counted = c.run((target, c["ignore_index"]), (), OPS["ne"])
    if weight is None:
        return cast(counted, dtype)
    weight = weight.detach()  # which has no gradient
    kept = target * cast(counted, target._array.dtype)  # a target that is ignored may be no class
    found = c.run((weight, kept), (), OPS["take"])
    return found * cast(counted, found._array.dtype)


@families.classes.batched
def classes(c: Given) -> Any:
    """Losses of rows with targets among classes."""
    if c.batched[2]:
        return looped(c)
    values, reduction = rows(c), c["reduction"]
    found = c.run(values, c.changed(reduction="none"))
    several = isinstance(found, (tuple, list))
    loss = found[0] if several else found
    loss = reshaped(loss, (c.size, *c.shapes[1]))
    result = reduced(c, loss, "sum" if reduction == "mean" else reduction)
    total = wrap(np.ones(c.size, loss._array.dtype)) if reduction != "mean" else divisor(c, values, c.shapes[1], loss)
    if reduction == "mean":
        result = result / total
    return [result, reshaped(found[1], (c.size, math.prod(c.shapes[1]), 2)), total] if several else result


def divisor(c: Given, values: list[Any], shape: tuple[int, ...], like: Tensor) -> Any:
    """What the mean of each sample divides by, in the dtype of `like`."""
    weights = reshaped(totals(c, values[1], values[2], like._array.dtype), (c.size, math.prod(shape)))
    return cast(c.run((weights,), ((1,), False), OPS["sum"]), like._array.dtype)


@families.classes_backward.batched
def classes_backward(c: Given) -> Results:
    """The adjoint of nll_loss."""
    if c.batched[2]:
        return looped(c)
    shape, g = tuple(c["shape"]), c.full(0)
    rows_shape = (shape[0], *shape[2:])
    target = folded(c, c.full(1), 1)
    if c["reduction"] == "mean":
        g = g / divisor(c, [None, target, c.values[2]], rows_shape, g)
    if c["reduction"] != "none":
        g = broadcast(reshaped(g, (c.size, *[1] * len(rows_shape))), (c.size, *rows_shape))
    g = reshaped(g, (c.size * shape[0], *shape[2:]))
    statics = c.changed(shape=(c.size * shape[0], *shape[1:]), reduction="none")
    return reshaped(c.run((g, target, c.values[2]), statics), (c.size, *shape))
