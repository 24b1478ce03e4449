"""``torch._prims_common``: small questions about tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["canonicalize_dim", "is_channels_last_contiguous", "is_contiguous", "is_contiguous_or_false",
           "make_contiguous_strides_for"]  # fmt: skip


def is_contiguous(a: Any) -> bool:
    """Whether the elements lie in order."""
    return bool(a.is_contiguous())


is_contiguous_or_false = is_contiguous


def is_channels_last_contiguous(a: Any) -> bool:
    """Whether the elements of a picture lie with its channels last."""
    from rushlight.dispatch.formats import channels_last

    return a.dim() == 4 and bool(a.is_contiguous(memory_format=channels_last))


def make_contiguous_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor of this shape whose elements lie in order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def canonicalize_dim(rank: int, idx: int) -> int:
    """A dimension counted from the first.  Raises IndexError for one that is not there."""
    if not -max(rank, 1) <= idx < max(rank, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, {max(rank, 1) - 1}], but got {idx})"
        )
    return idx % max(rank, 1)
