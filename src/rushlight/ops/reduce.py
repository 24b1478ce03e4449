"""Sums, means and products, and what their gradients share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.ops.convert import cast
from rushlight.ops.declare import Array
from rushlight.ops.dims import wrap_dims
from rushlight.ops.options import numpy_dtype
from rushlight.ops.registry import function, op
from rushlight.ops.shape import broadcast, reshape_op
from rushlight.tensor import Tensor


def raw(x: Any) -> Any:
    """The array of a tensor, or the array itself."""
    return x._array if isinstance(x, Tensor) else x


def tensor_argument(name: str, x: Any) -> Any:
    """The array of the argument `input`.  Raises TypeError where it is neither tensor nor array."""
    if isinstance(x, Tensor):
        return x._array
    if x.__class__ is np.ndarray:
        return x
    raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")


def axes(dim: Any, ndim: int) -> Any:
    """The dimensions that a reduction over `dim` covers, as a tuple from the front; None and () mean all: None."""
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        return wrap_dims(dim, ndim) if dim else None
    return wrap_dims((dim,), ndim)


def numpy_axes(dim: Any, ndim: int) -> Any:
    """The axis argument for NumPy: 0-d arrays have none."""
    return dim if ndim else None


def keep_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """`shape` with the reduced dimensions at 1."""
    covered = range(len(shape)) if dim is None else dim
    return tuple([1 if i in covered else n for i, n in enumerate(shape)])


def unsqueezed(x: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """A reduced array or tensor with the reduced dimensions back at size 1."""
    return x if keepdim or not shape else reshape_op(x, keep_shape(shape, dim))


def spread(g: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """The gradient of a reduction, broadcast over the dimensions that it reduced."""
    return broadcast(unsqueezed(g, shape, dim, keepdim), shape)


def count(shape: tuple[int, ...], dim: Any) -> int:
    """How many elements go into one result."""
    return math.prod(shape if dim is None else [shape[i] for i in dim if shape])


def cast_first(x: Any, dtype: Any) -> Any:
    """`x` in a NumPy dtype, itself where it has it."""
    return x if raw(x).dtype == dtype else cast(x, dtype)


@op(ns=None, name="sum", linear=True,
    grads={"input": lambda g, input_shape, dim, keepdim: spread(g, input_shape, dim, keepdim)})  # fmt: skip
def sum_op(be: Any, input: Array, dim: Any = None, keepdim: bool = False) -> Array:  # noqa: A002
    """Sum over `dim` (a tuple, or None for all).  (*) -> (*)"""
    return np.add.reduce(input, axis=numpy_axes(dim, input.ndim), keepdims=keepdim)


@op(ns=None, name="mean", linear=True)
def mean_op(be: Any, input: Array, dim: Any = None, keepdim: bool = False) -> Array:  # noqa: A002
    """Mean over `dim` (a tuple, or None for all).  (*) -> (*)"""
    total = np.asarray(np.add.reduce(input, axis=numpy_axes(dim, input.ndim), keepdims=keepdim))
    n = count(input.shape, dim)
    if n:
        total /= n
    else:
        total[...] = np.nan
    return total


@mean_op.grad("input")
def _(g: Any, input_shape: Any, dim: Any, keepdim: Any) -> Any:
    return spread(g / max(count(input_shape, dim), 1), input_shape, dim, keepdim)


def _in_dtype(name: str, input: Any, dtype: Any) -> Any:  # noqa: A002
    """The input in the dtype in which sums are taken: `dtype`, int64 for integers and bools, else its own."""
    array = tensor_argument(name, input)
    if dtype is not None:
        return cast_first(input, numpy_dtype(name, dtype))
    return cast_first(input, dtypes.int64.numpy) if array.dtype.kind in "biu" else input


def _one(dim: Any, axis: Any) -> Any:
    return axis if dim is None else dim


@function(method=True, out=True, name="sum")
def sum_(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None) -> Any:  # noqa: A002
    """Sum of the elements, over all dimensions or those in `dim`.  (*) -> (*)

    Integers and bools are summed as int64.

    >>> import rushlight as torch
    >>> torch.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    array = tensor_argument("sum", input)
    if dtype is not None or array.dtype.kind in "biu":
        input = _in_dtype("sum", input, dtype)
    if dim is None and axis is None:
        return sum_op(input, None, keepdim)
    return sum_op(input, axes(_one(dim, axis), array.ndim), keepdim)


@function(method=True, out=True)
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None) -> Any:  # noqa: A002
    """Mean of the elements, over all dimensions or those in `dim`.  (*) -> (*)

    Raises RuntimeError for integers and bools without dtype=.
    """
    array = tensor_argument("mean", input)
    if dtype is not None:
        input = cast_first(input, numpy_dtype("mean", dtype))
    if raw(input).dtype.kind in "biu":
        what = "Input" if dtype is None else "Optional dtype"
        raise RuntimeError(f"mean(): could not infer output dtype. {what} dtype must be either a floating point or complex "
                           f"dtype. Got: {dtypes.of(raw(input).dtype)}")  # fmt: skip
    return mean_op(input, axes(_one(dim, axis), array.ndim), keepdim)
