"""Elements moved from array to array, on all threads and, where their axes are in another order, by squares: NumPy goes one by one.

The native twins are in copies.cpp and casts.cpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes

__all__ = ["cast", "copied", "copied_as_it_lies", "move"]

exports_of_bytes(
    # copies.cpp, casts.cpp: elements, where they go; returns whether they went
    copy="aa>n",
    cast="aa>n",
)

LARGE = 1 << 17  # bytes from which on the call pays
SOME = 1 << 14  # and where few elements go together, before each of which NumPy begins anew
FEW = 16
WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def move(x: Array, out: Array) -> Array:
    """out[...] = x; `out`.  x: what broadcasts to the shape of `out`, of any dtype  ->  (*)"""
    if (
        (out.nbytes < LARGE and (out.nbytes < SOME or not _few_together(x, out)))
        or x.dtype != out.dtype
        or not _moved(x, out)
    ):
        out[...] = x
    return out


def copied(x: Array) -> Array:
    """A copy in C order.  (*) -> (*)"""
    return move(x, np.empty(x.shape, x.dtype)) if x.nbytes >= LARGE and x.__class__ is np.ndarray else x.copy(order="C")


def copied_as_it_lies(x: Array) -> Array:
    """A copy whose elements lie in the order of those of `x`.  (*) -> (*)"""
    return move(x, np.empty_like(x)) if x.nbytes >= LARGE and x.__class__ is np.ndarray else x.copy("K")


def cast(x: Array, dtype: np.dtype[Any]) -> Array:
    """A copy in another dtype, as C converts numbers, in the order in which elements lie.  (*) -> (*)"""
    if dtype.kind == "b" and x.dtype.kind in "fiu":
        return np.asarray(np.not_equal(x, 0))  # whose loop is on all threads
    kernels = loader.of_bytes() if x.nbytes >= LARGE and x.__class__ is np.ndarray else None
    if kernels is not None and not (x.dtype.hasobject or dtype.hasobject):
        out = np.empty_like(x, dtype)
        if kernels.cast(x, out):
            return out
        del out
    return x.astype(dtype)


def _few_together(x: Array, out: Array) -> bool:
    """Whether elements lie in another order, and few of them are neighbours in both, as channels that lie last or what is flipped."""
    if x.strides == out.strides or out.ndim < 2:
        return False
    return out.shape[-1] < FEW or not out.flags.c_contiguous or (x.ndim > 0 and x.strides[-1] < 0)


def _moved(x: Array, out: Array) -> bool:
    """Whether the native twin copied elements of one dtype."""
    word, kernels = WORDS.get(out.itemsize), loader.of_bytes()
    if word is None or kernels is None or out.dtype.hasobject or not (x.flags.aligned and out.flags.behaved):
        return False
    if np.may_share_memory(x, out):
        return False
    given = x if x.shape == out.shape else np.broadcast_to(x, out.shape)
    return bool(kernels.copy(given.view(word), out.view(word)))
