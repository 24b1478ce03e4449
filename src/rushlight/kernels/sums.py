"""Sums, products and extrema over dimensions of arrays; sums whose long runs go on in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, bits, dense, memory_order, rounded, rows_of, summed_in
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes, exports_of_rows
from rushlight.kernels.reference.scans import WIDER

__all__ = ["add_up"]

exports_of_bytes(
    # masks.cpp: a mask, how many are set; elements before, in and behind the dimension
    counts="aannn",
)

exports_of_rows(
    # sums.cpp: input, result, elements before, in and behind the dimension
    sum="aannn",
    sum_of_squares="aannn",
    sum_of_sizes="aannn",
    sum_of_known="aannn",
    # extrema.cpp: likewise
    maximum_over="aannn",
    minimum_over="aannn",
    product_over="aannn",
    # log_sums.cpp: likewise
    log_sum="aannn",
    # deviations.cpp: likewise
    squared_deviations="aannn",
)

RUN = (
    1024  # elements that NumPy adds up one after the other, where they are no neighbours, before the sum goes on wider
)
COUNTED = 1 << 10  # elements of a mask from which on NumPy, which converts them, takes longer
SMALL = 1 << 13  # elements up to which asking how they lie costs as much as adding them up
# Kernels of which those over some dimensions may be joined by those over others.
JOINS: dict[str, Any] = {
    "sum": np.add,
    "maximum_over": np.maximum,
    "minimum_over": np.minimum,
    "product_over": np.multiply,
}
_REDUCE: Any = np.add.reduce  # its stubs know no keepdims that is a variable

Axes = tuple[int, ...] | None


def add_up(x: Array, axes: Axes, keepdims: bool = False, dtype: type[Any] | None = None) -> Array:
    """The sum of `x` over `axes` (a tuple, or None for all), as an array of `dtype`, by default that of `x`.

    NumPy adds neighbours in memory in pairs, whose error hardly grows with their number, but all others one after the
    other: those are summed in runs.
    """
    own = x.dtype if dtype is None else np.dtype(dtype)
    found = joined("sum", x, axes, keepdims, own) if own in (x.dtype, summed_in(x.dtype)) else None
    if found is not None:
        return found
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


def joined(
    kernel: str, x: Array, axes: Axes, keepdims: bool = False, dtype: np.dtype[Any] | None = None
) -> Array | None:
    """A native kernel's reduction of a large gapless array over dimensions that follow one another; None of any other.

    dtype: that of the result, which of 16 bits may be float32. kernel: "sum", "sum_of_squares", "sum_of_sizes" (of
        real elements), "sum_of_known" (those that are not NaN), "maximum_over", "minimum_over", "product_over",
        "log_sum" (the logarithm of the sum of exponentials), "squared_deviations" (the squares of the distances from
        the mean)
    """
    if axes == ():
        return None
    wanted = x.dtype if dtype is None else dtype
    if x.size <= SMALL:
        found = _of_few(kernel, x, axes, keepdims) if wanted in (x.dtype, summed_in(x.dtype)) else None
        return found if found is None or found.dtype == wanted else rounded(found, wanted)
    table = rows_of(x.dtype)
    extents = None if table is None else _extents(x, axes)
    if extents is None:
        other = _by_runs if dense(x) else _in_memory_order
        return None if table is None else other(kernel, x, axes, keepdims, dtype)
    covered = range(x.ndim) if axes is None else {d % x.ndim for d in axes}
    shape = [1 if d in covered else n for d, n in enumerate(x.shape) if keepdims or d not in covered]
    out = np.empty(shape, summed_in(x.dtype))
    getattr(table, kernel)(bits(x if dense(x) else x.T), out, *extents)
    return out if out.dtype == wanted else rounded(out, wanted)


def _in_memory_order(kernel: str, x: Array, axes: Axes, keepdims: bool, dtype: np.dtype[Any] | None) -> Array | None:
    """The same of an array without gaps whose dimensions lie in another order."""
    order = memory_order(x)
    turned = x.transpose(order)
    where = None if axes is None else tuple([order.index(d % x.ndim) for d in axes])
    found = joined(kernel, turned, where, True, dtype) if dense(turned) else None
    if found is None:
        return None
    out = np.ascontiguousarray(found.transpose([order.index(d) for d in range(x.ndim)]))
    covered = range(x.ndim) if axes is None else {d % x.ndim for d in axes}
    return out if keepdims else out.reshape([n for d, n in enumerate(out.shape) if d not in covered])


def _by_runs(kernel: str, x: Array, axes: Axes, keepdims: bool, dtype: np.dtype[Any] | None) -> Array | None:
    """The same over dimensions of which some do not follow one another: over the last that do, and then over the others."""
    if kernel not in JOINS or axes is None:
        return None
    covered = sorted(d % x.ndim for d in axes)
    start = next(i for i in range(len(covered) - 1, -1, -1) if i == 0 or covered[i - 1] != covered[i] - 1)
    rest, wide = tuple(covered[:start]), summed_in(x.dtype)
    first = joined(kernel, x, tuple(covered[start:]), True, wide)
    if first is None or not rest:
        return None
    out = (
        joined(kernel, first, rest, True, wide)
        if first.size > SMALL
        else JOINS[kernel].reduce(first, rest, keepdims=True)
    )
    if out is None:
        return None
    shape = out.shape if keepdims else [n for d, n in enumerate(out.shape) if d not in covered]
    wanted = x.dtype if dtype is None else dtype
    return rounded(out.reshape(shape), wanted) if wanted != wide else out.reshape(shape)


def counted(x: Array, axes: Axes, keepdims: bool = False) -> Array | None:
    """How many of a mask are set, over dimensions that follow one another, in int64; None where NumPy does it as well, or none do."""
    if axes is None or x.size <= COUNTED or x.dtype.kind != "b":
        return None
    table = loader.of_bytes()
    extents = _extents(x, axes)
    if table is None or extents is None:
        return None
    covered = {d % x.ndim for d in axes}
    shape = [1 if d in covered else n for d, n in enumerate(x.shape) if keepdims or d not in covered]
    out = np.empty(shape, np.int64)
    table.counts(x if dense(x) else x.T, out, *extents)
    return out


def _of_few(kernel: str, x: Array, axes: Axes, keepdims: bool) -> Array | None:
    """The same of few numbers over one dimension, or over all."""
    shape, size, table, kind = x.shape, x.size, rows_of(x.dtype), summed_in(x.dtype)
    if table is None or not size or not dense(x):
        return None
    if axes is None:
        out, outer, inner = np.empty((1,) * len(shape) if keepdims else (), kind), 1, 1
        count = size
    elif len(axes) == 1 and len(shape) > 1:
        d = axes[0] % len(shape)
        count, after = shape[d], shape[d + 1 :]
        out, inner = np.empty((*shape[:d], 1, *after) if keepdims else shape[:d] + after, kind), math.prod(after)
        outer = size // (count * inner)
    else:
        return None
    getattr(table, kernel)(bits(x), out, outer, count, inner)
    return out


def _extents(x: Array, axes: Axes) -> tuple[int, int, int] | None:
    """Elements before, in and behind the dimensions of a reduction, as they lie in memory."""
    if axes is None:
        return (1, x.size, 1) if x.flags.forc and x.flags.aligned else None
    first, last = min(axes) % x.ndim, max(axes) % x.ndim
    if dense(x):
        before, within, behind = x.shape[:first], x.shape[first : last + 1], x.shape[last + 1 :]
    elif x.ndim == 2 and dense(x.T) and first == last:
        before, within, behind = x.shape[:last:-1], x.shape[first : first + 1], x.shape[:first]
    else:
        return None
    return (math.prod(before), math.prod(within), math.prod(behind)) if last - first + 1 == len(axes) else None


def _neighbours(x: Array, axes: tuple[int, ...]) -> bool:
    """Whether the elements of each sum are neighbours in memory."""
    reduced = sorted(d % x.ndim for d in axes)
    return x.flags.c_contiguous and reduced == list(range(x.ndim - len(reduced), x.ndim))
