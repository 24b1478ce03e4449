"""Resizing: one linear operator along dimensions with a few taps serves nearest, linear and cubic interpolation."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller, dtypes
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.formats import channels_last_order, lies_channels_last, turned_back
from rushlight.dispatch.keeping.shown import note
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import laid_out
from rushlight.kernels.reference import keys
from rushlight.kernels.reference.resample import Taps
from rushlight.tensor import Tensor


@op(linear=True, half=None, batch=families.shifted)
def resample_op(input: Array, dims: tuple[int, ...], taps: tuple[Taps, ...]) -> Array:
    """Along each of `dims`, neighbours, in their order: output j is the sum over its taps of weight times input."""
    return _resampled(input, dims, taps)


def _resampled(input: Array, dims: tuple[int, ...], taps: tuple[Taps, ...]) -> Array:
    """As `backend.resample`; images with their channels innermost where they lie."""
    if not input.flags.c_contiguous and lies_channels_last(input):
        order = channels_last_order(input.ndim)
        turned = tuple(order.index(d % input.ndim) for d in dims)
        if sorted(turned) == list(turned):
            return turned_back(backend.resample(input.transpose(order), turned, taps), order)
    return backend.resample(input, dims, taps)


@resample_op.work
def _(input: Array) -> int:
    return 0 if lies_channels_last(input) else laid_out(input)


@resample_op.shape
def _(input: Array, dims: tuple[int, ...], taps: tuple[Taps, ...]) -> list[shapes.Made]:
    shape = list(input.shape)
    for d, each in zip(dims, taps, strict=True):
        shape[d] = len(each)
    return [shapes.Made(tuple(shape), input.dtype)]


resample_op.grad("input")(lambda g, dims, taps: resample_adjoint_op(g, dims, taps))


@op(linear=True, half=None, batch=families.shifted)
def resample_adjoint_op(input: Array, dims: tuple[int, ...], taps: tuple[Taps, ...]) -> Array:
    """The adjoint of `resample_op`."""
    return _resampled(input, dims, tuple(each.turned for each in taps))


@resample_adjoint_op.work
def _(input: Array) -> int:
    return 0 if lies_channels_last(input) else laid_out(input)


@resample_adjoint_op.shape
def _(input: Array, dims: tuple[int, ...], taps: tuple[Taps, ...]) -> list[shapes.Made]:
    shape = list(input.shape)
    for d, each in zip(dims, taps, strict=True):
        shape[d] = each.size
    return [shapes.Made(tuple(shape), input.dtype)]


resample_adjoint_op.grad("input")(lambda g, dims, taps: resample_op(g, dims, taps))


# Bytes -----------------------------------------------------------------------------------------------


def fixed_point(taps: Taps) -> tuple[Array, Array, int]:
    """As many taps of each output with weights of 16-bit fixed point and how many bits are behind the point; places named twice are added up."""
    index, weights = (np.array(a).reshape(len(taps), -1) for a in (taps.index, taps.weights))
    for t in range(1, index.shape[1]):
        for earlier in range(t):
            same = (index[:, t] == index[:, earlier]) & (weights[:, t] != 0)
            weights[same, earlier] += weights[same, t]
            weights[same, t] = 0
    bits = next((b for b in range(22) if int(0.5 + weights.max() * (2 << b)) >= 1 << 15), 22)
    scaled = weights * (1 << bits)
    return index, np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64), bits


@op(half=None, batch=families.shifted)
def resample_bytes(input: Array, dim: int, taps: object) -> Array:
    """As `resample_op` along one dimension, of uint8, rounded and limited to 0..255, as image libraries do it.  taps: of `fixed_point`"""
    index, weights, bits = taps
    shape = [1] * input.ndim
    shape[dim] = -1
    total = np.full((), 1 << bits >> 1, np.int64)
    for t in range(index.shape[1]):
        total = total + input.take(index[:, t], axis=dim) * weights[:, t].reshape(shape)
    return np.clip(total >> bits, 0, 255).astype(np.uint8)


@resample_bytes.shape
def _(input: Array, dim: int, taps: Any) -> list[shapes.Made]:
    rows = taps[0].shape[0] if isinstance(taps, (tuple, list)) else taps.shape[0]
    return [shapes.Made(shapes.with_size(input, dim, rows), input.dtype)]


# Taps ------------------------------------------------------------------------------------------------


def positions(size: int, out: int, align: bool, scale: float | None) -> Array:
    """Where in the input each output is, before clipping."""
    i = np.arange(out, dtype=np.float64)
    if align:
        return i * ((size - 1) / (out - 1)) if out > 1 else i * 0
    return (i + 0.5) * (1 / scale if scale else size / out) - 0.5


def nearest_taps(size: int, out: int, scale: float | None, exact: bool) -> tuple[Array, None]:
    """The nearest input of each output; `exact` measures from pixel centres."""
    ratio = np.float32(1 / scale if scale else size / out)
    i = np.arange(out, dtype=np.float32)
    at = np.floor((i + np.float32(0.5)) * ratio if exact else i * ratio).astype(np.int64)
    return np.minimum(at, size - 1)[:, None], None


def linear_taps(size: int, out: int, align: bool, scale: float | None) -> tuple[Array, ...]:
    """Two neighbours and their weights."""
    at = positions(size, out, align, scale)
    if not align:
        at = np.maximum(at, 0)
    low = np.minimum(np.floor(at).astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    part = np.clip(at - low, 0, 1)
    return np.stack([low, high], 1), np.stack([1 - part, part], 1)


def cubic_weights(t: Array) -> Array:
    """Weights of the four neighbours at fraction t."""
    a = -0.75
    return np.stack([keys.far(t + 1, a), keys.near(t, a), keys.near(1 - t, a), keys.far(2 - t, a)], 1)


def cubic_taps(size: int, out: int, align: bool, scale: float | None) -> tuple[Array, ...]:
    """Four neighbours and their weights."""
    at = positions(size, out, align, scale)
    low = np.floor(at).astype(np.int64)
    return np.clip(low[:, None] + np.arange(-1, 3), 0, size - 1), cubic_weights(at - low)


def tent(x: Array) -> Array:
    """The weights of linear interpolation at distances x."""
    return np.clip(1 - x, 0, None)


def cubic(x: Array) -> Array:
    """Those of cubic interpolation, with a = -0.5."""
    return np.where(x < 1, keys.near(x, -0.5), np.where(x < 2, keys.far(x, -0.5), 0))


def lanczos(x: Array) -> Array:
    """Those of Lanczos' filter of three lobes.  Source: Duchon, J. Appl. Meteorology 18 (1979), 1016-1022."""
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


