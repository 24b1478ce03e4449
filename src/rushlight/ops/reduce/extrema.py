"""Largest and smallest elements: max, min, amax, amin, argmax, argmin, aminmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.naming import called
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, numpy_names, wrap_dim
from rushlight.dispatch.operands import raw
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import NAMESPACES, function, op
from rushlight.dispatch.results import named
from rushlight.dispatch.rules import laid_out
from rushlight.kernels.dispatch import is_half, packed, place_of_extreme, recast, rounded, widened
from rushlight.kernels.order import SHORT_ROW
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.elementwise.shared import keep, plain
from rushlight.ops.index.raw_indices import gather_along, put_along
from rushlight.ops.index.scatter import gather_op
from rushlight.ops.reduce.sums import axes, fold, sum_op, tensor_argument, unsqueezed
from rushlight.ops.shape.reshape import broadcast
from rushlight.tensor import Tensor


@op(half=None, linear=True, shape=shapes.sized, batch=families.shifted)
def place_along(input: Array, index: Array, size: tuple[int, ...], dim: int) -> Array:
    """Zeros of shape `size` with `input` put at `index` along `dim`, which has no repeats.  (*), (*) -> size"""
    out = np.zeros(size, input.dtype)
    put_along(out, index, dim, input)
    return out


@place_along.work
def _(input: Array) -> int:
    return laid_out(input)


place_along.grad("input")(lambda g, index, dim: gather_op(g, index, dim))


SMALL = 1 << 12


def at_index(
    g: Array | Tensor, indices: Array | Tensor, input_shape: tuple[int, ...], dim: int, keepdim: bool
) -> Array | Tensor:
    """The gradient of a reduction that picked one element of each row, at `indices`: zeros elsewhere."""
    grad, index = (unsqueezed(x, input_shape, (dim,), keepdim) for x in (g, indices))
    return place_along(grad, index, input_shape, dim)


def shared(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor, dim: tuple[int, ...], keepdim: bool) -> Array:
    """The gradient of a reduction divided evenly among the elements equal to its result."""
    shape = raw(input).shape
    hit = plain(input) == unsqueezed(plain(out), shape, dim, keepdim)
    if hit.__class__ is not np.ndarray:
        hit = cast(hit, raw(g).dtype)
        return unsqueezed(g, shape, dim, keepdim) / sum_op(hit, dim, True) * hit
    many = fold(np.add, hit, dim, True, dtype=np.intp)
    part = unsqueezed(g, shape, dim, keepdim) / many.astype(raw(g).dtype)
    kind = raw(part).dtype
    return part * (recast(hit, kind) if is_half(kind) else hit)


def alike(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor) -> Array:
    """As `shared`, of the extremum or median of all elements; a NaN belongs to the elements that are NaN."""
    if plain(out).__class__ is not np.ndarray:  # no looking at values
        isnan = NAMESPACES[""]["isnan"]
        hit = cast((input == out) | (isnan(input) & isnan(out)), raw(g).dtype)
        return g / sum_op(hit, None, False) * hit
    hit = np.isnan(raw(input)) if np.isnan(plain(out)) else raw(input) == plain(out)
    return keep(broadcast(g / np.asarray(hit.sum(), raw(g).dtype), hit.shape), hit)


def pick(function_name: str, input: Array, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """(values, indices) of the elements that np.argmax or np.argmin finds along `dim`."""
    if not input.ndim:
        return input.copy(), np.zeros((), np.int64)
    if _in_one_pass(input, dim):
        values, index = _found_at_once(input, dim, function_name)
        return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))
    if input.size <= SMALL and is_half(input.dtype):
        values, index = pick(function_name, widened(input), dim, keepdim)
        return rounded(values, input.dtype), index
    index = place_of_extreme(function_name, input, dim, True)
    if input.size <= SMALL:  # a second pass costs less than an index
        values = np.asarray((np.maximum if function_name == "argmax" else np.minimum).reduce(input, dim, keepdims=True))
    else:
        values = gather_along(input, index, dim)
    values, index = packed(values), packed(index)
    if not keepdim:
        shape = (*input.shape[:dim], *input.shape[dim + 1 :])
        values, index = values.reshape(shape), index.reshape(shape)
    return values, index


def _in_one_pass(input: Array, dim: int | None) -> bool:
    """Whether one pass finds both: short rows, and columns, which are gone through together, where NumPy takes one after the other."""
    if dim is None or not (input.dtype.kind == "f" or is_half(input.dtype)):
        return False
    if input.size <= SMALL:
        return input.itemsize > 2 and 0 < input.size and input.shape[dim] <= SHORT_ROW
    return dim % input.ndim < input.ndim - 1 or (input.itemsize > 2 and input.shape[dim] <= SHORT_ROW)


def _found_at_once(input: Array, dim: int, function_name: str) -> tuple[Array, Array]:
    values, index = backend.first_extreme(input, dim, function_name == "argmin")
    return values, index


@op(aten=("max.dim(input, dim, keepdim=False)",), half=None, name="max", outputs=("values", "indices"), differentiable=(0,),
    grads={"input": at_index}, shape=shapes.reduction_with_indices, batch=families.shifted)  # fmt: skip
def max_dim(input: Array, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """The largest elements along `dim` and where they are.  (*) -> (*), (*)"""
    return pick("argmax", input, dim, keepdim)


@op(aten=("min.dim(input, dim, keepdim=False)",), half=None, name="min", outputs=("values", "indices"), differentiable=(0,),
    grads={"input": at_index}, shape=shapes.reduction_with_indices, batch=families.shifted)  # fmt: skip
def min_dim(input: Array, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """The smallest elements along `dim` and where they are.  (*) -> (*), (*)"""
    return pick("argmin", input, dim, keepdim)


@op(
    aten=("amax(input, dim=None, keepdim=False)",),
    aten_gradient="extreme",
    half=None,
    grads={"input": lambda g, input, out, dim, keepdim: shared(g, input, out, dim, keepdim)},
    shape=shapes.own_reduction,
    batch=families.shifted,
)
def amax_op(input: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    """The largest element over `dim`.  (*) -> (*)"""
    return fold(np.maximum, input, dim, keepdim)


@op(
    aten=("amin(input, dim=None, keepdim=False)",),
    aten_gradient="extreme",
    half=None,
    grads={"input": lambda g, input, out, dim, keepdim: shared(g, input, out, dim, keepdim)},
    shape=shapes.own_reduction,
    batch=families.shifted,
)
def amin_op(input: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    """The smallest element over `dim`.  (*) -> (*)"""
    return fold(np.minimum, input, dim, keepdim)


@op(
    aten=("max",),
    half=None,
    grads={"input": lambda g, input, out: alike(g, input, out)},
    shape=shapes.number,
    batch=families.greatest,
)
def max_all(input: Array) -> Array:
    """The largest of all elements.  (*) -> ()"""
    return fold(np.maximum, input, None)


@op(
    aten=("min",),
    half=None,
    grads={"input": lambda g, input, out: alike(g, input, out)},
    shape=shapes.number,
    batch=families.least,
)
def min_all(input: Array) -> Array:
    """The smallest of all elements.  (*) -> ()"""
    return fold(np.minimum, input, None)


# Arguments -----------------------------------------------------------------------------------------


def ordered(name: str, x: Tensor, error: type[RuntimeError] = NotImplementedError) -> Any:
    """The array of `x`.  Raises NotImplementedError, or another `error`, for complex numbers, which have no order."""
    array = tensor_argument(name, x)
    if array.dtype.kind == "c":
        words = OF_COMPLEX.get(name, "{}").format("complex numbers have no order")
        raise error(f"\"{name}\" not implemented for '{older(dtypes.of(array.dtype))}': {words}")
    return array


# Functions that have words of their own for complex numbers.
OF_COMPLEX = {"sort": "Sort does not support complex dtypes on CPU: {}",
              "topk": "topk does not support complex dtypes on CPU: {}",
              "argmax": "argmax(): does not support complex input: {}",
              "argmin": "argmin(): does not support complex input: {}"}  # fmt: skip


def check_all(name: str, array: Array, error: type[Any] = RuntimeError) -> None:
    """Raise an error for a reduction of no elements without identity."""
    if array.size == 0:
        raise error(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                    "dim with the 'dim' argument.")  # fmt: skip


def check_kept(name: str, keepdim: bool) -> None:
    """Raise TypeError for `keepdim` without a dimension that it would keep."""
    if keepdim:
        raise TypeError(f"{name}(): argument 'keepdim' is of reductions of one dimension: give dim= with it, too")


def check_dim(name: str, array: Array, dim: Sequence[int] | int) -> int:
    """`dim` from the front.  Raises IndexError where it has size 0, TypeError where it is no int."""
    if dim.__class__ is bool or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    found = wrap_dim(dim, array.ndim)
    if array.ndim and array.shape[found] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {found} to have non-zero size.")
    return int(found)


def extremum(
    name: str, pairwise: str, along: Callable[..., Any], whole: Callable[..., Any], kind: type[Any]
) -> Callable[..., Any]:
    """The function max or min with its overloads."""

    def find(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: object = None) -> Tensor:
        if isinstance(dim, Tensor) or dim.__class__ is np.ndarray:
            dim, other = (as_int(dim, name, "dim"), other) if keepdim else (None, dim)
        if other is not None:
            return NAMESPACES[""][pairwise](input, other)
        array = ordered(name, input, NotImplementedError if dim is None else RuntimeError)
        if dim is None:
            check_kept(name, keepdim)
            check_all(name, array)
            return whole(input)
        dim = check_dim(name, array, dim)
        return kind(*along(input, dim, keepdim))

    extreme = "largest" if name == "max" else "smallest"
    said = (
        f"The {extreme} element; with `dim` a named tuple of the {extreme} elements along it and their indices; with a "
        f"tensor `other` the elementwise {pairwise}.  (*) -> (*)\n\nWithout `dim` the gradient is shared evenly among "
        "equal elements; with it, one element gets all."
    )
    return function(method=True, out="places")(numpy_names(called(find, name, said)))


max_ = extremum("max", "maximum", max_dim, max_all, named("max", "values", "indices"))
min_ = extremum("min", "minimum", min_dim, min_all, named("min", "values", "indices"))


def over_dims(
    name: str, reduction: Callable[..., Any], input: Tensor, dim: Sequence[int] | int | None, keepdim: bool
) -> Tensor:
    """amax or amin over checked dimensions."""
    array = ordered(name, input)
    where = axes(dim, array.ndim)
    if where is None:
        check_all(name, array)
    elif array.ndim:
        for d in where:
            check_dim(name, array, d)
    return reduction(input, where, keepdim)


@function(method=True, out="same")
@numpy_names
def amax(input: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
    """The largest element over the dimensions in `dim`, all by default.  (*) -> (*)

    The gradient is shared evenly among equal elements. Raises IndexError or RuntimeError where there is no element.
    """
    return over_dims("amax", amax_op, input, dim, keepdim)


@function(method=True, out="same")
@numpy_names
def amin(input: Tensor, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Tensor:
    """The smallest element over the dimensions in `dim`, all by default.  (*) -> (*)

    The gradient is shared evenly among equal elements. Raises IndexError or RuntimeError where there is no element.
    """
    return over_dims("amin", amin_op, input, dim, keepdim)


@op(
    aten=("aminmax(input, *, dim=None, keepdim=False)",),
    half=None,
    outputs=("min", "max"),
    shape=shapes.two_reductions,
    batch=families.shifted,
)
def aminmax_op(input: Array, dim: tuple[int, ...], keepdim: bool) -> tuple[Array, ...]:
    """The smallest and the largest element over `dim`.  (*) -> (*), (*)"""
    return fold(np.minimum, input, dim, keepdim), fold(np.maximum, input, dim, keepdim)


@aminmax_op.grad("input")
def _(
    gs: list[Any], input: Array | Tensor, min: Array | Tensor, max: Array | Tensor, dim: tuple[int, ...], keepdim: bool
) -> object:
    low, high = (
        None if g is None else shared(g, input, out, dim, keepdim) for g, out in zip(gs, (min, max), strict=True)
    )
    return low if high is None else high if low is None else low + high


_aminmax = named("aminmax", "min", "max")


@function(method=True)
@moving(same_dtype=True)
@numpy_names
def aminmax(input: Tensor, *, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> tuple[Tensor, ...]:
    """The smallest and the largest elements, over all dimensions or along `dim`.  (*) -> (*), (*)"""
    array = ordered("aminmax", input)
    if dim is None and not array.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    where = None if dim is None else (check_dim("aminmax", array, dim),)
    return _aminmax(*aminmax_op(input, where, keepdim))


@op(aten_call="place", half=None, batch=families.placed)
def arg_op(input: Array, which: str, dim: int | None, keepdim: bool) -> Array:
    """The index that np.argmax or np.argmin finds, in the flat tensor or along `dim`.  (*) -> (*) of int64"""
    if not input.ndim:
        return np.zeros((), np.int64)
    if _in_one_pass(input, dim):
        found = _found_at_once(input, dim or 0, which)[1]
        return np.asarray(found if keepdim else found.squeeze(dim))
    return place_of_extreme(which, input, dim, keepdim)


@arg_op.shape
def _(input: Array, dim: int | None, keepdim: bool) -> list[shapes.Made]:
    return [shapes.reduced(input, dim, keepdim, shapes.INT64)]


def argument(name: str, input: Tensor, dim: Sequence[int] | int | None, keepdim: bool) -> Tensor:
    """argmax or argmin of a checked tensor."""
    array = ordered(name, input, RuntimeError)
    if array.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input: convert it with .int()")
    if dim is None:
        check_all(name, array, IndexError)
    else:
        dim = check_dim(name, array, dim)
    return arg_op(input, name, dim, keepdim)


@function(method=True, out="same")
@numpy_names
def argmax(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element, in the flat tensor or along `dim`; NaN is largest.  (*) -> (*) of int64"""
    return argument("argmax", input, dim, keepdim)


@function(method=True, out="same")
@numpy_names
def argmin(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element, in the flat tensor or along `dim`; NaN is smallest.  (*) -> (*) of int64"""
    return argument("argmin", input, dim, keepdim)
