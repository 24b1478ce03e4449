"""Discrete Fourier transforms of arrays: complex, of real numbers, and to real numbers.

Legend: n the length of a transformed dimension, h = n // 2 + 1 what is kept of the transform of real numbers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, dense, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import fourier as reference

__all__ = ["fourier", "fourier_half", "fourier_whole"]

exports(
    # fourier.cpp: input, roots of unity, result, elements before, in and behind the dimension, kind, scale
    fourier="aaannnid",
)

_FORWARD, _BACKWARD, _HALF, _WHOLE = range(4)
_SMALL = 1 << 9  # elements up to which NumPy's call costs less
_LONGEST = 1 << 12  # points of a line that native code takes
_FEW = 4  # lines, of which a vector holds several
_FACTORS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)


@functools.lru_cache(1 << 10)
def _fits(n: int) -> bool:
    """Whether native code transforms lines of this length."""
    if not 1 < n <= _LONGEST:
        return False
    for p in _FACTORS:
        while n % p == 0:
            n //= p
    return n == 1


@functools.lru_cache(64)
def _roots(n: int, dtype: np.dtype[Any]) -> Array:
    """exp(-2 pi i k / n) for all k, exact to the last digit, as pairs of `dtype`: (n, 2)"""
    eighth = np.arange(n) * 8 // n  # each angle counted from the nearest multiple of 90 degrees
    quarter = (eighth + 1) // 2
    angle = (np.arange(n) * 4 - quarter * n) * (math.pi / 2 / n)
    root = (np.cos(angle) - 1j * np.sin(angle)) * np.array([1, -1j, -1, 1j, 1])[quarter]
    return np.stack((root.real, root.imag), 1).astype(dtype)


def _table(x: Array, dims: tuple[int, ...], n: int | None = None) -> Any:
    """The native table for transforms of x over dims (n: the length of the last, if it is another); None where NumPy does it."""
    if x.size <= _SMALL or not dims or x.dtype.char not in "fdFD":
        return None
    lengths = [x.shape[d] for d in dims[:-1]] + [x.shape[dims[-1]] if n is None else n]
    if not all(map(_fits, lengths)) or x.size < _FEW * max(lengths):
        return None
    return native(reference.real_of(x.dtype))


def _line(table: Any, x: Array, out: Array, dim: int, kind: int, scale: float) -> Array:
    """One dimension, from x to out."""
    n, real = (out if kind == _WHOLE else x).shape[dim], reference.real_of(x.dtype)
    sizes = math.prod(x.shape[:dim]), n, math.prod(x.shape[dim + 1 :])
    table.fourier(x.view(real), _roots(n, real), out.view(real), *sizes, kind, scale)
    return out


def _complex_lines(table: object, x: Array, dims: tuple[int, ...], forward: bool, scale: float, own: bool) -> Array:
    """The complex transform over dims, the last first.  own: whether it may be written over x."""
    out = x if own else np.empty(x.shape, x.dtype)
    for i, dim in enumerate(reversed(dims)):
        last = i == len(dims) - 1
        x = _line(table, x, out, dim, _FORWARD if forward else _BACKWARD, scale if last else 1.0)
    return x


def _dense(x: Array) -> Array:
    return x if dense(x) else x.copy(order="C")


def fourier(x: Array, dims: tuple[int, ...], forward: bool, scale: float) -> Array:
    """The complex transform over `dims`, times `scale`; without `forward` with the opposite sign in the exponent.

    (*) -> (*) of complex numbers
    """
    table = _table(x, dims) if x.dtype.kind == "c" else None
    if table is None:
        return reference.fourier(x, dims, forward, scale)
    return _complex_lines(table, _dense(x), dims, forward, scale, False)


def fourier_half(x: Array, dims: tuple[int, ...], scale: float) -> Array:
    """The transform of real numbers over `dims`, times `scale`: of the last of them, the first h.  (*, n, *) -> (*, h, *)"""
    table = _table(x, dims) if x.dtype.kind == "f" else None
    if table is None:
        return reference.fourier_half(x, dims, scale)
    last, alone = dims[-1], len(dims) == 1
    out = np.empty(reference.resized_in(x.shape, last, x.shape[last] // 2 + 1), reference.complex_of(x.dtype))
    _line(table, _dense(x), out, last, _HALF, scale if alone else 1.0)
    return out if alone else _complex_lines(table, out, dims[:-1], True, scale, True)


def fourier_whole(x: Array, dims: tuple[int, ...], scale: float, n: int) -> Array:
    """The real transform, with the opposite sign, of what `fourier_half` keeps; the last of `dims` gets length n.

    (*, h, *) -> (*, n, *)
    """
    table = _table(x, dims, n) if x.dtype.kind == "c" else None
    if table is None or x.shape[dims[-1]] != n // 2 + 1:
        return reference.fourier_whole(x, dims, scale, n)
    x, last = _dense(x), dims[-1]
    if len(dims) > 1:
        x = _complex_lines(table, x, dims[:-1], False, 1.0, False)
    out = np.empty(reference.resized_in(x.shape, last, n), reference.real_of(x.dtype))
    return _line(table, x, out, last, _WHOLE, scale)


def working_bytes(x: Array, dims: tuple[int, ...], whole: int | None = None) -> int:
    """The bytes of what is made beside the result.  whole: n, of `fourier_whole`"""
    copied = 0 if dense(x) else int(x.nbytes)
    if _table(x, dims, whole) is None:
        return reference.working_bytes(x, dims, whole is not None)
    return copied + (int(x.nbytes) if whole is not None and len(dims) > 1 else 0)
