"""Whole slices at indices of one dimension: index_select, index_add, index_copy, index_fill."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.compute import cast as as_array
from rushlight.dispatch.compute import fitted
from rushlight.dispatch.declare import Array, Op
from rushlight.dispatch.dims import numpy_names, wrap_dim
from rushlight.dispatch.operands import raw
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import in_pieces
from rushlight.kernels.pointwise.copies import copied, copied_as_it_lies
from rushlight.levels.batch import everything
from rushlight.ops.index.raw_indices import accumulate_at, check_bounds, runs_of, wrapped
from rushlight.ops.index.scatter import number
from rushlight.ops.reduce.sums import sum_op
from rushlight.ops.shape.reshape import reshape_op
from rushlight.tensor import Tensor


def place(index: Array | slice, dim: int) -> tuple[Any, ...]:
    """The NumPy index of `index` along `dim`."""
    return (*[slice(None)] * dim, index)


@op(
    aten=("index_select(input, dim, index)",),
    linear=True,
    masks=("index",),
    complex_half="moves",
    batch=families.index_select,
)
def index_select_op(input: Array, index: Array, dim: int) -> Array:
    """The slices at `index` of dimension `dim`.  (*), (N) -> (*)"""
    runs = runs_of(index, input.shape[dim], input.size) if index.ndim == 1 and input.ndim else None
    if runs is None:
        return kernels.take_slices(input, index, dim) if input.ndim else input.take(index, dim)
    out = np.empty(shapes.with_size(input, dim, index.size), input.dtype)
    for to, of in runs:
        out[place(to, dim)] = input[place(of, dim)]
    return out


@index_select_op.shape
def _(input: Array, index: Array, dim: int) -> list[shapes.Made]:
    return [shapes.Made(shapes.with_size(input, dim, index.size), input.dtype)]


index_select_op.grad("input")(lambda g, index, input_shape, dim: index_select_adjoint(g, index, input_shape, dim))


@op(
    half=None,
    linear=True,
    masks=("index",),
    complex_half="widens",
    shape=shapes.sized,
    batch=families.index_select_adjoint,
)
def index_select_adjoint(input: Array, index: Array, size: tuple[int, ...], dim: int) -> Array:
    """Zeros of shape `size` to which slices are added: the adjoint of index_select.  (*) -> size"""
    out = np.zeros(size, input.dtype)
    _add_slices(out, index, input, dim)
    return out


@index_select_adjoint.work
def _(input: Array) -> int:
    return in_pieces(input)


def _add_slices(out: Array, index: Array, source: Array, dim: int) -> None:
    """out[..., index, ...] += source, repeats adding up, in place."""
    wanted = (*out.shape[:dim], index.size, *out.shape[dim + 1 :])
    plain = out.dtype.kind in "fiuV" and out.flags.c_contiguous and out.ndim and source.size
    if not plain or source.dtype != out.dtype or source.shape != wanted:
        accumulate_at(out, place(index, dim), source)
        return
    runs = runs_of(index, out.shape[dim], source.size) if index.ndim == 1 and out.dtype.itemsize > 2 else None
    if runs is not None:
        for of, to in runs:
            out[place(to, dim)] += source[place(of, dim)]
        return
    outer, inner = math.prod(out.shape[:dim]), math.prod(out.shape[dim + 1 :])
    at = wrapped(index.reshape(-1), out.shape[dim], "index")
    kernels.index_add_slices(out.reshape(outer, -1, inner), at, source.reshape(outer, -1, inner))


index_select_adjoint.grad("input")(lambda g, index, dim: index_select_op(g, index, dim))


def _add_into(out: Array, index: Array, source: Array, dim: int, alpha: int) -> None:
    scaled = source if alpha == 1 else np.asarray(source * as_array(alpha, out.dtype)).astype(out.dtype, copy=False)
    _add_slices(out, index, scaled, dim)


@op(
    aten=("index_add(input, dim, index, source, *, alpha=1)",),
    half=None,
    linear=True,
    masks=("index",),
    complex_half="widens",
    shape=shapes.same,
    batch=families.index_add,
)
def index_add_op(input: Array, index: Array, source: Array, dim: int, alpha: int) -> Array:
    """`input` with slices of alpha * `source` added at `index`.  (*), (N), (*) -> (*)"""
    out = copied(input)
    _add_into(out, index, source, dim, alpha)
    return out


index_add_op.into(_add_into)
index_add_op.grad("input")(lambda g: g)


@index_add_op.grad("source")
def _(g: Array | Tensor, index: Array | Tensor, dim: int, alpha: int) -> Array | Tensor:
    part = index_select_op(g, index, dim)
    return part if alpha == 1 else part * (alpha.conjugate() if isinstance(alpha, complex) else alpha)


def _copy_into(out: Array, index: Array, source: Array, dim: int) -> None:
    wanted = (*out.shape[:dim], index.size, *out.shape[dim + 1 :])
    if dim == 0 or source.shape != wanted or not out.flags.c_contiguous or not source.size:
        out[place(index, dim)] = source
        return
    outer, inner = math.prod(out.shape[:dim]), math.prod(out.shape[dim + 1 :])
    at = wrapped(index.reshape(-1), out.shape[dim], "index")
    kernels.index_join_slices(out.reshape(outer, -1, inner), at, source.reshape(outer, -1, inner), "last")


@op(
    aten=("index_copy(input, dim, index, source)",),
    linear=True,
    masks=("index",),
    complex_half="moves",
    shape=shapes.same,
    batch=families.index_copy,
)
def index_copy_op(input: Array, index: Array, source: Array, dim: int) -> Array:
    """`input` with slices of `source` put at `index`.  (*), (N), (*) -> (*)"""
    out = copied(input)
    _copy_into(out, index, source, dim)
    return out


index_copy_op.into(_copy_into)
index_copy_op.grad("input")(lambda g, index, dim: index_fill_op(g, index, np.zeros((), raw(g).dtype), dim))
index_copy_op.grad("source")(lambda g, index, dim: index_select_op(g, index, dim))


@op(
    aten=("index_fill.int_Tensor",),
    aten_call="index_fill",
    linear=True,
    masks=("index",),
    complex_half="moves",
    shape=shapes.same,
    batch=families.index_fill,
    takes_number=lambda node, position: position == 2 and bool(node.statics[1]),
)
def index_fill_op(input: Array, index: Array, value: Array, dim: int, number: bool = True) -> Array:
    """`input` with slices at `index` filled with `value`, which was given as a number or not.  (*), (N), () -> (*)"""
    out = copied_as_it_lies(input)
    out[place(index, dim)] = value
    return out


index_fill_op.into(lambda out, index, value, dim, number: out.__setitem__(place(index, dim), value))
index_fill_op.grad("input")(lambda g, index, dim: index_fill_op(g, index, np.zeros((), raw(g).dtype), dim))
index_fill_op.grad("value")(lambda g, index, dim: sum_op(index_select_op(g, np.unique(raw(index)), dim), None, False))


# Arguments -----------------------------------------------------------------------------------------


# Dtypes of indices, as messages have them.
_ALLOWED = {"index_add": "int32/int64", "index_fill": "int64", "index_copy": "int64"}


def checked(name: str, input: Tensor, dim: int, index: Tensor) -> tuple[Any, Any, int]:
    """input and index with a dimension each, and the dimension counted from the front."""
    i = raw(index)
    if not isinstance(i, np.ndarray):
        raise TypeError(f"{name}(): argument 'index' (position 3) must be Tensor, not {kind_of(index)}")
    x = raw(input)
    dim = wrap_dim(dim, x.ndim)
    if i.ndim > 1:
        unlike: Any = RuntimeError if name.startswith("index_fill") else IndexError
        words = "Index should have dimension 1 or 0: " if name.startswith("index_copy") else ""
        words = "Index has to be a vector/scalar: " if name.startswith("index_fill") else words
        raise unlike(f"{name}(): {words}Index is supposed to be a vector, got shape {list(i.shape)}")
    if i.dtype not in (np.int64, np.int32):
        kind: Any = IndexError if name.startswith("index_fill") else RuntimeError
        allowed = _ALLOWED.get(name.removesuffix("_"), "int32 or int64")
        wanted = "a long tensor" if name.startswith("index_copy") else f"dtype {allowed}"
        raise kind(f"{name}(): Expected {wanted} for index, but got {older(dtypes.of(i.dtype))}")
    return reshape_op(input, (1,)) if x.ndim == 0 else input, index if i.ndim else reshape_op(index, (1,)), dim


@function(method=True)
@moving(same_dtype="self and result must have the same scalar type: ")
@numpy_names
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices at `index` (a vector) of dimension `dim`.  (*), (N) -> (*), N at `dim`

    Raises IndexError for indices out of range.
    """
    whole, at, dim = checked("index_select", input, dim, index)
    check_bounds(raw(at), raw(whole).shape[dim], "index_select", dim, IndexError, _OUTSIDE)
    if not raw(input).ndim and raw(at).size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {raw(at).size} values: unsqueeze(0) first"
        )
    found = index_select_op(whole, at, dim)
    return found if raw(input).ndim else reshape_op(found, ())


