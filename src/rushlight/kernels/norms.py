"""Layer, RMS, group and batch normalisation with gradients.

float16 to float64.  For 16-bit inputs the arithmetic is float32's and so are the statistics (mean, rstd) that
go from forward to backward; outputs and gradients have their input's dtype.  Gradients not asked for by
``needs`` are None.  Weights and biases may be None.
"""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numpy import concatenate, empty

from rushlight.kernels.dispatch import (
    BLOCK,
    FLOAT32,
    Array,
    agree,
    blocks_of_rows,
    contiguous,
    is_half,
    native,
    rounded,
    up,
    widened,
)
from rushlight.kernels.native.signatures import exports
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

exports(
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


def _one_dtype(x: Array, *others: Maybe) -> bool:
    return all(a is None or a.dtype == x.dtype for a in others)


def _lowered(like: tuple[Maybe, ...], arrays: tuple[Maybe, ...]) -> tuple[Maybe, ...]:
    """Each array in the dtype of its partner in ``like``."""
    pairs = zip(like, arrays, strict=True)
    return tuple(a if a is None or b is None else a.astype(b.dtype, copy=False) for b, a in pairs)


def _wanted(needs: tuple[bool, ...], x: Array, features: int) -> list[Maybe]:
    """Arrays for the gradients: one like the input, the others one number a feature."""
    shapes = [x.shape] + [(features,)] * (len(needs) - 1)
    return [empty(shape, x.dtype) if need else None for shape, need in zip(shapes, needs, strict=True)]


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
    if is_half(x.dtype):
        w, b = up(weight, bias)
        out, mean, rstd = empty(x.shape, x.dtype), empty(len(x), FLOAT32), empty(len(x), FLOAT32)
        for some in blocks_of_rows(x):
            made, mean[some], rstd[some] = layer_norm(widened(x[some]), w, b, eps)
            rounded(made, out.dtype, out[some])
        return out, mean, rstd
    table = native(x.dtype)
    if table is None or not _one_dtype(x, weight, bias):
        w, b = up(weight, bias)
        return reference.layer_norm(x, w, b, eps)
    rows, features = x.shape
    out, mean, rstd = empty(x.shape, x.dtype), empty(rows, x.dtype), empty(rows, x.dtype)
    table.layer_norm(
        contiguous(x), _dense(weight, x.shape[1]), _dense(bias, x.shape[1]), out, mean, rstd, rows, features, eps
    )
    return out, mean, rstd


def layer_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs = (True, True, True)
) -> tuple[Maybe, ...]:
    """Gradients of :func:`layer_norm` by x (R, C), weight (C,) and bias (C,), from its input and statistics."""
    agree("layer_norm", x.shape, g)
    agree("layer_norm", x.shape[:1], mean, rstd)
    if is_half(x.dtype):
        w = up(weight)[0]
        return _backward_of_rows(
            lambda some: layer_norm_backward(*_wide(g, x, some), mean[some], rstd[some], w, needs), x, weight, needs
        )
    table = native(x.dtype)
    if table is None or not _one_dtype(x, g, mean, rstd, weight):
        return reference.layer_norm_backward(g, x, mean, rstd, weight, needs)
    out = _wanted(needs, x, x.shape[1])
    stats = contiguous(mean), contiguous(rstd)
    table.layer_norm_backward(contiguous(g), contiguous(x), *stats, _dense(weight, x.shape[1]), *out, *x.shape)
    return tuple(out)


def rms_norm(x: Array, weight: Maybe, eps: float) -> tuple[Array, Array]:
    """x / sqrt(mean(x^2) + eps) * weight by row.  x: (R, C).  Returns out (R, C) and rstd (R,)."""
    if is_half(x.dtype):
        w, out, rstd = up(weight)[0], empty(x.shape, x.dtype), empty(len(x), FLOAT32)
        for some in blocks_of_rows(x):
            made, rstd[some] = rms_norm(widened(x[some]), w, eps)
            rounded(made, out.dtype, out[some])
        return out, rstd
    table = native(x.dtype)
    if table is None or not _one_dtype(x, weight):
        return reference.rms_norm(x, up(weight)[0], eps)
    out, rstd = empty(x.shape, x.dtype), empty(x.shape[0], x.dtype)
    table.rms_norm(contiguous(x), _dense(weight, x.shape[1]), out, rstd, *x.shape, eps)
    return out, rstd


def rms_norm_backward(
    g: Array, x: Array, rstd: Array, weight: Maybe, needs: tuple[bool, bool] = (True, True)
) -> tuple[Maybe, ...]:
    """Gradients of :func:`rms_norm` by x (R, C) and weight (C,)."""
    agree("rms_norm", x.shape, g)
    agree("rms_norm", x.shape[:1], rstd)
    if is_half(x.dtype):
        w = up(weight)[0]
        return _backward_of_rows(
            lambda some: rms_norm_backward(*_wide(g, x, some), rstd[some], w, needs), x, weight, needs
        )
    table = native(x.dtype)
    if table is None or not _one_dtype(x, g, rstd, weight):
        return reference.rms_norm_backward(g, x, rstd, weight, needs)
    out = _wanted(needs, x, x.shape[1])
    table.rms_norm_backward(contiguous(g), contiguous(x), contiguous(rstd), _dense(weight, x.shape[1]), *out, *x.shape)
    return tuple(out)


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
    if is_half(x.dtype):
        wide, w, b = up(x, weight, bias)
        out, mean, rstd = group_norm(wide, groups, w, b, eps)
        return rounded(out, x.dtype), mean, rstd
    table = native(x.dtype)
    flat = _planes(x)
    n, c, s = flat.shape
    if table is None or not _one_dtype(x, weight, bias):
        out, mean, rstd = reference.group_norm(flat, groups, weight, bias, eps)
        return out.reshape(x.shape), mean, rstd
    out, mean, rstd = empty(x.shape, x.dtype), empty((n, groups), x.dtype), empty((n, groups), x.dtype)
    table.group_norm(
        flat, _dense(weight, x.shape[1]), _dense(bias, x.shape[1]), out, mean, rstd, n, groups, c // groups, s, eps
    )
    return out, mean, rstd


