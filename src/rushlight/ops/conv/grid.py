"""Sampling at the points of a grid.

Interpolation has a kernel; its higher derivatives are composed of gathers and products.

Legend: N images, C channels, S input sizes, L grid sizes, D spatial dimensions (2 or 3).
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller
from rushlight.basics.dtypes import HALVES
from rushlight.dispatch import families, shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making, of_laid_out
from rushlight.kernels.images.grid import working_bytes
from rushlight.kernels.reference import keys
from rushlight.ops.elementwise.clamp import where as choose
from rushlight.ops.elementwise.floats import require, wide, widened
from rushlight.ops.elementwise.shared import keep
from rushlight.ops.index.scatter import gather_adjoint, gather_op
from rushlight.ops.reduce.sums import sum_op
from rushlight.ops.shape.join import cat_op
from rushlight.ops.shape.reshape import broadcast, reshape_op, select_op
from rushlight.tensor import Tensor, wrap

How = tuple[str, str, bool]  # mode, padding, whether corners are aligned
NEAREST: How = ("nearest", "zeros", False)
MODES = ("bilinear", "nearest", "bicubic")
CORNERS = ("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
           "align_corners=True if the old behavior is desired.")  # fmt: skip
PADDINGS = ("zeros", "border", "reflection")
FAR = float(1 << 40)  # outside of every image


def unnormalize(x: Tensor, size: int, align: bool) -> Tensor:
    """Coordinates in [-1, 1] as positions in the input."""
    return (x + 1) * ((size - 1) / 2) if align else (x + 1) * (size / 2) - 0.5


def reflect(x: Any, size: int, align: bool) -> Any:
    """Positions folded back between the borders (pixel centres if `align`, else pixel edges)."""
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if span <= 0:
        return x * 0
    away = (x - low).abs()
    turns = (away.detach() / span).floor()
    rest = away - turns * span
    even = (turns % 2 == 0).to(x.dtype)
    return even * rest + (1 - even) * (span - rest) + low


def placed(x: Tensor, size: int, padding: str, align: bool) -> Tensor:
    """Positions moved inside the input as the padding mode says."""
    if padding == "reflection":
        x = reflect(x, size, align)
    if padding == "zeros":
        return x
    bounded = x.clamp(0, size - 1).detach()
    known = x.detach()
    x = choose((known > 0) & (known < size - 1), x, bounded)  # on the border itself the slope is taken to be 0
    return x.nan_to_num(0.0) if getattr(x._array, "unread", False) or np.isnan(x._array).any() else x


def picked(input: object, at: object, inside: object) -> Any:
    """Elements of input (N, C, S) at places (N, 1, L), 0 where these are not inside: (N, C, L)."""
    shape = (*raw(input).shape[:2], raw(at).shape[2])
    return keep(gather_op(input, broadcast(at, shape), 2), broadcast(inside, shape))


@op(name="grid_points", half=None)
def interpolated(input: Array, where: Array, how: How) -> Array:
    """Interpolation of the elements around each point.  input: (N, C, *S), where: (D, N, L) positions -> (N, C, L)"""
    return backend.grid_sample(input, where, how)


@interpolated.shape
def _(input: Array, where: Array) -> list[shapes.Made]:
    return [shapes.Made((*input.shape[:2], where.shape[2]), input.dtype)]


@interpolated.work
def _(input: Array, where: Array) -> int:
    return working_bytes(input.shape, (*input.shape[:2], where.shape[2]), input.dtype)


def _bytes_of_grads(
    g: Array, where: Array, input_shape: tuple[int, ...], needs: tuple[bool, bool], make: Making
) -> Any:
    """The gradients; of 16 bits, images and what lies at points in float32, and the gradient of both."""
    if g.dtype not in HALVES:
        return _of_kernel(g, needs, make)
    made = [make.gradient(i) if need else None for i, need in enumerate(needs)]
    make.work(2 * working_bytes(input_shape, g.shape, g.dtype) + 3 * where.nbytes // max(input_shape[0], 1))
    return made


_of_kernel = of_laid_out(0, 1)


def _raw(g: Array, input: Array, where: Array, input_shape: tuple[int, ...], how: How, needs: tuple[bool, bool]) -> Any:
    return backend.grid_sample_backward(g, input, where, input_shape, needs, how)


@interpolated.grad("input", "where", raw=_raw, shapes=_bytes_of_grads, uses={"input": "where", "where": "input where"})
def _(g: Any, input: Any, where: Tensor, input_shape: tuple[int, ...], how: How,
      needs: tuple[bool, bool]) -> tuple[Any, Any]:  # fmt: skip
    n, c, *spatial = input_shape
    g, input = widened(g, input)
    shape, flat_shape = (n, c, where.shape[2]), (n, c, math.prod(spatial))
    of_input: Any = None
    of_where: Any = None
    for at, inside, parts, slopes in around(where, tuple(spatial), how):
        if needs[0]:
            kept = keep(g * product(parts), broadcast(inside, shape))
            of_input = plus(of_input, gather_adjoint(kept, broadcast(at, shape), flat_shape, 2))
        if needs[1]:
            along = sum_op(g * picked(reshape_op(input, flat_shape), at, inside), (1,), True)
            changes = [along * slope * product(parts[:d] + parts[d + 1 :]) for d, slope in enumerate(slopes)]
            of_where = plus(of_where, cat_op(tuple([reshape_op(x, (1, *where.shape[1:])) for x in changes]), 0))
    return None if of_input is None else reshape_op(of_input, input_shape), of_where


@op(name="grid_nearest", half=None)
def nearest_op(input: Array, where: Array) -> Array:
    """The elements nearest to points, ties to even.  input: (N, C, *S), where: (D, N, L) positions -> (N, C, L)"""
    return backend.grid_sample(input, where, NEAREST)


@nearest_op.shape
def _(input: Array, where: Array) -> list[shapes.Made]:
    return [shapes.Made((*input.shape[:2], where.shape[2]), input.dtype)]


def _nearest_raw(g: Array, where: Array, input_shape: tuple[int, ...]) -> Any:
    return backend.grid_sample_backward(g, None, where, input_shape, (True, False), NEAREST)[0]


@nearest_op.grad("input", raw=_nearest_raw, shapes=of_laid_out(0))
def _(g: Any, where: Tensor, input_shape: tuple[int, ...]) -> Any:
    (g,) = widened(g)
    shape, flat_shape = raw(g).shape, (*input_shape[:2], math.prod(input_shape[2:]))
    [(at, inside, _, _)] = around(where, tuple(input_shape[2:]), NEAREST)
    found = gather_adjoint(keep(g, broadcast(inside, shape)), broadcast(at, shape), flat_shape, 2)
    return reshape_op(found, input_shape)


@nearest_op.grad("where")
def _(g: Any, where_shape: tuple[int, ...]) -> Any:
    zeros = np.zeros(where_shape, wide(raw(g).dtype))
    return zeros if isinstance(g, np.ndarray) else wrap(zeros)


def plus(total: Any, x: Any) -> Any:
    """total + x, of which the first is nothing."""
    return x if total is None else total + x


def product(factors: list[Tensor]) -> Any:
    """Their product; 1 of none."""
    return functools.reduce(operator.mul, factors) if factors else 1


def around(where: Tensor, spatial: tuple[int, ...], how: How) -> Iterator[tuple[Tensor, Tensor, list[Any], list[Any]]]:
    """Of the elements around points (D, N, L): their places, whether these are inside, weights by dimension and their slopes (N, 1, L)."""
    flat = (where.shape[1], 1, where.shape[2])
    each = [neighbours(reshape_op(select_op(where, (i,)), flat), size, how) for i, size in enumerate(spatial)]
    for chosen in itertools.product(*each):
        at, inside = places([index for index, _, _ in chosen], spatial)
        yield at, inside, [part for _, part, _ in chosen], [slope for _, _, slope in chosen]


def neighbours(x: Any, size: int, how: How) -> list[tuple[Tensor, Any, Any]]:
    """Of the elements around positions (N, 1, L) in a dimension: which they are (N, L), their weights and the slopes of these."""
    mode, padding, align = how
    known = x.detach()
    base = known.round() if mode == "nearest" else known.floor()
    low = select_op(base, (slice(None), 0))
    if mode == "nearest":
        return [(integers(low), 1, 0)]
    if mode == "bilinear":
        return [(integers(low), (base + 1) - x, -1), (integers(low + 1), x - base, 1)]
    index = [integers(placed(low + (i - 1), size, padding, align)) for i in range(4)]
    return list(zip(index, *cubic_of(x - base), strict=True))


def places(index: list[Any], spatial: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Integer positions, one tensor (N, L) for each dimension, as places in a flat image, and whether they are inside: (N, 1, L)."""
    inside: Any = True
    flat: Any = 0
    for i, s in zip(index, spatial, strict=True):
        inside = inside & (i >= 0) & (i < s)
        flat = flat * s + i.clamp(0, s - 1)
    return flat.unsqueeze(1), inside.unsqueeze(1)


