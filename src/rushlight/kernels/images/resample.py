"""Linear maps of a few taps along one to three neighbouring dimensions: resizing, averages over windows, and the adjoints of both."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array, bits, contiguous, is_half, rows_of, summed_in, through_float32
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes, exports_of_rows
from rushlight.kernels.pointwise.copies import WORDS
from rushlight.kernels.reference import resample as reference
from rushlight.kernels.reference.resample import Taps

__all__ = ["Taps", "resample"]

exports_of_bytes(
    # resample.cpp: elements, result, the places of each of three dimensions that are taken, or None; the size before
    # these dimensions, theirs, that behind them
    pick="aaaaa" + "nnnnn",
)

exports_of_rows(
    # resample.cpp: input, result; of each of three dimensions where its taps start, their places, weights and
    # divisors; the size before these dimensions, theirs, that behind them
    resample="aa" + "aaaa" * 3 + "nnnnn",
)

MOST = 1 << 30  # elements of a dimension and its neighbours that native code counts


def resample(x: Array, dims: tuple[int, ...], taps: tuple[Taps, ...]) -> Array:
    """Along each of `dims`, which are neighbours in ascending order, the map of its taps.  (*S) -> (*L)

    Sums of 16-bit numbers are float32 until they are written.
    """
    dims = tuple([d % x.ndim for d in dims])
    sizes = _sizes(x.shape, dims)
    fits = x.size and all(map(len, taps)) and len(dims) <= 3 and max(*sizes[1:4], *map(len, taps)) * sizes[-1] < MOST
    picks = all(each.picks for each in taps)
    table = (_moves(x) if picks else rows_of(x.dtype)) if fits else None
    if table is None:
        return _plain(x, dims, taps, picks)
    out = np.empty((*x.shape[: dims[0]], *map(len, taps), *x.shape[dims[-1] + 1 :]), x.dtype)
    if picks:
        _pick(table, contiguous(x), out, taps, sizes)
    else:
        kind, none = summed_in(x.dtype), (None,) * 4 * (3 - len(taps))
        made = [array for each in taps for array in each.made(kind)]
        table.resample(bits(contiguous(x)), bits(out), *none, *made, *sizes)
    return out


def _plain(x: Array, dims: tuple[int, ...], taps: tuple[Taps, ...], picks: bool) -> Array:
    if is_half(x.dtype) and not picks:
        return np.asarray(through_float32(lambda wide: reference.resample(wide, dims, taps), x.dtype, x))
    return reference.resample(x, dims, taps)


def _sizes(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """Elements before the dimensions, of three of these, and behind them."""
    own = [shape[d] for d in dims]
    return math.prod(shape[: dims[0]]), *[1] * (3 - len(own)), *own, math.prod(shape[dims[-1] + 1 :])


def _moves(x: Array) -> loader.Kernels | None:
    """The native kernels that move elements as wide as these; None where there are none."""
    width = x.itemsize if x.itemsize <= 8 else 8
    return loader.of_bytes() if width in WORDS and x.itemsize % width == 0 else None


def _pick(table: loader.Kernels, x: Array, out: Array, taps: tuple[Taps, ...], sizes: tuple[int, ...]) -> None:
    word = WORDS[min(x.itemsize, 8)]
    more = x.itemsize // word.itemsize  # words of an element
    places = [None] * (3 - len(taps)) + [each.index for each in taps]
    table.pick(x.view(word), out.view(word), *places, *sizes[:4], sizes[4] * more)
