"""Sliding windows over arrays (N, C, *S): columns, convolutions and pools in plain NumPy.

Legend: N images, C channels, S spatial sizes, K kernel sizes, L output positions, G groups.
A geometry is (kernel, stride, padding, dilation), each a tuple with an entry for each spatial dimension.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array

Sizes = tuple[int, ...]
Geometry = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def out_sizes(spatial: tuple[int, ...], geometry: Geometry) -> tuple[int, ...]:
    """Output sizes of a window that slides over sizes `spatial`."""
    return tuple((s + 2 * p - d * (k - 1) - 1) // st + 1 for s, k, st, p, d in zip(spatial, *geometry, strict=True))


def offsets(geometry: Geometry) -> Iterable[Sizes]:
    """For each kernel position, in C order, its shift in each dimension, dilation included."""
    kernel, _, _, dilation = geometry
    return itertools.product(*[[d * i for i in range(k)] for k, d in zip(kernel, dilation, strict=True)])


def inside(padding: Sizes, spatial: Sizes) -> tuple[Any, ...]:
    """The index of what lies within `padding`, of spatial sizes `spatial`, in an array (..., *S)."""
    return (..., *(slice(p, p + s) for p, s in zip(padding, spatial, strict=True)))


def padded(x: Array, padding: tuple[int, ...], value: float | np.generic = 0) -> Array:
    """x (..., *S) with `padding` on both sides of each of the last dimensions."""
    if not any(padding):
        return x
    lead = x.ndim - len(padding)
    shape = (*x.shape[:lead], *(s + 2 * p for s, p in zip(x.shape[lead:], padding, strict=True)))
    out = np.full(shape, value, x.dtype)
    out[inside(padding, x.shape[lead:])] = x
    return out


def shifted(x: Array, shift: tuple[int, ...], out: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    """The view of padded `x` (..., *S) that window element `shift` sees: (..., *out)."""
    seen: Any = (..., *(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(shift, out, stride, strict=True)))
    return x[seen]


def columns(x: Array, geometry: Geometry, out: tuple[int, ...], buffer: Array) -> Array:
    """Windows of one image x (C, *S), already padded, copied to buffer (C * K, L)."""
    kernel, stride, _, _ = geometry
    cells = buffer.reshape(x.shape[0], math.prod(kernel), *out)
    for i, shift in enumerate(offsets(geometry)):
        cells[:, i] = shifted(x, shift, out, stride)
    return buffer


def add_columns(cols: Array, geometry: Geometry, out: tuple[int, ...], x: Array) -> None:
    """Add columns (C * K, L) to the places of padded x (C, *S) that they were copied from: the adjoint of `columns`."""
    kernel, stride, _, _ = geometry
    cells = cols.reshape(x.shape[0], math.prod(kernel), *out)
    for i, shift in enumerate(offsets(geometry)):
        view = shifted(x, shift, out, stride)
        view += cells[:, i]


def im2col(x: Array, geometry: Geometry) -> Array:
    """Windows as columns.  x: (N, C, *S) -> (N, C * K, L)"""
    out = out_sizes(x.shape[2:], geometry)
    y = np.empty((x.shape[0], x.shape[1] * math.prod(geometry[0]), math.prod(out)), x.dtype)
    for n in range(x.shape[0]):
        columns(padded(x[n], geometry[2]), geometry, out, y[n])
    return y


def col2im(y: Array, shape: Sizes, geometry: Geometry) -> Array:
    """The adjoint of `im2col`: y (N, C * K, L) added at the places of windows: shape (N, C, *S)"""
    out, padding = out_sizes(shape[2:], geometry), geometry[2]
    wide = np.zeros((*shape[:2], *(s + 2 * p for s, p in zip(shape[2:], padding, strict=True))), y.dtype)
    for n in range(shape[0]):
        add_columns(np.ascontiguousarray(y[n]), geometry, out, wide[n])
    return np.ascontiguousarray(wide[inside(padding, shape[2:])])


def is_pointwise(geometry: Geometry) -> bool:
    """Whether columns are the image itself."""
    kernel, stride, padding, _ = geometry
    return all(k == 1 for k in kernel) and all(s == 1 for s in stride) and not any(padding)


def conv(x: Array, w: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """Cross-correlation.  x: (N, C, *S), w: (O, C/G, *K) -> (N, O, *L)"""
    geometry = (tuple(w.shape[2:]), tuple(stride), tuple(padding), tuple(dilation))
    out, o = out_sizes(x.shape[2:], geometry), w.shape[0]
    y = np.empty((x.shape[0], o, *out), x.dtype)
    w2 = np.ascontiguousarray(w).reshape(groups, o // groups, -1)
    length, rows = math.prod(out), w2.shape[2] * groups
    direct = is_pointwise(geometry) and x.flags.c_contiguous
    buffer = np.empty((0 if direct else rows, length), x.dtype)
    for n in range(x.shape[0]):
        cols = x[n] if direct else columns(padded(x[n], geometry[2]), geometry, out, buffer)
        np.matmul(w2, cols.reshape(groups, -1, length), out=y[n].reshape(groups, -1, length))
    return y


def conv_input(g: Array, w: Array, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """The adjoint of `conv` in x.  g: (N, O, *L), w: (O, C/G, *K) -> shape (N, C, *S)"""
    geometry = (tuple(w.shape[2:]), tuple(stride), tuple(padding), tuple(dilation))
    out, n_images, channels = tuple(g.shape[2:]), g.shape[0], shape[1]
    w2 = np.ascontiguousarray(w).reshape(groups, w.shape[0] // groups, -1).transpose(0, 2, 1)
    length = math.prod(out)
    x = np.empty(tuple(shape), g.dtype)
    direct = is_pointwise(geometry) and out == tuple(shape[2:])  # output_padding leaves a rim that no window reaches
    wide = tuple(s + 2 * p for s, p in zip(shape[2:], padding, strict=True))
    inner = inside(padding, shape[2:])
    buffer = np.empty((groups, w2.shape[1], length), g.dtype)
    for n in range(n_images):
        gn = np.ascontiguousarray(g[n]).reshape(groups, -1, length)
        if direct:
            np.matmul(w2, gn, out=x[n].reshape(groups, -1, length))
            continue
        np.matmul(w2, gn, out=buffer)
        whole = np.zeros((channels, *wide), g.dtype)
        add_columns(buffer.reshape(-1, length), geometry, out, whole)
        x[n] = whole[inner]
    return x


def conv_weight(g: Array, x: Array, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """The adjoint of `conv` in w.  g: (N, O, *L), x: (N, C, *S) -> shape (O, C/G, *K)"""
    geometry = (tuple(shape[2:]), tuple(stride), tuple(padding), tuple(dilation))
    out, length = tuple(g.shape[2:]), math.prod(g.shape[2:])
    rows = math.prod(shape[1:])
    total = np.zeros((groups, shape[0] // groups, rows), g.dtype)
    part = np.empty_like(total)
    direct = is_pointwise(geometry) and x.flags.c_contiguous and g.shape[2:] == x.shape[2:]
    buffer = np.empty((0 if direct else rows * groups, length), x.dtype)
    for n in range(x.shape[0]):
        cols = x[n] if direct else columns(padded(x[n], geometry[2]), geometry, out, buffer)
        gn = np.ascontiguousarray(g[n]).reshape(groups, -1, length)
        np.matmul(gn, cols.reshape(groups, rows, length).transpose(0, 2, 1), out=part)
        total += part
    return total.reshape(tuple(shape))


def max_pool(x: Array, geometry: Geometry, out: tuple[int, ...], lowest: float | np.generic) -> tuple[Array, Array]:
    """Maxima of windows of x (..., *S), and which window element each is: both (..., *out).

    `out` may reach beyond the padded input (ceil mode); NaN wins; of equal elements the first.
    """
    kernel, stride, _, _ = geometry
    x = reaching(x, geometry, out, lowest)
    best = np.full((*x.shape[: x.ndim - len(out)], *out), lowest, x.dtype)
    which = np.empty(best.shape, np.uint8 if math.prod(kernel) <= 256 else np.int32)
    which[...] = first_inside(geometry, out)
    floating = x.dtype.kind not in "biu"
    for i, shift in enumerate(offsets(geometry)):
        seen = shifted(x, shift, out, stride)
        better = seen > best
        if floating:
            better |= np.isnan(seen)
        np.copyto(best, seen, where=better)
        np.copyto(which, np.array(i, which.dtype), where=better)
    return best, which


def first_inside(geometry: Geometry, out: tuple[int, ...]) -> Array:
    """The first window element at each output position (*out) that is not in the padding before the input."""
    first = np.zeros((), np.int64)
    for n, k, stride, padding, dilation in zip(out, *geometry, strict=True):
        before = np.maximum(padding - np.arange(n) * stride, 0)
        first = first[..., None] * k + -(-before // dilation)
    return first


def reaching(x: Array, geometry: Geometry, out: tuple[int, ...], value: float | np.generic) -> Array:
    """x (..., *S) padded with `value` on both sides, and at the end as far as windows at `out` positions reach."""
    kernel, stride, padding, dilation = geometry
    lead = x.ndim - len(out)
    need = [(n - 1) * s + d * (k - 1) + 1 for n, s, k, d in zip(out, stride, kernel, dilation, strict=True)]
    have = x.shape[lead:]
    sizes = [max(h + 2 * p, n) for h, p, n in zip(have, padding, need, strict=True)]
    if tuple(sizes) == tuple(have):
        return x
    wide = np.full((*x.shape[:lead], *sizes), value, x.dtype)
    wide[inside(padding, have)] = x
    return wide


def pool_scatter(g: Array, which: Array, shape: Sizes, geometry: Geometry) -> Array:
    """g (..., *L) added at the window elements `which`: shape (..., *S)."""
    _, stride, padding, _ = geometry
    out = g.shape[g.ndim - len(stride) :]
    wide = reaching(np.zeros(shape, g.dtype), geometry, out, 0)
    for i, shift in enumerate(offsets(geometry)):
        view = shifted(wide, shift, out, stride)
        np.add(view, g, out=view, where=which == i)
    lead = len(shape) - len(stride)
    return np.ascontiguousarray(wide[inside(padding, shape[lead:])])


def pool_gather(x: Array, which: Array, geometry: Geometry) -> Array:
    """The window elements `which` of x (..., *S): (..., *L), the adjoint of `pool_scatter`."""
    _, stride, _, _ = geometry
    out = which.shape[which.ndim - len(stride) :]
    x = reaching(x, geometry, out, 0)
    y = np.zeros(which.shape, x.dtype)
    for i, shift in enumerate(offsets(geometry)):
        np.copyto(y, shifted(x, shift, out, stride), where=which == i)
    return y


def window_sum(x: Array, geometry: Geometry, out: tuple[int, ...]) -> Array:
    """Sums over windows.  x: (..., *S) -> (..., *out)"""
    x = reaching(x, geometry, out, 0)
    y = np.zeros((*x.shape[: x.ndim - len(out)], *out), x.dtype)
    for shift in offsets(geometry):
        y += shifted(x, shift, out, geometry[1])
    return y


def window_spread(g: Array, shape: Sizes, geometry: Geometry) -> Array:
    """The adjoint of `window_sum`.  g: (..., *L) -> shape (..., *S)"""
    _, stride, padding, _ = geometry
    out = g.shape[g.ndim - len(stride) :]
    wide = reaching(np.zeros(shape, g.dtype), geometry, out, 0)
    for shift in offsets(geometry):
        view = shifted(wide, shift, out, stride)
        view += g
    lead = len(shape) - len(stride)
    return np.ascontiguousarray(wide[inside(padding, shape[lead:])])
