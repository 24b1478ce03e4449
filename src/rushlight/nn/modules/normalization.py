"""Normalisation over features or groups of channels."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from rushlight.basics.devices import device
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """`x / (k + alpha / size * sum of squares over size neighbouring channels) ** beta`."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The four numbers."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """`x / (k + alpha / size * sum of squares over neighbouring channels) ** beta` of images, as PyTorch computes it.

    The sum spans `(size - 1) // 2` channels on each side and, as in PyTorch, always the first channel too: use
    LocalResponseNorm where that matters.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) -> the same shape."""
        x: Any = input
        if x.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: expected 4D input (N, C, H, W), got {x.ndim}D")
        side, channels = (self.size - 1) // 2, x.shape[1]
        squares = x * x
        padded = F.pad(squares, (0, 0, 0, 0, side, side))
        total = sum((padded[:, i : i + channels] for i in range(1, 2 * side + 1)), padded[:, :channels])
        if channels > side + 1:
            first = squares[:, :1].expand(-1, channels - side - 1, -1, -1)
            total = total + F.pad(first, (0, 0, 0, 0, side + 1, 0))
        return x * (total * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self) -> str:
        """The four numbers."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return (int(normalized_shape),) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class LayerNorm(Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions, those of `normalized_shape`.

    Source: Ba et al., Layer Normalization (2016).
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            made = Parameter(ops.empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(*, *normalized_shape) -> the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Shape and options."""
        text = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{text}, bias={self.bias is not None}"


class GroupNorm(Module):
    """`(x - mean) / sqrt(var + eps)` over groups of channels, then a scale and shift for each channel.

    Raises ValueError unless `num_groups` divides `num_channels`.  Source: Wu and He, Group Normalization (2018).
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: device | str | int | None = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(ops.empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> the same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Numbers and options."""
        text = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{text}, bias={self.bias is not None}"


class RMSNorm(Module):
    """`x / sqrt(mean(x ** 2) + eps) * weight` over the last dimensions, those of `normalized_shape`.

    `eps=None` means the dtype's machine epsilon.  Source: Zhang and Sennrich, Root Mean Square Layer Normalization
    (2019).
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: device | str | int | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        made = Parameter(ops.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(*, *normalized_shape) -> the same shape."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Shape and options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
