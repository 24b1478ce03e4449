"""Rows added by index, elements at points of a grid, cross entropy from logits, dropout, in NumPy.  See ``kernels.gather``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import is_half, widened
from rushlight.kernels.reference import keys

BLOCK = 65536


def index_join_slices(dst: Array, idx: Array, src: Array, how: str) -> None:
    join = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[how]
    for i, row in enumerate(idx):
        join(dst[:, row], src[:, i], out=dst[:, row])


def index_add_rows(dst: Array, idx: Array, src: Array) -> None:
    # sorted by row, so that one reduceat adds the repeats; then each row is written once
    if not idx.size:
        return
    order = np.argsort(idx, kind="stable")
    rows, starts = np.unique(idx[order], return_index=True)
    dst[rows] += np.add.reduceat(src[order], starts, axis=0, dtype=src.dtype)


def cross_entropy(
    x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float
) -> tuple[Array, Array, Array]:
    with np.errstate(all="ignore"):
        top = np.fmax.reduce(x, axis=1, initial=-np.inf)
        rest = x - top[:, None]  # first: beside a large top the logarithm would lose its digits
        sums = np.asarray(np.exp(rest).sum(axis=1))
        log_sum = np.log(sums)
        ignored = target == ignore_index
        safe = np.where(ignored, 0, target)
        loss = np.asarray(log_sum - np.take_along_axis(rest, safe[:, None], axis=1)[:, 0])
        if weight is not None:
            loss *= weight[safe]
        if smoothing:
            spread = log_sum[:, None] - rest
            total = spread.sum(axis=1) if weight is None else spread @ weight
            loss = (1 - smoothing) * loss + smoothing / x.shape[1] * total
    loss = np.where(ignored, x.dtype.type(0), loss)
    count = np.count_nonzero(~ignored) if weight is None else weight[target[~ignored]].sum(dtype=np.float64)
    return loss, np.stack([top, sums], 1), np.array([loss.sum(dtype=np.float64), count])


def cross_entropy_backward(
    g: Array,
    x: Array,
    denominator: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int,
    smoothing: float,
    out: Array | None,
) -> Array:
    classes = x.shape[1]
    ignored = target == ignore_index
    safe = np.where(ignored, 0, target)
    direct = np.where(ignored, x.dtype.type(0), g) * (1 - smoothing)
    if weight is not None:
        direct = direct * weight[safe]
    spread = np.where(ignored, x.dtype.type(0), g) * (smoothing / classes)
    total = classes if weight is None else weight.sum() if smoothing else 0  # else other classes' weights have no part
    with np.errstate(all="ignore"):
        out = np.subtract(x, denominator[:, :1], out=out)
        np.exp(out, out=out)
        out *= ((direct + spread * total) / denominator[:, 1])[:, None]
    if smoothing:
        out -= spread[:, None] if weight is None else spread[:, None] * weight
    out[np.arange(len(out)), safe] -= direct
    out[ignored] = 0
    return out


def scale_by_bits(x: Array, bits: Array, scale: float) -> Array:
    """x * scale where the bit is set, x * 0 elsewhere.  x: contiguous."""
    out = np.empty_like(x)
    flat, target = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, BLOCK):
        stop = min(start + BLOCK, x.size)
        keep = np.unpackbits(bits[start // 8 : (stop + 7) // 8], count=stop - start, bitorder="little")
        some = widened(flat[start:stop]) if is_half(x.dtype) else flat[start:stop]
        target[start:stop] = some * (keep * some.dtype.type(scale))
    return out


How = tuple[str, str, bool]
Tap = tuple[Array, Array, Array]  # where an element lies in a dimension, its weight there, and how that changes


def _cubics(t: Array) -> Iterator[tuple[Array, Array]]:
    """The weights of four neighbours at a fraction of the way from the second to the third, and how they change."""
    a = -0.75
    for x, sign in ((t + 1, 1), (t, 1), (1 - t, -1), (2 - t, -1)):
        far = x > 1
        weight = np.where(far, keys.far(x, a), keys.near(x, a))
        slope = np.where(far, keys.far_slope(x, a), keys.near_slope(x, a))
        yield weight.astype(t.dtype), (sign * slope).astype(t.dtype)


def _moved(at: Array, size: int, padding: str, align: bool) -> Array:
    """Elements of a dimension, those outside moved inside."""
    if padding == "reflection":
        low, span = (0.0, size - 1) if align else (-0.5, size)
        away = abs(at - low)
        turns = np.floor(away / max(span, 1))
        rest = away - turns * span
        at = np.where(turns % 2 == 0, rest, span - rest) + low if span else at * 0
    return at if padding == "zeros" else np.nan_to_num(at.clip(0, size - 1))


def _taps(x: Array, size: int, how: How) -> list[Tap]:
    mode, padding, align = how
    one, base = np.ones_like(x), np.rint(x) if mode == "nearest" else np.floor(x)
    if mode == "nearest":
        return [(base, one, 0 * one)]
    if mode == "bilinear":
        return [(base, base + 1 - x, -one), (base + 1, x - base, one)]
    return [(_moved(base + i - 1, size, padding, align), *w) for i, w in enumerate(_cubics(x - base))]


def taps(where: Array, spatial: tuple[int, ...], how: How) -> Iterator[tuple[Array, Array, list[Array], list[Array]]]:
    """Of elements around points (D, N, L): places in a plane, whether they lie in it, weights by dimension and their slopes, each (N, L)."""
    for each in itertools.product(*(_taps(x, size, how) for x, size in zip(where, spatial, strict=True))):
        places: Any = 0
        inside: Any = True
        for (i, _, _), size in zip(each, spatial, strict=True):
            inside = inside & (i >= 0) & (i < size)  # of NaN too
            places = places * size + np.where((i >= 0) & (i < size), i, 0).astype(np.int64)
        yield places, inside, [w for _, w, _ in each], [s for _, _, s in each]


def _at(x: Array, places: Array, inside: Array) -> Array:
    """Elements of planes (N, C, *S) at places (N, L), 0 where these are not inside.  -> (N, C, L)"""
    values = np.take_along_axis(x.reshape(*x.shape[:2], math.prod(x.shape[2:])), places[:, None], 2)
    return np.where(inside[:, None], values, np.zeros((), x.dtype))


def grid_sample(x: Array, where: Array, how: How) -> Array:
    out = np.zeros((*x.shape[:2], where.shape[2]), x.dtype)
    for places, inside, weights, _ in taps(where, x.shape[2:], how):
        out += _at(x, places, inside) * np.prod(weights, axis=0)[:, None]
    return out


def grid_sample_backward(
    g: Array, x: Array | None, where: Array, shape: tuple[int, ...], needs: tuple[bool, bool], how: How
) -> tuple[Array | None, Array | None]:
    of_x = np.zeros((*shape[:2], math.prod(shape[2:])), g.dtype) if needs[0] else None
    of_where = np.zeros(where.shape, g.dtype) if needs[1] else None
    images, channels = np.ogrid[: shape[0], : shape[1]]
    for places, inside, weights, slopes in taps(where, shape[2:], how):
        if of_x is not None:
            kept = np.where(inside[:, None], g * np.prod(weights, axis=0)[:, None], 0)
            np.add.at(of_x, (images[..., None], channels[..., None], places[:, None]), kept)
        if of_where is not None and x is not None:
            total = (g * _at(x, places, inside)).sum(1)
            for d, slope in enumerate(slopes):
                of_where[d] += slope * total * math.prod(weights[:d] + weights[d + 1 :])
    return None if of_x is None else of_x.reshape(shape), of_where
