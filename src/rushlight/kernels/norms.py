"""Layer, RMS, group and batch normalisation with gradients.

float16 to float64.  For 16-bit inputs the arithmetic is float32's and so are the statistics (mean, rstd) that
go from forward to backward; outputs and gradients have their input's dtype.  Gradients not asked for by
``needs`` are None.  Weights and biases may be None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numpy import concatenate, empty

from rushlight.kernels.dispatch import (
    BLOCK,
    Array,
    agree,
    bits,
    blocks_of_rows,
    contiguous,
    is_half,
    rounded,
    rows_of,
    summed_in,
    up,
    widened,
)
from rushlight.kernels.native.signatures import exports_of_rows
from rushlight.kernels.reference import norms as reference

__all__ = [
    "batch_apply",
    "batch_norm_backward",
    "batch_norm_train",
    "batch_stats",
    "group_norm",
    "group_norm_backward",
    "layer_norm",
    "layer_norm_backward",
    "rms_norm",
    "rms_norm_backward",
]

exports_of_rows(
    # norm.cpp: arrays in, arrays out, extents
    layer_norm="aaaaaa" + "nnd",
    rms_norm="aaaa" + "nnd",
    layer_norm_backward="aaaaaaaa" + "nn",
    rms_norm_backward="aaaaaa" + "nn",
    group_norm="aaaaaa" + "nnnnd",
    group_norm_backward="aaaaaaaa" + "nnnn",
    batch_stats="aaa" + "nnn",
    batch_apply="aaaaaa" + "nnni",
    batch_norm_backward="aaaaaaaa" + "nnni",
)

Maybe = Array | None
Needs = tuple[bool, bool, bool]


def _dense(a: Maybe, features: int) -> Maybe:
    """A weight or bias as the native kernels take it: contiguous, one number a feature."""
    if a is None:
        return None
    if a.size != features:
        raise ValueError(f"normalisation: expected weights of {features} elements, got shape {a.shape}")
    return contiguous(a)


def _kernels(x: Array, *others: Maybe, g: Maybe = None) -> Any:
    """The native kernels for `x` and a gradient of its dtype, where all others are of the dtype that is computed in; else None."""
    wanted = summed_in(x.dtype)
    if g is not None and g.dtype != x.dtype:
        return None
    for a in others:
        if a is not None and a.dtype != wanted:
            return None
    return rows_of(x.dtype)


def _room(x: Array, *shapes: Any) -> list[Array]:
    """Arrays for a result like `x`, and for statistics."""
    kind = summed_in(x.dtype)
    return [empty(x.shape, x.dtype), *[empty(shape, kind) for shape in shapes]]


def _lowered(like: tuple[Maybe, ...], arrays: tuple[Maybe, ...]) -> tuple[Maybe, ...]:
    """Each array in the dtype of its partner in ``like``."""
    pairs = zip(like, arrays, strict=True)
    return tuple(a if a is None or b is None else a.astype(b.dtype, copy=False) for b, a in pairs)


def _wanted(needs: tuple[bool, ...], x: Array, features: int, over: Maybe = None) -> list[Maybe]:
    """Arrays for the gradients: one like the input, or `over`, the others one number a feature."""
    kinds = [(x.shape, x.dtype)] + [((features,), summed_in(x.dtype))] * (len(needs) - 1)
    found: list[Maybe] = [empty(*kind) if need else None for kind, need in zip(kinds[1:], needs[1:], strict=True)]
    first = over if over is not None or not needs[0] else empty(*kinds[0])
    return [first if needs[0] else None, *found]


def _given(found: list[Maybe]) -> list[Maybe]:
    """Arrays for the gradients as native code takes them: that by the input may be of 16 bits."""
    first, *others = found
    return [None if first is None else bits(first), *others]


def _wide(g: Array, x: Array, some: slice) -> tuple[Array, Array]:
    return widened(g[some]), widened(x[some])


def _backward_of_rows(
    kernel: Callable[..., Any], x: Array, weight: Maybe, needs: tuple[bool, ...]
) -> tuple[Maybe, ...]:
    """The gradients that `kernel` gives for some rows at a time: those of x side by side, those of the weights summed."""
    found = empty(x.shape, x.dtype) if needs[0] else None
    sums: list[Any] = [None] * (len(needs) - 1)
    for some in blocks_of_rows(x):
        grads = kernel(some)
        if found is not None:
            rounded(grads[0], found.dtype, found[some])
        sums = [g if total is None else total + g for total, g in zip(sums, grads[1:], strict=True)]
    return _lowered((x, *[weight] * len(sums)), (found, *sums))


def layer_norm(x: Array, weight: Maybe, bias: Maybe, eps: float) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + eps) * weight + bias by row.  x: (R, C), weight, bias: (C,).

    Returns out (R, C), mean (R,) and rstd (R,) = 1 / sqrt(var + eps).
    """
    w, b = up(weight, bias)
    table = _kernels(x, w, b)
    if table is None and not is_half(x.dtype):
        return reference.layer_norm(x, w, b, eps)
    out, mean, rstd = _room(x, len(x), len(x))
    if table is not None:
        by_feature = _dense(w, x.shape[1]), _dense(b, x.shape[1])
        table.layer_norm(bits(contiguous(x)), *by_feature, bits(out), mean, rstd, *x.shape, eps)
        return out, mean, rstd
    for some in blocks_of_rows(x):
        made, mean[some], rstd[some] = layer_norm(widened(x[some]), w, b, eps)
        rounded(made, out.dtype, out[some])
    return out, mean, rstd


