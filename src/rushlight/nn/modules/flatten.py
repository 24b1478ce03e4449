"""Flatten and Unflatten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """(*, a, ..., z, *) -> (*, a * ... * z, *)."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension `dim` into `unflattened_size`: a tuple, list or Size, one of whose sizes may be -1."""

    def __init__(self, dim: int | str, unflattened_size: Sequence[Any]) -> None:
        super().__init__()
        if isinstance(dim, int):
            _need_sizes(unflattened_size)
        else:
            raise TypeError(
                f"Unflatten: `dim` must be an int (named dimensions are not supported), got {type(dim).__name__}"
            )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """(*, n, *) -> (*, *unflattened_size, *)."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Dimension and sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


def _need_sizes(sizes: Sequence[Any]) -> None:
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}")
    for i, size in enumerate(sizes):
        if not isinstance(size, int):
            raise TypeError(f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} "
                            f"at pos {i}")  # fmt: skip
