"""Where the greatest element of each window is, in plain NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array


def window_maxima(x: Array, starts: tuple[Array, ...], ends: tuple[Array, ...]) -> Array:
    """As `kernels.window_maxima`."""
    n = len(starts)
    lead, spatial = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
    sizes = tuple(start.shape[-1] for start in starts)
    widths = tuple(int((end - start).max()) for start, end in zip(starts, ends, strict=True))
    flat: Any = 0
    for i in range(n):  # what is beyond the end of a window is its last element again, which comes after itself
        at = np.minimum(starts[i][..., None] + np.arange(widths[i]), ends[i][..., None] - 1)
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = at.shape[1:]
        flat = flat * spatial[i] + at.reshape(-1, *shape)
    planes, window = math.prod(lead), math.prod(widths)
    flat = np.broadcast_to(flat, (planes, *sizes, *widths)).reshape(planes, -1, window)
    values = np.take_along_axis(x.reshape(planes, -1), flat.reshape(planes, -1), 1).reshape(flat.shape)
    found = values.argmax(-1)
    nan = np.isnan(values)
    if nan.any():  # of which it is the last, as in other pools
        found = np.where(nan.any(-1), window - 1 - nan[..., ::-1].argmax(-1), found)
    return np.take_along_axis(flat, found[..., None], -1).reshape(*lead, *sizes)