def layer_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs = (True, True, True), over: bool = False
) -> tuple[Maybe, ...]:
    """Gradients of `layer_norm` by x (R, C), weight (C,) and bias (C,), from its input and statistics.

    over: whether that by x may be written over g.
    """
    agree("layer_norm", x.shape, g)
    agree("layer_norm", x.shape[:1], mean, rstd)
    w = up(weight)[0]
    table = _kernels(x, mean, rstd, w, g=g)
    if table is None and is_half(x.dtype):
        return _backward_of_rows(
            lambda some: layer_norm_backward(*_wide(g, x, some), mean[some], rstd[some], w, needs), x, weight, needs
        )
    if table is None:
        return reference.layer_norm_backward(g, x, mean, rstd, w, needs)
    rows = contiguous(g)
    out = _wanted(needs, x, x.shape[1], rows if over or rows is not g else None)
    stats = contiguous(mean), contiguous(rstd), _dense(w, x.shape[1])
    table.layer_norm_backward(bits(rows), bits(contiguous(x)), *stats, *_given(out), *x.shape)
    return _lowered((x, weight, weight), tuple(out))


def rms_norm(x: Array, weight: Maybe, eps: float) -> tuple[Array, Array]:
    """x / sqrt(mean(x^2) + eps) * weight by row.  x: (R, C).  Returns out (R, C) and rstd (R,)."""
    w = up(weight)[0]
    table = _kernels(x, w)
    if table is None and not is_half(x.dtype):
        return reference.rms_norm(x, w, eps)
    out, rstd = _room(x, len(x))
    if table is not None:
        table.rms_norm(bits(contiguous(x)), _dense(w, x.shape[1]), bits(out), rstd, *x.shape, eps)
        return out, rstd
    for some in blocks_of_rows(x):
        made, rstd[some] = rms_norm(widened(x[some]), w, eps)
        rounded(made, out.dtype, out[some])
    return out, rstd


def rms_norm_backward(
    g: Array, x: Array, rstd: Array, weight: Maybe, needs: tuple[bool, bool] = (True, True), over: bool = False
) -> tuple[Maybe, ...]:
    """Gradients of `rms_norm` by x (R, C) and weight (C,).  over: whether that by x may be written over g."""
    agree("rms_norm", x.shape, g)
    agree("rms_norm", x.shape[:1], rstd)
    w = up(weight)[0]
    table = _kernels(x, rstd, w, g=g)
    if table is None and is_half(x.dtype):
        return _backward_of_rows(
            lambda some: rms_norm_backward(*_wide(g, x, some), rstd[some], w, needs), x, weight, needs
        )
    if table is None:
        return reference.rms_norm_backward(g, x, rstd, w, needs)
    rows = contiguous(g)
    out = _wanted(needs, x, x.shape[1], rows if over or rows is not g else None)
    stats = contiguous(rstd), _dense(w, x.shape[1])
    table.rms_norm_backward(bits(rows), bits(contiguous(x)), *stats, *_given(out), *x.shape)
    return _lowered((x, weight), tuple(out))


