"""Sums of Chebyshev series, and the frame in which special functions are computed: in float64, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import room
from rushlight.kernels.reference.special import in_blocks


def chebyshev(coefficients: Sequence[float], x: Array) -> Array:
    """Sum of c_k T_k(x), x in [-1, 1], by Clenshaw's recurrence."""
    twice = x + x
    b0, b1 = np.full_like(x, coefficients[-1]), np.zeros_like(x)
    for c in coefficients[-2:0:-1]:
        b1, b0 = b0, twice * b0 - b1 + c
    return x * b0 - b1 + coefficients[0]


def in_float64(fn: Callable[..., Array]) -> Callable[..., Array]:
    """`fn`, defined on flat float64 arrays, for arrays of any real floating dtype and shapes that broadcast."""

    @wraps(fn)
    def outer(*arrays: Array) -> Array:
        given = np.broadcast_arrays(*arrays) if len(arrays) > 1 else arrays
        with np.errstate(all="ignore"):
            return in_blocks(lambda *b: fn(*(x.astype(np.float64, copy=False) for x in b)),
                             room(given[0], arrays[0].dtype), *given)  # fmt: skip

    return outer
