"""Windows as columns and back, and rearrangements of channels and pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.formats import contiguous_format
from rushlight.dispatch.operands import held
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import laid_out
from rushlight.kernels.reference.windows import Geometry, out_sizes
from rushlight.ops.conv.convolutions import spread
from rushlight.ops.elementwise.convert import copy, in_order_of
from rushlight.ops.shape.reshape import permute_op, reshape_op
from rushlight.tensor import Tensor


@op(aten=("im2col",), aten_call="columns", half=None, linear=True, batch=families.images)
def im2col_op(input: Array, geometry: tuple[Any, ...]) -> Array:
    """Windows of input (N, C, *S) as columns: (N, C * K, L)"""
    return backend.im2col(input, geometry)


@im2col_op.shape
def _(input: Array, geometry: Any) -> list[shapes.Made]:
    places = math.prod(out_sizes(input.shape[2:], geometry))
    return [shapes.Made((input.shape[0], input.shape[1] * math.prod(geometry[0]), places), input.dtype)]


im2col_op.grad("input")(lambda g, input_shape, geometry: col2im_op(g, input_shape, geometry))


@op(aten=("col2im",), half=None, linear=True, batch=families.images)
def col2im_op(input: Array, size: tuple[int, ...], geometry: tuple[Any, ...]) -> Array:
    """Columns (N, C * K, L) added at their places: size (N, C, *S)"""
    return backend.col2im(input, size, geometry)


@col2im_op.work
def _(input: Array) -> int:
    return laid_out(input)


@col2im_op.shape
def _(input: Array, size: tuple[int, ...]) -> list[shapes.Made]:
    return [shapes.Made(tuple(size), input.dtype)]


col2im_op.grad("input")(lambda g, geometry: im2col_op(g, geometry))


def _geometry(
    name: str,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> Geometry:
    kernel, stride = spread(name, "kernel_size", kernel_size, 2), spread(name, "stride", stride, 2)
    padding, dilation = spread(name, "padding", padding, 2), spread(name, "dilation", dilation, 2)
    for what, values in (("kernel size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(values) < 1:
            raise RuntimeError(f"{name}: {what} should be greater than zero, but got {values}")
    if min(padding) < 0:
        raise RuntimeError(f"{name}: padding should be non-negative, but got {padding}")
    return kernel, stride, padding, dilation


@function(ns="nn.functional")
def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Sliding windows as columns.  input: (N, C, H, W) or (C, H, W) -> (N, C * K, L)"""
    shape = input.shape
    if len(shape) not in (3, 4) or any(s == 0 for s in shape[-3:]):
        raise RuntimeError(f"unfold: expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                           f"dimensions for input, but got: {list(shape)}")  # fmt: skip
    geometry = _geometry("unfold", kernel_size, dilation, padding, stride)
    out = out_sizes(tuple(shape[-2:]), geometry)
    if min(out) < 1:
        raise RuntimeError(f"unfold: Given input with spatial size {tuple(shape[-2:])}, kernel_size={geometry[0]}, calculated "
                           f"shape of the array of sliding blocks as {out}, but its components must be at least one")  # fmt: skip
    if len(shape) == 3:
        return im2col_op(reshape_op(input, (1, *shape)), geometry)[0]
    return im2col_op(input, geometry)


@function(ns="nn.functional")
def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Columns added at the places of their windows.  input: (N, C * K, L) or (C * K, L) -> (N, C, *output_size)"""
    shape = input.shape
    if len(shape) not in (2, 3) or any(s == 0 for s in shape[-2:]):
        raise RuntimeError(f"fold: expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
                           f"dimensions for input, but got: {list(shape)}")  # fmt: skip
    size = spread("fold", "output_size", output_size, 2)
    geometry = _geometry("fold", kernel_size, dilation, padding, stride)
    window = math.prod(geometry[0])
    if shape[-2] % window:
        raise RuntimeError(f"fold: expected size of input's dimension {len(shape) - 2} to be divisible by the product of "
                           f"kernel_size, but got input.size={shape[-2]} and kernel_size={geometry[0]}")  # fmt: skip
    blocks = math.prod(out_sizes(size, geometry))
    if shape[-1] != blocks:
        raise RuntimeError(f"fold: given output_size={size}, kernel_size={geometry[0]}, expected size of input's last "
                           f"dimension to match the calculated number of sliding blocks {blocks}, but got {shape[-1]}")  # fmt: skip
    x = reshape_op(input, (1, *shape)) if len(shape) == 2 else input
    y = col2im_op(x, (x.shape[0], shape[-2] // window, *size), geometry)
    return y[0] if len(shape) == 2 else y


# Rearrangements --------------------------------------------------------------------------------------


def _at_least(name: str, input: Tensor, n: int) -> None:
    if len(input.shape) < n:
        raise RuntimeError(
            f"{name} expects input to have at least {n} dimensions, but got input with {len(input.shape)}"
        )


def _apart(result: Tensor, input: Tensor) -> Tensor:
    """`result` on memory of its own: rearrangements are no views, also where strides would have allowed one."""
    a, b = held(result), held(input)
    if a.__class__ is np.ndarray and b.__class__ is np.ndarray and call.aliases(a, b):
        return copy(result, contiguous_format)
    return result


@function()
@function(ns="nn.functional")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C * r^2, H, W) -> (*, C, H * r, W * r) with r = upscale_factor."""
    _at_least("pixel_shuffle", input, 3)
    r, (*lead, c, h, w) = upscale_factor, input.shape
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if c % (r * r):
        raise RuntimeError(f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                           f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}")  # fmt: skip
    n = len(lead)
    x = reshape_op(input, (*lead, c // (r * r), r, r, h, w))
    x = permute_op(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return in_order_of(_apart(reshape_op(x, (*lead, c // (r * r), h * r, w * r)), input), input)


@function()
@function(ns="nn.functional")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H * r, W * r) -> (*, C * r^2, H, W) with r = downscale_factor."""
    _at_least("pixel_unshuffle", input, 3)
    r, (*lead, c, h, w) = downscale_factor, input.shape
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for which, at, size in (("height", -2, h), ("width", -1, w)):
        if size % r:
            raise RuntimeError(f"pixel_unshuffle expects {which} to be divisible by downscale_factor, but input.size({at})={size} "
                               f"is not divisible by {r}")  # fmt: skip
    n = len(lead)
    x = reshape_op(input, (*lead, c, h // r, r, w // r, r))
    x = permute_op(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return in_order_of(_apart(reshape_op(x, (*lead, c * r * r, h // r, w // r)), input), input)


def _channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels (N, C, *) dealt out between `groups` groups."""
    if len(input.shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    n, c = input.shape[:2]
    if groups <= 0:
        raise RuntimeError(f"channel_shuffle: Number of groups to divide channels in must be positive, got {groups}")
    if c % groups:
        raise RuntimeError(
            f"channel_shuffle: Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    rest = tuple(input.shape[2:])
    x = reshape_op(input, (n, groups, c // groups, *rest))
    x = permute_op(x, (0, 2, 1, *range(3, len(rest) + 3)))
    return in_order_of(_apart(reshape_op(x, (n, c, *rest)), input), input)


function(name="channel_shuffle", aliases=("native_channel_shuffle",))(_channel_shuffle)
function(name="channel_shuffle", ns="nn.functional", aliases=("native_channel_shuffle",))(_channel_shuffle)
