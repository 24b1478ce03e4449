"""Order: sort, argsort, msort, topk, kthvalue, median, nanmedian, mode."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import numpy_names, wrap_dim
from rushlight.dispatch.formats import turned_back
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import along, function, op
from rushlight.dispatch.results import named
from rushlight.kernels.dispatch import FLOAT32, is_half, memory_order, recast
from rushlight.kernels.order import bytes_of_rank
from rushlight.kernels.reference.order import order_of
from rushlight.ops.index.raw_indices import gather_along
from rushlight.ops.reduce.extrema import alike, at_index, check_dim, check_kept, ordered, place_along
from rushlight.ops.reduce.sums import fold
from rushlight.tensor import Tensor

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
FEW = 16  # that are found by going through a row once, whatever its length


def placed(input: Array, dim: int, descending: bool, stable: bool) -> Array:
    """The indices that sort along `dim`, in the order in which `input` lies."""
    if input.flags.c_contiguous:
        return order_of(input, dim, descending, stable)
    order = memory_order(input)
    return turned_back(order_of(input.transpose(order), order.index(dim), descending, stable), order)


@op(
    aten_call="sort",
    outputs=("values", "indices"),
    differentiable=(0,),
    grads={"input": lambda g, indices, input_shape, dim: place_along(g, indices, input_shape, dim)},
    shape=shapes.with_indices,
    half=None,
    batch=families.shifted,
)
def sort_op(input: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, ...]:
    """The elements in order along `dim` and where they were.  (*) -> (*), (*)"""
    if not input.ndim:
        return input.copy(), np.zeros((), np.int64)
    keys = recast(input, FLOAT32) if is_half(input.dtype) else input
    if backend.has_short_rows(keys, dim):
        values, index = backend.short_rows_in_order(keys, descending)
        return recast(values, input.dtype), index
    index = placed(keys, dim, descending, stable)
    del keys
    return gather_along(input, index, dim), index


@sort_op.work
def _(input: Array, dim: int) -> int:
    """Of 16 bits the copy in float32, where their order is found before there are values; of short rows they are copied, too."""
    if not is_half(input.dtype) or not input.ndim:
        return 0
    return input.size * (8 if backend.has_short_rows(input, dim) else 2)


@op(
    aten=("topk(input, k, dim=-1, largest=True)",),
    outputs=("values", "indices"),
    differentiable=(0,),
    grads={"input": lambda g, indices, input_shape, dim: place_along(g, indices, input_shape, dim)},
    batch=families.shifted,
)
def topk_op(input: Array, k: int, dim: int, largest: bool) -> tuple[Array, ...]:
    """The k largest or smallest elements along `dim`, in order, and where they are.  (*) -> (*), (*)"""
    if not input.ndim:
        return input.reshape(()).copy(), np.zeros((), np.int64)
    n = input.shape[dim]
    cut = [slice(None)] * dim
    one_by_one = k <= FEW and input.dtype in FLOATS
    if k == 0:
        shape = shapes.with_size(input, dim, 0)
        return np.empty(shape, input.dtype), np.empty(shape, np.int64)
    if not one_by_one and k * 8 > n:
        index = order_of(input, dim, largest)[(*cut, slice(0, k))].copy()  # not a view, which would hold all of them
        return gather_along(input, index, dim), index
    return backend.top_k(input, k, dim, largest)


@topk_op.shape
def _(input: Array, k: int, dim: int) -> list[shapes.Made]:
    shape = shapes.with_size(input, dim, k)
    return [shapes.Made(shape, input.dtype), shapes.Made(shape, shapes.INT64)]


@topk_op.work
def _(input: Array, k: int, dim: int, largest: bool) -> int:
    if not input.size or not input.ndim:
        return 0
    found = input.size // input.shape[dim] * k
    if (
        not (input.dtype in FLOATS and k <= FEW) and k * 8 > input.shape[dim]
    ):  # the order of all, turned where the largest are first
        return max(8 * input.size - found * input.itemsize, (16 * input.size - found * (input.itemsize + 8)) * largest)
    return (
        0 if dim in (-1, input.ndim - 1) else int(input.nbytes + found * (input.itemsize + 8))
    )  # in rows, and turned back


def nth(x: Array, dim: int, k: int | Array, keepdim: bool) -> tuple[Array, ...]:
    """(values, indices) of the k-th smallest elements (from 0) along `dim`; k may be an array with size 1 there."""
    values, index = backend.of_rank(x, dim, k)
    if not keepdim:
        values, index = values.squeeze(dim), index.squeeze(dim)
    return values, index


@op(
    aten=("kthvalue(input, k, dim=-1, keepdim=False)",),
    outputs=("values", "indices"),
    differentiable=(0,),
    grads={"input": at_index},
    shape=shapes.reduction_with_indices,
    batch=families.shifted,
)
def kthvalue_op(input: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """The k-th smallest elements along `dim` and where they are.  (*) -> (*), (*)"""
    if not input.ndim:
        return input.copy(), np.zeros((), np.int64)
    return nth(input, dim, k - 1, keepdim)


@op(
    aten_call="median",
    outputs=("values", "indices"),
    differentiable=(0,),
    grads={"input": at_index},
    shape=shapes.reduction_with_indices,
    batch=families.shifted,
)
def median_op(input: Array, dim: int, keepdim: bool, skip_nan: bool) -> tuple[Array, ...]:
    """The lower median along `dim` and where it is; NaN wins unless it is skipped.  (*) -> (*), (*)"""
    if not input.ndim:
        return input.copy(), np.zeros((), np.int64)
    n = input.shape[dim]
    if input.dtype.kind != "f":
        return nth(input, dim, (n - 1) // 2, keepdim)
    if not input.size or not np.isnan(input.min()):  # which finds one without an array of bools
        return nth(input, dim, (n - 1) // 2, keepdim)
    bad = fold(np.add, np.isnan(input), (dim,), True, dtype=np.int64)
    if skip_nan:
        return nth(input, dim, np.maximum((n - bad - 1) // 2, 0), keepdim)
    # NaN sorts last: the first of them is at n - bad.
    return nth(input, dim, np.where(bad > 0, n - bad, (n - 1) // 2), keepdim)


@op(aten=("median",), aten_call="median_all",
    grads={"input": lambda g, input, out: alike(g, input, out)}, shape=shapes.number, batch=families.middle)  # fmt: skip
def median_all(input: Array, skip_nan: bool) -> Array:
    """The lower median of all elements.  (*) -> ()"""
    flat = input.reshape(-1)
    if not flat.size:
        return np.full((), np.iinfo(input.dtype).min if input.dtype.kind in "iu" else np.nan).astype(input.dtype)
    return np.asarray(median_op.op.forward(flat, 0, False, skip_nan)[0])


kthvalue_op.work(bytes_of_rank)
median_op.work(bytes_of_rank)


@median_all.work
def _(input: Array) -> int:
    return bytes_of_rank(input, None)


@op(
    aten=("mode(input, dim=-1, keepdim=False)",),
    outputs=("values", "indices"),
    differentiable=(0,),
    grads={"input": at_index},
    shape=shapes.reduction_with_indices,
    batch=families.shifted,
)
def mode_op(input: Array, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """The smallest of the most frequent elements along `dim` and the last place of it.  (*) -> (*), (*)"""
    if not input.ndim:
        return input.copy(), np.zeros((), np.int64)
    order = order_of(input, dim, False)
    rows = np.moveaxis(np.take_along_axis(input, order, dim), dim, -1)
    n = rows.shape[-1]
    # Lengths of runs of equal elements: at each place how far back its run started.
    starts = np.ones(rows.shape, np.bool_)
    starts[..., 1:] = rows[..., 1:] != rows[..., :-1]
    place = np.arange(n)
    length = place - np.maximum.accumulate(np.where(starts, place, 0), axis=-1)
    last = np.expand_dims(np.argmax(length, axis=-1), dim)
    index = np.take_along_axis(order, last, dim)
    values = gather_along(input, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


@mode_op.work
def _(input: Array) -> int:
    return int(input.size * (input.itemsize + 25))  # the order, the elements in it, and runs of them


# Public functions ----------------------------------------------------------------------------------

_sort, _topk, _kthvalue = (named(n, "values", "indices") for n in ("sort", "topk", "kthvalue"))
_median, _nanmedian, _mode = (named(n, "values", "indices") for n in ("median", "nanmedian", "mode"))


@function(method=True, out="same")
@numpy_names
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, ...]:
    """The elements in order along `dim` and their indices; NaN counts as largest.  (*) -> (*), (*)"""
    dim = wrap_dim(dim, ordered("sort", input, RuntimeError).ndim)
    return _sort(*sort_op(input, dim, bool(descending), bool(stable)))


@op(aten_call="argsorted", batch=families.shifted)
def argsort_op(input: Array, dim: int, descending: bool, stable: bool) -> Array:
    """The indices that sort along `dim`.  (*) -> (*) of int64"""
    return placed(input, dim, descending, stable) if input.ndim else np.zeros((), np.int64)


@argsort_op.shape
def _(input: Array) -> list[shapes.Made]:
    return [shapes.Made(input.shape, shapes.INT64)]


@function(method=True, out="same", out_where=lambda args, kwargs: "stable" in kwargs)
@numpy_names
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort along `dim`; NaN counts as largest.  (*) -> (*) of int64"""
    dim = wrap_dim(dim, ordered("argsort", input, RuntimeError).ndim)
    return argsort_op(input, dim, bool(descending), bool(stable))


