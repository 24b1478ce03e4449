"""Layer, RMS, group and batch normalisation with gradients, in NumPy.  See ``kernels.norms``."""

from __future__ import annotations

import math

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import summed

Maybe = Array | None
Needs = tuple[bool, bool, bool]


def _rstd(variance: Array, eps: float) -> Array:
    return np.asarray(1 / np.sqrt(variance + variance.dtype.type(eps)))


def _finish(out: Array, weight: Maybe, bias: Maybe) -> Array:
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out


RUN = 8192  # elements added up in their own precision before the sum goes on in float64


def _dots(a: Array, b: Array) -> Array:
    """Sums of a * b over the last dimension, without an array of the products.  (*, C), (*, C) -> (*)"""
    if a.shape[-1] <= RUN:
        return summed("...c,...c->...", a, b)
    total = np.zeros(a.shape[:-1])
    for at in range(0, a.shape[-1], RUN):
        total += summed("...c,...c->...", a[..., at : at + RUN], b[..., at : at + RUN])
    return total.astype(a.dtype)


EPSILON = {np.dtype(c): float(np.finfo(c).eps) for c in (np.float16, np.float32, np.float64)}


def beside_mean(squares: Array, mean: Array, n: int) -> bool:
    """Whether n deviations from a mean, their squares summed, are lost beside it: a constant is to have no variance."""
    return bool((np.sqrt(squares) < np.abs(mean) * math.sqrt(n * EPSILON[squares.dtype])).any())


def _centred(x: Array, mean: Array) -> tuple[Array, Array]:
    """Deviations from the mean over the last dimension, and their squares summed.  (*, C), (*) -> (*, C), (*)

    Makes `mean` exact where the deviations are lost beside it: a constant is to have no variance, though its mean is rounded.
    """
    out = x - mean[..., None]
    squares = _dots(out, out)
    if beside_mean(squares, mean, x.shape[-1]):
        mean += out.sum(axis=-1) / x.shape[-1]
        out = x - mean[..., None]
        squares = _dots(out, out)
    return out, squares


def layer_norm(x: Array, weight: Maybe, bias: Maybe, eps: float) -> tuple[Array, Array, Array]:
    mean = x.sum(axis=1) / x.shape[1]  # as x.mean is computed, which warns of rows without elements
    out, squares = _centred(x, mean)
    rstd = _rstd(squares / x.shape[1], eps)
    out *= rstd[:, None]
    return _finish(out, weight, bias), mean, rstd


def rms_norm(x: Array, weight: Maybe, eps: float) -> tuple[Array, Array]:
    rstd = _rstd(_dots(x, x) / x.shape[1], eps)
    return _finish(x * rstd[:, None], weight, None), rstd


def _row_input(g: Array, hat: Array, rstd: Array, weight: Maybe, center: bool) -> Array:
    d = g if weight is None else g * weight
    out = d - hat * (_dots(d, hat) / g.shape[1])[:, None]
    if center:
        out -= (d.sum(axis=1) / d.shape[1])[:, None]
    out *= rstd[:, None]
    return out


def layer_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs
) -> tuple[Maybe, Maybe, Maybe]:
    hat = (x - mean[:, None]) * rstd[:, None]
    gx = _row_input(g, hat, rstd, weight, True) if needs[0] else None
    return gx, summed("rc,rc->c", g, hat) if needs[1] else None, g.sum(axis=0) if needs[2] else None


def rms_norm_backward(g: Array, x: Array, rstd: Array, weight: Maybe, needs: tuple[bool, bool]) -> tuple[Maybe, Maybe]:
    hat = x * rstd[:, None]
    gx = _row_input(g, hat, rstd, weight, False) if needs[0] else None
    return gx, summed("rc,rc->c", g, hat) if needs[1] else None


def group_norm(x: Array, groups: int, weight: Maybe, bias: Maybe, eps: float) -> tuple[Array, Array, Array]:
    n, c, s = x.shape
    rows = x.reshape(n, groups, c // groups * s)
    mean = rows.mean(axis=2)
    out, squares = _centred(rows, mean)
    rstd = _rstd(squares / rows.shape[2], eps)
    out *= rstd[:, :, None]
    column = [a if a is None else a[:, None] for a in (weight, bias)]
    return _finish(out.reshape(n, c, s), *column), mean, rstd


def group_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs
) -> tuple[Maybe, Maybe, Maybe]:
    n, c, s = x.shape
    groups = mean.shape[1]
    hat = (x.reshape(n, groups, -1) - mean[:, :, None]) * rstd[:, :, None]
    gx = None
    if needs[0]:
        d = (g if weight is None else g * weight[:, None]).reshape(n, groups, -1)
        gx = d - hat * (_dots(d, hat) / d.shape[2])[:, :, None]
        gx -= d.mean(axis=2, keepdims=True)
        gx *= rstd[:, :, None]
        gx = gx.reshape(n, c, s)
    gw = _dots(g, hat.reshape(n, c, s)).sum(axis=0) if needs[1] else None
    return gx, gw, g.sum(axis=(0, 2)) if needs[2] else None


def batch_stats(x: Array) -> tuple[Array, Array]:
    count = x.shape[0] * x.shape[2]
    mean = x.mean(axis=(0, 2))
    squares = _squares(x, mean)
    if beside_mean(squares, mean, count):
        mean += (x - mean[:, None]).sum(axis=(0, 2)) / count
        squares = _squares(x, mean)
    return mean, squares / count


def _squares(x: Array, mean: Array) -> Array:
    """Squared deviations from the mean of each channel, summed.  (N, C, S), (C) -> (C)"""
    d = x - mean[:, None]
    return _dots(d, d).sum(axis=0, dtype=np.float64).astype(d.dtype)


def batch_apply(x: Array, mean: Array, rstd: Array, weight: Maybe, bias: Maybe, positive: bool = False) -> Array:
    out = x - mean[:, None]
    out *= (rstd if weight is None else rstd * weight)[:, None]
    if bias is not None:
        out += bias[:, None]
    return np.maximum(out, 0, out=out) if positive else out


def batch_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Maybe, needs: Needs, training: bool
) -> tuple[Maybe, Maybe, Maybe]:
    count = x.shape[0] * x.shape[2]
    hat = (x - mean[:, None]) * rstd[:, None]
    plain, dot = g.sum(axis=(0, 2)), _dots(g, hat).sum(axis=0)
    gx = None
    if needs[0]:
        scale = (rstd if weight is None else rstd * weight)[:, None]
        if training:
            hat *= -(dot / count)[:, None]
            hat += g
            hat -= (plain / count)[:, None]
            gx = np.multiply(hat, scale, out=hat)
        else:
            gx = g * scale
    return gx, dot if needs[1] else None, plain if needs[2] else None
