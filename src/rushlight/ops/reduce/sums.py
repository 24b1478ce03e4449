"""Sums and means, and what their gradients share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import families, shapes
from rushlight.dispatch.compute import HALVES
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import numpy_names, wrap_dims
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import numpy_dtype
from rushlight.dispatch.registry import along, function, op
from rushlight.kernels.dispatch import FLOAT32, as_truths, packed, recast, widened
from rushlight.kernels.native.ufuncs import TAKEN
from rushlight.kernels.sums import SMALL, add_up, counted, joined
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.elementwise.shared import keep
from rushlight.ops.shape.reshape import broadcast, reshape_op
from rushlight.tensor import Tensor

BLOCK = 1 << 16  # elements worked on at a time where a temporary of the input's size would be needed
FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
_REDUCE: Any = np.add.reduce  # its stubs know no keepdims that is a variable
# Ufuncs whose reductions have kernels.
FOLDS = {np.maximum: "maximum_over", np.minimum: "minimum_over", np.multiply: "product_over"}
# Those that follow from how many elements of a mask are set, and of how many.
COUNTS: dict[Any, Callable[[Array, int], Array]] = {
    np.add: lambda known, _: known,
    np.logical_or: lambda known, _: np.not_equal(known, 0),
    np.logical_and: lambda known, size: np.equal(known, size),
}


def tensor_argument(name: str, x: Array | Tensor | list[Any]) -> Array:
    """The array of the argument `input`.  Raises TypeError where it is neither tensor nor array."""
    if isinstance(x, Tensor):
        return x._array
    if x.__class__ is np.ndarray:
        return x
    raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind_of(x)}")


def axes(dim: Any, ndim: int) -> Any:
    """The dimensions that a reduction over `dim` covers, as a tuple from the front; None and () mean all: None."""
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        return wrap_dims(dim, ndim) if dim else None
    return wrap_dims((dim,), ndim)


def fold(ufunc: Any, x: Array, dim: Any, keepdim: bool = False, **options: Any) -> Array:
    """The reduction of an array by a ufunc over `dim` (a tuple, None for all), as an array in C order, which `view` takes."""
    if ufunc in FOLDS and (not options or (len(options) < 2 and options.get("dtype") == x.dtype)):
        found = joined(FOLDS[ufunc], x, dim, keepdim)
        if found is not None:
            return found
    if x.dtype.kind == "b" and ufunc in COUNTS and "where" not in options:
        known = counted(x, dim, keepdim)
        if known is not None:
            return COUNTS[ufunc](known, count(x.shape, dim))
    if ufunc is np.add and not options and is_small(x):
        return total(x, dim, keepdim)
    if ufunc is np.add and x.dtype in HALVES and options == {"dtype": FLOAT32}:
        found = joined("sum", x, dim, keepdim, FLOAT32)
        if found is not None:
            return found
        if x.size > BLOCK:
            return fold_of(ufunc, widened, x, dim, keepdim)
    if ufunc in FOLDS and x.dtype in HALVES and (ufunc is np.multiply or (ufunc.__name__, x.dtype.num) not in TAKEN):
        return recast(fold(ufunc, widened(x), dim, keepdim, **options), x.dtype)
    if ufunc is np.add and x.size > SMALL and "where" not in options:
        return packed(add_up(x, dim, keepdim, options.get("dtype")))
    return packed(np.asarray(ufunc.reduce(x, axis=dim if x.ndim else None, keepdims=keepdim, **options)))


def fold_of(
    ufunc: Any, fn: Callable[..., Any], x: Array, dim: tuple[int, ...] | None, keepdim: bool, *others: Array
) -> Array:
    """The reduction of fn(x, *others) by a ufunc, in blocks: without memory of the size of x.

    others: arrays of the shape of x, or of size 1 in the reduced dimensions.
    """
    if x.size <= BLOCK:
        return fold(ufunc, np.asarray(fn(x, *others)), dim, keepdim)
    shape = keep_shape(x.shape, dim)
    if dim is None and x.flags.c_contiguous:
        x, others = x.reshape(-1), tuple(a.reshape(-1) for a in others)
    axis = 0 if len(x) * BLOCK >= x.size else int(np.argmax(x.shape))
    step, out = max(1, BLOCK * x.shape[axis] // x.size), None
    for start in range(0, x.shape[axis], step):
        part = (*(slice(None),) * axis, slice(start, start + step))
        given = [a if a.shape[axis] == 1 else a[part] for a in others]
        found = fold(ufunc, fn(x[part], *given), dim, True)
        if dim is None or axis in dim:
            out = found if out is None else ufunc(out, found, out=out)
        else:
            out = np.empty(shape, found.dtype) if out is None else out
            out[part] = found
    assert out is not None
    return out.reshape(shape if keepdim else left(shape, dim))


def left(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> tuple[int, ...]:
    """The sizes that a reduction over `dim` leaves."""
    return () if dim is None else tuple([n for i, n in enumerate(shape) if i not in dim])


def keep_shape(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> tuple[int, ...]:
    """`shape` with the reduced dimensions at 1."""
    covered = range(len(shape)) if dim is None else dim
    return tuple([1 if i in covered else n for i, n in enumerate(shape)])


def unsqueezed(x: Any, shape: tuple[int, ...], dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """A reduced array or tensor with the reduced dimensions back at size 1."""
    if keepdim or not shape:
        return x
    whole = keep_shape(shape, dim)
    return x.reshape(whole) if x.__class__ is np.ndarray else reshape_op(x, whole)


def spread(g: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Array | Tensor:
    """The gradient of a reduction, broadcast over the dimensions that it reduced."""
    return broadcast(unsqueezed(g, shape, dim, keepdim), shape)


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements go into one result."""
    return math.prod(shape if dim is None else [shape[i] for i in dim if shape])


