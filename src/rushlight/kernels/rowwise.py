"""Softmax and its logarithm along an axis, with gradients.

All take and return arrays of one shape, float16 to float64; results are C-contiguous.  Rows of -inf alone, or
with NaN or +inf among them, become NaN, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy import empty

from rushlight.kernels.dispatch import (
    Array,
    agree,
    bits,
    blocks_of_rows,
    contiguous,
    dense,
    is_half,
    rounded,
    rows_of,
    through_float32,
    widened,
)
from rushlight.kernels.native.signatures import exports_of_rows
from rushlight.kernels.reference import rowwise as reference

if TYPE_CHECKING:
    import numpy as np

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]

exports_of_rows(
    # softmax.cpp: inputs, output, outer, count, inner
    softmax="aannn",
    log_softmax="aannn",
    softmax_backward="aaannn",
    log_softmax_backward="aaannn",
)


def _extents(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """(outer, count, inner) of ``axis`` in a C-contiguous array; a 0-d array is one element."""
    if not shape:
        return 1, 1, 1
    if axis < 0:
        axis += len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _plain(name: str, dtype: np.dtype[Any], axis: int, *arrays: Array) -> Array:
    if not arrays[0].ndim:
        return _plain(name, dtype, 0, *(a.reshape(1) for a in arrays)).reshape(())
    if is_half(dtype) and all(a.dtype == dtype and a.shape == arrays[0].shape for a in arrays):
        return _halves(name, axis, *arrays)
    kernel = getattr(reference, name)
    return through_float32(kernel, dtype, *arrays, axis) if is_half(dtype) else kernel(*arrays, axis)


def _halves(name: str, axis: int, *arrays: Array) -> Array:
    """16-bit arrays, some rows at a time in float32."""
    outer, count, inner = _extents(arrays[0].shape, axis)
    rows = [a.reshape(outer, count * inner) for a in arrays]
    out = empty(rows[0].shape, arrays[0].dtype)
    kernel: Any = _forward if len(arrays) == 1 else _backward
    for some in blocks_of_rows(out):
        target = out[some]
        wide = [widened(a[some]).reshape(len(target), count, inner) for a in rows]
        rounded(kernel(name, *wide, 1).reshape(target.shape), out.dtype, target)
    return out.reshape(arrays[0].shape)


def _forward(name: str, x: Array, axis: int, out: Array | None = None) -> Array:
    table = rows_of(x.dtype)
    if table is None or not (out is None or dense(out)):
        found = _plain(name, x.dtype, axis, x) if table is None else _forward(name, x, axis)
        if out is None:
            return found
        out[...] = found
        return out
    x = contiguous(x)
    out = empty(x.shape, x.dtype) if out is None else out
    getattr(table, name)(bits(x), bits(out), *_extents(x.shape, axis))
    return out


def _backward(name: str, g: Array, output: Array, axis: int) -> Array:
    agree(name, g.shape, output)
    table = rows_of(g.dtype)
    if table is None or output.dtype != g.dtype:
        return _plain(name, g.dtype, axis, g, output)
    rows = contiguous(g)
    out = empty(g.shape, g.dtype) if rows is g else rows  # the copy that was made is written over
    getattr(table, name)(bits(rows), bits(contiguous(output)), bits(out), *_extents(g.shape, axis))
    return out


def softmax(x: Array, axis: int, out: Array | None = None) -> Array:
    """e^x / sum(e^x) along ``axis``; `out` may be x."""
    return _forward("softmax", x, axis, out)


def log_softmax(x: Array, axis: int, out: Array | None = None) -> Array:
    """x - log(sum(e^x)) along ``axis``; `out` may be x."""
    return _forward("log_softmax", x, axis, out)


def softmax_backward(g: Array, output: Array, axis: int) -> Array:
    """Gradient of `softmax` from its output: output * (g - sum(g * output))."""
    return _backward("softmax_backward", g, output, axis)


def log_softmax_backward(g: Array, output: Array, axis: int) -> Array:
    """Gradient of `log_softmax` from its output: g - e^output * sum(g)."""
    return _backward("log_softmax_backward", g, output, axis)
