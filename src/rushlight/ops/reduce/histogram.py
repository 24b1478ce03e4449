"""Histograms: histc, histogram, histogramdd."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.dtype_words import older
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.compute import check_numbers
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import made, shape_alone
from rushlight.dispatch.registry import function
from rushlight.dispatch.results import named
from rushlight.ops.elementwise.shared import number
from rushlight.ops.reduce.sums import tensor_argument
from rushlight.ops.reduce.unique import computed
from rushlight.tensor import Tensor


def limits(name: str, x: Array, low: Any, high: Any) -> tuple[Any, Any]:
    """The ends of the bins: those of the data where both are equal; one apart where those are equal too."""
    low, high = number(low), number(high)
    check_numbers(name, x.dtype, low, high)
    if low == high and x.size:
        low, high = x.min().item(), x.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min, got [{low}, {high}]")
    if low == high:
        low, high = low - 1, high + 1
    return low, high


@function(method=True, out="same")
@per_sample
def histc(input: Tensor, bins: int = 100, min: Tensor | complex = 0, max: Tensor | complex = 0) -> Tensor:
    """How many elements fall in each of `bins` bins of equal width from min to max (of the data if both are equal).

    Elements outside are not counted.  (*) -> (bins)
    """
    array = tensor_argument("histc", input)
    if array.dtype.kind in "cb":
        raise NotImplementedError(f"\"histc\" not implemented for '{older(dtypes.of(array.dtype))}'")
    bins = as_int(bins, "histc", "bins", 2)
    if bins <= 0:
        raise RuntimeError(f"histc: bins must be > 0, but got {bins}")
    if input._meta:
        return shape_alone((bins,), array.dtype)
    flat = (array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array).reshape(-1)
    low, high = limits("torch.histc", flat, min, max)
    inside = flat[(flat >= low) & (flat <= high)]
    wide = high - low  # 0 where 1 is below the rounding of what is there, which is then in the middle
    place = ((inside - low) * (bins / wide)).astype(np.int64) if wide else np.full(inside.shape, bins // 2)
    np.minimum(place, bins - 1, out=place)
    return made(np.bincount(place, minlength=bins).astype(array.dtype))


BLOCK = 1 << 16  # points that are counted together

_histogram, _histogramdd = named("histogram", "hist", "bin_edges"), named("histogramdd", "hist", "bin_edges")


def edges_of(name: str, x: Array, bins: Tensor | int, span: object) -> Array:
    """Edges given, or evenly spaced over `span` or the data."""
    if isinstance(bins, Tensor):
        edges = raw(bins)
        if edges.ndim != 1:
            raise RuntimeError(f"{name}: bins tensor should have one dimension, but got {edges.ndim}")
        if edges.size == 0:
            raise RuntimeError(f"{name}: bins tensor should have at least 1 element, but got none")
        if edges.size < 2:
            raise RuntimeError(f"{name}(): bins must be > 0, but got {edges.size} edges of bins, expected 2 or more")
        return edges
    if not hasattr(bins, "__index__"):
        raise TypeError(f"{name}(): argument 'bins' must be int or Tensor, not {type(bins).__name__}")
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins}")
    if span is None:
        low, high = (x.min().item(), x.max().item()) if x.size else (0.0, 1.0)
    else:
        low, high = span
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: min should not exceed max, but got min {low} max {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1).astype(x.dtype)


def binned(x: Array, edges: list[Any], weights: Any, density: bool) -> Array:
    """Weights of points (N, D) summed in the cells between edges."""
    counts = [len(e) - 1 for e in edges]
    w = None if weights is None else weights.reshape(-1)
    total = np.zeros(math.prod(counts), np.int64 if w is None else np.float64)
    for i in range(0, len(x), BLOCK):
        _count(total, x[i : i + BLOCK], edges, None if w is None else w[i : i + BLOCK])
    found = total.astype(x.dtype).reshape(counts)
    if density:
        found = found / found.sum()
        for d, e in enumerate(edges):
            found = found / np.diff(e).reshape([-1 if i == d else 1 for i in range(len(edges))])
    return found.astype(x.dtype)


def _count(total: Array, x: Array, edges: list[Any], weights: Any) -> None:
    """Adds to each cell its points (N, D), or their weights."""
    flat: Any = 0
    inside: Any = True
    for d, e in enumerate(edges):
        column = np.ascontiguousarray(x[:, d])
        inside = inside & (column >= e[0]) & (column <= e[-1])  # not NaN
        flat = flat * (len(e) - 1) + bin_of(column, e)
    if inside.all():
        inside = slice(None)
    w = None if weights is None else weights[inside].astype(np.float64)
    total += np.bincount(flat[inside], w, len(total)).astype(total.dtype, copy=False)


def bin_of(x: Array, edges: Array) -> Array:
    """The bin (N,) of each of the numbers between the first and the last edge; any bin for others.

    Where edges are evenly spaced but for rounding, their number is computed, and set right where an edge lies between: no search.
    """
    bins = len(edges) - 1
    step = (float(edges[-1]) - float(edges[0])) / bins
    with np.errstate(all="ignore"):
        even = step > 0 and abs(np.diff(edges.astype(np.float64)) - step).max() < step / 4 and x.size > bins
    if not even or not math.isfinite(step):
        return np.minimum(np.searchsorted(edges[:-1], x, "right") - 1, bins - 1).clip(0)
    place = x.astype(np.float64)
    place -= float(edges[0])
    place *= 1 / step
    with np.errstate(invalid="ignore"):
        at = np.fmin(np.fmax(place, 0, out=place), bins - 1, out=place).astype(np.int64)
    at -= (x < edges[at]) & (at > 0)
    at += (x >= edges[at + 1]) & (at < bins - 1)
    return at


def check_weights(name: str, x: Array, weights: Any, shape: tuple[int, ...]) -> Any:
    """The array of weights.  Raises RuntimeError where they do not fit."""
    if weights is not None:
        check_alike(name, x, "weight tensor", weights)
        if raw(weights).shape != shape:
            raise RuntimeError(f"{name}: if weight tensor is provided it should have the same shape as the input tensor "
                               f"excluding its innermost dimension, which are the points: {list(shape)}, got "
                               f"{list(raw(weights).shape)}")  # fmt: skip
    if x.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"{name}: not implemented for {dtypes.of(x.dtype)}: expected float32 or float64")
    return None if weights is None else raw(weights)


def check_alike(name: str, x: Array, what: str, other: object) -> None:
    """Raise RuntimeError for a tensor of another dtype than the input's."""
    if isinstance(other, Tensor) and raw(other).dtype != x.dtype:
        raise RuntimeError(f"{name}: input tensor and {what} should have the same dtype, but got {dtypes.of(x.dtype)} and "
                           f"{other.dtype}")  # fmt: skip


