"""Division: true, floored and truncated; remainders; reciprocals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import call
from rushlight.dispatch.declare import Array
from rushlight.dispatch.keeping.shown import always
from rushlight.dispatch.registry import elementwise, publish, publish_inplace
from rushlight.kernels.dispatch import of_halves
from rushlight.kernels.rows import across
from rushlight.ops.elementwise.arith import by, conj, own_conj
from rushlight.ops.elementwise.shared import floating_into, nothing, tensor_first, times
from rushlight.tensor import Tensor


@elementwise(
    aten=("div.Tensor",),
    name="div",
    saved_as={"rounding_mode": always(None)},
    ufunc="true_divide",
    promote="float",
    public="true_divide",
    grads={
        "input": lambda g, other: per(g, conj(other)),
        "other": lambda g, input, other: by(-g, conj(per(per(input, other), other))),
    },
    scales=np.true_divide,
    numbers=True,
    inline={"input": "g / {other}"},
)
def true_divide(input: Array, other: Array) -> Array:
    """input / other, broadcast.  (*), (*) -> (*); integers give the default floating-point dtype."""


true_divide.large(across(np.true_divide))


@true_divide.tangent
def _(other: Array | Tensor | float, out: Tensor, t_input: Tensor, t_other: Tensor | None) -> Tensor:
    # One quotient, as of the limit: the difference of two would be NaN where both are infinite.
    if t_other is None:
        return t_input / other
    moved = t_other * out
    return (-moved if t_input is None else t_input - moved) / other


def per(g: Array | Tensor, x: Array | Tensor | float) -> Array | Tensor:
    """g / x: where `x` is a number, and `g` an array of 16-bit numbers, as the operator has it."""
    if g.__class__ is np.ndarray and g.itemsize == 2:
        found = of_halves(np.divide, g, x)
        if found is not None:
            return found
    return g / x if x.__class__ is np.ndarray or g.__class__ is not np.ndarray else true_divide(g, x)


def _exchanged(a: Any, b: Any, **settings: Any) -> Array:
    return np.true_divide(b, a, **settings)


@elementwise(aten=("div.Tensor",), name="rdiv", promote="float", half=None, ns=None, scales=_exchanged)
def divided(input: Array, other: Array) -> Array:
    """other / input, broadcast.  (*), (*) -> (*): what / does with a number on its left."""
    return np.true_divide(other, input)


def _divided_raw(g: Array, input: Array, other: float) -> Array:
    slope = np.true_divide(other, input)
    if slope.__class__ is not np.ndarray or slope.dtype != g.dtype or slope.shape != g.shape:
        return -g * conj(slope / input)
    slope /= input
    slope = times(g, own_conj(slope))
    return np.negative(slope, out=slope)


divided.grad("input", raw=_divided_raw)(lambda g, input, other: -g * conj(other / input / input))
divided.grad("other")(lambda g, input: g / conj(input))


def _reciprocal_raw(g: Array, out: Array) -> Array:
    slope = times(g, own_conj(out * out))
    return np.negative(slope, out=slope) if slope.__class__ is np.ndarray else -slope


@elementwise(promote="float", half=None, foreach=True)
def reciprocal(input: Array) -> Array:
    """1 / input.  input: (*) -> (*); keeps its result for the backward."""
    return np.true_divide(1, input).astype(input.dtype, copy=False)


reciprocal.grad("input", raw=_reciprocal_raw)(lambda g, out: -g * conj(out * out))
reciprocal.into(floating_into(reciprocal.op, lambda x: backend.true_divide(1, x, out=x)))


# Rounded division ------------------------------------------------------------------------------------


def refuse_zero(name: str, input: Array, other: Array | int) -> None:
    """Raise RuntimeError if integers would be divided by zero."""
    if input.dtype.kind not in "iu" or (other.__class__ is int and other):
        return
    if not np.all(other) and 0 not in np.broadcast_shapes(input.shape, np.shape(other)):
        raise RuntimeError(f"ZeroDivisionError: {name}() of integers by a tensor that has a zero; convert to a "
                           "floating-point dtype for infinities, or replace the zeros")  # fmt: skip


@elementwise(
    aten=("div.Tensor_mode(input, other, *, rounding_mode='floor')",),
    promote="arith",
    ns=None,
    half=None,
    saved_as={"rounding_mode": always("floor")},
    refuse="bc",
    grads={"input": lambda g: nothing(g), "other": lambda g: nothing(g)},
    numbers=True,
    exact=True,
    integers=True,
)
def div_floor(input: Array, other: Array) -> Array:
    """The quotient rounded down.  (*), (*) -> (*)"""
    refuse_zero("div", input, other)
    return backend.floor_divide(input, other)


@elementwise(
    aten=("div.Tensor_mode(input, other, *, rounding_mode='trunc')",),
    promote="arith",
    ns=None,
    half=None,
    saved_as={"rounding_mode": always("trunc")},
    refuse="bc",
    grads={"input": lambda g: nothing(g), "other": lambda g: nothing(g)},
    numbers=True,
    exact=True,
)
def div_trunc(input: Array, other: Array) -> Array:
    """The quotient rounded toward zero.  (*), (*) -> (*)"""
    refuse_zero("div", input, other)
    if input.dtype.kind in "iu":
        return np.floor_divide(input - np.fmod(input, other), other)
    return backend.truncated_quotient(input, other)


def _refused(name: str) -> Callable[..., Any]:
    def formula(g: Array | Tensor) -> Any:
        raise RuntimeError(f"derivative for {name} is not implemented: it is zero almost everywhere; detach() its "
                           "arguments to say so")  # fmt: skip

    return formula


@elementwise(
    aten=("floor_divide(input, other)",),
    promote="arith",
    half=None,
    refuse="bc",
    grads={"input": _refused("floor_divide"), "other": _refused("floor_divide")},
    numbers=True,
    exact=True,
    integers=True,
)
def floor_divide(input: Array, other: Array) -> Array:
    """The quotient rounded down, broadcast: Python's //.  (*), (*) -> (*).  RuntimeError for integers by zero.

    >>> import rushlight as torch
    >>> torch.floor_divide(torch.tensor([-3, 3]), 2)
    tensor([-2,  1])
    """
    refuse_zero("floor_divide", input, other)
    return backend.floor_divide(input, other)


ROUNDED = {None: true_divide, "floor": div_floor, "trunc": div_trunc}


def _rounded(rounding_mode: str | None) -> Any:
    try:
        return ROUNDED[rounding_mode]
    except (KeyError, TypeError):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                           f"{rounding_mode!r}") from None  # fmt: skip


def div(
    input: Tensor, other: Tensor | complex, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """input / other, broadcast.  (*), (*) -> (*)

    rounding_mode: None for true division (integers give the default floating-point dtype), "trunc" or "floor" for
    quotients rounded toward zero or down.

    >>> import rushlight as torch
    >>> torch.div(torch.tensor([-7.0, 7.0]), 2, rounding_mode="trunc")
    tensor([-3.,  3.])
    """
    if rounding_mode is None and out is None:
        return true_divide(input, other)
    call.check_overlaps("div", out, (input, other))
    result = _rounded(rounding_mode)(input, other)
    return result if out is None else call.write_out("div", out, result)


def div_(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input /= other, rounded as `div` does."""
    return call.apply_inplace(_rounded(rounding_mode).op, (input, other), ())


