"""Quantiles: values between sorted elements."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.dims import numpy_names, wrap_dim
from rushlight.dispatch.named import named
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import on_meta_alone, shape_alone
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import function
from rushlight.dispatch.shapes import reduced
from rushlight.kernels.reference.order import order_of
from rushlight.ops.index.scatter import gather_op
from rushlight.ops.reduce.sums import tensor_argument
from rushlight.ops.shape.reshape import permute_op, reshape_op
from rushlight.tensor import Tensor, wrap

FEW = 512  # elements of a row that are sorted as soon as they are partly in order
WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


def levels(name: str, q: float, dtype: np.dtype[Any]) -> Array:
    """The quantiles asked for, as an array of 0 or 1 dimensions.  Raises RuntimeError for what is no quantile."""
    if isinstance(q, Tensor):
        if q._array.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q._array.dtype != dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor, got {q.dtype} and "
                               f"{dtypes.of(dtype)}")  # fmt: skip
        return q._array
    if not isinstance(q, numbers.Real | np.ndarray):
        raise TypeError(f"{name}(): argument 'q' (position 2) must be Tensor or float, not {type(q).__name__}")
    found = np.asarray(q, dtype)
    if not 0 <= found <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    return found


def neighbours(rank: Array, way: str) -> tuple[Any, Any, Any]:
    """Of ranks between elements: the lower place, the upper one, and the weight of the upper."""
    if way == "lower":
        rank = np.floor(rank)
    elif way == "higher":
        rank = np.ceil(rank)
    elif way == "nearest":
        rank = np.round(rank)
    low = np.floor(rank)
    weight = np.full_like(rank, 0.5) if way == "midpoint" else rank - low
    return low.astype(np.int64), np.ceil(rank).astype(np.int64), weight


def places(rows: Array, q: Array, way: str, skip_nan: bool, stable: bool) -> tuple[Any, Any, Any, Any]:
    """Of rows (*, N) and quantiles (Q): indices (*, Q) of both neighbours in the unsorted rows, and the weight of the
    upper one with its slope against q.

    stable: of equal elements the place counts, since a gradient goes there.
    """
    n, broken = rows.shape[-1], np.isnan(rows).sum(-1, keepdims=True)
    slope = np.asarray(np.maximum(n - broken - 1, 0) if skip_nan else np.where(broken > 0, 0, n - 1), rows.dtype)
    rank = q * slope
    if not skip_nan:
        rank = np.where(broken > 0, n - broken, rank).astype(rows.dtype)  # the first NaN
    low, high, weight = neighbours(rank, way)
    whole = stable or n <= FEW or broken.any()
    order = order_of(rows, rows.ndim - 1, False) if whole else partly_ordered(rows, low, high)
    return np.take_along_axis(order, low, -1), np.take_along_axis(order, high, -1), weight.astype(rows.dtype), slope


def partly_ordered(rows: Array, *wanted: Array) -> Array:
    """The indices that sort rows as far as some places ask for: a tenth of the time."""
    return np.argpartition(rows, np.unique(np.concatenate([w.reshape(-1) for w in wanted])), axis=-1)


def quantile_of(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, way: str, skip_nan: bool) -> Tensor:
    """quantile and nanquantile."""
    array = tensor_argument(name, input)
    if array.size == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if array.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, got {dtypes.of(array.dtype)}")
    if way not in WAYS:
        raise RuntimeError(f"{name}() interpolation must be one of {', '.join(WAYS)}, but got {way}")
    wanted = levels(name, q, array.dtype)
    if on_meta_alone(input, q):
        return shape_alone(
            (*wanted.shape, *reduced(array, wrap_dim(dim, array.ndim) if dim is not None else None, keepdim).shape),
            array.dtype,
        )
    if wanted.size and not ((wanted >= 0) & (wanted <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    rows, shape = rows_last(input, dim)
    if getattr(array, "unread", False):
        found = sorted_quantiles(rows, q if isinstance(q, Tensor) else wrap(wanted), way, skip_nan)
        return shaped(found, shape, dim, keepdim, wanted.ndim)
    followed = input.requires_grad or bool(input._tangents)
    low, high, weight, slope = places(raw(rows), np.atleast_1d(wanted), way, skip_nan, followed)
    last = raw(rows).ndim - 1
    below = gather_op(rows, low, last)
    moving_q = isinstance(q, Tensor) and (q.requires_grad or q._tangents) and way == "linear"
    if moving_q:
        weight = (q - q._array) * slope + weight  # only the slope counts
    found = below if not raw(weight).any() and not moving_q else between(below, gather_op(rows, high, last), weight)
    return shaped(found, shape, dim, keepdim, wanted.ndim)


def sorted_quantiles(rows: Tensor, q: Tensor, way: str, skip_nan: bool) -> Tensor:
    """Quantiles (Q) of rows (*, N) that have no values to look at, by operators alone: (*, Q)."""
    n, ordered = raw(rows).shape[-1], named.sort(rows, -1)[0]
    broken = named.isnan(rows).sum(-1, True)
    rank = q.reshape(-1) * ((n - 1 - broken).clamp(0) if skip_nan else broken * 0 + (n - 1)).to(rows.dtype)
    choose = {"lower": named.floor, "higher": named.ceil, "nearest": named.round}.get(way)
    rank = rank if choose is None else choose(rank)
    low, high = named.floor(rank), named.ceil(rank)
    ends = [named.gather(ordered, -1, place.detach().long()) for place in (low, high)]
    found = named.lerp(*ends, named.full_like(rank, 0.5) if way == "midpoint" else rank - low.detach())
    return found if skip_nan else named.where(broken > 0, math.nan, found)


def between(low: Tensor, high: Tensor, weight: Array) -> Tensor:
    """low + weight * (high - low), from the nearer end: so infinite ends do not meet."""
    return named.lerp(low, high, weight if isinstance(weight, Tensor) else wrap(weight))


def rows_last(input: Tensor, dim: int) -> tuple[Any, tuple[int, ...]]:
    """The elements in rows along the last dimension, and the shape."""
    shape = raw(input).shape
    if dim is None:
        return reshape_op(input, (raw(input).size,)), shape
    d = wrap_dim(dim, len(shape))
    if not shape:
        return reshape_op(input, (1,)), shape
    return permute_op(input, (*[i for i in range(len(shape)) if i != d], d)), shape


def shaped(found: Tensor, shape: tuple[int, ...], dim: int, keepdim: bool, levels_ndim: int) -> Tensor:
    """Results (*, Q) with Q in front if there were several, and with the reduced dimensions if they are kept."""
    n = raw(found).ndim
    found = permute_op(found, (n - 1, *range(n - 1)))
    rest = raw(found).shape[1:]
    if keepdim:
        d = None if dim is None else wrap_dim(dim, len(shape))
        rest = tuple([1 if d is None or i == d else k for i, k in enumerate(shape)])
    return reshape_op(found, (*raw(found).shape[:levels_ndim], *rest))


@function(method=True, autocast="float32")
@moving(same_dtype=True)
@numpy_names
@per_sample
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles (q in [0, 1], a number or 1-d tensor) of all elements or along `dim`.  (*) -> (Q, *)

    interpolation: how to choose between two elements: linear, lower, higher, midpoint or nearest. NaN if any is NaN.
    """
    return quantile_of("quantile", input, q, dim, keepdim, interpolation, False)


@function(method=True)
@moving(same_dtype=True)
@numpy_names
@per_sample
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """As `quantile`, of the elements that are not NaN.  (*) -> (Q, *)"""
    return quantile_of("nanquantile", input, q, dim, keepdim, interpolation, True)
