"""``make_tensor``: tensors of random elements for tests, in every dtype and layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.caller import warn
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.named import named
from rushlight.tensor import Tensor

__all__ = ["make_tensor"]

OWN = {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}  # dtypes in which numbers are drawn


def make_tensor(
    *shape: int | Sequence[int],
    dtype: dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of this shape, its elements drawn evenly from [low, high), up to rounding.  -> (*shape)

    The bounds are cut to what the dtype holds. Without them they are 0 and 2 for bool, 0 and 10 for uint8, -9 and 10 for
    other integers, -9 and 9 for floating-point and complex numbers, whose real and imaginary parts are drawn alike.

    noncontiguous: every second element of a larger tensor, where there are two elements or more.
    exclude_zero: zeros become the smallest positive number: True, 1, or the smallest normal one.

    Raises ValueError for bounds that are NaN, in the wrong order or outside of the dtype, for `requires_grad` of integers
    and for `noncontiguous` beside `memory_format`; TypeError for a dtype that is none.

    >>> import rushlight as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.float32, device="cpu", noncontiguous=True).stride()
    (6, 2)
    """
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            f"make_tensor(): the requested dtype {dtype!r} is not supported: expected one of torch's dtypes"
        )
    sizes = _sizes(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}")  # fmt: skip
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    spread = noncontiguous and math.prod(sizes) > 1
    drawn = _drawn([*sizes[:-1], 2 * sizes[-1]] if spread else sizes, dtype, device, low, high)
    if exclude_zero:
        drawn.masked_fill_(drawn == 0, _smallest(dtype))
    made = drawn[..., 1::2] if spread else drawn
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.requires_grad_() if requires_grad else made


def _sizes(shape: tuple[Any, ...]) -> list[int]:
    """make_tensor(2, 3) and make_tensor((2, 3)) say the same."""
    return list(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else list(shape)


def _smallest(dtype: dtype) -> float:
    """The smallest positive number of a dtype, of floating-point ones the smallest normal number."""
    return dtypes.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1


def _drawn(sizes: list[int], dtype: dtype, device: Any, low: float | None, high: float | None) -> Tensor:
    """Even draws, contiguous."""
    if dtype.is_floating_point or dtype.is_complex:
        return _numbers(sizes, dtype, device, low, high)
    if dtype == dtypes.bool:
        bounds = _bounds(dtype, low, high, 0, 2, 0, 2)
    else:
        info = dtypes.iinfo(dtype)
        lowest = 0 if dtype == dtypes.uint8 else -9
        bounds = _bounds(dtype, low, high, lowest, 10, info.min, info.max + 1)
    drawn_as = dtypes.int64 if dtype == dtypes.bool else dtype
    low, high = (math.ceil(bound) for bound in bounds)
    drawn: Tensor = named.randint(low, high, sizes, dtype=drawn_as, device=device).to(dtype)
    return drawn


def _numbers(sizes: list[int], dtype: dtype, device: object, low: float | None, high: float | None) -> Tensor:
    """Even draws of floating-point numbers, in their dtype."""
    info = dtypes.finfo(dtype)
    lower, upper = _bounds(dtype, low, high, -9, 9, info.min, info.max)
    parts = [*sizes, 2] if dtype.is_complex else sizes
    kind = dtype if dtype in OWN else dtypes.float64 if dtype is dtypes.complex128 else dtypes.float32
    fits = upper - lower <= dtypes.finfo(kind).max  # else halves are drawn
    values = named.empty(parts, dtype=kind, device=device).uniform_(
        lower if fits else lower / 2, upper if fits else upper / 2
    )
    values = values if fits else values.mul_(2)
    return named.view_as_complex(values).to(dtype) if dtype.is_complex else values.to(dtype)  # type: ignore[no-any-return]


def _bounds(
    dtype: dtype, low: Any, high: Any, default_low: Any, default_high: Any, least: float, most: float
) -> tuple[Any, Any]:
    """The bounds, cut to what the dtype holds.  Raises ValueError where nothing lies between them."""
    low, high = default_low if low is None else low, default_high if high is None else high
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    inexact = dtype.is_floating_point or dtype.is_complex
    if low == high and inexact:
        warn(
            "make_tensor: low == high is deprecated for floating-point and complex dtypes: use torch.full",
            FutureWarning,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
                         f"[{least}, {most})")  # fmt: skip
    return min(max(low, least), most), max(min(high, most), least)