def _planes(x: Array) -> Array:
    """(N, C, *S) as (N, C, S), contiguous."""
    return contiguous(x).reshape(x.shape[0], x.shape[1], math.prod(x.shape[2:]))


def _blocks_of_channels(x: Array) -> list[slice]:
    """The channels of (N, C, *S), some at a time, so that float32 copies of them are small."""
    some = max(BLOCK * x.shape[1] // max(x.size, 1), 1)
    return [slice(i, i + some) for i in range(0, x.shape[1] or 1, some)]


def group_norm(x: Array, groups: int, weight: Maybe, bias: Maybe, eps: float) -> tuple[Array, Array, Array]:
    """Normalisation over each group of C // groups channels.  x: (N, C, *S), weight, bias: (C,).

    Returns out (N, C, *S), mean (N, groups) and rstd (N, groups).
    """
    w, b = up(weight, bias)
    table = _kernels(x, w, b)
    if table is None and is_half(x.dtype):
        out, mean, rstd = group_norm(widened(x), groups, w, b, eps)
        return rounded(out, x.dtype), mean, rstd
    flat = _planes(x)
    n, c, s = flat.shape
    if table is None:
        out, mean, rstd = reference.group_norm(flat, groups, w, b, eps)
        return out.reshape(x.shape), mean, rstd
    out, mean, rstd = _room(x, (n, groups), (n, groups))
    each = c // max(groups, 1)
    table.group_norm(bits(flat), _dense(w, c), _dense(b, c), bits(out), mean, rstd, n, groups, each, s, eps)
    return out, mean, rstd


def group_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs = (True, True, True)
) -> tuple[Maybe, ...]:
    """Gradients of `group_norm` by x (N, C, *S), weight (C,) and bias (C,)."""
    agree("group_norm", x.shape, g)
    agree("group_norm", (len(x), mean.shape[1]), mean, rstd)
    w = up(weight)[0]
    table = _kernels(x, mean, rstd, w, g=g)
    if table is None and is_half(x.dtype):
        d, wide = up(g, x)
        return _lowered((x, weight, weight), group_norm_backward(d, wide, mean, rstd, w, needs))
    flat, d = _planes(x), _planes(g)
    n, c, s = flat.shape
    if table is None:
        gx, gw, gb = reference.group_norm_backward(d, flat, mean, rstd, w, needs)
        return gx if gx is None else gx.reshape(x.shape), gw, gb
    out, groups = _wanted(needs, x, c), mean.shape[1]
    stats = contiguous(mean), contiguous(rstd), _dense(w, c)
    table.group_norm_backward(bits(d), bits(flat), *stats, *_given(out), n, groups, c // max(groups, 1), s)
    return _lowered((x, weight, weight), tuple(out))


def batch_stats(x: Array) -> tuple[Array, Array]:
    """Mean (C,) and biased variance (C,) by channel.  x: (N, C, *S); float32 results for 16-bit inputs."""
    flat, table = _planes(x), _kernels(x)
    if table is None and is_half(x.dtype):
        parts = [batch_stats(widened(flat[:, some])) for some in _blocks_of_channels(flat)]
        return concatenate([mean for mean, _ in parts]), concatenate([var for _, var in parts])
    if table is None:
        return reference.batch_stats(flat)
    mean, var = (empty(x.shape[1], summed_in(x.dtype)) for _ in range(2))
    table.batch_stats(bits(flat), mean, var, *flat.shape)
    return mean, var


def batch_apply(x: Array, mean: Array, rstd: Array, weight: Maybe, bias: Maybe, positive: bool = False) -> Array:
    """(x - mean) * rstd * weight + bias by channel, and 0 where that is below if `positive`.  x: (N, C, *S), the others (C,)."""
    m, r, w, b = up(mean, rstd, weight, bias)
    table = _kernels(x, m, r, w, b)
    if table is None and is_half(x.dtype):
        return _apply_to_channels(x, m, r, w, b, positive)
    flat = _planes(x)
    if table is None:
        return reference.batch_apply(flat, m, r, w, b, positive).reshape(x.shape)
    out = empty(x.shape, x.dtype) if x.flags.c_contiguous else flat.reshape(x.shape)  # over a copy that nobody else has
    by_channel = contiguous(m), contiguous(r), _dense(w, x.shape[1]), _dense(b, x.shape[1])
    table.batch_apply(bits(flat), *by_channel, bits(out), *flat.shape, positive)
    return out


def _apply_to_channels(x: Array, mean: Array, rstd: Array, weight: Maybe, bias: Maybe, positive: bool) -> Array:
    """`batch_apply` of 16 bits, some channels at a time in float32."""
    found = empty(x.shape, x.dtype)
    for some in _blocks_of_channels(x):
        w, b = (None if a is None else a[some] for a in (weight, bias))
        made = batch_apply(widened(x[:, some]), mean[some], rstd[some], w, b, positive)
        rounded(made, found.dtype, found[:, some])
    return found


def batch_norm_train(x: Array, weight: Maybe, bias: Maybe, eps: float) -> tuple[Array, Array, Array]:
    """Batch norm with the batch's own statistics.  x: (N, C, *S), weight, bias: (C,).

    Returns out (N, C, *S), mean (C,) and rstd (C,).  Who needs the variance itself (running statistics) calls
    `batch_stats` and `batch_apply`, which this does.
    """
    mean, var = batch_stats(x)
    rstd = 1 / (var + var.dtype.type(eps)) ** 0.5
    return batch_apply(x, mean, rstd, weight, bias), mean, rstd


def batch_norm_backward(
    g: Array,
    x: Array,
    mean: Array,
    rstd: Array,
    weight: Maybe,
    needs: Needs = (True, True, True),
    training: bool = True,
) -> tuple[Maybe, ...]:
    """Gradients of batch norm by x (N, C, *S), weight (C,) and bias (C,).

    With ``training`` mean and rstd are the batch's and depend on x, otherwise they are constants.
    """
    agree("batch_norm", x.shape, g)
    agree("batch_norm", x.shape[1:2], mean, rstd)
    w = up(weight)[0]
    table = _kernels(x, mean, rstd, w, g=g)
    if table is None and is_half(x.dtype):
        return _lowered((x, weight, weight), _backward_of_channels(g, x, mean, rstd, w, needs, training))
    flat, d = _planes(x), _planes(g)
    if table is None:
        gx, gw, gb = reference.batch_norm_backward(d, flat, mean, rstd, w, needs, training)
        return gx if gx is None else gx.reshape(x.shape), gw, gb
    out = _wanted(needs, x, x.shape[1])
    stats = contiguous(mean), contiguous(rstd), _dense(w, x.shape[1])
    table.batch_norm_backward(bits(d), bits(flat), *stats, *_given(out), *flat.shape, int(training))
    return _lowered((x, weight, weight), tuple(out))


def _backward_of_channels(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs, training: bool
) -> tuple[Maybe, ...]:
    """`batch_norm_backward` of 16 bits, some channels at a time in float32."""
    found = _wanted(needs, x, x.shape[1])
    for some in _blocks_of_channels(x):
        m, r, w = mean[some], rstd[some], None if weight is None else weight[some]
        wide = widened(g[:, some]), widened(x[:, some])
        for i, part in enumerate(batch_norm_backward(*wide, m, r, w, needs, training)):
            target = found[i]
            if target is not None:
                target[(slice(None), some) if i == 0 else some] = part
    return tuple(found)
