"""Elements where a mask is set, moved together and back, and their places; slices at indices: large ones natively, others by NumPy.

The native twins are in masks.cpp and joined_rows.cpp.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, dense
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes
from rushlight.kernels.pointwise.copies import LARGE, WORDS

__all__ = ["mask_places", "mask_put", "mask_take", "mask_write", "take_slices"]

exports_of_bytes(
    # masks.cpp: a mask, how many are set in each block, elements
    mask_counts="aan",
    # a mask, how many are set before each block, elements, where they go, how many there are, how many are set
    mask_take="aaaann",
    mask_put="aaaann",
    mask_write="aaaann",
    mask_places="aaaann",  # sizes of the dimensions in the place of elements
    # joined_rows.cpp: elements, index, where they go, extents
    take_rows="aaannnn>n",
)

_LARGE = 1 << 14  # elements from which on native code is the faster
_BLOCK = 1 << 14  # elements that are counted together, as in masks.cpp


def mask_take(x: Array, mask: Array) -> Array:
    """The elements where a mask is set, one behind the other.  (*), (*) bool -> (N)"""
    kernels = _for_mask(mask, x)
    if kernels is None:
        return np.asarray(x[mask])
    given, starts, count = _counted(kernels, mask)
    out, word = np.empty(count, x.dtype), WORDS[x.itemsize]
    kernels.mask_take(given, starts, x.view(word), out.view(word), x.size, count)
    return out


def mask_put(values: Array, mask: Array) -> Array:
    """Zeros with values where a mask is set.  (N), (*) bool -> (*)

    Raises ValueError where there are fewer or more values, and more than one.
    """
    kernels = _for_mask(mask, values)
    if kernels is not None:
        given, starts, count = _counted(kernels, mask)
        if values.shape == (count,):
            out, word = np.empty(mask.shape, values.dtype), WORDS[values.itemsize]
            kernels.mask_put(given, starts, values.view(word), out.view(word), mask.size, count)
            return out
    out = np.zeros(mask.shape, values.dtype)
    out[mask] = values
    return out


def mask_write(out: Array, mask: Array, values: Array) -> None:
    """out[mask] = values, in place.  (*), (*) bool, (N)

    Raises ValueError where there are fewer or more values, and more than one.
    """
    kernels = _for_mask(mask, out) if values.ndim == 1 and values.dtype == out.dtype and out.flags.writeable else None
    apart = not (np.may_share_memory(out, values) or np.may_share_memory(out, mask))
    if kernels is not None and out.shape == mask.shape and apart:
        given, starts, count = _counted(kernels, mask)
        if len(values) == count:
            word = WORDS[out.itemsize]
            kernels.mask_write(given, starts, contiguous(values).view(word), out.view(word), mask.size, count)
            return
    out[mask] = values


def mask_places(x: Array) -> Array:
    """Where elements are not 0, a column for each dimension, which lie one behind the other.  (*) -> (N, ndim) int64"""
    mask = x if x.dtype.kind == "b" else x != 0
    kernels = _for_mask(mask, mask)
    if kernels is None:
        return np.stack(mask.nonzero()).T
    given, starts, count = _counted(kernels, mask)
    out = np.empty((mask.ndim, count), np.int64)
    kernels.mask_places(given, starts, np.array(mask.shape, np.int64), out, mask.size, count)
    return out.T


def take_slices(x: Array, index: Array, dim: int) -> Array:
    """The slices at `index`, of any shape, along dimension `dim` of 0 or more, as `numpy.take`.  (*), (*) integers -> (*)

    IndexError for indices outside; those below 0 count from the end.
    """
    shape = x.shape[:dim] + index.shape + x.shape[dim + 1 :]
    outer, inner = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    large = outer * index.size * inner * x.itemsize >= LARGE and index.dtype.kind == "i"
    kernels = _kernels(x) if large else None
    if x.ndim and x.size and not any(x.strides):  # one number everywhere, which NumPy would lay out
        line = x[(0,) * dim + (slice(None),) + (0,) * (x.ndim - dim - 1)]
        return np.full(shape, x[(0,) * x.ndim]) if line.take(index).size else np.empty(shape, x.dtype)
    if kernels is None:
        return np.asarray(x.take(index, dim))
    given, out, word = contiguous(index.astype(np.int64, copy=False)), np.empty(shape, x.dtype), WORDS[x.itemsize]
    if kernels.take_rows(x.view(word), given, out.view(word), outer, x.shape[dim], index.size, inner) < 0:
        return out
    del out
    return np.asarray(x.take(index, dim))


def _for_mask(mask: Array, x: Array) -> Any:
    """The native kernels for elements of an array and a mask; None where there are none."""
    return _kernels(x) if mask.size >= _LARGE and mask.dtype.kind == "b" and dense(mask) else None


def _kernels(x: Array) -> Any:
    """The native kernels that move elements of an array in C order; None where there are none."""
    moved = x.itemsize in WORDS and not x.dtype.hasobject and dense(x)
    return loader.of_bytes() if moved else None


def _counted(kernels: Any, mask: Array) -> tuple[Array, Array, int]:
    """A mask as bytes, how many are set before each block of it, and in all."""
    given, counts = mask.view(np.uint8), np.empty(-(-mask.size // _BLOCK), np.int64)
    kernels.mask_counts(given, counts, mask.size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return given, starts, int(starts[-1])