def followed(*operands: object) -> Any:
    """The first operand that requires grad, or the first: whose lack of a derivative the results tell."""
    return next((x for x in operands if isinstance(x, Tensor) and x.requires_grad), operands[0])


@function(method=True, out="same", unlike="input tensor and {} tensor should have the same dtype: ")
@per_sample
def histogram(
    input: Tensor, bins: Tensor | int = 100, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, ...]:
    """How many elements, or how much weight, falls in each bin, and the edges of the bins.  (*) -> (bins), (bins + 1)

    bins: how many of equal width over `range` (or the data), or a tensor of edges. density: so that the area is 1.
    """
    array = tensor_argument("histogram", input)
    check_alike("torch.histogram", array, "bins tensors", bins)
    if isinstance(bins, Tensor) and range is not None:
        raise TypeError(
            "histogram() received an invalid combination of arguments: edges of bins beside a range of theirs"
        )
    w = check_weights("torch.histogram", array, weight, array.shape)
    if range is not None and len(range) != 2:
        raise RuntimeError(f"torch.histogram: range should have 2 elements, got {len(range)}")
    edges = edges_of("torch.histogram", array, bins, range)
    hist = binned(array.reshape(-1, 1), [edges], w, density)
    source = followed(input, bins, weight)
    return _histogram(computed("histogram", source, hist), computed("histogram", source, edges.copy()))


@function()
@per_sample
def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, ...]:
    """A histogram of points in D dimensions: (*, D) -> (bins, ...), and the D tensors of edges.

    bins: how many in each dimension, for all or one by one, or the edges; range: low and high for each dimension, flat.
    """
    array = tensor_argument("histogramdd", input)
    if array.ndim < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {array.ndim}")
    n = array.shape[-1]
    each = [bins] * n if isinstance(bins, int) else list(bins)
    for edges in each:
        check_alike("torch.histogramdd", array, "bins tensors", edges)
    w = check_weights("torch.histogramdd", array, weight, array.shape[:-1])
    if len(each) != n:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input. Expected "
                           f"{n} sequences of bin edges or numbers of bins but got {len(each)}")  # fmt: skip
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} elements, "
                           f"but got {len(range)}")  # fmt: skip
    points = array.reshape(math.prod(array.shape[:-1]), n)
    spans = [None if range is None else (range[2 * d], range[2 * d + 1]) for d in np.arange(n).tolist()]
    edges = [
        edges_of("torch.histogramdd", points[:, d], b, s) for d, (b, s) in enumerate(zip(each, spans, strict=True))
    ]
    source = followed(input, *each, weight)
    hist = computed("histogramdd", source, binned(points, edges, w, density))
    return _histogramdd(
        hist,
        tuple(
            b if isinstance(b, Tensor) else computed("histogramdd", source, e) for b, e in zip(each, edges, strict=True)
        ),
    )
