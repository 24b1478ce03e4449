"""Sets and bins: unique, searchsorted, bucketize, isin, bincount, histc, histogram."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.compute import cast
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import made, on_meta_alone, shape_alone
from rushlight.dispatch.registry import function, op
from rushlight.kernels.dispatch import is_half
from rushlight.levels.batch import everything, of_one_shape
from rushlight.ops.reduce.extrema import ordered
from rushlight.ops.reduce.sums import tensor_argument
from rushlight.tensor import Tensor


@op(half=None)
def opaque(input: Array, name: str, result: Callable[..., Any]) -> Array:
    """`result`, which follows from `input` in a way that has no derivative: asking for one is an error."""
    return result()


@opaque.grad("input")
def _(g: Array, name: str) -> object:
    raise NotImplementedError(f"the derivative for '{name}' is not implemented: detach() its input")


def computed(name: str, input: Tensor, array: Array) -> Tensor:
    """A tensor on `array`, computed from `input` without a derivative."""
    if isinstance(input, Tensor) and input.requires_grad:
        held = [array]
        return opaque(input, name, held.pop)  # the node does not keep the array
    return made(array)


def _results(
    name: str, input: Tensor, found: tuple[Any, ...], return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    values, inverse, counts = found
    results = [computed(name, input, np.ascontiguousarray(values))]
    if return_inverse:
        results.append(made(np.asarray(inverse, np.int64)))
    if return_counts:
        results.append(made(np.asarray(counts, np.int64)))
    return tuple(results) if len(results) > 1 else results[0]


@function(method=True)
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
    """The different elements in order, or the different slices along `dim`; with inverse indices and counts if asked.

    NaN differs from NaN.  (*) -> (N), inverse: the input's shape, counts: (N)
    """
    array = of_one_shape("unique", ordered("unique", input))
    if dim is None:
        values, inverse, counts = _unique(array.reshape(-1), return_inverse, return_counts)
        inverse = None if inverse is None else inverse.reshape(array.shape)
        return _results("unique", input, (values, inverse, counts), return_inverse, return_counts)
    if not array.ndim:
        raise IndexError(f"unique(): Dimension specified as {dim} but tensor has no dimensions")
    rows = np.moveaxis(array, wrap_dim(dim, array.ndim), 0)
    check_rows("unique", rows, array)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    keys = flat.astype(np.float32) if flat.dtype.kind == "V" else flat  # as in `_unique`
    order = np.lexsort(keys.T[::-1]) if flat.shape[1] else np.arange(len(flat))
    first, inverse, counts = runs(flat[order], return_inverse, return_counts)
    back = None
    if inverse is not None:
        back = np.empty(len(flat), np.int64)
        back[order] = inverse
    found = np.moveaxis(rows[order][first], 0, wrap_dim(dim, array.ndim))
    return _results("unique_dim", input, (found, back, counts), return_inverse, return_counts)


def _unique(flat: Array, inverse: bool, counts: bool) -> tuple[Any, ...]:
    if flat.dtype.kind == "V":  # NumPy sorts no NaN of these
        values, places, counted = _unique(flat.astype(np.float32), inverse, counts)
        return values.astype(flat.dtype), places, counted
    near = _of_near_integers(flat, inverse) if flat.dtype.kind in "iu" else None
    if near is not None:
        return near
    find: Any = np.unique
    found = find(flat, return_inverse=inverse, return_counts=counts, equal_nan=False)
    if not inverse and not counts:
        return found, None, None
    rest = list(found[1:])
    return found[0], rest.pop(0) if inverse else None, rest.pop(0) if counts else None


def _of_near_integers(flat: Array, inverse: bool) -> tuple[Any, ...] | None:
    """The different ones of integers that lie closer than there are some, their places if asked, and counts: without sorting; else None."""
    low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
    if high - low >= flat.size or high >= 1 << 63:
        return None
    places = np.subtract(flat, flat.dtype.type(low), dtype=np.int64, casting="same_kind")
    counted = np.bincount(places)
    found = np.flatnonzero(counted)
    number = np.cumsum(counted != 0) - 1 if inverse else None
    values = (found + low).astype(flat.dtype)
    return values, None if number is None else number[places], counted[found]


def check_rows(name: str, rows: Array, array: Array) -> None:
    """Raise RuntimeError for slices of no elements, which cannot be told apart."""
    if array.shape.count(0) > 1:
        raise RuntimeError(f"{name}(): Number of zero sized dimensions is more than one, so unique cannot be applied")
    if array.size == 0 and len(rows) and 0 in rows.shape[1:] and rows.shape[1:].count(0):
        raise RuntimeError(
            f"{name}(): There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )


def runs(rows: Array, inverse: bool, counts: bool) -> tuple[Array, Array | None, Array | None]:
    """Of rows, whether each starts a run of equal ones; where wanted, the number of its run, and the lengths of the runs."""
    first = np.ones(len(rows), np.bool_)
    if len(rows) > 1 and rows.ndim == 1:
        np.not_equal(rows[1:], rows[:-1], out=first[1:])
    elif len(rows) > 1:
        different = rows[1:] != rows[:-1]
        first[1:] = different.reshape(len(rows) - 1, math.prod(rows.shape[1:])).any(axis=1)
    lengths = np.diff(np.flatnonzero(first), append=len(rows)) if counts else None
    return first, np.cumsum(first) - 1 if inverse else None, lengths


@function(method=True)
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
    """The elements (or slices along `dim`) without those equal to their predecessor.

    (*) -> (N), inverse: the input's shape, counts: (N)
    """
    array = of_one_shape("unique_consecutive", tensor_argument("unique_consecutive", input))
    rows = array.reshape(-1) if dim is None else np.moveaxis(array, wrap_dim(dim, array.ndim), 0)
    if dim is not None:
        check_rows("unique_consecutive", rows, array)
    first, inverse, counts = runs(rows, return_inverse, return_counts)
    found = rows[first]
    if dim is None:
        inverse = None if inverse is None else inverse.reshape(array.shape)
    else:
        found = np.moveaxis(found, 0, wrap_dim(dim, array.ndim))
    return _results("unique_consecutive", input, (found, inverse, counts), return_inverse, return_counts)


# Searching -----------------------------------------------------------------------------------------


def place_values(name: str, sequence: Array, values: Array, right: bool, sorter: Array | None, int32: bool) -> Array:
    """Where values belong in each row of sequences of one or more dimensions."""
    kind = np.int32 if int32 else np.int64
    sequence, values = (x.astype(np.uint8) if x.dtype.kind == "b" else x for x in (sequence, values))
    if is_half(sequence.dtype) and (sequence.dtype == values.dtype or sequence.dtype.kind == "V"):
        sequence, values = sequence.astype(np.float32), np.asarray(values).astype(np.float32)
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
                           f"tensor and input value tensor must match, but we got boundaries tensor "
                           f"{list(sequence.shape)} and input value tensor {list(values.shape)}")  # fmt: skip
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.ndim > 2:
        lead = math.prod(sequence.shape[:-1])
        sequence, wanted = (x.reshape(lead, x.shape[-1]) for x in (sequence, values))
        return backend.search(sequence, wanted, right).reshape(values.shape).astype(kind, copy=False)
    return backend.search(sequence, values, right).astype(kind, copy=False)


WRONG = "output tensor's dtype is wrong: "


@function(out="same", unlike=WRONG)
@per_sample
def searchsorted(sorted_sequence: Tensor, input: Tensor | complex, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:  # fmt: skip
    """Where the elements of `input` belong in rows that are sorted: (*, N), (*, M) -> (*, M) of int64 (or int32).

    side: "left" (default) before equal elements, "right" after them, as right=True.
    """
    sequence = tensor_argument("searchsorted", sorted_sequence)
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while "
                           "right was True")  # fmt: skip
    values = raw(input) if isinstance(input, Tensor) else np.asarray(input)
    check_search("torch.searchsorted", sequence, values, isinstance(input, Tensor), sorter)
    if on_meta_alone(sorted_sequence, input):
        return shape_alone(values.shape, np.int32 if out_int32 else np.int64)
    order = None if sorter is None else sorter._array
    return made(place_values("torch.searchsorted", sequence, values, right or side == "right", order, out_int32))


def check_search(name: str, sequence: Array, values: Array, tensor: bool, sorter: Tensor | None = None) -> None:
    """Raise RuntimeError for boundaries and values that do not fit, TypeError for values that are no numbers."""
    if not tensor and values.dtype.kind not in "biufc":
        raise TypeError(f"{name.removeprefix('torch.')}() received an invalid combination of arguments: expected a Tensor or "
                        f"a number of values, got {values.dtype}")  # fmt: skip
    if sequence.ndim == 0:
        raise RuntimeError(f"{name}(): boundaries tensor should have positive dimension, but got 0 dimension")
    if sequence.ndim != 1 and (not tensor or values.ndim == 0):
        raise RuntimeError(f"{name}(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
                           f"got boundaries tensor dim({sequence.ndim}) and input value's dim(0) numel(1)")  # fmt: skip
    truths = sequence.dtype.kind == values.dtype.kind == "b" and values.size  # beside numbers they are 0 and 1
    for array in (sequence, values):
        if array.dtype.kind == "c" or truths:
            raise NotImplementedError(f"\"{name}\" not implemented for '{older(dtypes.of(array.dtype))}': it takes numbers that "
                                      "have an order")  # fmt: skip
    if sorter is None:
        return
    order = sorter._array
    if order.shape != sequence.shape:
        raise RuntimeError(f"{name}(): boundary and sorter must have the same size, but got boundary tensor "
                           f"{list(sequence.shape)} and got sorter tensor {list(order.shape)}")  # fmt: skip
    if order.dtype != np.int64:
        raise RuntimeError(f"{name}(): sorter must be a tensor of long dtype but got dtype {dtypes.of(order.dtype)}")
    order = everything(order)
    if order.size and (order.min() < 0 or order.max() >= sequence.shape[-1]):
        raise RuntimeError(f"{name}(): sorter index out of range")


@function(out="same", unlike=WRONG)
@per_sample
def bucketize(input: Tensor | complex, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket of each element between sorted boundaries.  (*), (N) -> (*) of int64 (or int32)"""
    limits = tensor_argument("bucketize", boundaries)
    if limits.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({limits.ndim})")
    values = raw(input) if isinstance(input, Tensor) else np.asarray(input)
    check_search("torch.bucketize", limits, values, isinstance(input, Tensor))
    if on_meta_alone(input, boundaries):
        return shape_alone(values.shape, np.int32 if out_int32 else np.int64)
    return made(place_values("bucketize", limits, values, right, None, out_int32))


