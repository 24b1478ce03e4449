"""Padding of sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple, _pair, _quadruple
from rushlight.tensor import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_sextuple = _ntuple(6, "_sextuple")


class _PadNd(Module):
    """Padding at both ends of the last dimensions, the last one first."""

    _spread: Any = None
    _mode = "constant"
    padding: tuple[int, ...]

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = type(self)._spread(padding)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> longer ones."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """The numbers of elements added."""
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    """Padding with the other end."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> longer ones.  Raises ValueError for other numbers of dimensions."""
        n = len(self.padding) // 2
        if input.ndim not in (n + 1, n + 2):
            raise ValueError(f"{type(self).__name__}: expected {n + 1}D or {n + 2}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads sequences with elements of the other end.  `padding`: one number or (left, right)."""

    _spread = staticmethod(_pair)


class CircularPad2d(_CircularPadNd):
    """Pads images with elements of the other end.  `padding`: one number or (left, right, top, bottom)."""

    _spread = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    """Pads volumes with elements of the other end.  `padding`: one number or six."""

    _spread = staticmethod(_sextuple)


class _ConstantPadNd(_PadNd):
    """Padding with one value."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> longer ones."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The numbers of elements added, and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads sequences with `value`.  `padding`: one number or (left, right)."""

    _spread = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Pads images with `value`.  `padding`: one number or (left, right, top, bottom)."""

    _spread = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads volumes with `value`.  `padding`: one number or six."""

    _spread = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    """Padding with the elements mirrored at the border."""

    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads sequences with their mirror image.  `padding`: one number or (left, right)."""

    _spread = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads images with their mirror image.  `padding`: one number or (left, right, top, bottom)."""

    _spread = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads volumes with their mirror image.  `padding`: one number or six."""

    _spread = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    """Padding with the outermost element."""

    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads sequences with their outermost elements.  `padding`: one number or (left, right)."""

    _spread = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads images with their outermost elements.  `padding`: one number or (left, right, top, bottom)."""

    _spread = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads volumes with their outermost elements.  `padding`: one number or six."""

    _spread = staticmethod(_sextuple)


class ZeroPad1d(ConstantPad1d):
    """Pads sequences with zeros.  `padding`: one number or (left, right)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad2d(ConstantPad2d):
    """Pads images with zeros.  `padding`: one number or (left, right, top, bottom)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad3d(ConstantPad3d):
    """Pads volumes with zeros.  `padding`: one number or six."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr
