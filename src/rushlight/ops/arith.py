"""Arithmetic: addition, subtraction, multiplication, division, negation, conjugation."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.ops.declare import Array
from rushlight.ops.registry import elementwise, function
from rushlight.tensor import Tensor


def _conj_forward(be: Any, x: Any) -> Any:
    return be.conjugate(x) if x.dtype.kind == "c" else x


def conj(x: Any) -> Any:
    """Complex conjugate of an array, tensor or number; of anything real, itself."""
    if x.__class__ is np.ndarray or isinstance(x, np.generic):
        return x.conj() if x.dtype.kind == "c" else x
    if isinstance(x, Tensor):
        return conj_physical(x) if x._array.dtype.kind == "c" else x
    return x.conjugate() if isinstance(x, complex) else x


@elementwise(ufunc="conjugate", promote="arith", grads={"input": lambda g: conj(g)})
def conj_physical(input: Array) -> Array:  # noqa: A002
    """Complex conjugate of each element.  input: (*) -> (*)"""


@elementwise(ufunc="negative", promote="arith", aliases=("negative",), grads={"input": lambda g: -g})
def neg(input: Array) -> Array:  # noqa: A002
    """-input.  input: (*) -> (*)"""


@elementwise(ufunc="add", promote="arith", ns=None, grads={"input": lambda g: g, "other": lambda g: g})
def add(input: Array, other: Array) -> Array:  # noqa: A002
    """input + other, broadcast.  (*), (*) -> (*)"""


@elementwise(ufunc="subtract", promote="arith", ns=None, grads={"input": lambda g: g, "other": lambda g: -g})
def sub(input: Array, other: Array) -> Array:  # noqa: A002
    """input - other, broadcast.  (*), (*) -> (*)"""


@elementwise(
    ufunc="multiply",
    promote="arith",
    aliases=("multiply",),
    grads={"input": lambda g, other: g * conj(other), "other": lambda g, input: g * conj(input)},
)
def mul(input: Array, other: Array) -> Array:  # noqa: A002
    """input * other, broadcast.  (*), (*) -> (*)

    >>> import rushlight as torch
    >>> torch.mul(torch.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """


@elementwise(
    ufunc="true_divide",
    promote="float",
    aliases=(),
    grads={"input": lambda g, other: g / conj(other), "other": lambda g, other, out: -g * conj(out / other)},
)
def true_divide(input: Array, other: Array) -> Array:  # noqa: A002
    """input / other, broadcast.  (*), (*) -> (*); integers give the default floating-point dtype."""


def _scaled(other: Any, alpha: Any) -> Any:
    return other if alpha == 1 else mul(other, alpha) if isinstance(other, Tensor) else other * alpha


@function(name="add", method=True, out=True, inplace=False)
def add_scaled(input: Any, other: Any, *, alpha: Any = 1) -> Any:  # noqa: A002
    """input + alpha * other, broadcast.  (*), (*) -> (*)"""
    return add(input, _scaled(other, alpha))


for _name, _op in (("__add__", add), ("__mul__", mul), ("__radd__", add), ("__rmul__", mul), ("__sub__", sub),
                   ("__truediv__", true_divide), ("__neg__", neg)):  # fmt: skip
    setattr(Tensor, _name, _op)


def _rsub(self: Any, other: Any) -> Any:
    return sub(other, self)


def _rtruediv(self: Any, other: Any) -> Any:
    return true_divide(other, self)


Tensor.__rsub__ = _rsub  # type: ignore[attr-defined]
Tensor.__rtruediv__ = _rtruediv  # type: ignore[attr-defined]
