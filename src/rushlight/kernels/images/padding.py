"""A number before and after the elements of dimensions, or some elements cut away: large arrays natively (pad.cpp), others by NumPy."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes
from rushlight.kernels.pointwise.copies import LARGE, WORDS

__all__ = ["pad"]

exports_of_bytes(
    # pad.cpp: elements, result, the number around them; of each dimension how many there are, how many come before
    # them, how many the result has
    pad="aaaa",
)

Pads = tuple[tuple[int, int], ...]


def pad(x: Array, pads: Pads, number: Array) -> Array:
    """x with `number`, one of its dtype, as often as `pads` say before and after each dimension; negative ones cut.  (*S) -> (*L)"""
    out = np.empty([n + b + a for (b, a), n in zip(pads, x.shape, strict=True)], x.dtype)
    if out.nbytes >= LARGE and x.ndim and x.itemsize in WORDS:
        table, word = loader.of_bytes(), WORDS[x.itemsize]
        if table is not None:
            table.pad(contiguous(x).view(word), out.view(word), number.view(word), _sizes(x.shape, pads))
            return out
    return _plain(x, pads, number, out)


def _plain(x: Array, pads: Pads, number: Array, out: Array) -> Array:
    source, target = (tuple(slice(max(s * b, 0), n - max(s * a, 0)) for (b, a), n in zip(pads, shape, strict=True))
                      for s, shape in ((-1, x.shape), (1, out.shape)))  # fmt: skip
    out[...] = number
    out[target] = x[source]
    return out


def _sizes(shape: tuple[int, ...], pads: Pads) -> Array:
    """Elements, those before them and those of the result of each dimension; what is behind the last that is padded is one with it."""
    last = max((d for d, pair in enumerate(pads) if any(pair)), default=0)
    within = math.prod(shape[last + 1 :])
    rows = [(n, b, n + b + a) for (b, a), n in zip(pads[: last + 1], shape[: last + 1], strict=True)]
    rows[-1] = tuple(n * within for n in rows[-1])  # type: ignore[assignment]
    return np.array(rows, np.int64)
