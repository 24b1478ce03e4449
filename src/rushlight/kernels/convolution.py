"""Convolutions: the kernels that operators call.  See `kernels.reference.windows` for the legend of shapes."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import FLOAT32, agree, contiguous, gapless, is_half, native, rounded, widened
from rushlight.kernels.native.signatures import exports, exports_of_bfloat16
from rushlight.kernels.products import BFLOAT16, Convolutions, ways
from rushlight.kernels.reference import windows as reference
from rushlight.kernels.rows import across

__all__ = ["conv", "conv_input", "conv_weight"]

exports_of_bfloat16(
    # conv_pairs.h: as the next ones, the first with a bias or None, the third returns whether all numbers are finite
    conv="aaaaa",
    conv_input="aaaa",
    conv_weight="aaaa>n",
    conv_room="ai>n",
)

exports(
    # conv.cpp: two operands, result, windows (see windows.h)
    conv="aaaa",
    conv_input="aaaa",
    conv_weight="aaaa",
    conv_room="ai>n",  # windows, which of them
    # channels.cpp: two operands, result, windows
    channel_conv="aaaa",
    channel_conv_input="aaaa",
    channel_conv_weight="aaaa",
)

_WIDE = 24  # columns from which on groups are worth what packing costs
_TAPS = 4096  # kernel positions of the largest kernel that native code takes: it keeps a table of them
_COLUMNS = 1024  # more than a native strip has
_CHANNELS = 8  # of a group, from which on pairs of 16-bit numbers fill what multiplies them
_POSITIONS = 8  # of an output, from which on likewise

_add_across = across(np.add)


@functools.lru_cache(256)
def _windows(
    x: tuple[int, ...], w: tuple[int, ...], out: tuple[int, ...], groups: int, *geometry: tuple[int, ...]
) -> object:
    """`struct Windows` of native code as an array of its numbers; None for what native code does not take."""
    n = len(out)
    if n > 3 or 0 in (*x, *w, *out) or math.prod(w[2:]) > _TAPS:
        return None
    if not countable(2**28, out, w[2:], *geometry):
        return None
    if _by_channel(x, w, groups) and not paddable(x[2:], out, w[2:], *geometry):
        return None
    images = _COLUMNS // math.prod(out) + 2  # in one strip; places in them are counted in 32 bits
    if images * max(x[1] * math.prod(x[2:]), w[0] * math.prod(out)) >= 2**31:
        return None
    return numbers((x[0], x[1], w[0], groups), (x[2:], out, w[2:], *geometry))


def paddable(
    size: tuple[int, ...],
    out: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    _: tuple[int, ...],
    dilation: tuple[int, ...],
) -> bool:
    """Whether what windows reach, padding included, is little more than the input: by channel, it is copied."""
    places = zip(out, kernel, stride, dilation, strict=True)
    reach = math.prod((o - 1) * s + (k - 1) * d + 1 for o, k, s, d in places)
    return bool(reach <= 8 * math.prod(size) + 2**16)


def countable(
    most: int,
    out: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> bool:
    """Whether native code can count the places that windows reach, in the padding too."""
    reaches = [n * each for n, each in zip((*out, *kernel), (*stride, *dilation), strict=True)]
    return all(reach < most for reach in (*reaches, *padding))


def numbers(counts: tuple[int, ...], sizes: tuple[Any, ...]) -> Array:
    """`struct Windows`: images, channels, outputs, groups; input, output, kernel, stride, padding, dilation in 3D."""
    rows = [((0,) if i == 4 else (1,)) * (3 - len(row)) + tuple(row) for i, row in enumerate(sizes)]
    return np.array([*counts, *(number for row in rows for number in row)], np.int64)


def _plan(a: Array, b: Array, *shapes: object) -> tuple[Any, Any]:
    """The native table for two operands, and their windows; None twice where the reference has to do."""
    table = native(a.dtype)
    if table is None or a.dtype != b.dtype:
        return None, None
    windows = _windows(*shapes)
    return (None, None) if windows is None else (table, windows)


@functools.lru_cache(256)
def _pairs(
    adjoint: str, x: tuple[int, ...], w: tuple[int, ...], out: tuple[int, ...], groups: int, *geometry: tuple[int, ...]
) -> object:
    """The windows of a convolution of bfloat16 whose numbers are multiplied in pairs; None where float32 does it."""
    outputs, channels = w[0] // groups, w[1] * (w[-1] if w[1] < _CHANNELS else 1)
    added = {"": channels, "input": outputs, "weight": max(channels, outputs)}[adjoint]
    fits = added >= _CHANNELS and (groups == 1 or min(w[1], outputs) >= _CHANNELS) and math.prod(out) >= _POSITIONS
    return _windows(x, w, out, groups, *geometry) if fits and paddable(x[2:], out, w[2:], *geometry) else None


def _plan_of_pairs(adjoint: str, dtype: np.dtype[Any], *shapes: Any) -> tuple[Convolutions | None, Any]:
    """The kernels for numbers of 16 bits, and the windows; None where float32 does it.  adjoint: "", "input", "weight"."""
    way = next(iter(ways()), None) if dtype == BFLOAT16 else None
    windows = None if way is None else _pairs(adjoint, *shapes)
    return (None, None) if way is None or windows is None else (way.convolutions, windows)


def _by_channel(x: tuple[int, ...], w: tuple[int, ...], groups: int) -> bool:
    """Whether each group is one channel, of which few outputs are made: of more, the products are worth what packing costs."""
    return bool(x[1] == groups and w[0] <= 8 * groups)


def _forward_by_channel(x: tuple[int, ...], w: tuple[int, ...], groups: int, stride: tuple[int, ...]) -> bool:
    """The same of the convolution itself, which reads large windows beside each other, of four outputs and more, at once."""
    large = len(w) == 4 and min(w[2:]) >= 5 and w[0] >= 4 * groups and max(stride) == 1
    return _by_channel(x, w, groups) and not (large and (groups == 1 or x[-1] >= _WIDE))


def working_bytes(
    adjoint: str,
    x: Any,
    w: Any,
    out: Any,
    dtype: np.dtype[Any],
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> int:
    """Bytes that a kernel takes for itself while it runs, beside its result, of operands without gaps.

    x, w, out: shapes; adjoint: "" for `conv`, "input", "weight".
    """
    which, shapes = (
        ord(adjoint[:1] or "c"),
        (*map(tuple, (x, w, out)), groups, *map(tuple, (stride, padding, dilation))),
    )
    if is_half(dtype):
        kernels, windows = _plan_of_pairs(adjoint, dtype, *shapes)
        if kernels is not None:
            return int(kernels.room(windows, which))
        counts = {"input": math.prod(x), "weight": math.prod(w), "": x[0] * w[0] * math.prod(out)}
        wide = 4 * sum(counts.values()) + working_bytes(adjoint, x, w, out, FLOAT32, stride, padding, dilation, groups)
        own = counts[adjoint]
        return max(wide - 2 * own, 4 * own)  # the result comes when all but itself in float32 is gone
    table = native(dtype)
    if table is None or (_by_channel(x, w, groups) if adjoint else _forward_by_channel(x, w, groups, stride)):
        return 0
    windows = _windows(*shapes)
    return 0 if windows is None else int(table.conv_room(windows, which))


def bytes_of_copies(
    operands: tuple[Array, Array],
    adjoint: str,
    x: Any,
    w: Any,
    out: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> int:
    """Bytes of the copies that a kernel takes of operands with gaps.  x, w, out: shapes, as of `working_bytes`"""
    laid, dtype = [a for a in operands if not a.flags.c_contiguous], operands[0].dtype
    if laid and is_half(dtype):
        shapes = (*map(tuple, (x, w, out)), groups, *map(tuple, (stride, padding, dilation)))
        if _plan_of_pairs(adjoint, dtype, *shapes)[0] is None:
            # What has gaps has none any more in float32, as it is there anyway.
            return sum(2 * a.nbytes for a in laid if gapless(a))
    return sum(a.nbytes for a in laid)


def _check(g: Array, x: tuple[int, ...], w: tuple[int, ...], geometry: tuple[Any, ...], groups: int) -> None:
    """Raise RuntimeError unless g has the shape of the convolution of shapes x and w, or lacks the last places of it."""
    fits = len(x) == len(w) == g.ndim and x[1] == w[1] * groups
    out = reference.out_sizes(tuple(x[2:]), (tuple(w[2:]), *geometry)) if fits else ()
    if not fits or any(size > most for size, most in zip(g.shape[2:], out, strict=True)):
        raise RuntimeError(f"convolution: outputs of shape {list(g.shape)} are not those of an input of {list(x)} and a "
                           f"weight of {list(w)}")  # fmt: skip
    agree("convolution", (x[0], w[0], *g.shape[2:]), g)


def conv(
    x: Array,
    w: Array,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    bias: Array | None = None,
) -> Any:
    """Cross-correlation.  x: (N, C, *S), w: (O, C/G, *K), bias: (O), added before 16-bit sums are rounded -> (N, O, *L)"""
    geometry = (tuple(w.shape[2:]), tuple(stride), tuple(padding), tuple(dilation))
    out = reference.out_sizes(x.shape[2:], geometry)
    if is_half(x.dtype):
        kernels, windows = _plan_of_pairs("", x.dtype, x.shape, w.shape, out, groups, *geometry[1:])
        if kernels is None:
            wide = None if bias is None else widened(bias)
            return rounded(conv(widened(x), widened(w), stride, padding, dilation, groups, wide), x.dtype)
        y = np.empty((x.shape[0], w.shape[0], *out), x.dtype)
        kernels.conv(_bits(x), _bits(w), None if bias is None else _bits(bias), y.view(np.uint16), windows)
        return y
    table, windows = _plan(x, w, x.shape, w.shape, out, groups, *geometry[1:])
    if table is None:
        y = reference.conv(x, w, stride, padding, dilation, groups)
    else:
        y = np.empty((x.shape[0], w.shape[0], *out), x.dtype)
        run = table.channel_conv if _forward_by_channel(x.shape, w.shape, groups, stride) else table.conv
        run(contiguous(x), contiguous(w), y, windows)
    return y if bias is None else _add_across(y, bias.reshape(-1, *[1] * (y.ndim - 2)), out=y)


def _bits(x: Array) -> Array:
    """Numbers of 16 bits in C order, as native code takes them."""
    return contiguous(x).view(np.uint16)


def conv_input(
    g: Array,
    w: Array,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Any:
    """The adjoint of `conv` in x.  g: (N, O, *L), w: (O, C/G, *K) -> shape (N, C, *S)"""
    geometry = (tuple(stride), tuple(padding), tuple(dilation))
    if is_half(g.dtype):
        return _input_of_halves(g, w, tuple(shape), geometry, groups)
    _check(g, shape, w.shape, geometry, groups)
    table, windows = _plan(g, w, tuple(shape), w.shape, g.shape[2:], groups, *geometry)
    if table is None:
        return reference.conv_input(g, w, shape, stride, padding, dilation, groups)
    x = np.empty(tuple(shape), g.dtype)
    run = table.channel_conv_input if _by_channel(shape, w.shape, groups) else table.conv_input
    run(contiguous(g), contiguous(w), x, windows)
    return x


def _input_of_halves(g: Array, w: Array, shape: tuple[int, ...], geometry: Any, groups: int) -> Array:
    """`conv_input` of 16-bit numbers."""
    _check(g, shape, w.shape, geometry, groups)
    stride, padding, dilation = geometry
    kernels, windows = _plan_of_pairs("input", g.dtype, shape, w.shape, g.shape[2:], groups, *geometry)
    if kernels is None:
        return rounded(conv_input(widened(g), widened(w), shape, stride, padding, dilation, groups), g.dtype)
    x = np.empty(shape, g.dtype)
    kernels.conv_input(_bits(g), _bits(w), x.view(np.uint16), windows)
    return x


def conv_weight(
    g: Array,
    x: Array,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Any:
    """The adjoint of `conv` in w.  g: (N, O, *L), x: (N, C, *S) -> shape (O, C/G, *K)"""
    geometry = (tuple(stride), tuple(padding), tuple(dilation))
    if is_half(g.dtype):
        return _weight_of_halves(g, x, tuple(shape), geometry, groups)
    _check(g, x.shape, shape, geometry, groups)
    table, windows = _plan(g, x, x.shape, tuple(shape), g.shape[2:], groups, *geometry)
    if table is None:
        return reference.conv_weight(g, x, shape, stride, padding, dilation, groups)
    w = np.empty(tuple(shape), g.dtype)
    run = table.channel_conv_weight if _by_channel(x.shape, shape, groups) else table.conv_weight
    run(contiguous(g), contiguous(x), w, windows)
    return w


def _weight_of_halves(g: Array, x: Array, shape: tuple[int, ...], geometry: Any, groups: int) -> Array:
    """`conv_weight` of 16-bit numbers."""
    _check(g, x.shape, shape, geometry, groups)
    stride, padding, dilation = geometry
    kernels, windows = _plan_of_pairs("weight", g.dtype, x.shape, shape, g.shape[2:], groups, *geometry)
    if kernels is not None:
        w = np.empty(shape, g.dtype)
        if kernels.conv_weight(_bits(g), _bits(x), w.view(np.uint16), windows):
            return w
        # What is infinite or NaN in an image met zeros between two rows of `g`, too: the sums are made without them.
        del w
    return rounded(conv_weight(widened(g), widened(x), shape, stride, padding, dilation, groups), g.dtype)
