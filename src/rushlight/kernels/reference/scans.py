"""Running results along a dimension, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array

WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}
BLOCK = 1 << 16  # elements that are held in float64 at a time


def ends(ndim: int, dim: int, start: int | None, stop: int | None, step: int | None = None) -> tuple[Any, ...]:
    """The index that cuts dimension `dim` only."""
    return (*[slice(None)] * dim, slice(start, stop, step), *[slice(None)] * (ndim - dim - 1))


def running(ufunc: np.ufunc, x: Array, dim: int, reverse: bool) -> Array:
    """Running results of a ufunc, from the end where `reverse`; those of float32 arithmetic are kept in float64."""
    if not x.ndim:
        return x.copy()
    out = np.empty(x.shape, x.dtype)
    back = ends(x.ndim, dim, None, None, -1 if reverse else None)
    if x.dtype in WIDER and x.shape[dim] > 2 and ufunc not in (np.maximum, np.minimum):
        _widely(ufunc, x[back], dim, out[back])
    else:
        ufunc.accumulate(x[back], axis=dim, out=out[back])
    return out


def _widely(ufunc: np.ufunc, x: Array, dim: int, out: Array) -> None:
    """Running results of a ufunc in twice the precision, block by block, each rounded once."""
    carry: Any = None
    step = max(BLOCK * x.shape[dim] // max(x.size, 1), 1)
    for start in range(0, x.shape[dim], step):
        at = ends(x.ndim, dim, start, start + step)
        part = x[at].astype(WIDER[x.dtype])
        first = part[ends(x.ndim, dim, 0, 1)]
        if carry is not None:
            ufunc(carry, first, out=first)
        ufunc.accumulate(part, axis=dim, out=part)
        carry = part[ends(x.ndim, dim, part.shape[dim] - 1, None)].copy()
        out[at] = part
        del part, first  # before the next is made


def running_extreme(x: Array, dim: int, least: bool) -> tuple[Array, Array]:
    """(values, indices) of a running extreme: the last of equal elements, NaN from its first place on."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    values = running(np.minimum if least else np.maximum, x, dim, False)
    n = x.shape[dim]
    place = np.arange(n).reshape([n if d == dim else 1 for d in range(x.ndim)])
    hit = x == values
    if x.dtype.kind == "f":
        hit |= np.isnan(x)
    index = np.where(hit, place, 0)
    return values, np.maximum.accumulate(index, axis=dim, out=np.empty(x.shape, index.dtype))
