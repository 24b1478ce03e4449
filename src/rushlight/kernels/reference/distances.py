"""Distances of rows and their gradients, in NumPy: see ``kernels.pointwise.distances``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array

BLOCK = 1 << 18  # elements of differences held at a time


def differences(x1: Array, x2: Array) -> Iterator[tuple[tuple[int, ...], slice, Array]]:
    """Blocks (batch index, rows, x1[b, rows, None] - x2[b, None]) of at most about BLOCK elements."""
    step = max(BLOCK // max(x2.shape[-2] * x2.shape[-1], 1), 1)
    for b in np.ndindex(*x1.shape[:-2]):
        for start in range(0, x1.shape[-2], step):
            rows = slice(start, min(start + step, x1.shape[-2]))
            yield b, rows, x1[b][rows, None, :] - x2[b][None, :, :]


def counted(d: Array) -> Array:
    """How many elements of each row of an array, which it overwrites, are not 0; NaN where one is.  (*, M) -> (*)"""
    return np.add.reduce(np.not_equal(d, 0, out=d, where=~np.isnan(d), casting="unsafe"), axis=-1)


def norms(d: Array, p: float) -> Array:
    """The p-norm of the last dimension of an array, which it overwrites."""
    size: Any = np.abs(d, out=d)
    if p == 0:
        return counted(size)
    if p == math.inf:
        return np.asarray(size.max(-1, initial=0))
    if p == 2:
        size *= size
    total = (size if p in (1, 2) else size**p).sum(-1)
    return np.asarray(total if p == 1 else np.sqrt(total) if p == 2 else total ** (1 / p))


def slopes(d: Array, dist: Array, p: float) -> Array:
    """The derivative of the p-norms `dist` of the rows of `d` by their elements; 0 where there is none.  It may overwrite `d`."""
    if p == 0:
        return np.zeros_like(d)
    if p == 1:
        return np.asarray(np.sign(d))
    if p == math.inf:
        return np.asarray(np.sign(d) * (np.abs(d) == dist[..., None]))
    safe = np.where(dist == 0, 1, dist)[..., None]
    if p == 2:
        return np.asarray(d / safe)
    size = np.abs(d)
    zero = size == 0
    size[zero] = 1
    zero |= (dist == 0)[..., None]
    size /= safe
    np.power(size, p - 1, out=size)
    size *= np.sign(d, out=d)
    size[zero] = 0
    return size


def distances(x1: Array, x2: Array, p: float) -> Array:
    out = np.empty((*x1.shape[:-1], x2.shape[-2]), x1.dtype)
    for b, rows, d in differences(x1, x2):
        out[b][rows] = norms(d, p)
        del d  # before the next are made
    return out


def distances_backward(g: Array, x1: Array, x2: Array, dist: Array, p: float) -> tuple[Array, Array]:
    g1, g2 = np.zeros_like(x1), np.zeros_like(x2)
    for b, rows, d in differences(x1, x2):
        part = slopes(d, dist[b][rows], p)
        part *= g[b][rows][..., None]
        g1[b][rows] += part.sum(1)
        g2[b] -= part.sum(0)
        del d, part  # before the next are made
    return g1, g2


def own_distances(x: Array, p: float) -> Array:
    out, start = np.empty(len(x) * (len(x) - 1) // 2, x.dtype), 0
    for i in range(len(x) - 1):
        found = norms(x[i] - x[i + 1 :], p)
        out[start : start + len(found)] = found
        start += len(found)
    return out


def own_distances_backward(g: Array, x: Array, dist: Array, p: float) -> Array:
    total, start = np.zeros_like(x), 0
    for i in range(len(x) - 1):
        end = start + len(x) - 1 - i
        part = slopes(x[i] - x[i + 1 :], dist[start:end], p)
        part *= g[start:end, None]
        total[i] += part.sum(0)
        total[i + 1 :] -= part
        start = end
    return total
