"""Linear maps of a few taps along dimensions, one dimension after the other, in plain NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array

Made = tuple[Array, Array, Array | None, Array | None]  # starts, index, weights and divisors: see `Taps`


class Taps:
    """A linear map along a dimension: output j is a sum over k from starts[j] on, below starts[j + 1].

    size: of the input. index: the input of each k. weights: its factor, None: 1. mean: whether the sum is divided by
        how many it is of.
    """

    def __init__(
        self, size: int, starts: Array, index: Array, weights: Array | None = None, mean: bool = False
    ) -> None:
        self.size, self.starts, self.index, self.weights, self.mean = size, starts, index, weights, mean
        self.picks = weights is None and not mean and bool((np.diff(starts) == 1).all())
        self._made: dict[Any, Made] = {}

    @classmethod
    def of(cls, size: int, index: Array, weights: Array | None = None) -> Taps:
        """As many for each output.  index, weights: (L, T)"""
        starts = np.arange(len(index) + 1) * index.shape[1]
        return cls(size, starts, index.reshape(-1), None if weights is None else weights.reshape(-1))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Taps({self.size} -> {len(self)})"

    @functools.cached_property
    def turned(self) -> Taps:
        """The adjoint.  What has a weight of 0 is left out."""
        counts = np.diff(self.starts)
        outputs, weights, index = np.repeat(np.arange(len(self)), counts), self.weights, self.index
        if self.mean:
            weights = np.repeat(1 / np.maximum(counts, 1), counts)
        if weights is not None:
            kept = np.flatnonzero(weights)
            outputs, weights, index = outputs[kept], weights[kept], index[kept]
        order = np.argsort(index, kind="stable")
        starts = np.searchsorted(index[order], np.arange(self.size + 1))
        return Taps(len(self), starts, outputs[order], None if weights is None else weights[order])

    def made(self, dtype: np.dtype[Any]) -> Made:
        """What kernels of numbers of a dtype are given."""
        found = self._made.get(dtype)
        if found is None:
            weights = None if self.weights is None else self.weights.astype(dtype)
            divisors = np.maximum(np.diff(self.starts), 1).astype(dtype) if self.mean else None
            found = self._made[dtype] = self.starts, self.index, weights, divisors
        return found


def resample(x: Array, dims: tuple[int, ...], taps: tuple[Taps, ...]) -> Array:
    """Along each of `dims`, in that order, the map of its taps.  (*S) -> (*L), of float32 or wider numbers, or of any that are picked"""
    for dim, each in zip(dims, taps, strict=True):
        x = _picked(x, dim, each) if each.picks else _along(x, dim, each)
    return x


def _picked(x: Array, dim: int, taps: Taps) -> Array:
    return x.take(taps.index, axis=dim)


def _along(x: Array, dim: int, taps: Taps) -> Array:
    starts, index, weights, divisors = taps.made(x.dtype)
    counts, first = np.diff(starts), starts[:-1]
    ends = [1] * (x.ndim - dim - 1)
    shape = (*x.shape[:dim], len(taps), *x.shape[dim + 1 :])
    out, before = (np.zeros if not counts.all() else np.empty)(shape, x.dtype), (slice(None),) * dim
    for t in range(counts.max(initial=0)):
        rows = np.flatnonzero(counts > t)
        part, to = x.take(index[first[rows] + t], axis=dim), (*before, rows if len(rows) < len(taps) else slice(None))
        if weights is not None:
            part *= weights[first[rows] + t].reshape(-1, *ends)
        if t == 0:
            out[to] = part
        else:
            out[to] += part
    return out if divisors is None else (out + 0) / divisors.reshape(-1, *ends)