def integers(x: Tensor) -> Any:
    """Float positions as int64; what is not finite goes far outside."""
    wide = x.double()  # in 16 bits that is infinite
    return choose(wide.isfinite(), wide.clamp(-FAR, FAR), -FAR).long()


def cubic_of(t: Any) -> tuple[list[Any], list[Any]]:
    """The four cubic weights at fraction t, and their slopes, as tensors."""
    a = -0.75
    slopes = [keys.far_slope(t + 1, a), keys.near_slope(t, a), -keys.near_slope(1 - t, a), -keys.far_slope(2 - t, a)]
    return [keys.far(t + 1, a), keys.near(t, a), keys.near(1 - t, a), keys.far(2 - t, a)], slopes


@per_sample
def sample(input: Tensor, grid: Tensor, mode: str, padding: str, align: bool) -> Tensor:
    """Sampling with checked arguments.  Positions are float32 of 16 bits, too: beyond 256 bfloat16 has no odd numbers."""
    (grid,) = widened(grid)
    d = len(input.shape) - 2
    coordinates = [grid.select(-1, d - 1 - i) for i in range(d)]  # x is the last dimension
    where = [unnormalize(x, s, align) for x, s in zip(coordinates, input.shape[2:], strict=True)]
    if mode != "bicubic":  # whose elements are moved one by one
        where = [placed(x, s, padding, align) for x, s in zip(where, input.shape[2:], strict=True)]
    n, c, *_ = input.shape
    points = cat_op(tuple([reshape_op(x, (1, n, math.prod(x.shape[1:]))) for x in where]), 0)
    nearest = mode == NEAREST[0]
    found = nearest_op(input, points) if nearest else interpolated(input, points, (mode, padding, align))
    return reshape_op(found, (n, c, *where[0].shape[1:]))


