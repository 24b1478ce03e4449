"""Rectifiers with a slope for each channel: large arrays natively (prelu.cpp), others by NumPy.

Slopes are arrays that broadcast with the input, of which one dimension at most has more than one.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import (
    Array,
    bits,
    dense,
    is_half,
    memory_order,
    rounded,
    rows_of,
    summed_in,
    through_float32,
)
from rushlight.kernels.native.signatures import exports_of_rows
from rushlight.kernels.sums import add_up

__all__ = ["prelu", "prelu_backward"]

exports_of_rows(
    # prelu.cpp: what the slopes are for, input, slopes, result; elements before, in and behind the dimension of the slopes
    prelu="aaaannn",
    # gradient, input, parts of the slopes' gradient
    prelu_parts="aaannn",
)
SMALL = 2048  # elements up to which NumPy's calls cost less
ROWS = 64  # as in prelu.cpp
PART = 1 << 15  # elements of a gradient that are laid out together


def prelu(x: Array, weight: Array) -> Array:
    """x where over 0, else weight * x.  (*), (*) -> (*)"""
    order = _order(x, weight)
    if order is not None:
        return prelu(x.transpose(order), _turned(weight, order)).transpose(np.argsort(order))
    table, sizes = _native(x, weight)
    if table is None:
        return through_float32(_plain, x.dtype, x, weight) if is_half(x.dtype) else _plain(x, weight)
    out = np.empty_like(x)
    table.prelu(bits(x), bits(x), bits(weight.reshape(-1)), bits(out), *sizes)
    return out


def prelu_backward(g: Array, x: Array, weight: Array, of_input: bool, of_weight: bool) -> tuple[Any, ...]:
    """The gradients of the input and of the slopes, each None where it is not asked for; that of slopes may be unsummed yet."""
    order = _order(x, weight)
    if order is not None:
        turned = _turned(weight, order)
        to_input, to_weight = prelu_backward(g.transpose(order), x.transpose(order), turned, of_input, of_weight)
        back = np.argsort(order)
        return tuple(None if to is None else to.transpose(back) for to in (to_input, to_weight))
    if _native(x, weight)[0] is None or g.dtype != x.dtype or g.shape != x.shape:
        half = x.dtype if is_half(x.dtype) else None
        given = g, x, weight, of_input, of_weight
        return _plain_backward(*given) if half is None else through_float32(_plain_backward, half, *given)
    to_input = np.empty_like(x) if of_input else None
    return to_input, _backward(g, x, weight, to_input, of_weight)


def _backward(g: Array, x: Array, weight: Array, to_input: Array | None, of_weight: bool) -> Any:
    """The gradient of the slopes if it is asked for; that of the input is written."""
    if not dense(g):
        return _by_parts(g, x, weight, to_input, of_weight)
    table, sizes = _native(x, weight)
    if to_input is not None:
        table.prelu(bits(g), bits(x), bits(weight.reshape(-1)), bits(to_input), *sizes)
    if not of_weight:
        return None
    outer, channels, inner = sizes
    parts = np.empty((-(-outer // ROWS) if inner == 1 else outer, channels), summed_in(x.dtype))
    table.prelu_parts(bits(g), bits(x), parts, *sizes)
    return rounded(add_up(parts, (0,)), x.dtype).reshape(weight.shape)


def _by_parts(g: Array, x: Array, weight: Array, to_input: Array | None, of_weight: bool) -> Any:
    """As `_backward` of a gradient that repeats or has gaps: some of it at a time is laid out for it."""
    if len(x) == 1 and x.ndim > 1:
        within = weight[0] if weight.ndim == x.ndim else weight
        slope = _backward(g[0], x[0], within, None if to_input is None else to_input[0], of_weight)
        return slope.reshape(weight.shape) if of_weight else None
    own = weight.ndim == x.ndim and weight.shape[0] > 1  # of the first dimension
    count, slopes = min(max(x.size // PART, 1), len(x)), []
    for i in range(count):
        at = slice(i * len(x) // count, (i + 1) * len(x) // count)
        given = g[at] if x.ndim > 1 and x[at].size > 2 * PART else g[at].copy()
        to = None if to_input is None else to_input[at]
        slopes.append(_backward(given, x[at], weight[at] if own else weight, to, of_weight))
        del given  # before the next is made
    if not of_weight:
        return None
    return np.concatenate(slopes) if own else functools.reduce(np.add, slopes)


def _order(x: Array, weight: Array) -> list[int] | None:
    """The dimensions of a large array in the order in which they lie; None where that is theirs, or there are gaps."""
    if x.size <= SMALL or x.ndim <= 2 or x.flags.c_contiguous or weight.ndim > x.ndim:
        return None
    order = memory_order(x)
    return order if order != sorted(order) and dense(x.transpose(order)) else None


def _turned(weight: Array, order: list[int]) -> Array:
    return weight.reshape((1,) * (len(order) - weight.ndim) + weight.shape).transpose(order)


def _native(x: Array, weight: Array) -> tuple[Any, tuple[int, int, int]]:
    """The native kernels, and the elements before, in and behind the dimension of slopes; None where there is no such."""
    none = (0, 0, 0)
    table = rows_of(x.dtype) if x.size > SMALL and dense(x) and dense(weight) and weight.dtype == x.dtype else None
    if table is None or weight.ndim > x.ndim:
        return None, none
    shape = (1,) * (x.ndim - weight.ndim) + weight.shape
    wide = [axis for axis, n in enumerate(shape) if n != 1]
    if len(wide) > 1 or any(shape[axis] != x.shape[axis] for axis in wide):
        return None, none
    axis = wide[0] if wide else 0
    if not wide:
        return table, (x.shape[0], 1, math.prod(x.shape[1:]))
    return table, (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))


def _plain(x: Array, weight: Array) -> Array:
    if not np.isfinite(weight).all():
        return np.where(x > 0, x, x * weight)
    out = np.minimum(x, 0, out=np.empty_like(x))
    out *= weight
    out += np.maximum(x, 0)
    return out


def _plain_backward(g: Array, x: Array, w: Array, of_input: bool, of_weight: bool) -> tuple[Any, ...]:
    above, to_weight = x > 0, np.minimum(x, 0) * g if of_weight else None
    if to_weight is not None and not np.isfinite(np.add.reduce(to_weight, axis=None)):
        to_weight = np.where(above, 0, x * g)
    if not of_input:
        return None, to_weight
    if not np.isfinite(w).all():
        return np.where(above, 1, w).astype(g.dtype) * g, to_weight
    # by arithmetic: choosing by a mask takes NumPy ten times as long
    factor = np.asarray(np.multiply(~above, w, dtype=g.dtype))
    factor += above
    return np.multiply(factor, g, out=factor), to_weight