FILTERS = {
    "bilinear": (1.0, tent),
    "bicubic": (2.0, cubic),
    "lanczos": (3.0, lanczos),
}  # how far they reach, and weights


def antialiased_taps(size: int, out: int, align: bool, scale: float | None, mode: str) -> tuple[Any, ...]:
    """Taps of a filter widened by the reduction, as image libraries resize."""
    ratio = ((size - 1) / (out - 1) if out > 1 else 0.0) if align else (1 / scale if scale else size / out)
    reach, weights = FILTERS[mode]
    support = reach * max(ratio, 1.0)
    centre = ratio * (np.arange(out) + 0.5)
    first = np.maximum((centre - support + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + support + 0.5).astype(np.int64), size)
    width = int((last - first).max())
    at = first[:, None] + np.arange(width)
    x = np.abs((at - centre[:, None] + 0.5) / max(ratio, 1.0))
    w = np.where(at < last[:, None], weights(x), 0)
    return np.minimum(at, size - 1), w / w.sum(1, keepdims=True)


# The public functions --------------------------------------------------------------------------------

DIMENSIONS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5, "lanczos": 4}


def index_of_size(name: str, size: Any) -> int:
    """A size as an int.  Raises TypeError for fractions."""
    if isinstance(size, float):
        raise TypeError(
            f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but {name}() got {size}"
        )
    return int(size)


def target_sizes(name: str, input: Tensor, size: Any, scale_factor: Any) -> tuple[list[int], list[Any]]:
    """The output sizes and the scale factors given, one for each spatial dimension."""
    n = len(input.shape) - 2
    if (size is None) == (scale_factor is None):
        how = "either" if size is None else "only one of"
        raise ValueError(f"{name}: {how} size or scale_factor should be defined")
    what, given = ("size", size) if size is not None else ("scale_factor", scale_factor)
    values = list(given) if isinstance(given, (list, tuple)) else [given] * n
    if len(values) != n:
        raise ValueError(f"{name}: Input and output must have the same number of spatial dimensions, but got input with "
                         f"spatial dimensions of {list(input.shape[2:])} and {what} of {values}")  # fmt: skip
    if size is not None:
        return [index_of_size(name, v) for v in values], [None] * n
    return [math.floor(float(s * f)) for s, f in zip(input.shape[2:], values, strict=True)], [float(v) for v in values]


@functools.lru_cache(32)
def taps_of(mode: str, size: int, out: int, align: bool, scale: float | None, antialias: bool) -> Taps:
    """The taps of one dimension, the same each step."""
    if mode in ("nearest", "nearest-exact"):
        return Taps.of(size, *nearest_taps(size, out, scale, mode == "nearest-exact"))
    if antialias:
        return Taps.of(size, *antialiased_taps(size, out, align, scale, mode))
    return Taps.of(size, *(cubic_taps if mode == "bicubic" else linear_taps)(size, out, align, scale))