@function(out="same")
@per_sample
def isin(
    elements: Tensor | complex, test_elements: Tensor | complex, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among `test_elements`.  (*), (*) -> (*) of bool"""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): at least one of elements and test_elements must be a Tensor")
    a, b = raw(elements), raw(test_elements)
    for x in (a, b):
        kind = x.dtype if isinstance(x, np.ndarray) else np.asarray(x).dtype
        if kind.kind in "bc":
            words = f"isin(): {older(dtypes.of(kind))}: convert it with .int() or .real"
            raise RuntimeError(f"Unsupported input type encountered for {words}")
    if on_meta_alone(elements, test_elements):
        return shape_alone(np.shape(a), np.bool_)
    if any(np.asarray(x).dtype in dtypes.HALVES for x in (a, b)):  # NumPy sorts no bfloat16 that holds a NaN
        common = dtypes.result_dtype([a, b]).numpy
        a, b = (cast(x, common) for x in (a, b))
        a, b = (x.astype(np.float32) if common in dtypes.HALVES else x for x in (a, b))
    found = np.isin(a, b, assume_unique=assume_unique and np.ndim(a) > 0, invert=invert)
    return made(np.asarray(found, np.bool_).reshape(np.shape(a)))


# Counting ------------------------------------------------------------------------------------------


@function(method=True)
@per_sample
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of the numbers 0, 1, ... occurs, or the sum of their weights.  (N) -> (max + 1)

    Raises RuntimeError for negative numbers, NotImplementedError for dtypes other than integers.
    """
    array = tensor_argument("bincount", input)
    if array.dtype.kind not in "iu":
        raise NotImplementedError(
            f"bincount(): expected a tensor of integers, got {input.dtype}: convert it with .long()"
        )
    if array.ndim != 1 or (array.size and array.min() < 0):
        shown = f"{array.ndim}-d {input.dtype}" if array.ndim != 1 else f"a negative one, {array.min()}"
        raise RuntimeError(f"bincount only supports 1-d non-negative integral inputs, got {shown}")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is None:
        return made(np.asarray(np.bincount(array, minlength=minlength), np.int64))
    w = raw(weights)
    if w.shape != array.shape:
        raise RuntimeError(f"weights should be 1-d and have the same length as input: got {list(w.shape)}, expected "
                           f"{list(array.shape)}")  # fmt: skip
    if not array.size:  # zeros of int64, whatever the weights are
        return made(np.zeros(minlength, np.int64))
    kind = np.float32 if w.dtype == np.float32 else np.float64
    return computed("bincount", weights, np.bincount(array, w.astype(np.float64), minlength).astype(kind))