def asked_first(x: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """`x` in the NumPy dtype that a caller asks for; where imaginary parts are lost, it is said."""
    dtypes.warn_of_lost_parts(dtypes.of(raw(x).dtype), dtypes.of(dtype))
    return cast_first(x, dtype)


def cast_first(x: Any, dtype: np.dtype[Any]) -> Tensor:
    """`x` in a NumPy dtype, itself where it has it."""
    return x if raw(x).dtype == dtype else cast(x, dtype)


def is_small(x: Array) -> bool:
    """Whether an array is of few numbers that are added up in their own dtype, as most: no more is asked of those."""
    return x.size <= SMALL and (x.dtype is FLOAT32 or x.dtype is FLOAT64)


def as_array(found: Any) -> Array:
    """A number or an array of NumPy's as an array in C order."""
    return packed(found) if found.__class__ is np.ndarray else np.asarray(found)


def total(x: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    """The sum of an array; float16 and bfloat16 are added up in float32, integers and bools in int64."""
    if is_small(x):
        found = joined("sum", x, dim, keepdim)
        return as_array(_REDUCE(x, dim if x.ndim else None, None, None, keepdim)) if found is None else found
    if x.dtype is INT64 and x.size <= SMALL:
        return as_array(_REDUCE(x, dim if x.ndim else None, None, None, keepdim))
    if dim is None and x.dtype.kind == "b":
        return np.full((1,) * x.ndim if keepdim else (), np.count_nonzero(x), np.int64)
    wide = FLOAT32 if x.dtype in HALVES else INT64 if x.dtype.kind in "biu" else None
    return fold(np.add, x, dim, keepdim, dtype=wide) if wide is not None else fold(np.add, x, dim, keepdim)


@op(
    aten=("sum.dim_IntList",),
    aten_call="reduced",
    aten_gradient="total",
    half=None,
    linear=True,
    grads={"input": lambda g, input_shape, dim, keepdim: spread(g, input_shape, dim, keepdim)},
    shape=shapes.reduction,
    batch=families.shifted,
)
def sum_op(input: Array, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Array:
    """Sum over `dim` (a tuple, or None for all), of integers and bools in int64.  (*) -> (*)"""
    found = total(input, dim, keepdim)
    return recast(found, input.dtype) if found.dtype == FLOAT32 != input.dtype else found


@op(
    aten=("mean.dim",),
    aten_call="reduced",
    aten_gradient="mean",
    half=None,
    linear=True,
    shape=shapes.reduction,
    batch=families.shifted,
)
def mean_op(input: Array, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Array:
    """Mean over `dim` (a tuple, or None for all).  (*) -> (*)"""
    n = input.size if dim is None else count(input.shape, dim)
    if n and is_small(input):
        return as_array(total(input, dim, keepdim) / n)
    found = total(input, dim, keepdim)
    if n:
        found /= n
    else:
        found[...] = complex(np.nan, np.nan) if found.dtype.kind == "c" else np.nan
    return found.astype(input.dtype, copy=False)


def _total_in_float32(input: Array, dim: tuple[int, ...] | None, keepdim: bool) -> int:
    """The bytes of sums of 16 bits, before they are rounded."""
    return shapes.reduced(input, dim, keepdim, FLOAT32).nbytes if input.dtype in HALVES else 0


sum_op.work(_total_in_float32)
mean_op.work(_total_in_float32)


@mean_op.grad("input")
def _(g: Array | Tensor, input_shape: tuple[int, ...], dim: tuple[int, ...] | None, keepdim: bool) -> Array | Tensor:
    return spread(over(g, max(count(input_shape, dim), 1)), input_shape, dim, keepdim)


def over(g: Array | Tensor, n: int) -> Array | Tensor:
    """g / n, where n may be beyond the 16 bits of an array."""
    if isinstance(g, Tensor) or g.dtype not in HALVES:
        return g / n
    return np.asarray(np.divide(g, n, dtype=np.float32)).astype(g.dtype)


def in_dtype(name: str, input: Tensor, dtype: dtype | None) -> Tensor:
    """The input in the dtype in which sums are taken: `dtype`, int64 for integers and bools, else its own."""
    array = tensor_argument(name, input)
    if dtype is not None:
        return asked_first(input, numpy_dtype(name, dtype))
    return cast_first(input, dtypes.int64.numpy) if array.dtype.kind in "biu" else input


NO_DIM: list[int] = []  # where no dimensions are told: neither None nor (), of which there are forms with `out`


@function(method=True, out="computed", out_where=along, name="sum")
def sum_(input: Tensor, dim: int | Sequence[int] | None = NO_DIM, keepdim: bool = False, *, dtype: dtype | None = None,
         axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Any:  # fmt: skip
    """Sum of the elements, over all dimensions or those in `dim`.  (*) -> (*)

    Integers and bools are summed as int64.

    >>> import rushlight as torch
    >>> torch.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    array = tensor_argument("sum", input)
    if dim is NO_DIM:
        dim = None
    if dtype is not None:
        input = in_dtype("sum", input, dtype)
    where = None if dim is None and axis is None else axes(axis if dim is None else dim, array.ndim)
    found = sum_op(input, where, keepdim or keepdims)
    return found if dtype is None else cast_first(found, numpy_dtype("sum", dtype))


@function(method=True, out=True)
def mean(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None,
         axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:  # fmt: skip
    """Mean of the elements, over all dimensions or those in `dim`.  (*) -> (*)

    Raises RuntimeError for integers and bools without dtype=.
    """
    array = tensor_argument("mean", input)
    if dtype is not None:
        input = asked_first(input, numpy_dtype("mean", dtype))
    if raw(input).dtype.kind in "biu":
        what = "Input" if dtype is None else "Optional"
        raise RuntimeError(f"mean(): could not infer output dtype. {what} dtype must be either a floating point or "
                           f"complex dtype. Got: {older(raw(input).dtype)}")  # fmt: skip
    where = None if dim is None and axis is None else axes(axis if dim is None else dim, array.ndim)
    return mean_op(input, where, keepdim or keepdims)


# Products ------------------------------------------------------------------------------------------


# Truth ---------------------------------------------------------------------------------------------


@op(aten_call="truth", complex_half="moves", batch=families.shifted)
def truth_op(input: Array, which: str, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    """np.logical_or or np.logical_and over `dim`: bool, but uint8 of uint8.  (*) -> (*)"""
    if input.dtype == np.bool_:
        found = fold(getattr(np, which), input, dim, keepdim)
    else:
        found = fold_of(getattr(np, which), as_truths, input, dim, keepdim)
    return packed(np.asarray(found, np.uint8 if input.dtype == np.uint8 else np.bool_))


@truth_op.shape
def _(input: Array, dim: tuple[int, ...] | None, keepdim: bool) -> list[shapes.Made]:
    return [shapes.reduced(input, dim, keepdim, shapes.BOOL)]


def _truth(name: str, which: str, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    array = tensor_argument(name, input)
    where: Any = None
    if dim is not None:
        several = isinstance(dim, (tuple, list))
        where = wrap_dims(dim if several else (dim,), array.ndim)
    return truth_op(input, which, where if array.ndim else None, keepdim)


@function(method=True, out="truth", name="any")
@numpy_names
def any_(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not zero, over all dimensions or those in `dim`.  (*) -> (*) of bool"""
    return _truth("any", "logical_or", input, dim, keepdim)


@function(method=True, out="truth", name="all")
@numpy_names
def all_(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether no element is zero, over all dimensions or those in `dim`.  (*) -> (*) of bool"""
    return _truth("all", "logical_and", input, dim, keepdim)


@op(aten=("count_nonzero(input, dim=None)",), complex_half="moves", batch=families.shifted)
def count_op(input: Array, dim: tuple[int, ...]) -> Array:
    """The number of elements that are not zero, over `dim`.  (*) -> (*) of int64"""
    if dim is None or input.dtype == np.bool_:
        known = as_truths(input) if input.dtype in HALVES else input
        found = counted(known, dim)
        return packed(np.asarray(np.count_nonzero(known, axis=dim), np.int64)) if found is None else found
    return fold_of(np.add, as_truths, input, dim, False)


@count_op.shape
def _(input: Array, dim: tuple[int, ...]) -> list[shapes.Made]:
    return [shapes.reduced(input, dim, False, shapes.INT64)]


@function(method=True)
@numpy_names
def count_nonzero(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The number of elements that are not zero, over all dimensions or those in `dim`.  (*) -> (*) of int64"""
    array = tensor_argument("count_nonzero", input)
    where = axes(dim, array.ndim)
    return count_op(input, where if array.ndim else None)


@op(half=None, batch=families.shifted)
def hash_op(input: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    """The exclusive or, over `dim`, of the elements' bits as int64 or float64.  (*) -> (*) of uint64"""
    wide = input.astype(np.float64 if input.dtype.kind in "fV" else np.int64).view(np.uint64)
    return fold(np.bitwise_xor, wide, dim, keepdim)


@hash_op.shape
def _(input: Array, dim: tuple[int, ...] | None, keepdim: bool) -> list[shapes.Made]:
    return [shapes.reduced(input, dim, keepdim, np.dtype(np.uint64))]


@hash_op.work
def _(input: Array) -> int:
    return 8 * input.size


@function(method=True, out="same")
def hash_tensor(input: Tensor, dim: int | Sequence[int] | None = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """A hash of the elements, over all dimensions or `dim`: the exclusive or of their bits.  (*) -> (*) of uint64"""
    array = tensor_argument("hash_tensor", input)
    if mode != 0 or array.dtype.kind == "c":
        raise RuntimeError(
            f"hash_tensor(): expected mode 0 and a real tensor, got mode {mode}, {dtypes.of(array.dtype)}"
        )
    if not array.size and not isinstance(dim, int) and not dim:
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                           "with the 'dim' argument.")  # fmt: skip
    return hash_op(input, axes(dim, array.ndim), keepdim)


# Without NaN ---------------------------------------------------------------------------------------


@op(
    aten=("nansum(input, dim=None, keepdim=False)",),
    aten_gradient="nansum",
    half=None,
    shape=shapes.reduction,
    batch=families.shifted,
)
def nansum_op(input: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    """Sum of the elements that are not NaN, over `dim`.  (*) -> (*)"""
    found = joined("sum_of_known", input, dim, keepdim)
    if found is not None:
        return found
    wide = np.dtype(np.float32) if input.dtype in HALVES else input.dtype
    known = fold_of(np.add, lambda x: np.where(np.isnan(x), 0, x).astype(wide, copy=False), input, dim, keepdim)
    return known.astype(input.dtype, copy=False)


@nansum_op.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, dim: tuple[int, ...], keepdim: bool) -> Array:
    return keep(spread(g, raw(input).shape, dim, keepdim), ~np.isnan(raw(input)))


@function(method=True, out=True)
@numpy_names
def nansum(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None
) -> Tensor:
    """Sum of the elements that are not NaN, over all dimensions or those in `dim`.  (*) -> (*)"""
    array = tensor_argument("nansum", input)
    if array.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs: nothing of them is NaN alone")
    wanted = None if dtype is None else dtypes.of(numpy_dtype("nansum", dtype))
    if wanted is not None and wanted.category < dtypes.FLOAT and array.dtype.kind not in "biu":
        input = keep(input, ~np.isnan(array))  # before they are converted
    input = in_dtype("nansum", input, dtype)
    where = axes(dim, array.ndim)
    if raw(input).dtype.kind not in "iu":
        return nansum_op(input, where, keepdim)
    return cast_first(sum_op(input, where, keepdim), raw(input).dtype)


@function(method=True, out=True)
@numpy_names
def nanmean(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None
) -> Tensor:
    """Mean of the elements that are not NaN, over all dimensions or those in `dim`.  (*) -> (*)"""
    array = tensor_argument("nanmean", input)
    if array.dtype.kind in "biu":
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got "
                           f"{dtypes.of(array.dtype)}")  # fmt: skip
    if dtype is not None and dtypes.of(numpy_dtype("nanmean", dtype)).category < dtypes.FLOAT:
        raise RuntimeError(f"nanmean(): could not infer output dtype. Optional dtype must be either a floating point or "
                           f"complex dtype. Got: {dtype}")  # fmt: skip
    where = axes(dim, array.ndim)
    if getattr(array, "interpreted", False) or getattr(array, "unread", False):
        known = cast(input == input, array.dtype)
        return nansum(input, dim, keepdim, dtype=dtype) / sum_op(known, where, keepdim)
    valid = fold(np.add, ~np.isnan(array), where, keepdim, dtype=np.int64)
    kind = array.real.dtype if dtype is None else numpy_dtype("nanmean", dtype)
    found = nansum(input, dim, keepdim, dtype=dtype)
    if kind not in HALVES:
        return found / valid.astype(kind)
    return cast(cast(found, np.dtype(np.float32)) / valid.astype(np.float32), kind)  # a count may be beyond 16 bits
