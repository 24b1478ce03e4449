"""Pools and columns: the kernels that operators call.  See `kernels.reference.windows` for the legend of shapes.

A geometry is (kernel, stride, padding, dilation), each with a number for each of the last dimensions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.convolution import countable, numbers, paddable
from rushlight.kernels.dispatch import agree, blocks_of_rows, contiguous, is_half, native, rounded, widened
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import windows as reference
from rushlight.kernels.reference.windows import Geometry

__all__ = ["col2im", "im2col", "max_pool", "pool_gather", "pool_scatter", "window_spread", "window_sum"]

exports(
    # pooling.cpp: operands, result, windows
    im2col="aaa",
    col2im="aaa",
    max_pool="aaaad",
    pool_scatter="aaaa",
    pool_gather="aaaa",
    window_sum="aaa",
    window_spread="aaa",
)

_CHOICES = 256  # window elements that a byte can name


@functools.lru_cache(256)
def _windows(shape: tuple[int, ...], geometry: Geometry, out: tuple[int, ...]) -> Array | None:
    """`struct Windows` of native code, all but the last dimensions as channels; None if it does not take them."""
    n = len(out)
    if n > 3 or 0 in shape or 0 in out or not countable(2**60, out, *geometry):
        return None
    planes = math.prod(shape[: len(shape) - n])
    return numbers((1, planes, planes, planes), (shape[len(shape) - n :], out, *geometry))


def _plan(x: Array, shape: tuple[int, ...], geometry: tuple[Any, ...], out: tuple[int, ...]) -> tuple[Any, Any]:
    """The native table for x, and its windows; None twice where the reference has to do."""
    table = native(x.dtype)
    if table is None:
        return None, None
    windows = _windows(tuple(shape), tuple(tuple(row) for row in geometry), tuple(out))
    return (None, None) if windows is None else (table, windows)


def _check(name: str, outputs: Array, shape: tuple[int, ...], geometry: Geometry) -> None:
    """Raise RuntimeError unless outputs and inputs are of the same planes."""
    n = len(geometry[0])
    if outputs.ndim != len(shape) or outputs.shape[: outputs.ndim - n] != tuple(shape[: len(shape) - n]):
        raise RuntimeError(f"{name}: outputs of shape {list(outputs.shape)} are not those of an input of {list(shape)}")


def _by_planes(kernel: Callable[..., Any], n: int, shape: tuple[int, ...], x: Array, *others: Array) -> Array:
    """kernel(x, *others) of 16-bit x, some planes of the last n dimensions at a time, in float32: an array (..., *shape) of its dtype."""
    lead = x.shape[: x.ndim - n]
    count = math.prod(lead)
    planes = [contiguous(a).reshape(count, *a.shape[a.ndim - n :]) for a in (x, *others)]
    out = np.empty((count, *shape), x.dtype)
    largest = max((planes[0], out), key=lambda a: a.size)
    for some in blocks_of_rows(largest.reshape(count, -1)) if out.size else ():
        rounded(kernel(widened(planes[0][some]), *(a[some] for a in planes[1:])), x.dtype, out[some])
    return out.reshape(*lead, *shape)


def max_pool(x: Array, geometry: Geometry, out: tuple[int, ...], lowest: float) -> tuple[Any, Any]:
    """Maxima of windows of x (..., *S), and which window element each is: both (..., *out).

    `out` may reach beyond the padded input (ceil mode); NaN wins; of equal elements the first.
    """
    if is_half(x.dtype):
        found: list[Array] = []

        def pooled(some: Array) -> Array:
            best, places = max_pool(some, geometry, out, lowest)
            found.append(places)
            return np.asarray(best)

        best = _by_planes(pooled, len(out), out, x)
        return best, np.concatenate(found).reshape(best.shape) if found else np.empty(best.shape, np.uint8)
    table, windows = _plan(x, x.shape, geometry, out)
    if table is None or math.prod(geometry[0]) > _CHOICES or not paddable(x.shape[x.ndim - len(out) :], out, *geometry):
        return reference.max_pool(x, geometry, out, lowest)
    shape = (*x.shape[: x.ndim - len(out)], *out)
    best, which = np.empty(shape, x.dtype), np.empty(shape, np.uint8)
    table.max_pool(contiguous(x), best, which, windows, lowest)
    return best, which


def pool_scatter(g: Array, which: Array, shape: tuple[int, ...], geometry: Geometry) -> Any:
    """g (..., *L) added at the window elements `which`: shape (..., *S)."""
    _check("max_pool", g, shape, geometry)
    agree("max_pool", g.shape, which)
    if is_half(g.dtype):
        n = len(geometry[0])
        size = tuple(shape[len(shape) - n :])
        return _by_planes(lambda g, which: pool_scatter(g, which, (len(g), *size), geometry), n, size, g, which)
    table, windows = _plan(g, shape, geometry, g.shape[g.ndim - len(geometry[0]) :])
    if table is None or which.dtype != np.uint8 or math.prod(geometry[0]) > _CHOICES:
        return reference.pool_scatter(g, which, shape, geometry)
    x = np.empty(tuple(shape), g.dtype)
    table.pool_scatter(contiguous(g), contiguous(which), x, windows)
    return x


def pool_gather(x: Array, which: Array, geometry: Geometry) -> Any:
    """The window elements `which` of x (..., *S): (..., *L), the adjoint of `pool_scatter`."""
    _check("max_pool", which, x.shape, geometry)
    if is_half(x.dtype):
        n = len(geometry[0])
        return _by_planes(lambda x, which: pool_gather(x, which, geometry), n, which.shape[which.ndim - n :], x, which)
    table, windows = _plan(x, x.shape, geometry, which.shape[which.ndim - len(geometry[0]) :])
    if table is None or which.dtype != np.uint8 or math.prod(geometry[0]) > _CHOICES:
        return reference.pool_gather(x, which, geometry)
    y = np.empty(which.shape, x.dtype)
    table.pool_gather(contiguous(x), contiguous(which), y, windows)
    return y


def window_sum(x: Array, geometry: Geometry, out: tuple[int, ...], by: Array | int = 1) -> Any:
    """Sums over windows, divided by `by`: (*out) or a number.  x: (..., *S) -> (..., *out)"""
    if is_half(x.dtype):
        return _by_planes(lambda x: window_sum(x, geometry, out, by), len(out), tuple(out), x)
    table, windows = _plan(x, x.shape, geometry, out)
    if table is None:
        return divided(reference.window_sum(x, geometry, out), by, True)
    y = np.empty((*x.shape[: x.ndim - len(out)], *out), x.dtype)
    table.window_sum(contiguous(x), y, windows)
    return divided(y, by, True)


def divided(x: Array, by: Array | int, over: bool = False) -> Array:
    """x / by, in the dtype of x and where it lies if `over`; x itself where `by` is 1."""
    if isinstance(by, int):
        return x if by == 1 else np.asarray(np.true_divide(x, by, out=x if over else None))
    return np.asarray(np.true_divide(x, by.astype(x.dtype, copy=False), out=x if over else None))


def window_spread(g: Array, shape: tuple[int, ...], geometry: Geometry, by: Array | int = 1) -> Any:
    """The adjoint of `window_sum`.  g: (..., *L) -> shape (..., *S)"""
    _check("pool", g, shape, geometry)
    if is_half(g.dtype):
        n = len(geometry[0])
        size = tuple(shape[len(shape) - n :])
        return _by_planes(lambda g: window_spread(g, (len(g), *size), geometry, by), n, size, g)
    g = divided(g, by)
    table, windows = _plan(g, shape, geometry, g.shape[g.ndim - len(geometry[0]) :])
    if table is None:
        return reference.window_spread(g, shape, geometry)
    x = np.empty(tuple(shape), g.dtype)
    table.window_spread(contiguous(g), x, windows)
    return x


def im2col(x: Array, geometry: Geometry) -> Any:
    """Windows as columns.  x: (N, C, *S) -> (N, C * K, L)"""
    out = reference.out_sizes(x.shape[2:], geometry)
    table, windows = _plan(x, x.shape, geometry, out)
    if table is None:
        return reference.im2col(x, geometry)
    y = np.empty((x.shape[0], x.shape[1] * math.prod(geometry[0]), math.prod(out)), x.dtype)
    table.im2col(contiguous(x), y, windows)
    return y


def col2im(y: Array, shape: tuple[int, ...], geometry: Geometry) -> Any:
    """The adjoint of `im2col`: y (N, C * K, L) added at the places of windows: shape (N, C, *S)"""
    if is_half(y.dtype):
        return _by_planes(lambda some: col2im(some, (len(some), *shape[1:]), geometry), 2, tuple(shape[1:]), y)
    table, windows = _plan(y, shape, geometry, reference.out_sizes(shape[2:], geometry))
    if table is None:
        return reference.col2im(y, shape, geometry)
    x = np.empty(tuple(shape), y.dtype)
    table.col2im(contiguous(y), x, windows)
    return x
