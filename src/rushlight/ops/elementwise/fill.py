"""Filling: fill, zero_ and their in-place forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.eights import EIGHTS
from rushlight.basics.state import modes, special
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.compute import fitted
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named
from rushlight.dispatch.options import strides_of
from rushlight.dispatch.registry import function, op
from rushlight.engine import inplace
from rushlight.kernels.dispatch import recast
from rushlight.ops.create.factories import fill_array
from rushlight.ops.create.like_new import zeros_like
from rushlight.ops.elementwise.convert import copy_into
from rushlight.ops.reduce.sums import sum_op
from rushlight.storage import settle
from rushlight.tensor import Tensor


@op(
    aten=("fill.Scalar",),
    name="fill",
    grads={"input": lambda g: zeros_like(g)},
    complex_half="moves",
    shape=shapes.same,
    batch=families.targeted,
    direct=True,
    pointwise=True,
)
def fill_number(input: Array, value: float) -> Array:
    """A number in the shape and dtype of `input`.  (*) -> (*)"""
    out = np.empty_like(input)
    fill_array("fill", out, value)
    return out


@op(
    aten_call="filled",
    name="fill_",
    grads={"input": lambda g: zeros_like(g)},
    complex_half="moves",
    shape=shapes.same,
    batch=families.targeted,
    one_value=True,
    direct=True,
)
def fill_in_place(input: Array, value: float) -> Array:
    """A number, broadcast to the shape of `input` without memory of its own: in-place calls copy it.  (*) -> (*)"""
    return np.broadcast_to(fitted("fill_", value, input.dtype, True), input.shape)


@op(
    aten=("fill.Tensor",),
    grads={"input": lambda g: zeros_like(g), "value": lambda g: sum_op(g)},
    complex_half="moves",
    shape=shapes.same,
    batch=families.filled,
)
def fill_tensor(input: Array, value: Array) -> Array:
    """A 0-d tensor in the shape and dtype of `input`.  (*), () -> (*)"""
    out = np.empty_like(input)
    out[...] = recast(value, input.dtype)
    return out


copy_into.grad("input")(lambda g: zeros_like(g))


def untracked(t: Tensor) -> bool:
    """Whether nobody follows a change of this tensor: no history, no mode that watches."""
    return not (modes.levels or special.observing or t._unusual or t.requires_grad)


def put(t: Tensor, name: str, value: Array | int) -> Tensor:
    """Fill an untracked tensor, whose elements may share memory: all get one value."""
    settle(t._array)
    t._array.fill(value)
    inplace.written(t, name)
    return t


def check_value(value: Tensor | complex) -> bool:
    """Whether `value` is a tensor.  Raises for tensors of several elements and for what is no number."""
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                               f"{value._array.ndim} dimensions.")  # fmt: skip
        return True
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise TypeError(f"fill_(): argument 'value' (position 1) must be Number or Tensor, not {type(value).__name__}")
    return False


@function()
def fill(input: Tensor, value: Tensor | complex) -> Tensor:
    """`value`, a number or 0-d tensor, in the shape and dtype of `input`.  (*) -> (*)"""
    return fill_tensor(input, value) if check_value(value) else fill_number(input, value)


@function(method=True)
def fill_(input: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number or 0-d tensor.  (*) -> (*)"""
    if check_value(value):
        dtypes.warn_of_lost_parts(value.dtype, input.dtype)
        return call.apply_inplace(copy_into.op, (input, value), ())
    if isinstance(input, Tensor) and untracked(input):
        return put(input, "fill_", fitted("fill_", value, input._array.dtype, True))
    return call.apply_inplace(fill_in_place.op, (input,), (value,))


@function(method=True)
def zero_(input: Tensor) -> Tensor:
    """Set every element to zero.  (*) -> (*)"""
    if isinstance(input, Tensor) and untracked(input):
        return put(input, "zero_", fitted("zero_", 0, input._array.dtype) if input._array.dtype in EIGHTS else 0)
    return call.apply_inplace(fill_in_place.op, (input,), (0,))


@function(method=True, ns="Tensor")
def fill_diagonal_(input: Tensor, fill_value: Tensor | complex, wrap: bool = False) -> Tensor:
    """Set the main diagonal to a number; with `wrap`, that of a tall matrix begins again below its end.  (*) -> (*)

    Raises RuntimeError for tensors of more than two dimensions whose sizes differ.
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("fill_diagonal_: dimensions must be larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("fill_diagonal_: all dimensions of input must be of equal length")
    steps, size = strides_of(input._held), min(shape)
    diagonal, start = sum(steps), input.storage_offset()
    named.as_strided(input, (size,), (diagonal,), start).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        width = shape[1]
        rest = (shape[0] * width + width) // (width + 1) - size
        named.as_strided(input, (rest,), (diagonal,), start + steps[0] * (width + 1)).fill_(fill_value)
    return input
