"""Where the greatest element of each window is, of windows that begin and end anywhere: what adaptive and fractional pools take."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array, bits, contiguous, is_half, rows_of, widened
from rushlight.kernels.native.signatures import exports_of_rows
from rushlight.kernels.reference import maxima as reference

__all__ = ["window_maxima"]

exports_of_rows(
    # maxima.cpp: input, places; where windows along each of three dimensions begin and end; planes, sizes of the dimensions
    window_maxima="aa" + "aa" * 3 + "nnnn",
)

MOST = 1 << 31  # rows of a plane that native code counts
ONE = np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64)  # the window of a dimension that there is not


def window_maxima(x: Array, starts: tuple[Array, ...], ends: tuple[Array, ...]) -> Array:
    """Flat places in the last dimensions of x (*N, *S) of the greatest elements of windows: (*N, *L) of int64

    Of equal ones it is the first, of NaN, which is greater than all numbers, the last.
    starts, ends: of each dimension where its windows begin and where they end, (1, L) of all planes alike, or (planes, L).
    """
    n = len(starts)
    lead, spatial = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
    out = np.empty((*lead, *[start.shape[-1] for start in starts]), np.int64)
    table = rows_of(x.dtype) if n <= 3 and out.size and math.prod(spatial[:-1]) < MOST else None
    if table is None:
        return reference.window_maxima(widened(x) if is_half(x.dtype) else x, starts, ends) if out.size else out
    given = [contiguous(array) for pair in zip(starts, ends, strict=True) for array in pair]
    sizes = (*[1] * (3 - n), *spatial)
    table.window_maxima(bits(contiguous(x)), out, *ONE * (3 - n), *given, math.prod(lead), *sizes)
    return out
