"""Sums over dimensions of arrays whose long runs go on in float64."""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
RUN = (
    1024  # elements that NumPy adds up one after the other, where they are no neighbours, before the sum goes on wider
)
_REDUCE: Any = np.add.reduce  # its stubs know no keepdims that is a variable
WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def add_up(x: Array, axes: tuple[int, ...], keepdims: bool = False, dtype: Any = None) -> Array:
    """The sum of `x` over `axes` (a tuple, or None for all), as an array of `dtype`, by default that of `x`.

    NumPy adds neighbours in memory in pairs, whose error hardly grows with their number, but all others one after the
    other: those are summed in runs.
    """
    own = x.dtype if dtype is None else np.dtype(dtype)
    if x.size <= RUN or not axes or own not in WIDER:
        return np.asarray(_REDUCE(x, axis=axes, keepdims=keepdims, dtype=dtype))
    longest = axes[0] if len(axes) == 1 else max(axes, key=lambda d: x.shape[d])
    if x.shape[longest] <= RUN or _neighbours(x, axes):
        return np.asarray(_REDUCE(x, axis=axes, keepdims=keepdims, dtype=dtype))
    total: Any = 0
    for start in range(0, x.shape[longest], RUN):
        part = x[(*[slice(None)] * (longest % x.ndim), slice(start, start + RUN))]
        total = total + _REDUCE(part, axis=axes, keepdims=keepdims, dtype=own).astype(WIDER[own])
    return np.asarray(total, own)


def _neighbours(x: Array, axes: tuple[int, ...]) -> bool:
    """Whether the elements of each sum are neighbours in memory."""
    reduced = sorted(d % x.ndim for d in axes)
    return x.flags.c_contiguous and reduced == list(range(x.ndim - len(reduced), x.ndim))