_OUTSIDE = ": index out of range in self"
_UNLIKE = {
    "index_add": "source tensor shape must match self tensor shape: ",
    "index_copy": "Source/destination tensor must have same slice shapes: ",
}


def source_for(name: str, x: Array, index: Tensor, source: Tensor, dim: int) -> Tensor:
    """A source of slices, checked: of the input's dtype and of its shape besides `dim`, where it has the index's size."""
    if not isinstance(raw(source), np.ndarray):
        raise TypeError(f"{name}(): argument 'source' (position 4) must be Tensor, not {kind_of(source)}")
    s, i = raw(source), raw(index)
    if s.dtype != x.dtype:
        raise RuntimeError(f"{name}(): {unlike_dtypes(name, older(dtypes.of(x.dtype)), older(dtypes.of(s.dtype)))}")
    if not name.startswith("index_copy") and s.ndim != x.ndim:
        raise RuntimeError(f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. "
                           f"Got self.shape = {list(x.shape)} source.shape = {list(s.shape)}")  # fmt: skip
    if s.ndim and x.ndim and s.ndim != x.ndim:
        raise IndexError(
            f"{name}(): When source and destination are not scalars, their dimensionality must match. Source dimensionality "
            f"({s.ndim}), destination dimensionality ({x.ndim}), of shapes {list(s.shape)} and {list(x.shape)}"
        )
    if s.ndim == 0:
        source = reshape_op(source, (1,))
    have, shape = s.shape or (1,), x.shape or (1,)
    want = (*shape[:dim], i.shape[0], *shape[dim + 1 :])
    if name.startswith("index_add") and have[dim] != i.shape[0]:
        raise RuntimeError(
            f"{name}(): Number of indices ({i.shape[0]}) should be equal to source.size(dim): ({have[dim]}), for dim: {dim} of a source of shape {list(have)}"
        )
    if have != want:
        unlike = len(have) != len(want) or have[dim] != i.shape[0]
        kind: Any = IndexError if unlike and name.startswith("index_copy") else RuntimeError
        said = _UNLIKE.get(name.removesuffix("_"), "")
        raise kind(f"{name}(): {said}source has shape {list(have)}, expected {list(want)}: that of input, and at dimension "
                   f"{dim} the number of indices")  # fmt: skip
    return source


