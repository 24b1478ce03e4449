"""Views by other names: view, flatten, transpose, squeeze, unsqueeze, select, narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.dtypes import dtype
from rushlight.basics.errors import explained
from rushlight.basics.state import modes, special
from rushlight.dispatch.dims import as_int, by_keyword, dim_or_axis, listed, sizes, wrap_dim, wrap_dims
from rushlight.dispatch.fast_views import at_once, made_view, shares
from rushlight.dispatch.formats import viewable
from rushlight.dispatch.keeping.unmade import Unmade, unseen
from rushlight.dispatch.operands import held
from rushlight.dispatch.registry import NAMESPACES, function, known_as
from rushlight.ops.elementwise.complexes import conj_public
from rushlight.ops.shape.reshape import (
    expand,
    infer,
    permute_op,
    reshape,
    reshape_op,
    select_op,
    slice_op,
    squeeze_op,
    transpose_op,
    unsqueeze_op,
)
from rushlight.ops.shape.view_dtype import view_as_dtype
from rushlight.tensor import Tensor

ndarray = np.ndarray


@function(method=True, ns="Tensor")
def view(self: Tensor, *shape: Any, dtype: dtype | None = None, **named: object) -> Tensor:
    """The same memory in another shape, or as another dtype.  (*) -> shape

    Raises RuntimeError where the strides do not allow it without a copy: use reshape() there.
    """
    if named or dtype is not None or not at_once(self):
        return view_slowly(self, by_keyword("view", "size", shape, named), dtype)
    if len(shape) == 1 and shape[0].__class__ is not int:
        shape = shape[0]
    array = self._held
    try:
        result = array.reshape(shape)
        usual = result.shape == shape or min(shape) >= -1
    except (TypeError, ValueError):
        usual = False
    if not usual or not (array.flags.c_contiguous or shares(result, array)):
        return view_slowly(self, (shape,), None)
    return made_view(reshape_op.op, self, result, (result.shape,))


def view_slowly(self: Tensor, shape: tuple[Any, ...], dtype: dtype | None) -> Tensor:
    """`view`, with the errors for what does not fit."""
    if dtype is None and len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        dtype = shape[0]
    if dtype is not None:
        return view_as_dtype(self, dtype.numpy)
    target = infer(self, sizes(shape, "view", "size"))
    array = held(self)
    if not array.flags.c_contiguous and not viewable(array, target):
        raise explained(
            RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                f"contiguous subspaces). Use .reshape(...) instead. Got view size {list(target)}, tensor size "
                f"{list(array.shape)} and strides {[s // array.itemsize for s in array.strides]}."
            ),
            "view-of-what-is-not-contiguous",
        )
    return reshape_op(self, target)


@function(method=True, ns="Tensor")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` in the shape of `other`.  (*), (*) -> (*)"""
    return reshape(self, other.shape)


@function(method=True, ns="Tensor")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The memory of `self` in the shape of `other`.  (*), (*) -> (*)"""
    return view(self, other.shape)


@function(method=True, ns="Tensor")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` broadcast to the shape of `other` without copying.  (*), (*) -> (*)"""
    return expand(self, *other.shape)