def check(input: Tensor, grid: Tensor, mode: str) -> None:
    """Raise RuntimeError for operands that do not fit, NotImplementedError for dtypes that are not computed."""
    x, g = input.shape, grid.shape
    if input.dtype != grid.dtype:
        raise RuntimeError(f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} and "
                           f"grid has {grid.dtype}")  # fmt: skip
    if len(x) not in (4, 5) or len(g) != len(x):
        raise RuntimeError(f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input "
                           f"with sizes {list(x)} and grid with sizes {list(g)}")  # fmt: skip
    if x[0] != g[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {list(x)} "
                           f"and grid with sizes {list(g)}")  # fmt: skip
    if g[-1] != len(x) - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {len(x) - 2} in last dimension, but got grid with sizes "
                           f"{list(g)}")  # fmt: skip
    if any(s == 0 for s in x[2:]):
        raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but got {list(x)}")
    if mode == "bicubic" and len(x) != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    require(input.dtype.is_floating_point, "grid_sampler_2d" if len(x) == 4 else "grid_sampler_3d", input)


@function(ns="nn.functional", autocast="float32")
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:  # fmt: skip
    """The input at the points of a grid.  input: (N, C, *S), grid: (N, *L, D) in [-1, 1], last dimension first -> (N, C, *L)

    Source: Jaderberg et al., Spatial Transformer Networks, arXiv:1506.02025, section 3.3.
    """
    if mode not in MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but "
                         f"got: '{padding_mode}'")  # fmt: skip
    if align_corners is None:
        caller.warn(CORNERS)
    check(input, grid, mode)
    return sample(input, grid, mode, padding_mode, bool(align_corners))