def unlike_dtypes(name: str, own: str, other: str) -> str:
    """That a source has another dtype, as PyTorch's operators say it."""
    if name.startswith("index_copy"):
        return f"self and source expected to have the same dtype, but got (self) {own} and (source) {other}"
    return f"self ({own}) and source ({other}) must have the same scalar type"


def prepared(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor | None) -> tuple[Any, Any, int]:
    """The index, source and dimension of an operator that writes slices, checked."""
    whole, at, dim = checked(name, input, dim, index)
    if name.startswith(("index_copy", "index_fill")) and raw(at).dtype != np.int64:
        kind = RuntimeError if name.startswith("index_copy") else IndexError
        wanted = "a long tensor" if name.startswith("index_copy") else "dtype int64"
        raise kind(f"{name}(): Expected {wanted} for index, but got {older(index.dtype)}: convert it with .long()")
    if source is not None:
        source = source_for(name, raw(input), at, source, dim)
    kind = RuntimeError if name.startswith("index_add") and raw(whole).ndim > 1 else IndexError
    also = _OUTSIDE if name.startswith("index_add") else ""
    check_bounds(raw(at), raw(whole).shape[dim], name, dim, kind, also)
    return at, source, dim


def slices(
    run: Callable[..., Any], o: Op, name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, *statics: object
) -> Tensor:
    """Carry out operator `o` on `input` at slices; 0-d tensors count as vectors of one element."""
    at, source, d = prepared(name, input, dim, index, source)
    target = input if raw(input).ndim else reshape_op(input, (1,))
    found = run(o, (target, at, source), (d, *statics))
    if run is call.apply_inplace:
        return input
    return found if raw(input).ndim else reshape_op(found, ())