publish(div, "div", "", ("divide",), True)
publish_inplace(div_, "div", "", ("divide",))


# Remainders ------------------------------------------------------------------------------------------


@elementwise(
    aten=("remainder.Tensor", "remainder.Scalar"),
    promote="arith",
    half=None,
    refuse="bc",
    grads={"input": lambda g: g, "other": lambda g, input, other: -g * div_floor(input, other)},
    integers=True,
)
def remainder(input: Array, other: Array) -> Array:
    """What floored division leaves, with the sign of `other`: Python's %.  (*), (*) -> (*)

    Raises RuntimeError for integers by zero.

    >>> import rushlight as torch
    >>> torch.remainder(torch.tensor([-3.0, 3.0]), 2)
    tensor([1., 1.])
    """
    refuse_zero("remainder", input, other)
    return backend.remainder(input, other)


@elementwise(
    aten=("fmod.Tensor", "fmod.Scalar"),
    promote="arith",
    half=None,
    refuse="bc",
    grads={"input": lambda g: g, "other": lambda g, input, other: -g * div_trunc(input, other)},
    integers=True,
)
def fmod(input: Array, other: Array) -> Array:
    """What truncated division leaves, with the sign of `input`: C's fmod.  (*), (*) -> (*)

    Raises RuntimeError for integers by zero.
    """
    refuse_zero("fmod", input, other)
    return backend.fmod(input, other)


fmod.check(tensor_first)
