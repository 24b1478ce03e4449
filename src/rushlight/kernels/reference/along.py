"""Elements read and added at indices along one dimension, in NumPy.  See ``kernels.along``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array


def gather_along(x: Array, index: Array, dim: int) -> Array:
    if x.ndim == 1:
        return np.asarray(x[index])
    cut = tuple([slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape)])
    return np.asarray(x[cut][along(index, dim)])


def join_along(x: Array, index: Array, dim: int, values: Array, how: str) -> None:
    """Of an array in C order."""
    join = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[how]
    join.at(x.reshape(-1), element_index(x.shape, index, dim).reshape(-1), values.reshape(-1))


def along(index: Array, dim: int) -> tuple[Any, ...]:
    """The NumPy index of the elements at `index` along `dim`."""
    n = index.ndim
    return tuple([index if d == dim else np.arange(index.shape[d]).reshape(-1, *[1] * (n - d - 1)) for d in range(n)])


def element_index(shape: tuple[int, ...], index: Array, dim: int) -> Array:
    """Positions, in a contiguous array of `shape`, of the elements that `index` names along `dim`.  (*) -> (*)"""
    if not shape:
        return index.reshape(())
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    found = index * steps[dim] if steps[dim] != 1 else index.astype(np.int64)
    for d, n in enumerate(index.shape):
        if d != dim and n > 1:
            found += (np.arange(n) * steps[d]).reshape(n, *[1] * (len(shape) - d - 1))
    return found