@function(method=True, out="same")
@numpy_names
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: complex = 1) -> Tensor:
    """`input` with the slices of alpha * `source` added at `index` of dimension `dim`.  (*), (N), (*) -> (*)"""
    check_alpha(input, alpha)
    return slices(call.by_function, index_add_op.op, "index_add", input, dim, index, source, alpha)


@function(method=True)
def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: complex = 1) -> Tensor:
    """In-place version of `index_add`."""
    check_alpha(input, alpha)
    return slices(call.apply_inplace, index_add_op.op, "index_add_", input, dim, index, source, alpha)


def check_alpha(input: Tensor, alpha: complex) -> None:
    """Raise RuntimeError for a fraction as the factor of integers."""
    if isinstance(alpha, (float, complex)) and raw(input).dtype.kind in "biu":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    fitted("index_add", alpha, raw(input).dtype, True)


@function(method=True, out="same")
@numpy_names
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with the slices of `source` put at `index` of dimension `dim`.  (*), (N), (*) -> (*)"""
    return slices(call.by_function, index_copy_op.op, "index_copy", input, dim, index, source)


@function(method=True)
def index_copy_(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """In-place version of `index_copy`."""
    return slices(call.apply_inplace, index_copy_op.op, "index_copy_", input, dim, index, source)


def fill_slices(run: Callable[..., Any], name: str, input: Any, dim: int, index: Tensor, value: Any) -> Tensor:
    """Carry out index_fill: the value is a number or a 0-d tensor."""
    if not number(value) and raw(value).ndim:
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{raw(value).ndim} dimension(s).")  # fmt: skip
    if isinstance(value, (complex, np.complexfloating)) and not dtypes.is_complex(raw(input).dtype):
        raise RuntimeError(
            f"{name}(): Converting complex Scalar to non-complex type is not supported: cannot fill a tensor of "
            f"{input.dtype} with the complex number {value}: give its real part"
        )
    plain = number(value)
    value = constant(name, value, input)
    at, _, d = prepared(name, input, dim, from_front(index, input, dim), None)
    target = input if raw(input).ndim else reshape_op(input, (1,))
    found = run(index_fill_op.op, (target, at, value), (d, plain))
    if run is call.apply_inplace:
        return input
    return found if raw(input).ndim else reshape_op(found, ())


def from_front(index: Any, input: object, dim: int) -> Any:
    """Indices of a dimension, those that count from its end as those that count from its front."""
    shape, at = raw(input).shape, raw(index)
    if not isinstance(at, np.ndarray) or at.dtype.kind != "i" or not (everything(at) < 0).any():
        return index  # what is no index is refused with the rest
    size = shape[wrap_dim(dim, len(shape))] if shape else 1
    return index + ((index < 0) & (index >= -size)) * size


def constant(name: str, value: Tensor | complex, like: Tensor) -> Any:
    """A number or 0-d tensor in the dtype of `like`.  Raises RuntimeError for one that the dtype cannot hold."""
    from rushlight.ops.elementwise.convert import cast

    dtype = raw(like).dtype
    if number(value):
        return fitted(name, value, dtype, True)
    array = raw(value)
    if array.dtype == dtype:
        return value
    if not array.ndim and not getattr(array, "interpreted", False):
        fitted(name, array.item(), dtype, True)
    return cast(value, dtype)


@function(method=True)
@numpy_names
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | complex) -> Tensor:
    """`input` with the slices at `index` of dimension `dim` filled with a number or 0-d tensor.  (*), (N) -> (*)"""
    return fill_slices(call.by_function, "index_fill", input, dim, index, value)


@function(method=True)
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Tensor | complex) -> Tensor:
    """In-place version of `index_fill`."""
    return fill_slices(call.apply_inplace, "index_fill_", input, dim, index, value)
