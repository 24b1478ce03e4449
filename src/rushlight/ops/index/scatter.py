"""Reading and writing along a dimension at indices: gather, scatter, scatter_add, take_along_dim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import common_shape, numpy_names, wrap_dim
from rushlight.dispatch.operands import raw
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import in_pieces
from rushlight.kernels.pointwise.copies import copied
from rushlight.levels.batch import everything
from rushlight.ops.index.raw_indices import add_along, check_bounds, gather_along, put_along, wrapped
from rushlight.ops.shape.reshape import broadcast, reshape_op, slice_scatter_zeros
from rushlight.tensor import Tensor, wrap


@op(
    aten=("gather(input, dim, index)",),
    half=None,
    linear=True,
    masks=("index",),
    shape=shapes.indexed,
    batch=families.shifted,
)
def gather_op(input: Array, index: Array, dim: int) -> Array:
    """The elements at `index` along `dim`.  (*), (*) -> shape of index"""
    return gather_along(input, index, dim)


@gather_op.grad("input")
def _(g: Array | Tensor, index: Array, input_shape: tuple[int, ...], dim: int) -> Any:
    if not input_shape and raw(index).ndim:  # a number, gathered as a vector
        return reshape_op(gather_adjoint(g, index, (1,), dim), ())
    return gather_adjoint(g, index, input_shape, dim)


@op(half=None, linear=True, masks=("index",), shape=shapes.sized, batch=families.shifted)
def gather_adjoint(input: Array, index: Array, size: tuple[int, ...], dim: int) -> Array:
    """Zeros of shape `size` to which `input` is added at `index` along `dim`: the adjoint of gather.  (*) -> size"""
    out = np.zeros(size, input.dtype)
    add_along(out, index, dim, input)
    return out


@gather_adjoint.work
def _(input: Array) -> int:
    return in_pieces(input)


gather_adjoint.grad("input")(lambda g, index, dim: gather_op(g, index, dim))


def cut_to(src: Array, shape: tuple[int, ...]) -> Array:
    """The first elements of `src` in each dimension, as many as `shape` says."""
    if src.shape == shape or not src.ndim:
        return src.reshape(shape) if src.shape != shape else src
    return src[tuple([slice(n) for n in shape])]


def _padded(g: Array | Tensor, shape: tuple[int, ...]) -> Array | Tensor:
    """The gradient of a source of which only the first elements were used: zeros for the rest."""
    have = raw(g).shape
    if have == tuple(shape):
        return g
    if len(have) != len(shape):
        return reshape_op(g, shape)

    return slice_scatter_zeros(g, tuple(shape), (*[slice(n) for n in have], ...))


def _scatter_into(out: Array, index: Array, src: Array, dim: int) -> None:
    put_along(out, index, dim, cut_to(src, index.shape))


@op(
    aten=("scatter.src(input, dim, index, src)",),
    linear=True,
    half=None,
    masks=("index",),
    shape=shapes.same,
    batch=families.shifted,
)
def scatter_op(input: Array, index: Array, src: Array, dim: int) -> Array:
    """`input` with `src` put at `index` along `dim`.  (*), (*), (*) -> (*)"""
    out = copied(input)
    _scatter_into(out, index, src, dim)
    return out


scatter_op.into(_scatter_into)
scatter_op.grad("input")(lambda g, index, dim: scatter_value_op(g, index, dim, 0))
scatter_op.grad("src")(lambda g, index, src_shape, dim: _padded(gather_op(g, index, dim), src_shape))


@op(
    aten=("scatter.value(input, dim, index, value)",),
    half=None,
    masks=("index",),
    shape=shapes.same,
    batch=families.shifted,
)
def scatter_value_op(input: Array, index: Array, dim: int, value: object) -> Array:
    """`input` with a number put at `index` along `dim`.  (*), (*) -> (*)"""
    out = copied(input)
    put_along(out, index, dim, value)
    return out


scatter_value_op.into(lambda out, index, dim, value: put_along(out, index, dim, value))
scatter_value_op.grad("input")(lambda g, index, dim: scatter_value_op(g, index, dim, 0))


def _add_into(out: Array, index: Array, src: Array, dim: int) -> None:
    add_along(out, index, dim, cut_to(src, index.shape))


@op(
    aten=("scatter_add(input, dim, index, src)",),
    half=None,
    linear=True,
    masks=("index",),
    shape=shapes.same,
    batch=families.shifted,
)
def scatter_add_op(input: Array, index: Array, src: Array, dim: int) -> Array:
    """`input` with `src` added at `index` along `dim`.  (*), (*), (*) -> (*)"""
    out = copied(input)
    _add_into(out, index, src, dim)
    return out


scatter_add_op.into(_add_into)
scatter_add_op.grad("input")(lambda g: g)
scatter_add_op.grad("src")(lambda g, index, src_shape, dim: _padded(gather_op(g, index, dim), src_shape))


# Arguments -----------------------------------------------------------------------------------------


INT64 = np.dtype(np.int64)


def checked_index(name: str, input: Tensor, dim: int, index: Tensor, src: Tensor | float | None = None) -> int:
    """The dimension, counted from the front.  Raises RuntimeError where `index` fits neither `input` nor `src`."""
    if not isinstance(raw(index), np.ndarray):
        raise TypeError(f"{name}(): argument 'index' (position 3) must be Tensor, not {kind_of(index)}")
    x, i = raw(input), raw(index)
    dim = wrap_dim(dim, x.ndim)
    if i.dtype is not INT64 and i.size and i.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, got {dtypes.of(i.dtype)}")
    if not i.size:
        return dim
    if (i.ndim or 1) != (x.ndim or 1):
        whose = "self" if name.startswith("scatter") else "input"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {whose} tensor: {name}() got "
                           f"{i.ndim} and {x.ndim}")  # fmt: skip
    if src is not None:
        check_source(name, i, raw(src), dim)
    for d, n in enumerate(i.shape):
        if d != dim and x.ndim and n > x.shape[d]:
            raise RuntimeError(f"Size does not match at dimension {d} expected index {list(i.shape)} to be no larger than "
                               f"self {list(x.shape)} apart from dimension {dim} ({name})")  # fmt: skip
    check_bounds(i, x.shape[dim] if x.ndim else 1, name, dim)
    return dim


def check_source(name: str, index: Array, src: Array, dim: int) -> None:
    """Raise RuntimeError unless `src` is as large as `index`."""
    if (index.ndim or 1) != (src.ndim or 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as src tensor: {name}() got "
                           f"{index.ndim} and {src.ndim}")  # fmt: skip
    if any(n > m for n, m in zip(index.shape, src.shape, strict=False)):
        raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than src {list(src.shape)} apart from "
                           f"dimension {dim} ({name})")  # fmt: skip


def same_dtypes(name: str, input: Tensor, src: Tensor | float) -> None:
    """Raise RuntimeError unless both are of one dtype."""
    if raw(input).dtype != raw(src).dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype, got {dtypes.of(raw(input).dtype)} and "
                           f"{dtypes.of(raw(src).dtype)}")  # fmt: skip


@function(method=True)
@moving(same_dtype=True)
@numpy_names
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """The elements at `index` along `dim`.  (*), index: (*) no larger besides `dim` -> shape of index

    Raises RuntimeError for indices out of range.
    """
    dim = checked_index("gather", input, dim, index)
    return gather_op(input, index, dim)


def number(value: Tensor | complex) -> bool:
    """Whether `value` is a Python or NumPy number."""
    return isinstance(value, (int, float, complex, np.generic))


def scatter_add_call(run: Callable[..., Any], name: str, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Check the arguments of scatter_add and have `run` carry it out."""
    if not isinstance(raw(src), np.ndarray):
        raise TypeError(f"{name}(): argument 'src' (position 4) must be Tensor, not {kind_of(src)}")
    dim = checked_index(name, input, dim, index, src)
    same_dtypes(name, input, src)
    return run(scatter_add_op.op, (input, index, src), (dim,))