def by_sizes(input: Tensor, mode: str, antialias: bool, size: int, out: int) -> bool:
    """Whether places follow from the sizes though a factor was given: a dimension that keeps its size mostly stays as it is.

    Not so of cubic interpolation of numbers without a filter and, but in two dimensions, of the nearest: as in PyTorch.
    """
    if mode in ("nearest", "nearest-exact"):
        return mode == "nearest" and len(input.shape) == 4 and out in (size, 2 * size)
    return out == size and (mode != "bicubic" or antialias or input.dtype is dtypes.uint8)


def resized(input: Tensor, mode: str, taps: list[Taps]) -> Tensor:
    """The input resampled along its spatial dimensions, one after the other: bytes from the last on."""
    dtype = input.dtype
    if mode not in ("nearest", "nearest-exact"):
        if dtype is dtypes.uint8 and mode in FILTERS:
            for d in (3, 2):
                input = resample_bytes(input, d, fixed_point(taps[d - 2]))
            return input
        if not (dtype.is_floating_point or dtype.is_complex):
            raise NotImplementedError(f"interpolate: mode {mode!r} is not implemented for {dtype}: convert the input to a "
                                      "floating-point dtype, as in input.float()")  # fmt: skip
    return resample_op(input, tuple(range(2, len(input.shape))), tuple(taps))


@function(ns="nn.functional")
def interpolate(input: Tensor, size: int | Sequence[int] | None = None,
                scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:  # fmt: skip
    """Resize the spatial dimensions.  input: (N, C, *S) -> (N, C, *size)

    mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area", or with antialias
    "lanczos".
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                         "trilinear")  # fmt: skip
    sizes, scales = target_sizes("interpolate", input, size, scale_factor)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        scales = [None] * len(sizes)
    if antialias and (mode not in FILTERS or len(input.shape) != 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError(
            f"Lanczos mode {'does not support align_corners=True' if align_corners else 'requires antialias=True'}"
        )
    known = ("nearest", "nearest-exact", "area", *DIMENSIONS)
    if (
        mode not in known
        or len(input.shape) not in (3, 4, 5)
        or DIMENSIONS.get(mode, len(input.shape)) != len(input.shape)
    ):
        refuse_mode(mode, len(input.shape), known)
    if min(sizes) <= 0 or any(s == 0 for s in input.shape[1:]):
        raise RuntimeError(f"interpolate: Input and output sizes should be greater than 0, but got input "
                           f"{list(input.shape)} and output {sizes}")  # fmt: skip
    if mode == "area":
        from rushlight.ops.conv.pooling import adaptive_avg_pool

        return adaptive_avg_pool("interpolate", len(sizes), input, sizes)
    places = list(zip(input.shape[2:], sizes, scales, strict=True))
    places = [
        (size, out, None if by_sizes(input, mode, antialias, size, out) else scale) for size, out, scale in places
    ]
    taps = [taps_of(mode, size, out, bool(align_corners), scale, antialias) for size, out, scale in places]
    made = resized(input, mode, taps)
    note(made, **shown(input, mode, sizes, scales, bool(align_corners)))
    return made


def refuse_mode(mode: str, dims: int, known: tuple[str, ...]) -> NoReturn:
    """Raise NotImplementedError for a mode that is none, or not of so many dimensions."""
    if mode in DIMENSIONS and dims in (3, 4, 5):
        raise NotImplementedError(f"interpolate: Got {dims}D input, but {mode} mode needs {DIMENSIONS[mode]}D input")
    raise NotImplementedError(f"interpolate: Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims}D) for the modes: "
                              f"{' | '.join(known)} (got {mode})")  # fmt: skip


def shown(input: Tensor, mode: str, sizes: list[int], scales: list[float | None], align: bool) -> dict[str, object]:
    """What the node of an interpolation shows as `_saved_x`: the last of its dimensions knows of all."""
    names = ["scales"] if len(sizes) == 1 else [f"scales_{d}" for d in "dhw"[-len(sizes) :]]
    aligned = {} if mode.startswith("nearest") else {"align_corners": align}
    known: dict[str, object] = {"output_size": tuple(sizes), "self_sym_sizes": tuple(input.shape)}
    return {**known, **aligned, **dict(zip(names, scales, strict=True))}


@function(ns="nn.functional")
def upsample(input: Tensor, size: int | Sequence[int] | None = None,
             scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Any:  # fmt: skip
    """Deprecated: use `interpolate`."""
    caller.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


@function(ns="nn.functional")
def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Any:
    """Deprecated: use `interpolate`."""
    caller.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


@function(ns="nn.functional")
def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Any:
    """Deprecated: use `interpolate` with align_corners=True."""
    caller.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
