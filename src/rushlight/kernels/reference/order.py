"""The first elements of each row in order, in NumPy.  See ``kernels.order``."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array


def order_of(x: Array, dim: int, descending: bool, stable: bool = True) -> Array:
    """The indices that sort `x` along `dim`; NaN counts as the largest."""
    kind: Any = "stable" if stable else None
    if not descending:
        return np.argsort(x, axis=dim, kind=kind)
    # Sorting backwards and reading the result backwards keeps equal elements in their order.
    found = np.flip(np.argsort(np.flip(x, dim), axis=dim, kind=kind), dim)
    return np.asarray(np.subtract(x.shape[dim] - 1, found))


def first_extreme(x: Array, dim: int, least: bool) -> tuple[Array, Array]:
    index = np.asarray((np.argmin if least else np.argmax)(x, axis=dim, keepdims=True))
    return np.take_along_axis(x, index, dim), index


def top_k(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    n, cut = x.shape[dim], [slice(None)] * dim
    near = np.argpartition(x, n - k if largest else k - 1, axis=dim)
    near = near[(*cut, slice(n - k, n) if largest else slice(0, k))]
    values = np.take_along_axis(x, near, dim)
    order = order_of(values, dim, largest)
    return np.take_along_axis(values, order, dim), np.take_along_axis(near, order, dim)


PART = 1 << 17  # elements whose order is found at once: it takes two or three times their memory


def of_rank(x: Array, dim: int, k: int | Array) -> tuple[Array, Array]:
    axis, some = _part_of(x, dim)
    if x.shape[axis] <= some:
        return _of_rank(x, dim, k)
    at = [(*[slice(None)] * axis, slice(i, i + some)) for i in range(0, x.shape[axis], some)]
    parts = [_of_rank(x[part], dim, k if isinstance(k, int) else k[part]) for part in at]
    values, index = (np.concatenate(found, axis) for found in zip(*parts, strict=True))
    return values, index


def bytes_of_rank(x: Array, dim: int | None) -> int:
    if dim is None:
        return 8 * x.size
    axis, some = _part_of(x, dim)
    return int(8 * (x.size // x.shape[axis]) * min(some, x.shape[axis]))


def _part_of(x: Array, dim: int) -> tuple[int, int]:
    """The dimension along which the order along `dim` is found in parts, and how much of it at once."""
    axis = max((a for a in range(x.ndim) if a != dim), key=lambda a: x.shape[a], default=dim)
    return axis, x.shape[axis] if axis == dim else max(1, PART * x.shape[axis] // max(x.size, 1))


def _of_rank(x: Array, dim: int, k: int | Array) -> tuple[Array, Array]:
    """The same, all at once."""
    if isinstance(k, int):
        index = np.argpartition(x, k, axis=dim)[(*[slice(None)] * dim, slice(k, k + 1))]
    else:
        index = np.take_along_axis(order_of(x, dim, False), k, dim)
    return np.take_along_axis(x, index, dim), np.array(index, np.int64)


def search(x: Array, values: Array, right: bool) -> Array:
    side: Any = "right" if right else "left"
    if x.ndim == 1:
        return np.asarray(np.searchsorted(x, values, side), np.int64)
    return np.array([np.searchsorted(*pair, side) for pair in zip(x, values, strict=True)], np.int64).reshape(
        values.shape
    )