@function(method=True, out="same")
@numpy_names
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with `src` added at `index` along `dim`; repeated indices add up.  (*), (*), (*) -> (*)"""
    return scatter_add_call(call.by_function, "scatter_add", input, dim, index, src)


@function(method=True)
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """In-place version of `scatter_add`."""
    return scatter_add_call(call.apply_inplace, "scatter_add_", input, dim, index, src)


@function(method=True, out="same")
@numpy_names
def take_along_dim(input: Tensor, indices: Any, dim: Any = None) -> Tensor:
    """The elements at `indices` along `dim`, both broadcast besides it; without `dim`, of the flat tensor."""
    if raw(indices).dtype != np.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {older(raw(indices).dtype)}"
        )
    if dim is None:
        return gather(reshape_op(input, (raw(input).size,)), 0, reshape_op(indices, (raw(indices).size,)))
    x, i = raw(input).shape, raw(indices).shape
    if len(x) != len(i):
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
                           f"{len(x)} dimensions for input, and {len(i)} dimensions for indices")  # fmt: skip
    dim = wrap_dim(dim, len(x))
    array = everything(raw(indices))
    known = wrapped(array, x[dim], "take_along_dim")
    if getattr(raw(indices), "interpreted", False):
        indices = indices + (indices < 0) * x[dim]
    elif known is not array:
        indices = wrap(known)
    common = common_shape((*x[:dim], 1, *x[dim + 1 :]), (*i[:dim], 1, *i[dim + 1 :]))
    if common is None:
        raise RuntimeError(f"take_along_dim(): input of shape {list(x)} and indices of shape {list(i)} do not broadcast "
                           f"besides dimension {dim}")  # fmt: skip
    return gather(broadcast(input, (*common[:dim], x[dim], *common[dim + 1 :])), dim,
                  broadcast(indices, (*common[:dim], i[dim], *common[dim + 1 :])))  # fmt: skip
