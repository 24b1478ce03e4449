"""What is done to each of several arrays, of one of them."""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array


def squares_of_each(x: Array) -> float:
    with np.errstate(all="ignore"):
        return float(np.add.reduce((x * x).ravel(), dtype=np.float64))


def multiply_each(x: Array, factor: float) -> None:
    with np.errstate(all="ignore"):
        x *= x.dtype.type(factor)


def clamp_each(x: Array, least: float, most: float) -> None:
    np.clip(x, x.dtype.type(least), x.dtype.type(most), out=x)
