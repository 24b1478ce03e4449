"""Rounding to few bits within running limits that are seen on the way: fused_moving_avg_obs_fake_quant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function
from rushlight.engine.modes import no_grad
from rushlight.ops.elementwise.convert import copy_
from rushlight.ops.elementwise.quantize import fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine
from rushlight.tensor import Tensor, wrap

SMALL = 6.1e-5  # scales are not smaller


@function()
def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """`input` rounded to steps between running means of its limits, which this call counts to.

    input: (*) of floating point -> (*).  observer_on, fake_quant_on: whether limits, scales and zero points change, in place, and
    whether `input` is rounded.  per_row_fake_quant: limits for each place along `ch_axis`.  symmetric_quant: steps about zero.
    """
    if ch_axis >= input.dim():
        raise RuntimeError(f"Error in fused_moving_avg_obs_fake_quant: ch_axis must be < {input.dim()}, got {ch_axis}")
    if observer_on.item():
        _watch(raw(input), running_min, running_max, averaging_const, ch_axis if per_row_fake_quant else None)
        pairs = [_steps(float(low), float(high), quant_min, quant_max, symmetric_quant)
                 for low, high in zip(running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist(), strict=True)]  # fmt: skip
        _keep(scale, np.array([pair[0] for pair in pairs], np.float32))
        _keep(zero_point, np.array([pair[1] for pair in pairs], np.int32))
    if not fake_quant_on.item():
        return input
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


def _watch(x: Array, low: Tensor, high: Tensor, weight: float, axis: int | None) -> None:
    """Let the limits of `x` count in the running ones."""
    over = None if axis is None else tuple(i for i in range(x.ndim) if i != axis)
    for kept, seen, unseen in ((low, x.min(over), math.inf), (high, x.max(over), -math.inf)):
        value, old = np.asarray(seen, np.float32), raw(kept)
        if old.size == value.size:
            old = old.reshape(value.shape)
            value = np.where(old == unseen, value, old + np.float32(weight) * (value - old))
        _keep(kept, value)


def _keep(kept: Tensor, value: Array) -> None:
    with no_grad():
        if kept.numel() != value.size:
            kept.resize_(value.shape)
        copy_(kept, wrap(value.reshape(kept.shape)))


def _steps(low: float, high: float, first: int, last: int, symmetric: bool) -> tuple[float, int]:
    """The scale and the zero point of limits, of which 0 is made one where both lie on one side; a step is at 0 always.

    After `ChooseQuantizationParams` of FBGEMM, in double precision.
    """
    both = low < 0 < high and symmetric
    if both:
        down, up = -((last - first) // 2 + 1), (last - first) // 2
        widest = max(abs(low / down), abs(high / up))
        low, high = _f32(widest * down), _f32(widest * up)
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (last - first)
    if _f32(scale) == 0 or (abs(_f32(scale)) < 1 / 3.4028234663852886e38):
        scale = 0.1
    if scale < SMALL:
        low, high, scale = _widened(low, high, scale, last - first)
    scale = _f32(scale)
    return scale, _zero_point(low / scale, high / scale, first, last, both)


def _f32(x: float) -> float:
    return float(np.float32(x))


def _widened(low: float, high: float, scale: float, steps: int) -> tuple[float, float, float]:
    """Limits between which steps have the smallest scale."""
    if low == 0:
        return low, SMALL * steps, SMALL
    if high == 0:
        return -SMALL * steps, high, SMALL
    return low * SMALL / scale, high * SMALL / scale, SMALL


def _zero_point(low: float, high: float, first: int, last: int, symmetric: bool) -> int:
    """The step at 0, of limits in steps: reckoned from the limit from which less is lost."""
    by_low = abs(first) + abs(low) < abs(last) + abs(high)
    found: Any = (first + last) / 2 if symmetric else first - low if by_low else last - high
    return int(min(max(first, np.rint(found)), last))
