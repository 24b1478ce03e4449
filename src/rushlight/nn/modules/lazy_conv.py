"""Convolutions whose `in_channels` is that of their first input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.parameter import UninitializedParameter
from rushlight.tensor import Tensor

__all__ = [
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes `in_channels` from the first input."""

    def _make_lazy(
        self: object, out_channels: int, bias: bool, device: device | str | int | None, dtype: dtype | None
    ) -> None:
        """After construction with no channels: weights without a shape."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new weights, once they have a shape."""
        module: Any = self
        if not self.has_uninitialized_params() and module.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take `in_channels` from the input and make the weights.  Raises RuntimeError for a wrong dimension."""
        self.in_channels = self._get_in_channels(input)
        if not self.has_uninitialized_params():
            return  # weights were loaded before the first input
        if self.in_channels % self.groups != 0:
            raise ValueError(f"in_channels must be divisible by groups, got {self.in_channels} and {self.groups}")
        first, second = self.out_channels, self.in_channels // self.groups
        if self.transposed:
            first, second = self.in_channels, self.out_channels // self.groups
        self.weight.materialize((first, second, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self: Any, input: Tensor) -> int:
        n = len(self.kernel_size)
        if input.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of "
                f"size: {input.shape}"
            )
        return int(input.shape[-n - 1])


class _LazyConv(_LazyConvXdMixin):
    """The constructor of the lazy convolutions that are not transposed."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device, dtype=dtype
        )
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    """The constructor of the lazy transposed convolutions."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device=device,
            dtype=dtype,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d whose `in_channels` is that of its first input; it becomes a Conv1d then."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d whose `in_channels` is that of its first input; it becomes a Conv2d then."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d whose `in_channels` is that of its first input; it becomes a Conv3d then."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d whose `in_channels` is that of its first input; it becomes a ConvTranspose1d then."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d whose `in_channels` is that of its first input; it becomes a ConvTranspose2d then."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d whose `in_channels` is that of its first input; it becomes a ConvTranspose3d then."""

    cls_to_become = ConvTranspose3d