@function(method=True, out="same")
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension.  (*) -> (*)"""
    ordered("msort", input, RuntimeError)
    return sort_op(input, 0, False, False)[0]


def check_k(name: str, array: Array, k: int, dim: int, low: int) -> int:
    """`k` as an int.  Raises RuntimeError where `dim` has no k elements."""
    n = array.shape[dim] if array.ndim else 1
    k = operator.index(k)
    if not low <= k <= n:
        what = "index" if name == "topk" else "number"
        raise RuntimeError(f"{name}(): selected {what} k out of range for dimension {dim}: got {k}, size {n}")
    return k


@function(method=True, out="same")
@numpy_names
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, ...]:
    """The k largest (or smallest) elements along `dim` and their indices, in order.  (*) -> (*), (*)"""
    array = ordered("topk", input, RuntimeError)
    for position, (each, x) in enumerate((("k", k), ("dim", dim)), 2):
        if isinstance(x, bool):  # `largest`, most likely
            raise TypeError(f"topk(): argument '{each}' (position {position}) must be int, not bool")
    dim = wrap_dim(dim, array.ndim)
    return _topk(*topk_op(input, check_k("topk", array, k, dim, 0), dim, bool(largest)))


@function(method=True)
@moving(same_dtype=True)
@numpy_names
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, ...]:
    """The k-th smallest elements (k from 1) along `dim` and their indices.  (*) -> (*), (*)"""
    array = ordered("kthvalue", input)
    dim = check_dim("kthvalue", array, dim)
    return _kthvalue(*kthvalue_op(input, check_k("kthvalue", array, k, dim, 1), dim, keepdim))


def middle(
    name: str, kind: type[Any], input: Tensor, dim: Sequence[int] | int | None, keepdim: bool, skip_nan: bool
) -> Tensor:
    """median and nanmedian."""
    array = ordered(name, input)
    if dim is None:
        check_kept(name, keepdim)
        return median_all(input, skip_nan)
    return kind(*median_op(input, check_dim(name, array, dim), keepdim, skip_nan))


@function(method=True, out="same", out_where=along)
@numpy_names
def median(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The median (of an even number of elements the lower one); with `dim` a named tuple with the indices.

    NaN if any element is NaN.  (*) -> (*), (*)
    """
    return middle("median", _median, input, dim, keepdim, False)


@function(method=True, out="same", out_where=along)
@numpy_names
def nanmedian(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The median of the elements that are not NaN; with `dim` a named tuple with the indices.  (*) -> (*), (*)"""
    return middle("nanmedian", _nanmedian, input, dim, keepdim, True)


@function(method=True, out="same")
@numpy_names
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, ...]:
    """The most frequent elements along `dim` (the smallest of several) and their indices.  (*) -> (*), (*)"""
    return _mode(*mode_op(input, check_dim("mode", ordered("mode", input), dim), keepdim))
