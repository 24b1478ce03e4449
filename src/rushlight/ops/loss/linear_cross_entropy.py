"""The cross entropy of a linear layer, whose logits never exist at once: chunks of rows are computed and forgotten.

Between forward and backward stay the layer's own input and weight, and two numbers a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.state import modes
from rushlight.dispatch import shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making
from rushlight.kernels.dispatch import is_half, recast, summed_in, up
from rushlight.kernels.products import BFLOAT16, ways, wide_product, work_of_halves
from rushlight.ops.elementwise.floats import still
from rushlight.ops.linear.matmul import linear, linear_op
from rushlight.ops.linear.unmade_products import limits, unmade_product
from rushlight.ops.loss.cross_entropy import (
    check_smoothing,
    check_target,
    coefficients,
    cross_entropy,
    over,
    unmade,
)
from rushlight.ops.loss.loss import check_tensors, reduction_of
from rushlight.ops.norm.softmax import softmax_op
from rushlight.tensor import Tensor

F = "nn.functional"
CHUNK = 1 << 23  # logits at once, unless that is under 256 rows
CLASSES = 4096  # rows of the weight's gradient that are added at once


def rows_at_once(classes: int, asked: int | None) -> int:
    """How many rows' logits are computed together."""
    return asked or max(256, CHUNK // max(classes, 1))


def factors(*operands: Array | None) -> Any:
    """The operands of the products: in bfloat16 where this processor multiplies such numbers, else in float32."""
    return operands if _multiplied_as_is(operands[1]) else up(*operands)


def _multiplied_as_is(weight: Array | None) -> bool:
    return weight is not None and weight.dtype == BFLOAT16 and bool(ways())


def logits_of(x: Array, weight: Array, bias: Array | None) -> Array:
    """x weight^T + bias of arrays, of 16 bits in float32."""
    out = wide_product(x, weight.T) if is_half(weight.dtype) else backend.matmul(x, weight.T)
    if bias is not None:
        backend.add_row(out, *up(bias))
    return out


@op(autocast="lower", name="linear_cross_entropy", aux=("denominator", "total"), half=None, masks=("target",))
def fused_op(input: Array, linear_weight: Array, linear_bias: Array | None, target: Array, weight: Array | None,
             reduction: str, ignore_index: int, smoothing: float, rows: int,
             wide: bool = False) -> tuple[Array | float, ...]:  # fmt: skip
    """Cross entropy of input linear_weight^T + linear_bias, reduced.  (N, D), (C, D), (C,), (N,), (C,) -> () or (N,)

    wide: the loss of 16 bits is float32, as that of logits in `autocast` is.
    """
    n, dtype, (weight,) = len(input), summed_in(input.dtype), up(weight)
    own = dtype if wide else input.dtype
    loss, denominator, both = np.empty(n, dtype), np.empty((n, 2), dtype), np.zeros(2)
    x, w, b = factors(input, linear_weight, linear_bias)
    for at in (slice(i, i + rows) for i in range(0, n, rows)):
        logits = logits_of(x[at], w, b)
        loss[at], denominator[at], sums = backend.cross_entropy(logits, target[at], weight, ignore_index, smoothing)
        del logits  # before the next are made
        both += sums
    if reduction == "none":
        return recast(loss, own), denominator, 1.0
    total = float(both[1]) if reduction == "mean" else 1.0
    return np.array(over(float(both[0]), total), own), denominator, total


@fused_op.shape
def _(input: Array, reduction: str, wide: bool) -> list[shapes.Made]:
    rows, dtype = input.shape[:-1], shapes.statistics_dtype(input.dtype)
    own = dtype if wide else input.dtype
    return [shapes.lossy(rows, own, reduction), shapes.Made((*rows, 2), dtype), shapes.Made((), dtype)]


def _bytes_of_logits(input: Array, linear_weight: Array, rows: int) -> int:
    """What a chunk of logits takes, and its product."""
    some, (classes, width) = min(rows, len(input)), linear_weight.shape
    packed = work_of_halves(input.dtype, some, width, classes) if _multiplied_as_is(linear_weight) else 0
    return some * classes * summed_in(input.dtype).itemsize + packed


def _bytes_of_factors(*operands: Array | None) -> int:
    """What factors that become float32 take."""
    made = [x for x in operands if x is not None and is_half(x.dtype)]
    return 0 if not made or _multiplied_as_is(operands[1]) else sum(2 * x.nbytes for x in made)


@fused_op.work
def _(input: Array, linear_weight: Array, linear_bias: Array | None, rows: int) -> int:
    return _bytes_of_logits(input, linear_weight, rows) + _bytes_of_factors(input, linear_weight, linear_bias)


def _fused_raw(g: Array, input: Array, linear_weight: Array, linear_bias: Array | None, target: Array, weight: Any,
               denominator: Array, total: float, ignore_index: int, smoothing: float, rows: int,
               needs: tuple[bool, ...]) -> list[Any]:  # fmt: skip
    """The gradients of a chunk of logits are written over these, so that there is one chunk at a time."""
    (g, by_class), (x, w, b) = up(g, weight), factors(input, linear_weight, linear_bias)
    each = np.broadcast_to(g / g.dtype.type(total or np.nan), target.shape)
    grads = [np.empty_like(x) if needs[0] else None, np.zeros(w.shape, g.dtype) if needs[1] else None,
             np.zeros(b.shape, g.dtype) if b is not None and needs[2] else None]  # fmt: skip
    for at in (slice(i, i + rows) for i in range(0, len(x), rows)):
        d = logits_of(x[at], w, b)
        d = backend.cross_entropy_backward(
            each[at], d, denominator[at], target[at], by_class, ignore_index, smoothing, d
        )
        add_chunk(grads, d, x[at], w, at)
        del d
    return [None if found is None else recast(found, input.dtype) for found in grads]


def add_chunk(grads: list[Any], d: Array, x: Array, w: Array, at: slice) -> None:
    """Add what the logits' gradient `d` of some rows contributes."""
    if grads[2] is not None:
        grads[2] += d.sum(0)
    d = recast(d, x.dtype)
    if grads[0] is not None:
        grads[0][at] = backend.matmul(d, w)
    if grads[1] is not None:
        for c in range(0, len(w), CLASSES):
            grads[1][c : c + CLASSES] += recast(backend.matmul(d[:, c : c + CLASSES].T, x), grads[1].dtype)


def _bytes_of_gradients(g: Array, input: Array, linear_weight: Array, linear_bias: Array | None, rows: int,
                        needs: tuple[bool, ...], make: Making) -> list[Any]:  # fmt: skip
    """The gradients, beside a chunk of logits and the products of it that are put into them."""
    given, wide = (input, linear_weight, linear_bias), summed_in(input.dtype)
    halves, as_is = is_half(input.dtype), _multiplied_as_is(linear_weight)
    copies = [make.array(x.shape, wide) for x in given if halves and not as_is and x is not None]
    kinds = (input.dtype if as_is else wide, wide, wide)
    sums = [make.array(x.shape, kind) if need and x is not None else None
            for x, kind, need in zip(given, kinds, needs, strict=True)]  # fmt: skip
    (classes, width), count, one = (
        linear_weight.shape,
        min(rows, len(input)),
        input.itemsize if as_is else wide.itemsize,
    )
    parts = [count * width * one, min(CLASSES, classes) * width * (one + wide.itemsize * as_is)]
    rounded = count * classes * one * as_is
    made_at_once = max(part if need else 0 for part, need in zip(parts, needs[:2], strict=True))
    make.work(_bytes_of_logits(input, linear_weight, rows) + made_at_once + rounded)
    made = [x if x is None or x.dtype == input.dtype else make.array(x.shape, input.dtype) for x in sums]
    del copies
    return made


@fused_op.grad("input", "linear_weight", "linear_bias", raw=_fused_raw, shapes=_bytes_of_gradients)
def _(g: Tensor, input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None, target: Tensor, weight: Any,
      total: float, reduction: str, ignore_index: int, smoothing: float, needs: tuple[bool, ...]) -> object:  # fmt: skip
    logits = linear(input, linear_weight, linear_bias)
    both, sums = coefficients(logits, target, weight, ignore_index, smoothing, total)
    g = g if reduction != "none" else ops.unsqueeze(g, 1)
    d = (g * (softmax_op(logits, 1) * sums - both)).to(logits.dtype)
    return (ops.matmul(d, linear_weight) if needs[0] else None, ops.matmul(ops.t(d), input) if needs[1] else None,
            ops.sum(d, 0) if needs[2] else None)  # fmt: skip


def of_unmade_logits(
    operands: tuple[Any, ...], target: Tensor, weight: Any, reduction: str, ignore: int, smoothing: float
) -> Any:
    """The loss of a large layer whose gradients are found together with it; None where that cannot be.

    Two products instead of three where gradients are wanted: see `unmade_logits`.
    """
    arrays = tuple(None if x is None else x._array for x in operands)
    logits = unmade_product(linear_op.op, operands, arrays) if reduction != "none" else None
    return None if logits is None else unmade["cross_entropy"](logits, target, weight, reduction, ignore, smoothing)


def check_layer(input: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, ignore_index: object) -> None:
    """Raise RuntimeError where the layer's shapes and dtypes do not fit."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError("linear_cross_entropy: expected linear_weight with dimensionality at least 2, got "
                           f"{weight.ndim}")  # fmt: skip
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError("linear_cross_entropy: expected equal input and linear_weight last dimensions "
                           f"(in_features), got {input.shape[-1]} and {weight.shape[-1]}, respectively")  # fmt: skip
    if weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError("linear_cross_entropy: K-dimensional loss defined by linear_weight shape "
                           f"{tuple(weight.shape)} requires batched input, (N, {input.shape[-1]}), got unbatched input "
                           f"with shape {tuple(input.shape)}")  # fmt: skip
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(f"linear_cross_entropy: expected linear_bias shape {tuple(weight.shape[:-1])}, got "
                           f"{tuple(bias.shape)}")  # fmt: skip
    if input.dtype != weight.dtype:
        raise RuntimeError(f"linear_cross_entropy: expected input and linear_weight to have the same dtype, but got: "
                           f"{input.dtype} != {weight.dtype}")  # fmt: skip
    if ignore_index is not None and target.dtype.is_floating_point:
        raise RuntimeError("linear_cross_entropy: ignore_index cannot be specified when target contains probabilities, "
                           f"got {ignore_index}")  # fmt: skip


@function(ns=F, autocast="lower")
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Mapping[str, Any] | None = None) -> Tensor:  # fmt: skip
    """cross_entropy(input @ linear_weight.T + linear_bias, target), without the logits in memory.

    input: (N, D) or (D,); linear_weight: (C, *, D); linear_bias: (C, *); target: classes (N, *) or probabilities
    (N, C, *) -> () or (N, *). Others as `cross_entropy`; options.batch_chunk_size: the rows computed at once.
    """
    reduction = reduction_of(reduction)
    check_tensors("linear_cross_entropy", input=input, linear_weight=linear_weight, target=target)
    check_layer(input, linear_weight, linear_bias, target, ignore_index)
    check_smoothing("linear_cross_entropy", label_smoothing)
    ignore = -100 if ignore_index is None else ignore_index
    shape = tuple(linear_weight.shape[:-1])
    if len(shape) == 1 and input.ndim == 1 and target.ndim == 0 and not target.dtype.is_floating_point:
        loss = linear_cross_entropy(
            input.unsqueeze(0),
            linear_weight,
            target.unsqueeze(0),
            linear_bias=linear_bias,
            weight=weight,
            reduction=reduction,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            options=options,
        )
        return loss.squeeze(0) if reduction == "none" else loss
    if len(shape) == 1 and input.ndim == 2 and target.ndim == 1 and not target.dtype.is_floating_point:
        check_target("linear_cross_entropy", (input.shape[0], *shape), target, weight)
        still("linear_cross_entropy", weight=weight)
        asked, smoothing = getattr(options, "batch_chunk_size", None), float(label_smoothing)
        if asked is None and shape[0] >= limits.classes:
            loss = of_unmade_logits((input, linear_weight, linear_bias), target, weight, reduction, ignore, smoothing)
            if loss is not None:
                return loss
        rows = rows_at_once(shape[0], asked)
        wide = modes.autocast is not None
        return fused_op(input, linear_weight, linear_bias, target, weight, reduction, ignore, smoothing, rows, wide)
    flat = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight.reshape(math.prod(shape), -1), flat)
    if len(shape) > 1:
        logits = logits.reshape(-1, *shape)
    return cross_entropy(logits, target, weight, None, ignore, None, reduction, label_smoothing)
