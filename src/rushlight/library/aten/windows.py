"""Pooling, resizing, padding and windows under the arguments that they have below PyTorch's functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.dispatch.named import Named
from rushlight.dispatch.registry import NAMESPACES
from rushlight.tensor import Tensor

functional = Named("nn.functional")
PADDING = ("zeros", "border", "reflection")
SAMPLING = ("bilinear", "nearest", "bicubic")


def unless_empty(sizes: object) -> Any:
    """None for the empty list by which this interface says that the stride is the window."""
    return None if isinstance(sizes, Sequence) and not sizes else sizes


def max_pool(dims: int) -> Callable[..., Any]:
    """The maximum of each window, and where it lies."""

    def with_indices(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = (),
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
    ) -> Any:
        pool = NAMESPACES["nn.functional"][f"max_pool{dims}d"]
        return pool(input, kernel_size, unless_empty(stride), padding, dilation, ceil_mode, return_indices=True)

    return with_indices


def average_pool(dims: int) -> Callable[..., Any]:
    """The mean of each window."""

    def averaged(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), *options: object,
                 **named: object) -> Any:  # fmt: skip
        return NAMESPACES["nn.functional"][f"avg_pool{dims}d"](
            input, kernel_size, unless_empty(stride), *options, **named
        )

    return averaged


def adaptive_max_pool(dims: int) -> Callable[..., Any]:
    """The maximum of each of `output_size` windows, and where it lies."""
    return lambda x, size: NAMESPACES["nn.functional"][f"adaptive_max_pool{dims}d"](x, size, return_indices=True)


def fractional_max_pool(dims: int) -> Callable[..., Any]:
    """The maximum of each window at random places, and where it lies."""

    def pooled(input: Tensor, kernel_size: int | Sequence[int], output_size: object, random_samples: Tensor) -> Any:
        pool = NAMESPACES["nn.functional"][f"fractional_max_pool{dims}d"]
        return pool(input, kernel_size, output_size, None, True, random_samples)

    return pooled


def max_unpool(dims: int) -> Callable[..., Any]:
    """Values written where `indices` say, in zeros of `output_size`."""

    def unpooled(input: Tensor, indices: Tensor, output_size: Sequence[int], *unused: object) -> Tensor:
        lead = input.shape[: input.dim() - dims]
        flat = input.new_zeros((*lead, math.prod(output_size)))
        filled: Tensor = flat.scatter(-1, indices.reshape(*lead, -1), input.reshape(*lead, -1))
        return filled.reshape(*lead, *output_size)

    return unpooled


def resize(mode: str, aligned: bool, antialias: bool = False) -> Callable[..., Any]:
    """Resizing to a size; aligned: whether the third argument says that corners are aligned."""

    def resized(input: Tensor, output_size: object, *options: object, **named: object) -> Tensor:
        corners = bool(options[0] if options else named.pop("align_corners", False)) if aligned else None
        scales = [s for s in (*options[aligned:], *named.values()) if s is not None]
        size, factors = ladder(input, output_size, scales)
        return functional.interpolate(
            input, size, factors, mode, corners, recompute_scale_factor=False if factors else None, antialias=antialias
        )

    return resized


def ladder(input: Tensor, size: Any, scales: list[Any]) -> tuple[Any, Any]:
    """Either the size or the factors: those given, where they lead to the size."""
    factors = list(scales[0]) if scales and isinstance(scales[0], Sequence) else scales
    if not factors:
        return tuple(size), None
    places = input.shape[-len(factors) :]
    if size is None or [int(n * f) for n, f in zip(places, factors, strict=True)] == list(size):
        return None, tuple(factors)
    return tuple(size), None


def pad(mode: str) -> Callable[..., Any]:
    """Padding by what is inside."""
    return lambda x, padding: NAMESPACES["nn.functional"]["pad"](x, tuple(padding), mode)


def im2col(input: Tensor, kernel_size: int | Sequence[int], dilation: int | Sequence[int],
           padding: int | Sequence[int], stride: int | Sequence[int]) -> Tensor:  # fmt: skip
    """`functional.unfold`."""
    return functional.unfold(input, kernel_size, dilation, padding, stride)


def col2im(input: Tensor, output_size: object, kernel_size: int | Sequence[int], dilation: int | Sequence[int],
           padding: int | Sequence[int], stride: int | Sequence[int]) -> Tensor:  # fmt: skip
    """`functional.fold`."""
    return functional.fold(input, output_size, kernel_size, dilation, padding, stride)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`functional.grid_sample` whose modes are numbers."""
    return functional.grid_sample(input, grid, SAMPLING[interpolation_mode], PADDING[padding_mode], align_corners)


MEANINGS: dict[str, Callable[..., Any]] = {
    "im2col": im2col,
    "col2im": col2im,
    "grid_sampler_2d": grid_sampler,
    "grid_sampler_3d": grid_sampler,
    "max_pool2d_with_indices": max_pool(2),
    "max_pool3d_with_indices": max_pool(3),
    "avg_pool2d": average_pool(2),
    "avg_pool3d": average_pool(3),
    "adaptive_max_pool2d": adaptive_max_pool(2),
    "adaptive_max_pool3d": adaptive_max_pool(3),
    "fractional_max_pool2d": fractional_max_pool(2),
    "fractional_max_pool3d": fractional_max_pool(3),
    "max_unpool2d": max_unpool(2),
    "max_unpool3d": max_unpool(3),
    "_adaptive_avg_pool2d": lambda x, size: functional.adaptive_avg_pool2d(x, size),
    "_adaptive_avg_pool3d": lambda x, size: functional.adaptive_avg_pool3d(x, size),
    "upsample_linear1d": resize("linear", True),
    "upsample_bilinear2d": resize("bilinear", True),
    "upsample_trilinear3d": resize("trilinear", True),
    "upsample_bicubic2d": resize("bicubic", True),
    "_upsample_bilinear2d_aa": resize("bilinear", True, True),
    "_upsample_bicubic2d_aa": resize("bicubic", True, True),
}
for start, mode in (("upsample_nearest", "nearest"), ("_upsample_nearest_exact", "nearest-exact")):
    MEANINGS |= {f"{start}{n}d": resize(mode, False) for n in (1, 2, 3)}
for start, mode in (("reflection", "reflect"), ("replication", "replicate")):
    MEANINGS |= {f"{start}_pad{n}d": pad(mode) for n in (1, 2, 3)}
