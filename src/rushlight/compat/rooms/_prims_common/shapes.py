"""Shapes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch import formats
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.formats import channels_last

__all__ = ["canonicalize_dim", "canonicalize_dims", "compute_required_storage_length", "is_channels_last_contiguous",
           "is_contiguous", "is_contiguous_or_false", "is_expandable_to", "is_same_shape",
           "make_contiguous_strides_for", "suggest_memory_format"]  # fmt: skip


def is_contiguous(a: Any) -> bool:
    """Whether the elements lie in order."""
    return bool(a.is_contiguous())


is_contiguous_or_false = is_contiguous


def is_channels_last_contiguous(a: Any) -> bool:
    """Whether the elements of a picture lie with its channels last."""
    return a.dim() == 4 and bool(a.is_contiguous(memory_format=channels_last))


def suggest_memory_format(x: Any) -> Any:
    """The memory format in which a result of the same shape would lie: with the channels of a picture or volume last, or in order."""
    if not formats.lies_channels_last(x._array):
        return formats.contiguous_format
    return formats.channels_last if x.dim() == 4 else formats.channels_last_3d


def make_contiguous_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor of this shape whose elements lie in order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def canonicalize_dim(rank: int, idx: int) -> int:
    """A dimension counted from the first.  Raises IndexError for one that is not there."""
    return wrap_dim(idx, rank)


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """One dimension or several, each counted from the first."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices)
    return tuple(canonicalize_dim(rank, index) for index in indices)


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are one."""
    return tuple(a) == tuple(b)


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Whether `expand` makes the one of the other."""
    if len(shape) > len(desired):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(desired), strict=False))


def compute_required_storage_length(shape: Sequence[int], strides: Sequence[int], storage_offset: int) -> int:
    """How many elements memory must have for a tensor of this shape, these strides and this offset."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + storage_offset
