"""Copies and conversions: clone, dtype casts, copy_, detach."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.engine.conform import cast_array, tensor_functions
from rushlight.ops import call
from rushlight.ops.declare import Array
from rushlight.ops.registry import function, op
from rushlight.tensor import Tensor, alias


@op(ns=None, half=None, linear=True, grads={"input": lambda g: g})
def copy(be: Any, input: Array, order: str = "K") -> Array:  # noqa: A002
    """A copy of the elements.  input: (*) -> (*)"""
    return np.array(input, order=order, subok=False)  # type: ignore[call-overload]


@op(ns=None, half=None, linear=True, grads={"input": lambda g: g})
def cast(be: Any, input: Array, dtype: Any) -> Array:  # noqa: A002
    """The elements in another NumPy dtype.  input: (*) -> (*)"""
    return cast_array(input, dtype) if dtype != input.dtype else input.copy()


@op(ns=None, half=None, linear=True)
def copy_into(be: Any, input: Array, src: Array) -> Array:  # noqa: A002
    """`src`, broadcast to the shape of `input` and in its dtype.  (*), (*) -> (*)"""
    return np.broadcast_to(cast_array(src, input.dtype), input.shape)


copy_into.grad("src")(lambda g: g)


@function(method=True)
def clone(input: Any, *, memory_format: Any = None) -> Any:  # noqa: A002
    """A copy of the tensor with a history.  input: (*) -> (*)"""
    contiguous = memory_format is not None and "contiguous" in str(memory_format) and "channels" not in str(memory_format)
    return copy(input, "C" if contiguous else "K")


@function(method=True, ns="Tensor")
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:  # noqa: A002
    """Copy the elements of `src`, broadcast and cast, into this tensor.  (*), (*) -> (*)"""
    return call.apply_inplace(copy_into.op, (input, src), ())


@function(method=True)
def detach(input: Any) -> Any:  # noqa: A002
    """The same memory outside the graph.  input: (*) -> (*)"""
    t = alias(input)
    t._inference = input._inference if input._inference else False
    return t


@function(method=True)
def detach_(input: Tensor) -> Tensor:  # noqa: A002
    """Take this tensor out of the graph, in place.  Raises RuntimeError for views."""
    if input._view is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    input._edge = None
    return input


def _add(a: Any, b: Any) -> Any:
    return a + b


tensor_functions["cast"] = cast
tensor_functions["add"] = _add