@function(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` as one: a view where strides allow.  (*) -> (*)"""
    if type(input) is Unmade and unseen(input):
        return input.flatten(start_dim, end_dim)
    shape = held(input).shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape_op(input, (1,))
    if start == end:
        return input
    return reshape(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


@function(method=True)
def permute(input: Tensor, *dims: Any, **named: object) -> Tensor:
    """The dimensions in another order, a view.  (*) -> (*)"""
    if named:
        dims = by_keyword("permute", "dims", dims, named)
    if at_once(input):
        try:
            if len(dims) == 1 and dims[0].__class__ is not int:
                dims = tuple(dims[0])
            array, ndim = input._held.transpose(dims), len(dims)
            return made_view(permute_op.op, input, array, (tuple([d % ndim for d in dims]),))
        except (TypeError, ValueError):
            pass
    order, ndim = sizes(dims, "permute", "dims"), held(input).ndim
    if len(order) != ndim:
        raise RuntimeError(
            f"permute(): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions: expected {ndim} dims, one for each dimension, got {len(order)}"
        )
    order = tuple([wrap_dim(d, ndim) for d in order])
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permute_op(input, order)


def torch_permute(input: Tensor, dims: Sequence[int]) -> Tensor:
    """The dimensions in another order, a view.  (*) -> (*)"""
    return permute(input, dims if dims.__class__ is tuple else listed(dims, "permute", "dims"))


NAMESPACES[""]["permute"] = known_as(torch_permute, "permute")


@function(method=True, aliases=("swapdims",))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Dimensions `dim0` and `dim1` exchanged, a view.  (*) -> (*)"""
    if at_once(input):
        try:
            array, ndim = input._held.swapaxes(dim0, dim1), input._held.ndim
            return made_view(transpose_op.op, input, array, (dim0 % ndim, dim1 % ndim))
        except (TypeError, ValueError):
            pass
    ndim = held(input).ndim
    a, b = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    return transpose_op(input, a, b) if ndim else permute_op(input, ())


@function(method=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer dimensions as they are.  (M, N) -> (N, M)"""
    ndim = held(input).ndim
    if ndim == 2 and at_once(input):
        return made_view(transpose_op.op, input, input._held.T, (0, 1))
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    if special.count and ndim == 2:
        level = next((level for level in reversed(modes.levels) if level.owns((input,))), None)
        if level is not None and hasattr(level, "handed_as") and not input._meta:  # to whom PyTorch's name is shown
            return level.handed_as("t", transpose_op.op, (input,), (0, 1))
    return transpose_op(input, 0, 1) if ndim == 2 else permute_op(input, tuple(range(ndim)))


def _T(self: Tensor) -> Tensor:
    """The dimensions in reverse order, a view; deprecated but for matrices."""
    ndim = self._held.ndim
    if ndim not in (0, 2):
        caller.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw "
            "an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.")  # fmt: skip
    if not ndim:
        without_dimensions("T", "leave it out")
    return permute_op(self, tuple(range(ndim - 1, -1, -1)))


def _mT(self: Tensor) -> Tensor:
    """The last two dimensions exchanged, a view; of a tensor without dimensions, itself."""
    if self._held.ndim == 0:
        without_dimensions("mT", "leave it out")
        return self
    if self._held.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self._held.ndim}-D tensor."
        )
    if not at_once(self):
        return transpose_op(self, self._held.ndim - 2, self._held.ndim - 1)
    return made_view(transpose_op.op, self, self._held.swapaxes(-1, -2), (self._held.ndim - 2, self._held.ndim - 1))


def _H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix: a view."""
    if self._held.ndim not in (0, 2):
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{self._held.ndim}-D tensor.{' For batches of matrices, consider using tensor.mH' * (self._held.ndim > 2)}"
        )
    return adjoint_of(self, "H")


def _mH(self: Tensor) -> Tensor:
    """The last two dimensions exchanged and the elements conjugated: a view."""
    return adjoint_of(self, "mH")


@function(method=True)
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged and the elements conjugated: a view.  (*, M, N) -> (*, N, M)"""
    return adjoint_of(input, "adjoint()")


def without_dimensions(name: str, instead: str) -> None:
    """Warn of a transpose of a tensor without dimensions."""
    caller.warn(f"{name} of a tensor without dimensions is deprecated: {instead}")


def adjoint_of(input: Tensor, name: str) -> Tensor:
    """`adjoint` under the name by which it was called; of a tensor without dimensions, the conjugate."""
    ndim = held(input).ndim
    if ndim == 0:
        without_dimensions(name, "use conj()")
        return conj_public(input)
    if ndim < 2:
        raise RuntimeError(f"adjoint(): tensor.adjoint() is only supported on matrices or batches of matrices. Got "
                           f"{ndim}-D tensor.")  # fmt: skip
    return conj_public(transpose_op(input, ndim - 2, ndim - 1))


for _name, _get in (("T", _T), ("mT", _mT), ("H", _H), ("mH", _mH)):
    setattr(Tensor, _name, property(_get))


@function(method=True)
def squeeze(
    input: Tensor, dim: int | Sequence[int] | None = None, *, axis: int | Sequence[int] | None = None
) -> Tensor:
    """Without the dimensions of size 1 (of those in `dim` if given), a view.  (*) -> (*)"""
    shape = held(input).shape
    if axis is not None:
        dim = axis
    if dim is None:
        kept = tuple([n for n in shape if n != 1])
    elif dim.__class__ is int and -len(shape) <= dim < len(shape):
        kept = shape if shape[dim] != 1 else (*shape[:dim], *shape[dim + 1 or len(shape) :])
    else:
        drop = {wrap_dim(dim, len(shape))} if hasattr(dim, "__index__") else set(wrap_dims(dim, len(shape)))
        kept = tuple([n for i, n in enumerate(shape) if n != 1 or i not in drop])
    return reshaped(squeeze_op.op, input, kept)


def reshaped(op: Any, input: Any, shape: tuple[int, ...]) -> Any:
    """The view that one of the operators that put in or leave out dimensions of size 1 makes."""
    if not at_once(input):
        return op.call(input, shape)
    return made_view(op, input, input._held.reshape(shape), (shape,))


@function(method=True)
def unsqueeze(input: Tensor, dim: int | None = None, *, axis: int | None = None) -> Any:
    """With a dimension of size 1 put at `dim`, a view.  (*) -> (*)"""
    shape = held(input).shape
    if dim is None:
        dim = dim_or_axis("unsqueeze", dim, axis)
    dim = wrap_dim(dim, len(shape) + 1)
    return reshaped(unsqueeze_op.op, input, (*shape[:dim], 1, *shape[dim:]))


@function(method=True)
def select(input: Tensor, dim: int, index: Tensor | int) -> Tensor:
    """The part at `index` of dimension `dim`, which disappears: a view.  (*) -> (*)"""
    shape = held(input).shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, i = wrap_dim(dim, len(shape)), as_int(index, "select", "index")
    if not -shape[dim] <= i < shape[dim]:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(shape)} at dimension {dim}")
    return select_op(input, (*[slice(None)] * dim, i, ...))


@function(method=True)
def narrow(input: Tensor, dim: int, start: Tensor | complex, length: int) -> Tensor:
    """`length` elements of dimension `dim` from `start` on: a view.  (*) -> (*)"""
    shape = held(input).shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    dim, first, length = wrap_dim(dim, len(shape)), as_int(start, "narrow", "start"), as_int(length, "narrow", "length")
    size = shape[dim]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return slice_op(input, (*[slice(None)] * dim, slice(first, first + length), ...))
