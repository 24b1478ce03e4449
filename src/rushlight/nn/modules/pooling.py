"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _pair, _single, _triple
from rushlight.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


class _MaxPoolNd(Module):
    """The largest of each window; with `return_indices`, also where it was."""

    return_indices: bool
    ceil_mode: bool

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def _pool(self, pool: Callable[..., Any], input: Tensor) -> Tensor:
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """The window."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest of each window of a sequence."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) -> (N, C, L') or (C, L')."""
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """The largest of each window of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W')."""
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """The largest of each window of a volume."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, D, H, W) or (C, D, H, W) -> (N, C, D', H', W') or (C, D', H', W')."""
        return self._pool(F.max_pool3d, input)


class _MaxUnpoolNd(Module):
    """Puts values back where max pooling found them, zeros elsewhere."""

    _spread: Any = None

    def __init__(
        self, kernel_size: Any, stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0
    ) -> None:
        super().__init__()
        spread = type(self)._spread
        self.kernel_size = spread(kernel_size)
        self.stride = spread(kernel_size if stride is None else stride)
        self.padding = spread(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: int | Sequence[int] | None = None) -> Tensor:
        """Pooled values and their indices -> the unpooled size, or `output_size`."""
        unpool: Any = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[len(self.kernel_size) - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """The partial inverse of MaxPool1d."""

    _spread = staticmethod(_single)


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of MaxPool2d."""

    _spread = staticmethod(_pair)


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of MaxPool3d."""

    _spread = staticmethod(_triple)


class _AvgPoolNd(Module):
    """The mean of each window."""

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of a sequence."""

    def __init__(
        self,
        kernel_size: Any,
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) -> (N, C, L') or (C, L')."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(_AvgPoolNd):
    """Mean pooling whose divisor can be given."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, pool: Callable[..., Any], input: Tensor) -> Tensor:
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolWithDivisor):
    """The mean of each window of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W')."""
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolWithDivisor):
    """The mean of each window of a volume."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, value in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, value)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, D, H, W) or (C, D, H, W) -> (N, C, D', H', W') or (C, D', H', W')."""
        return self._pool(F.avg_pool3d, input)


class _FractionalMaxPoolNd(Module):
    """The largest of windows whose starts are drawn at random, for an output of a given size or ratio.

    Source: Graham, Fractional Max-Pooling (2014).
    """

    _spread: Any = None

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        spread = type(self)._spread
        self.kernel_size, self.return_indices = spread(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"only one of output_size and output_ratio may be specified, {name} got both")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pool(self, pool: Callable[..., Any], input: Tensor) -> Tensor:
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Fractional max pooling of images; see Graham, Fractional Max-Pooling (2014)."""

    _spread = staticmethod(_pair)

    def forward(self, input: Tensor) -> Any:
        """(N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W')."""
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Fractional max pooling of volumes; see Graham, Fractional Max-Pooling (2014)."""

    _spread = staticmethod(_triple)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, D, H, W) or (C, D, H, W) -> (N, C, D', H', W') or (C, D', H', W')."""
        return self._pool(F.fractional_max_pool3d, input)


class _LPPoolNd(Module):
    """The p-norm of each window."""

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def _pool(self, pool: Any, input: Tensor) -> Tensor:
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """Norm and window."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of a sequence."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) -> (N, C, L') or (C, L')."""
        return self._pool(F.lp_pool1d, input)


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W')."""
        return self._pool(F.lp_pool2d, input)


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of a volume."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, D, H, W) or (C, D, H, W) -> (N, C, D', H', W') or (C, D', H', W')."""
        return self._pool(F.lp_pool3d, input)


class _AdaptiveMaxPoolNd(Module):
    """The largest of each window, as many windows as `output_size` says."""

    def __init__(self, output_size: int | Sequence[int | None], return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling of sequences to `output_size`."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) -> (N, C, L') or (C, L')."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling of images to `output_size`; None keeps a dimension's size."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W')."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling of volumes to `output_size`; None keeps a dimension's size."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, D, H, W) or (C, D, H, W) -> (N, C, D', H', W') or (C, D', H', W')."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    """The mean of each window, as many windows as `output_size` says."""

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean pooling of sequences to `output_size`."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) -> (N, C, L') or (C, L')."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean pooling of images to `output_size`; None keeps a dimension's size."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W')."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean pooling of volumes to `output_size`; None keeps a dimension's size."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, D, H, W) or (C, D, H, W) -> (N, C, D', H', W') or (C, D', H', W')."""
        return F.adaptive_avg_pool3d(input, self.output_size)
