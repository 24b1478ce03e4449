"""Convolutions in one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.lazily import lazily
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")
_LAZY = {"LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
         "LazyConvTranspose3d"}  # fmt: skip


__getattr__ = lazily(__name__, places=dict.fromkeys(_LAZY, "rushlight.nn.modules.lazy_conv"))


class _ConvNd(Module):
    """What all convolutions share.  weight: (out, in / groups, *kernel), transposed (in, out / groups, *kernel)."""

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Any
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: int | Sequence[int] | str,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, groups, stride, padding, padding_mode)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel_size
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.transposed, self.output_padding = transposed, output_padding
        self.groups, self.padding_mode = groups, padding_mode
        self._reversed_padding_repeated_twice = self._explicit_padding()
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(ops.empty((first, second // groups, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(ops.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _explicit_padding(self) -> list[int] | tuple[int, ...]:
        """The padding in the order of `functional.pad`, with "same" as numbers."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        found: list[int] = []
        for dilation, size in zip(reversed(self.dilation), reversed(self.kernel_size), strict=True):
            total = dilation * (size - 1) if self.padding == "same" else 0
            found += [total // 2, total - total // 2]
        return found

    def reset_parameters(self) -> None:
        """Draw new weights, uniform in +-1 / sqrt(fan in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Sizes, and what differs from the defaults."""
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        zeros, ones = (0,) * len(self.kernel_size), (1,) * len(self.kernel_size)
        for name, usual in (("padding", zeros), ("dilation", ones), ("output_padding", zeros), ("groups", 1)):
            value = getattr(self, name)
            if value != usual:
                parts.append(f"{name}={value}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("padding_mode", "zeros")
        super().__setstate__(state)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve: Any = (F.conv1d, F.conv2d, F.conv3d)[len(self.kernel_size) - 1]
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * len(self.kernel_size)
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


def _check(
    channels_in: int,
    channels_out: int,
    groups: int,
    stride: tuple[int, ...],
    padding: int | Sequence[int] | str,
    padding_mode: str,
) -> None:
    """Raise ValueError for arguments that fit no convolution."""
    if groups <= 0:
        raise ValueError(f"groups must be a positive integer, got {groups}")
    if channels_in % groups != 0:
        raise ValueError(f"in_channels must be divisible by groups, got {channels_in} and {groups}")
    if channels_out % groups != 0:
        raise ValueError(f"out_channels must be divisible by groups, got {channels_out} and {groups}")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in PADDING_MODES:
        raise ValueError(f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{padding_mode}'")


class _Conv(_ConvNd):
    """A convolution that is not transposed."""

    _spread: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        spread = type(self)._spread
        super().__init__(in_channels, out_channels, spread(kernel_size), spread(stride),
                         padding if isinstance(padding, str) else spread(padding), spread(dilation), False, spread(0),
                         groups, bias, padding_mode, device=device, dtype=dtype)  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, *) or (in_channels, *) -> (N, out_channels, *) or (out_channels, *)."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Cross-correlation over sequences.

    Args: `padding` a number, a tuple, "same" or "valid"; `padding_mode` "zeros", "reflect", "replicate" or "circular";
    `groups` divides both numbers of channels.  Raises ValueError for arguments that do not fit.
    """

    _spread = staticmethod(_single)


class Conv2d(_Conv):
    """Cross-correlation over images.

    Args: `padding` a number, a tuple, "same" or "valid"; `padding_mode` "zeros", "reflect", "replicate" or "circular";
    `groups` divides both numbers of channels.  Raises ValueError for arguments that do not fit.

    >>> import rushlight as torch
    >>> torch.nn.Conv2d(3, 8, 3, padding=1)
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    """

    _spread = staticmethod(_pair)


class Conv3d(_Conv):
    """Cross-correlation over volumes.

    Args: `padding` a number, a tuple, "same" or "valid"; `padding_mode` "zeros", "reflect", "replicate" or "circular";
    `groups` divides both numbers of channels.  Raises ValueError for arguments that do not fit.
    """

    _spread = staticmethod(_triple)


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a module."""

    _spread: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: device | str | int | None = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}, got {padding_mode!r}')
        spread = type(self)._spread
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            spread(padding),
            spread(dilation),
            True,
            spread(output_padding),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """(N, in_channels, *) or (in_channels, *) -> (N, out_channels, *) or (out_channels, *).

        `output_size` picks one of the sizes that a strided convolution maps to the same size.
        """
        n = len(self.kernel_size)
        convolve: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
        extra = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, n, self.dilation)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> Sequence[int]:
        """The output padding that gives `output_size`.  Raises ValueError where none does.

        The sizes are arguments since modules of packages call it so, for windows of their own or without a module.
        """
        if output_size is None:
            return self.output_padding
        wanted = _spatial(list(output_size), input.ndim, num_spatial_dims)
        sizes = input.shape[input.ndim - num_spatial_dims :]
        apart = [1] * num_spatial_dims if dilation is None else dilation
        least = [
            (sizes[d] - 1) * stride[d] - 2 * padding[d] + apart[d] * (kernel_size[d] - 1) + 1
            for d in range(num_spatial_dims)
        ]
        most = [least[d] + stride[d] - 1 for d in range(num_spatial_dims)]
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to {most} (for an "
                f"input of {list(sizes)})"
            )
        return [size - low for size, low in zip(wanted, least, strict=True)]


def _spatial(output_size: list[int], ndim: int, n: int) -> list[int]:
    """The last `n` sizes of an output, whose others may be given too.  Raises ValueError for another number of them."""
    if len(output_size) not in (n, ndim):
        raise ValueError(
            f"ConvTranspose{n}D: for {ndim}D input, output_size must have {n} or {ndim} elements "
            f"(got {len(output_size)})"
        )
    return output_size[-n:]


_ConvTransposeMixin = _ConvTransposeNd  # its older name


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over sequences."""

    _spread = staticmethod(_single)


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over images."""

    _spread = staticmethod(_pair)


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over volumes."""

    _spread = staticmethod(_triple)
