"""Comparisons, and questions about numbers: eq, lt, isclose, allclose, equal, isnan, isinf, isfinite, isreal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.dtype_words import older
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import Operator, elementwise, function, inplace_of, publish_inplace
from rushlight.kernels.dispatch import bits
from rushlight.kernels.pointwise.orders import in_one_order
from rushlight.ops.elementwise.shared import complex_refused, nothing, require_tensors, tensor_first
from rushlight.tensor import Tensor


def _comparison(ufunc: np.ufunc, **settings: Any) -> Callable[[Callable[..., Any]], Operator]:
    """Declare a comparison that is a function of NumPy, whose name is an alias."""

    def declare(fn: Callable[..., Any]) -> Operator:
        settings.update(
            aten=(f"{fn.__name__}.Tensor", f"{fn.__name__}.Scalar"), promote="compare", ufunc=ufunc.__name__
        )
        made = elementwise(inplace=False, **{"aliases": (ufunc.__name__,), **settings})(fn)
        made.large(in_one_order(ufunc))
        _overwriting(made)
        return made

    return declare


def _overwriting(of: Any) -> None:
    """Publish the in-place form of a comparison: it gives numbers, which depend on neither operand's slope."""

    @elementwise(aten=of.op.aten, promote="compare", ufunc=of.op.ufunc, refuse=of.op.refuse, ns=None, name=of.op.name,
                 grads={"input": lambda g: nothing(g), "other": lambda g: nothing(g)})  # fmt: skip
    def overwriting(input: Array, other: Array) -> Array:
        """The comparison, for its in-place form alone."""

    publish_inplace(inplace_of(overwriting.op), of.op.name, "", of.op.aliases)


@_comparison(np.equal, aliases=(), complex_half="widens")
def eq(input: Array, other: Array) -> Array:
    """Whether elements are equal, broadcast.  (*), (*) -> (*) bool

    >>> import rushlight as torch
    >>> torch.eq(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """


@_comparison(np.not_equal, complex_half="widens")
def ne(input: Array, other: Array) -> Array:
    """Whether elements differ, broadcast.  (*), (*) -> (*) bool"""


@_comparison(np.less, refuse="c")
def lt(input: Array, other: Array) -> Array:
    """Whether input < other, broadcast.  (*), (*) -> (*) bool"""


@_comparison(np.less_equal, refuse="c")
def le(input: Array, other: Array) -> Array:
    """Whether input <= other, broadcast.  (*), (*) -> (*) bool"""


@_comparison(np.greater, refuse="c")
def gt(input: Array, other: Array) -> Array:
    """Whether input > other, broadcast.  (*), (*) -> (*) bool"""


@_comparison(np.greater_equal, refuse="c")
def ge(input: Array, other: Array) -> Array:
    """Whether input >= other, broadcast.  (*), (*) -> (*) bool"""


# Questions about each element ------------------------------------------------------------------------


def _never(x: Array) -> Array:
    return np.zeros(x.shape, bool)


@elementwise(promote="arith", half=None, inplace=False, complex_half="moves", takes_out=False)
def isnan(input: Array) -> Array:
    """Whether each element is NaN.  input: (*) -> (*) bool"""
    return _never(input) if input.dtype.kind in "biu" else np.isnan(input)


@elementwise(promote="arith", half=None, inplace=False, complex_half="moves", takes_out=False)
def isinf(input: Array) -> Array:
    """Whether each element is infinite.  input: (*) -> (*) bool"""
    return _never(input) if input.dtype.kind in "biu" else np.isinf(input)


@elementwise(promote="arith", half=None, inplace=False, complex_half="moves", takes_out=False)
def isfinite(input: Array) -> Array:
    """Whether each element is neither infinite nor NaN.  input: (*) -> (*) bool"""
    return np.ones(input.shape, bool) if input.dtype.kind in "biu" else np.isfinite(input)


@elementwise(promote="arith", half=None, inplace=False, refuse="c",
             refusal=complex_refused(RuntimeError, "isposinf does not support complex inputs"))  # fmt: skip
def isposinf(input: Array) -> Array:
    """Whether each element is +infinity.  input: (*) -> (*) bool"""
    return _never(input) if input.dtype.kind in "biu" else np.equal(bits(input), bits(np.asarray(np.inf, input.dtype)))


@elementwise(promote="arith", half=None, inplace=False, refuse="c",
             refusal=complex_refused(RuntimeError, "isneginf does not support complex inputs"))  # fmt: skip
def isneginf(input: Array) -> Array:
    """Whether each element is -infinity.  input: (*) -> (*) bool"""
    return _never(input) if input.dtype.kind in "biu" else np.equal(bits(input), bits(np.asarray(-np.inf, input.dtype)))


@elementwise(promote="arith", half=None, inplace=False, complex_half="widens", takes_out=False)
def isreal(input: Array) -> Array:
    """Whether the imaginary part of each element is 0.  input: (*) -> (*) bool"""
    return np.equal(input.imag, 0) if input.dtype.kind == "c" else np.ones(input.shape, bool)


# Questions about two tensors -------------------------------------------------------------------------


def _check_close(name: str, input: Any, other: Any, rtol: float, atol: float) -> None:
    require_tensors(name, input=input, other=other)
    if raw(input).dtype != raw(other).dtype:
        raise RuntimeError(f"{name}(): {older(input.dtype)} did not match {older(other.dtype)}: convert one of both")
    for argument, value in (("rtol", rtol), ("atol", atol)):
        if getattr(value, "requires_grad", False):
            raise TypeError(f"{name}(): argument '{argument}' must be float, not Tensor: it has no gradient")
        if not value >= 0:  # a NaN is none, either
            raise RuntimeError(f"{name}(): {argument} must be greater than or equal to zero, but got {value}")


@elementwise(promote="compare", ns=None, complex_half="widens", cut=True)
def isclose_op(input: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """Whether |input - other| <= atol + rtol |other|.  (*), (*) -> (*) bool"""
    close = np.asarray(np.equal(input, other))
    if equal_nan and input.dtype.kind in "fc":
        close |= np.isnan(input) & np.isnan(other)
    if rtol == 0 and atol == 0:
        return close
    wide = np.float64 if input.dtype.kind in "biu" else None
    allowed = np.absolute(other, dtype=wide) if wide is None else np.abs(other.astype(wide))
    distance = np.absolute(input - other) if wide is None else np.abs(input.astype(wide) - other.astype(wide))
    close |= np.isfinite(distance) & (distance <= atol + rtol * allowed)
    return close


@function(method=True)
def isclose(
    input: Tensor, other: Tensor | complex, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether |input - other| <= atol + rtol |other|, broadcast.  (*), (*) of one dtype -> (*) bool

    equal_nan: whether two NaNs are close.
    """
    _check_close("isclose", input, other, rtol, atol)
    return isclose_op(input, other, rtol, atol, equal_nan)


@function(method=True)
def allclose(
    input: Tensor, other: Tensor | complex, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close in the sense of `isclose`."""
    _check_close("allclose", input, other, rtol, atol)
    return bool(raw(isclose_op(input, other, rtol, atol, equal_nan)).all())


@function(method=True)
def equal(input: Tensor, other: Tensor | complex) -> bool:
    """Whether two tensors have the same shape and equal elements.

    >>> import rushlight as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    require_tensors("equal", input=input, other=other)
    return bool(raw(input).shape == raw(other).shape and np.logical_and.reduce(raw(eq(input, other)), None))


for _fn in (eq, ne, lt, le, gt, ge):
    _fn.check(tensor_first)