@function(aliases=("grid_sampler_2d", "grid_sampler_3d"))
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """grid_sample with modes by number."""
    return grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


@function(ns="nn.functional")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Any:
    """The grid of an affine map.  theta: (N, D, D + 1), size: (N, C, *S) -> (N, *S, D)"""
    n, _, *spatial = size
    d = len(spatial)
    if d not in (2, 3):
        raise NotImplementedError(f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
                                  f"respectively. Got size {list(size)}")  # fmt: skip
    if not isinstance(theta, Tensor) or theta.dtype.category < 2:
        raise ValueError(
            f"affine_grid: Expected theta to have floating point type, but got {getattr(theta, 'dtype', type(theta))}"
        )
    if tuple(theta.shape) != (n, d, d + 1):
        raise ValueError(f"Expected a batch of {d}D affine matrices of shape Nx{d}x{d + 1} for size {list(size)}, N being {n}. Got "
                         f"{list(theta.shape)}.")  # fmt: skip
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners is None:
        caller.warn(CORNERS)
    if align_corners and min(spatial) == 1:
        caller.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is "
                    "not an intended use case of affine_grid.")  # fmt: skip
    return grid_of_op(theta, tuple(spatial), bool(align_corners))


@op(name="affine_grid_generator", linear=True, batch=families.images)
def grid_of_op(theta: Array, spatial: tuple[int, ...], align: bool) -> Array:
    """The points of a grid by an affine map.  theta: (N, D, D + 1) -> (N, *S, D)"""
    grid = _points(spatial, align).astype(theta.dtype) @ theta.swapaxes(1, 2)
    return grid.reshape(theta.shape[0], *spatial, len(spatial))


@grid_of_op.shape
def _(theta: Array, spatial: tuple[int, ...]) -> list[shapes.Made]:
    return [shapes.Made((theta.shape[0], *spatial, len(spatial)), theta.dtype)]


@op(linear=True, batch=families.images)
def grid_back_op(grid: Array, spatial: tuple[int, ...], align: bool) -> Array:
    """The adjoint of `grid_of_op`.  grid: (N, *S, D) -> (N, D, D + 1)"""
    flat = grid.reshape(grid.shape[0], -1, len(spatial))
    return flat.swapaxes(1, 2) @ _points(spatial, align).astype(grid.dtype)


@grid_back_op.shape
def _(grid: Array, spatial: tuple[int, ...]) -> list[shapes.Made]:
    return [shapes.Made((grid.shape[0], len(spatial), len(spatial) + 1), grid.dtype)]


# The points are made anew from the sizes: a backward keeps nothing, so it may run twice.
grid_of_op.grad("theta")(lambda g, spatial, align: grid_back_op(g, spatial, align))
grid_back_op.grad("grid")(lambda g, spatial, align: grid_of_op(g, spatial, align))


def _points(spatial: tuple[int, ...], align: bool) -> Any:
    """The grid itself, the last dimension first, and ones: (S, D + 1)"""
    axes = []
    for s in spatial:
        points = np.linspace(-1, 1, s) if s > 1 else np.zeros(1)
        axes.append(points if align else points * (s - 1) / s)
    mesh = np.meshgrid(*axes, indexing="ij")[::-1]
    return np.stack([*mesh, np.ones_like(mesh[0])], -1).reshape(-1, len(spatial) + 1)
