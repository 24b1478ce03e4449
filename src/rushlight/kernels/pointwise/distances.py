"""Distances of rows in a norm, of all pairs of two matrices or of the pairs of one, and their gradients."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, native
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import distances as reference

__all__ = ["distances", "distances_backward", "own_distances", "own_distances_backward"]

exports(
    # distances.cpp: both matrices, distances; B, P, R, M, which norm, whether of the pairs of one matrix
    distances="aaa" + "nnnnnn",
    # the gradient, both matrices, distances, gradients to which it adds
    distances_backward="aaaaaa" + "nnnnnn",
)

NORMS = {1.0: 1, 2.0: 2, math.inf: 3}  # of which there are kernels


def _kernels(p: float, *arrays: Array) -> loader.Kernels | None:
    dtype = arrays[0].dtype
    alike = p in NORMS and all(x.dtype == dtype and x.size for x in arrays)
    return native(dtype) if alike else None


def _sizes(x1: Array, x2: Array, p: float) -> tuple[int, int, int, int, int, int]:
    return math.prod(x1.shape[:-2]), x1.shape[-2], x2.shape[-2], x1.shape[-1], NORMS[p], int(x1 is x2)


def distances(x1: Array, x2: Array, p: float) -> Array:
    """Distances in the norm of order p of all pairs of rows.  x1: (*, P, M), x2: (*, R, M) -> (*, P, R)"""
    table = _kernels(p, x1, x2)
    if table is None:
        return reference.distances(x1, x2, p)
    out = np.empty((*x1.shape[:-1], x2.shape[-2]), x1.dtype)
    table.distances(contiguous(x1), contiguous(x2), out, *_sizes(x1, x2, p)[:5], 0)
    return out


def distances_backward(g: Array, x1: Array, x2: Array, dist: Array, p: float) -> tuple[Array, Array]:
    """The gradients of both.  g, dist: (*, P, R), the latter of `distances`; x1: (*, P, M), x2: (*, R, M)"""
    table = _kernels(p, x1, x2, g, dist)
    if table is None:
        return reference.distances_backward(g, x1, x2, dist, p)
    of_x1, of_x2 = np.zeros(x1.shape, x1.dtype), np.zeros(x2.shape, x2.dtype)
    given = [contiguous(x) for x in (g, x1, x2, dist)]
    table.distances_backward(*given, of_x1, of_x2, *_sizes(x1, x2, p)[:5], 0)
    return of_x1, of_x2


def own_distances(x: Array, p: float) -> Array:
    """As `distances` of the rows i < j of one matrix, i by i.  (N, M) -> (N * (N - 1) / 2,)"""
    table = _kernels(p, x) if len(x) > 1 else None
    if table is None:
        return reference.own_distances(x, p)
    out, x = np.empty(len(x) * (len(x) - 1) // 2, x.dtype), contiguous(x)
    table.distances(x, x, out, *_sizes(x, x, p))
    return out


def own_distances_backward(g: Array, x: Array, dist: Array, p: float) -> Array:
    """The gradient of `own_distances`.  g, dist: (N * (N - 1) / 2,), x: (N, M) -> (N, M)"""
    table = _kernels(p, x, g, dist) if len(x) > 1 else None
    if table is None:
        return reference.own_distances_backward(g, x, dist, p)
    out, x = np.zeros(x.shape, x.dtype), contiguous(x)
    table.distances_backward(contiguous(g), x, x, contiguous(dist), out, out, *_sizes(x, x, p))
    return out
