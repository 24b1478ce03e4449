"""Numbers rounded as if they were kept in few bits: fake_quantize_per_tensor_affine, fake_quantize_per_channel_affine.

Gradients pass where nothing was cut off, as Bengio, Leonard and Courville (2013) have it, and nothing else is kept of it: a bit
for each element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import elementwise, function
from rushlight.ops.elementwise.shared import number, recording
from rushlight.ops.reduce.sums import tensor_argument
from rushlight.tensor import Tensor

_SCALES = (dtypes.float32, dtypes.bfloat16)
_ZERO_POINTS = (dtypes.int32, dtypes.float32, dtypes.float16)


def _limited(steps: Array, low: int, high: int) -> object:
    """Numbers of steps cut off at `low` and `high`, NaN at `low`, in place; and where nothing was, if that may be asked for."""
    inside = np.logical_and(steps >= low, steps <= high) if recording() else None
    np.fmax(steps, steps.dtype.type(low), out=steps)
    np.fmin(steps, steps.dtype.type(high), out=steps)
    return inside


def _in_steps(input: Array, scale: float, zero_point: int, low: int, high: int) -> tuple[Array, Any]:
    """`input` in whole steps, and where nothing was cut off."""
    step, kind = np.float32(scale), input.dtype.type
    with np.errstate(all="ignore"):
        steps = np.asarray(input * kind(np.float32(1) / step))
        np.rint(steps, out=steps)
        steps += kind(zero_point)
        inside = _limited(steps, low, high)
        steps -= kind(zero_point)
        return (steps.astype(np.float32, copy=False) * step).astype(input.dtype, copy=False), inside


@elementwise(promote="arith", ns=None, name="fake_quantize_per_tensor_affine_cachemask", refuse="biuc",
             aux=("inside",), planes=1, cut=True, autocast="float32", grads={"input": lambda g, inside: g * inside})  # fmt: skip
def per_tensor(input: Array, scale: float, zero_point: int, low: int, high: int) -> Any:
    """`input` in whole steps of `scale`, of which there are from low - zero_point to high - zero_point.  (*) -> (*)"""
    return _in_steps(input, scale, zero_point, low, high)


@elementwise(promote="arith", ns=None, name="fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
             refuse="biuc", aux=("inside",), planes=1, cut=True, grads={"input": lambda g, inside: g * inside})  # fmt: skip
def per_tensor_of_tensors(input: Array, scale: float, zero_point: int, low: int, high: int) -> Any:
    """`per_tensor` where the settings were tensors, which autocast leaves as it is.  (*) -> (*)"""
    return _in_steps(input, scale, zero_point, low, high)


@elementwise(promote="arith", ns=None, name="fake_quantize_per_channel_affine_cachemask", refuse="biuc",
             aux=("inside",), planes=1, cut=True, grads={"input": lambda g, inside: g * inside})  # fmt: skip
def per_channel(input: Array, scale: Any, zero_point: Any, low: int, high: int) -> tuple[Any, ...]:
    """`per_tensor` with float32 scales and zero points that are broadcast: those of floating point are added before rounding."""
    kind = input.dtype.type
    with np.errstate(all="ignore"):
        steps = np.asarray(input * (np.float32(1) / scale).astype(kind))
        whole = zero_point.dtype.kind == "i"
        if whole:
            np.rint(steps, out=steps)
        steps += zero_point.astype(kind)
        if not whole:
            np.rint(steps, out=steps)
        inside = _limited(steps, low, high)
        out = steps.astype(np.float64, copy=False) - zero_point
        out *= scale
        return out.astype(input.dtype), inside


def _check_range(low: int, high: int) -> None:
    if low > high:
        raise RuntimeError(f"`quant_min` should be less than or equal to `quant_max`, got {low} and {high}")


def _check_floating(name: str, input: Tensor) -> None:
    """Raise NotImplementedError for other than real floating-point numbers, as fake quantization of them is not there."""
    if tensor_argument(name, input).dtype.kind not in "fV":
        raise NotImplementedError(f'"{name}" not implemented for {input.dtype}: expected a floating-point tensor')


def _one(name: str, what: str, value: object) -> Any:
    """The number that a setting of one element is."""
    if not isinstance(value, Tensor):
        return value
    if value.requires_grad:
        raise RuntimeError(
            f"{name} is not differentiable with respect to argument '{what}'. This input cannot have requires_grad True."
        )
    if value.numel() != 1:
        raise RuntimeError(
            f"{name}: a Tensor with {value.numel()} elements cannot be converted to Scalar: expected one {what}"
        )
    return number(value)


@function()
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """Numbers as they come back from a kind of few bits: rounded to steps of `scale`, cut off at the first and the last.

    input: (*) of floating point -> (*).  scale, zero_point: numbers, or tensors of one; quant_min, quant_max: the first and the
    last step, counted from -zero_point.  Gradients pass where nothing is cut off.  Raises RuntimeError where quant_min is larger
    than quant_max, or a zero point that is a number lies without.

    >>> import rushlight as torch
    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.04, 0.16, 9.0]), 0.1, 0, 0, 15)
    tensor([0.0000, 0.2000, 1.5000])
    """
    name = "fake_quantize_per_tensor_affine"
    _check_floating(name, input)
    _check_range(quant_min, quant_max)
    if not isinstance(zero_point, Tensor | int | np.integer):
        raise TypeError(f"{name}(): argument 'zero_point' must be int or Tensor, not {type(zero_point).__name__}")
    if (
        not isinstance(scale, Tensor)
        and not isinstance(zero_point, Tensor)
        and not quant_min <= zero_point <= quant_max
    ):
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`, got {zero_point} for {quant_min} to {quant_max}"
        )
    step, zero = _one(name, "scale", scale), int(_one(name, "zero_point", zero_point))
    run = per_tensor_of_tensors if isinstance(scale, Tensor) or isinstance(zero_point, Tensor) else per_tensor
    return run(input, float(step), zero, int(quant_min), int(quant_max))


@function()
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each place along a dimension.

    input: (*) of floating point -> (*); scale: (C) of float32 or bfloat16; zero_point: (C) of int32, float32 or float16, of which
    the latter two are added before rounding; axis: the dimension of size C.  Raises RuntimeError for others.
    """
    name = "fake_quantize_per_channel_affine"
    _check_channels(name, input, scale, zero_point, axis)
    _check_range(quant_min, quant_max)
    _check_floating(name, input)
    zero = raw(zero_point)
    if zero.dtype.kind == "i" and zero.size and not (quant_min <= zero.min() and zero.max() <= quant_max):
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`, got {zero.min()} to {zero.max()} for {quant_min} "
            f"to {quant_max}"
        )
    shape = (-1, *[1] * (input.dim() - 1 - axis))
    steps, zeros = raw(scale).astype(np.float32).reshape(shape), zero.reshape(shape)
    zeros = zeros if zero.dtype.kind == "i" else zeros.astype(np.float32)
    return per_channel(input, steps, zeros, int(quant_min), int(quant_max))


def _check_channels(name: str, input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> None:
    if scale.dtype not in _SCALES:
        raise RuntimeError(f"{name}: Scale must be Float or BFloat16, found {scale.dtype}")
    if zero_point.dtype not in _ZERO_POINTS:
        raise RuntimeError(f"{name}: Zero-point must be Int32, Float or Half, found {zero_point.dtype}")
    for what, value in (("scale", scale), ("zero_point", zero_point)):
        if value.dim() != 1:
            raise RuntimeError(f"{name}: {what} should be a 1-D tensor, got shape {list(value.shape)}")
        _one(name, what, value[:1]) if value.requires_grad else None
    if scale.numel() != zero_point.numel():
        raise RuntimeError(
            f"{name}: scale and zero-point need to have the same dimensions, got {scale.numel()} and {zero_point.numel()}"
        )
    if not -input.dim() <= axis < input.dim():
        raise IndexError(
            f"{name}: Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {axis})"
        )
    if scale.numel() != input.shape[axis]:
        raise RuntimeError(
            f"{name}: dimensions of scale and zero-point are not consistent with input tensor: got {scale.numel()} for size "
            f"{input.shape[axis]}"
        )
    if axis < 0:
        raise RuntimeError(f"{name}: `axis` must be between 0 and number of dimensions of input, got {axis}")
