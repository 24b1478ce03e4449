"""Reading and writing by flat position: take and put."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.outs import moving
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import in_pieces
from rushlight.kernels.pointwise.copies import copied
from rushlight.ops.elementwise.shared import require_tensors
from rushlight.ops.index.raw_indices import add_rows, wrapped
from rushlight.ops.shape.reshape import reshape_op
from rushlight.tensor import Tensor


@op(half=None, linear=True, masks=("index",), shape=shapes.indexed, batch=families.take)
def take_op(input: Array, index: Array) -> Array:
    """The elements at flat positions.  (*), (*) -> shape of index"""
    if not input.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    return input.reshape(-1)[wrapped(index, input.size, "take")]


take_op.grad("input")(lambda g, index, input_shape: take_adjoint(g, index, input_shape))


@op(half=None, linear=True, masks=("index",), shape=shapes.sized, batch=families.take_adjoint)
def take_adjoint(input: Array, index: Array, size: tuple[int, ...]) -> Array:
    """Zeros of shape `size` to which `input` is added at flat positions: the adjoint of take.  (*) -> size"""
    out = np.zeros(size, input.dtype)
    add_rows(out.reshape(-1, 1), wrapped(index, out.size, "take").reshape(-1), input.reshape(-1, 1))
    return out


@take_adjoint.work
def _(input: Array) -> int:
    return in_pieces(input)


take_adjoint.grad("input")(lambda g, index: take_op(g, index))


def _put_into(out: Array, index: Array, source: Array, accumulate: bool) -> None:
    where = wrapped(index, out.size, "put").reshape(-1)
    whole = out if out.flags.c_contiguous else np.ascontiguousarray(out)
    if accumulate:
        add_rows(whole.reshape(-1, 1), where, source.reshape(-1, 1))
    else:
        whole.reshape(-1)[where] = source.reshape(-1)
    if whole is not out:
        out[...] = whole


@op(half=None, linear=True, masks=("index",), shape=shapes.same, batch=families.put)
def put_op(input: Array, index: Array, source: Array, accumulate: bool) -> Array:
    """`input` with `source` at flat positions, put or added.  (*), (*), (*) -> (*)"""
    out = copied(input)
    _put_into(out, index, source, accumulate)
    return out


put_op.into(_put_into)


@put_op.grad("input")
def _(g: Array, index: Array, accumulate: bool) -> Array:
    return g if accumulate else put_op(g, index, np.zeros(raw(index).shape, raw(g).dtype), False)


put_op.grad("source")(lambda g, index, source_shape: reshape_op(take_op(g, index), source_shape))


@function(method=True)
@moving(same_dtype=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at flat positions, negative ones from the end.  (*), (*) int64 -> shape of index"""
    require_tensors("take", input=input, index=index)
    if raw(index).dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {older(raw(index).dtype)}")
    return take_op(input, index)


def put_call(
    run: Callable[..., Any], name: str, input: Tensor, index: Tensor, source: Tensor, accumulate: bool
) -> Tensor:
    """Check the arguments of put and have `run` carry it out."""
    x, i, s = raw(input), raw(index), raw(source)
    if i.dtype != np.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {older(i.dtype)}")
    if x.dtype != s.dtype:
        raise RuntimeError(f"{name}(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{dtypes.of(x.dtype)} and source.dtype = {dtypes.of(s.dtype)}")  # fmt: skip
    if i.size != s.size:
        raise IndexError(f"{name}(): Expected source and index to have the same number of elements, but got "
                           f"source.numel() = {s.size}, index.numel() = {i.size}")  # fmt: skip
    if i.size and not x.size:
        raise IndexError(f"{name}(): Tried to put elements into an empty tensor")
    return run(put_op.op, (input, index, source), (accumulate,))


@function(method=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `source` at flat positions; with `accumulate` added.  (*), (*) int64, (*) -> (*)"""
    return put_call(call.by_function, "put", input, index, source, accumulate)


@function(method=True)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of `put`."""
    return put_call(call.apply_inplace, "put_", input, index, source, accumulate)
