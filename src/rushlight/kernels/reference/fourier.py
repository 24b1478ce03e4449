"""Discrete Fourier transforms by NumPy, of some lines at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array

BLOCK = 1 << 17  # elements that are transformed together: NumPy computes float32 in copies in float64


def complex_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype that transforms of a dtype have."""
    return np.dtype(np.complex64 if dtype in (np.float32, np.complex64) else np.complex128)


def real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The real dtype that transforms back to real numbers have."""
    return np.dtype(np.float32 if dtype in (np.float32, np.complex64) else np.float64)


def resized_in(shape: tuple[int, ...], dim: int, n: int) -> tuple[int, ...]:
    """`shape` with length `n` in one dimension."""
    return (*shape[:dim], n, *shape[dim + 1 :])


def along(
    fn: Callable[[Array], Array],
    x: Array,
    axis: int,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    out: Array | None = None,
) -> Array:
    """`fn`, which transforms each line along `axis` by itself, of some of the lines at a time.

    shape, dtype: of the result; out: where it is put, which may be `x`.
    """
    other = max((d for d in range(x.ndim) if d != axis), key=lambda d: x.shape[d])
    step, out = max(1, BLOCK * x.shape[other] // x.size), np.empty(shape, dtype) if out is None else out
    for start in range(0, x.shape[other], step):
        at = (slice(None),) * other + (slice(start, start + step),)
        out[at] = fn(x[at])
    return out


def at_once(x: Array, dims: tuple[int, ...]) -> bool:
    """Whether NumPy transforms all lines together: few, or one alone."""
    return x.size <= BLOCK or x.ndim == 1 or not dims


def working_bytes(x: Array, dims: tuple[int, ...], whole: bool) -> int:
    """The bytes of what is made beside the result.  whole: of `fourier_whole`"""
    small, together = x.dtype.itemsize == (8 if x.dtype.kind == "c" else 4), at_once(x, dims)
    before = int(x.nbytes) * (len(dims) > 1) if whole else 0
    if not together:
        return before + BLOCK * (40 if small else 16)
    work = int(x.size * ((32 if small else 0) + (len(dims) > 1) * (8 if small else 16)))
    return before + work // (2 if x.dtype.kind == "f" else 1)


def complex_lines(x: Array, dims: tuple[int, ...], forward: bool, own: bool) -> Array:
    """The complex transform over `dims`.  own: whether it may be written over `x`."""
    for axis in reversed(dims):
        line = partial(np.fft.fft, axis=axis) if forward else partial(np.fft.ifft, axis=axis, norm="forward")
        x, own = along(line, x, axis, x.shape, complex_of(x.dtype), x if own else None), True
    return x


def scaled(y: Array, scale: float) -> Array:
    """`y` times a factor, in place."""
    return y if scale == 1 else np.multiply(y, y.dtype.type(scale), out=y)


@np.errstate(all="ignore")
def fourier(x: Array, dims: tuple[int, ...], forward: bool, scale: float) -> Array:
    """The complex transform over `dims`."""
    if not at_once(x, dims):
        return scaled(complex_lines(x, dims, forward, False), scale)
    return scaled(np.fft.fftn(x, axes=dims) if forward else np.fft.ifftn(x, axes=dims, norm="forward"), scale)


@np.errstate(all="ignore")
def fourier_half(x: Array, dims: tuple[int, ...], scale: float) -> Array:
    """The transform of real numbers over `dims`: of the last of them, the half up to n // 2."""
    if at_once(x, dims):
        return scaled(np.fft.rfftn(x, axes=dims), scale)
    last = dims[-1]
    shape = resized_in(x.shape, last, x.shape[last] // 2 + 1)
    y = along(partial(np.fft.rfft, axis=last), x, last, shape, complex_of(x.dtype))
    return scaled(complex_lines(y, dims[:-1], True, True), scale)


@np.errstate(all="ignore")
def fourier_whole(x: Array, dims: tuple[int, ...], scale: float, n: int) -> Array:
    """The real transform of a half: the last of `dims` gets length n."""
    last = dims[-1]
    if at_once(x, dims):
        if len(dims) > 1:
            x = np.fft.ifftn(x, axes=dims[:-1], norm="forward")
        return scaled(np.fft.irfft(x, n, axis=last, norm="forward"), scale)
    half = complex_lines(x, dims[:-1], False, False)
    line = partial(np.fft.irfft, n=n, axis=last, norm="forward")
    return scaled(along(line, half, last, resized_in(half.shape, last, n), real_of(half.dtype)), scale)
