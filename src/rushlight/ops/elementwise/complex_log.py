"""Logarithms of complex arrays that keep their digits: log1p near 0, and logaddexp."""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array


def complex_log1p(x: Array) -> Array:
    """log(1 + x) of a complex array: its real part is log1p(2 re + re^2 + im^2) / 2 where that is not large."""
    wide = x.astype(np.complex128, copy=False)
    re, im = wide.real, wide.imag
    with np.errstate(all="ignore"):
        out = np.asarray(np.log(1 + wide))
        square = re * (2 + re) + im * im
        np.copyto(out.real, np.log1p(square) / 2, where=np.abs(square) < 0.5)
        np.copyto(out.imag, np.arctan2(im, 1 + re))
    return out.astype(x.dtype, copy=False)


def complex_logaddexp(a: Array, b: Array) -> Array:
    """log(exp(a) + exp(b)) of complex arrays."""
    small = a.real < b.real
    low, high = np.where(small, a, b), np.where(small, b, a)
    with np.errstate(all="ignore"):
        found = np.asarray(high + complex_log1p(np.exp(low - high)))
    # Where both are infinite the difference is no number, and the sum still one of them; NaN stays.
    np.copyto(found, low, where=np.isposinf(low.real))
    np.copyto(found, high, where=np.isneginf(low.real))
    return found
