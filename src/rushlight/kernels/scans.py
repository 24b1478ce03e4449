"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import (
    Array,
    bits,
    contiguous,
    dense,
    is_half,
    recast,
    rows_of,
    through_float32,
    widened,
)
from rushlight.kernels.native.signatures import exports_of_rows
from rushlight.kernels.reference import scans as reference

__all__ = ["running", "running_extreme"]

exports_of_rows(
    # scan.cpp: input, results, elements before, in and behind the dimension
    running_sum="aannni",
    running_product="aannni",
    running_log_sum="aannni",
    running_extreme="aaannni",
)

BLOCK = 1 << 16  # elements of an array with gaps that are copied together
_KERNELS: dict[Any, str] = {np.add: "running_sum", np.multiply: "running_product", np.logaddexp: "running_log_sum"}


def running(ufunc: np.ufunc, x: Array, dim: int, reverse: bool = False) -> Array:
    """Running results of a ufunc along `dim`, from its end where `reverse`; those of float32 are kept in float64.

    (*) -> (*)
    """
    name = _KERNELS.get(ufunc)
    if name and is_half(x.dtype) and not dense(x) and x.ndim and not dim % x.ndim:
        x = contiguous(x)  # which takes less than float32 copies
    table = rows_of(x.dtype) if name and x.ndim and x.size and (dense(x) or dim % x.ndim) else None
    if table is None:
        if is_half(x.dtype):
            return np.asarray(through_float32(running, x.dtype, ufunc, x, dim, reverse))
        return reference.running(ufunc, x, dim, reverse)
    out, step = np.empty(x.shape, x.dtype), len(x) if dense(x) else max(1, BLOCK * len(x) // x.size)
    for i in range(0, len(x), step):  # what has gaps, piece by piece
        part = contiguous(x[i : i + step])
        getattr(table, str(name))(bits(part), bits(out[i : i + step]), *_extents(part, dim), int(reverse))
        del part  # before the next is made
    return out


def running_extreme(x: Array, dim: int, least: bool) -> tuple[Array, Array]:
    """(values, indices) of a running extreme along `dim`: the last of equal elements, NaN from its first place on.

    (*) -> (*), (*) of int64
    """
    table = rows_of(x.dtype) if x.ndim and x.size and dense(x) else None
    if table is None:
        values, places = reference.running_extreme(widened(x) if is_half(x.dtype) else x, dim, least)
        return recast(values, x.dtype), places
    out, where = np.empty(x.shape, x.dtype), np.empty(x.shape, np.int64)
    table.running_extreme(bits(x), bits(out), where, *_extents(x, dim), int(least))
    return out, where


def _extents(x: Array, dim: int) -> tuple[int, int, int]:
    """Elements before, in and behind a dimension."""
    dim %= x.ndim
    return math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