def group_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs = (True, True, True)
) -> tuple[Maybe, ...]:
    """Gradients of :func:`group_norm` by x (N, C, *S), weight (C,) and bias (C,)."""
    agree("group_norm", x.shape, g)
    agree("group_norm", (len(x), mean.shape[1]), mean, rstd)
    if is_half(x.dtype):
        d, wide, w = up(g, x, weight)
        return _lowered((x, weight, weight), group_norm_backward(d, wide, mean, rstd, w, needs))
    table = native(x.dtype)
    flat, d = _planes(x), _planes(g)
    n, c, s = flat.shape
    if table is None or not _one_dtype(x, g, mean, rstd, weight):
        gx, gw, gb = reference.group_norm_backward(d, flat, mean, rstd, weight, needs)
        return gx if gx is None else gx.reshape(x.shape), gw, gb
    out = _wanted(needs, x, c)
    groups = mean.shape[1]
    stats = contiguous(mean), contiguous(rstd), _dense(weight, x.shape[1])
    table.group_norm_backward(d, flat, *stats, *out, n, groups, c // groups, s)
    return tuple(out)


def batch_stats(x: Array) -> tuple[Array, Array]:
    """Mean (C,) and biased variance (C,) by channel.  x: (N, C, *S); float32 results for 16-bit inputs."""
    flat = _planes(x)
    if is_half(x.dtype):
        parts = [batch_stats(widened(flat[:, some])) for some in _blocks_of_channels(flat)]
        return concatenate([mean for mean, _ in parts]), concatenate([var for _, var in parts])
    table = native(flat.dtype)
    if table is None:
        return reference.batch_stats(flat)
    mean, var = empty(x.shape[1], flat.dtype), empty(x.shape[1], flat.dtype)
    table.batch_stats(flat, mean, var, *flat.shape)
    return mean, var


def batch_apply(x: Array, mean: Array, rstd: Array, weight: Maybe, bias: Maybe, positive: bool = False) -> Array:
    """(x - mean) * rstd * weight + bias by channel, and 0 where that is below if `positive`.  x: (N, C, *S), the others (C,)."""
    if is_half(x.dtype):
        found, (w, b) = empty(x.shape, x.dtype), up(weight, bias)
        for some in _blocks_of_channels(x):
            w_some, b_some = (None if a is None else a[some] for a in (w, b))
            mean_some, rstd_some = up(mean[some], rstd[some])
            made = batch_apply(widened(x[:, some]), mean_some, rstd_some, w_some, b_some, positive)
            rounded(made, found.dtype, found[:, some])
        return found
    flat = _planes(x)
    table = native(x.dtype)
    if table is None or not _one_dtype(x, mean, rstd, weight, bias):
        return reference.batch_apply(flat, mean, rstd, weight, bias, positive).reshape(x.shape)
    out = empty(x.shape, x.dtype)
    by_channel = contiguous(mean), contiguous(rstd), _dense(weight, x.shape[1]), _dense(bias, x.shape[1])
    table.batch_apply(flat, *by_channel, out, *flat.shape, positive)
    return out


def batch_norm_train(x: Array, weight: Maybe, bias: Maybe, eps: float) -> tuple[Array, Array, Array]:
    """Batch norm with the batch's own statistics.  x: (N, C, *S), weight, bias: (C,).

    Returns out (N, C, *S), mean (C,) and rstd (C,).  Who needs the variance itself (running statistics) calls
    :func:`batch_stats` and :func:`batch_apply`, which this does.
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
    if is_half(x.dtype):
        found = _wanted(needs, x, x.shape[1])
        for some in _blocks_of_channels(x):
            m, r, w = mean[some], rstd[some], None if weight is None else up(weight)[0][some]
            wide = widened(g[:, some]), widened(x[:, some])
            for i, part in enumerate(batch_norm_backward(*wide, m, r, w, needs, training)):
                target = found[i]
                if target is not None:
                    target[(slice(None), some) if i == 0 else some] = part
        return _lowered((x, weight, weight), tuple(found))
    flat, d = _planes(x), _planes(g)
    table = native(x.dtype)
    if table is None or not _one_dtype(x, g, mean, rstd, weight):
        gx, gw, gb = reference.batch_norm_backward(d, flat, mean, rstd, weight, needs, training)
        return gx if gx is None else gx.reshape(x.shape), gw, gb
    out = _wanted(needs, x, x.shape[1])
    stats = contiguous(mean), contiguous(rstd), _dense(weight, x.shape[1])
    table.batch_norm_backward(d, flat, *stats, *out, *flat.shape, int(training))
    return tuple(out)
