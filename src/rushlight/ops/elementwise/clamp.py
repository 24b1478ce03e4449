"""Choices between elements: maximum, minimum, fmax, fmin, clamp, where, nan_to_num.

Their gradients depend on which element was chosen alone, so that is what they keep: a bit or two for each element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller, dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import call
from rushlight.dispatch.compute import cast, check_numbers, fitted
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import elementwise, function, known_as, publish, publish_inplace
from rushlight.kernels.rows import across
from rushlight.ops.elementwise.shared import (
    NUMBERS,
    complex_refused,
    keep,
    limited,
    maybe_any,
    number,
    recording,
    require_tensors,
    tensor_first,
)
from rushlight.tensor import Tensor

ndarray = np.ndarray
PLAIN = (float, int, type(None))  # the bounds that need no care between floating-point numbers
WHOLE = (int, type(None))  # and between integers

larger_across, smaller_across = across(np.maximum), across(np.minimum)

# The larger, the smaller -----------------------------------------------------------------------------

BOTH, FIRST, SECOND, HALF = 0, 1, 2, 3  # who gets the gradient: both (NaN), one, or half each (equal)


def _choice(first: Array, second: Array) -> Array:
    """Who gets the gradient, of where the first operand is not worse than the second and the other way round; int8."""
    code = _bytes(second)
    code += code
    code += _bytes(first)
    return code


def share(g: Array | Tensor, choice: Array | Tensor, own: int) -> Array | Tensor:
    """The part of `g` for one of the two operands."""
    full, halves = keep(g, choice != FIRST + SECOND - own), choice == HALF
    if not maybe_any(halves):
        return full
    if full.__class__ is ndarray:
        return np.multiply(full, full.dtype.type(0.5), out=full, where=halves)
    return where(halves, full * 0.5, full)


@elementwise(
    aten_gradient="larger",
    promote="arith",
    half=None,
    inplace=False,
    strict=True,
    refuse="c",
    refusal=RuntimeError,
    aux=("choice",),
    planes=2,
    grads={"input": lambda g, choice: share(g, choice, FIRST), "other": lambda g, choice: share(g, choice, SECOND)},
)
def maximum(input: Array, other: Array) -> tuple[Any, ...]:
    """The larger of two elements, NaN if either is, broadcast.  (*), (*) -> (*)

    Equal elements share the gradient evenly.

    >>> import rushlight as torch
    >>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    tensor([3, 5])
    """
    out = larger_across(input, other)
    return out, _choice(np.greater_equal(input, other), np.less_equal(input, other)) if recording() else None


@elementwise(
    aten_gradient="smaller",
    promote="arith",
    half=None,
    inplace=False,
    strict=True,
    refuse="c",
    refusal=RuntimeError,
    aux=("choice",),
    planes=2,
    grads={"input": lambda g, choice: share(g, choice, FIRST), "other": lambda g, choice: share(g, choice, SECOND)},
)
def minimum(input: Array, other: Array) -> tuple[Any, ...]:
    """The smaller of two elements, NaN if either is, broadcast.  (*), (*) -> (*)

    Equal elements share the gradient evenly.
    """
    out = smaller_across(input, other)
    return out, _choice(np.less_equal(input, other), np.greater_equal(input, other)) if recording() else None


def _first_chosen(compared: Array, other: Array) -> Array | None:
    """Where the first of two operands is taken: it compares so, or the other is NaN."""
    if not recording():
        return None
    chosen = np.asarray(compared)
    return np.logical_or(chosen, np.isnan(other)) if other.dtype.kind not in "biu" else chosen


@elementwise(promote="arith", half=None, inplace=False, strict=True, refuse="c", refusal=RuntimeError, aux=("first",), planes=1,
             grads={"input": lambda g, first: keep(g, first), "other": lambda g, first: keep(g, ~first)})  # fmt: skip
def fmax(input: Array, other: Array) -> tuple[Any, ...]:
    """The larger of two elements, of a number and NaN the number, broadcast.  (*), (*) -> (*)"""
    return np.fmax(input, other), _first_chosen(np.greater_equal(input, other), other)


@elementwise(promote="arith", half=None, inplace=False, strict=True, refuse="c", refusal=RuntimeError, aux=("first",), planes=1,
             grads={"input": lambda g, first: keep(g, first), "other": lambda g, first: keep(g, ~first)})  # fmt: skip
def fmin(input: Array, other: Array) -> tuple[Any, ...]:
    """The smaller of two elements, of a number and NaN the number, broadcast.  (*), (*) -> (*)"""
    return np.fmin(input, other), _first_chosen(np.less_equal(input, other), other)


# clamp -----------------------------------------------------------------------------------------------


def _inside(x: Any, low: Array | float | None, high: Any) -> Array:
    """Where `x` lies in [low, high], its bounds included; either may be None."""
    if low is None:
        return np.asarray(np.less_equal(x, high))
    inside = np.asarray(np.greater_equal(x, low))
    if high is None:
        return inside
    below = np.less_equal(x, high)
    larger = np.shape(below) != inside.shape  # of bounds that are broadcast
    return np.logical_and(inside, below, out=None if larger else inside)


def _fitting(x: Array, *bounds: object) -> tuple[Any, ...]:
    """Numbers or None as bounds of an array: of one of integers or 16 bits in its dtype."""
    if x.dtype.kind == "f" and x.itemsize > 2:
        check_numbers("clamp", x.dtype, *bounds)
        return bounds
    return tuple(None if bound is None else fitted("clamp", bound, x.dtype, True) for bound in bounds)


@elementwise(
    aten=("clamp(input, low=None, high=None)",),
    promote="arith",
    half=None,
    ns=None,
    name="clamp",
    saved_as={"min": "low", "max": "high"},
    refuse="c",
    aux=("inside",),
    planes=1,
    integers=True,
    refusal=complex_refused(NotImplementedError, "clamp is not supported for complex types"),
    grads={"input": lambda g, inside: keep(g, inside)},
)
def clamp_numbers(input: Array, low: float | None, high: float | None) -> tuple[Any, ...]:
    """`input` limited to [low, high], numbers or None.  (*) -> (*)"""
    low, high = _fitting(input, low, high)
    return limited(input, low, high), _inside(input, low, high) if recording() else None


def _clamp_into(x: Array, low: float | None, high: float) -> tuple[Any, ...]:
    low, high = _fitting(x, low, high)
    inside = _inside(x, low, high) if recording() else None
    limited(x, low, high, out=x)
    return (inside,)


BELOW, WITHIN, ABOVE, NOWHERE = 0, 1, 2, 3  # who gets the gradient: the lower bound, the input, the upper bound, none


def _where_from(x: Array, low: Array | None, high: Any) -> Array | None:
    """Who gets the gradient of a clamp between tensors: int8."""
    if not recording():
        return None
    # by arithmetic, no two masks being true of one element: choosing by a mask takes NumPy ten times as long
    found = np.asarray(_bytes(_inside(x, low, high)) * np.int8(WITHIN - NOWHERE))
    found += np.int8(NOWHERE)
    if low is not None:
        below = np.less(x, low) if high is None else np.less(x, low) & np.less(low, high)
        found += _bytes(below) * np.int8(BELOW - NOWHERE)
    if high is not None:
        found -= _bytes(np.greater(x, high) if low is None else np.greater(x, high) | np.less(high, low))
    return found


def _bytes(mask: Any) -> Any:
    """A mask as numbers."""
    return np.asarray(mask).view(np.int8)


@elementwise(
    aten=("clamp.Tensor",),
    promote="arith",
    half=None,
    ns=None,
    name="clamp_tensor",
    refuse="c",
    aux=("source",),
    planes=2,
    refusal=complex_refused(NotImplementedError, "clamp is not supported for complex types"),
    grads={
        "input": lambda g, source: keep(g, source == WITHIN),
        "min": lambda g, source: keep(g, source == BELOW),
        "max": lambda g, source: keep(g, source == ABOVE),
    },
)
def clamp_tensors(input: Array, min: Array | None, max: Array | None) -> tuple[Any, ...]:
    """`input` limited to [min, max], tensors or None, broadcast.  (*), (*), (*) -> (*)"""
    return limited(input, min, max), _where_from(input, min, max)


def _bounds(
    name: str, input: Array | Tensor, low: Tensor | float | None, high: Tensor | float | None
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The operator for these bounds, its inputs and its statics."""
    require_tensors(name, input=input)
    if low is None and high is None:
        raise RuntimeError(f"torch.{name}: At least one of 'min' or 'max' must not be None")
    for argument, bound in (("min", low), ("max", high)):
        if bound is not None and not isinstance(bound, call.OPERANDS):
            raise TypeError(f"{name}(): argument '{argument}' must be Number or Tensor, not {type(bound).__name__}")
    if low.__class__ in NUMBERS and high.__class__ in NUMBERS:
        return clamp_numbers.op, (input,), (low, high)
    whole = [isinstance(bound, (Tensor, ndarray)) for bound in (low, high)]
    if all(whole) or (any(whole) and (low is None or high is None)):
        if all(whole):
            _refuse_bools(name, input, low, high)
        return clamp_tensors.op, (input, low, high), ()
    if any(whole):
        low, high = (_as_number(name, bound) for bound in (low, high))
    _refuse_bools(name, input, low, high)
    return clamp_numbers.op, (input,), (number(low), number(high))


def _as_number(name: str, bound: Tensor | float | None) -> float | None:
    """A bound beside a number, which is one, too: raises TypeError for a tensor that cannot stand for a number."""
    if isinstance(bound, Tensor) and not bound.ndim and not bound.requires_grad:
        return bound.item()
    if isinstance(bound, (Tensor, ndarray)):
        raise TypeError(f"{name}(): both bounds must be tensors, or both numbers: give the other one as a tensor, too")
    return bound


def _refuse_bools(name: str, *operands: object) -> None:
    if all(x is None or isinstance(x, bool) or getattr(x, "dtype", None) is dtypes.bool for x in operands):
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool': use | and & instead")


def _promoted_input(input: Array | Tensor, low: float, high: float | None) -> Array | Tensor:
    """`input` in the dtype of the result: numbers of a higher kind than an integer tensor's raise it."""
    if raw(input).dtype.kind == "f" and low.__class__ in NUMBERS and high.__class__ in NUMBERS:
        return input
    given = [x for x in (low, high) if x is not None]
    wanted = dtypes.result_dtype([raw(input), *given])
    if wanted.numpy == raw(input).dtype:
        return input
    from rushlight.ops.elementwise.convert import to_dtype

    return to_dtype(input, wanted) if isinstance(input, Tensor) else input.astype(wanted.numpy)


def _clamped(name: str, input: Array | Tensor, low: Any, high: Any) -> Array | Tensor:
    op, inputs, statics = _bounds(name, input, low, high)
    if statics:
        return clamp_numbers(_promoted_input(input, *statics), *statics)
    return op.call(*inputs)


def _clamped_inplace(name: str, input: Tensor, low: Tensor | float | None, high: Tensor | float | None) -> Tensor:
    op, inputs, statics = _bounds(name, input, low, high)
    if statics and not (raw(input).dtype.kind == "f" and low.__class__ in NUMBERS and high.__class__ in NUMBERS):
        wanted = dtypes.result_dtype([raw(input), *(x for x in statics if x is not None)])
        call.check_cast(name, np.empty(0, wanted.numpy), raw(input))
    return call.apply_inplace(op, inputs, statics)


clamp_numbers.into(_clamp_into)


@function(method=True, out=True, elementwise=True, aliases=("clip",))
def clamp(input: Tensor, min: Tensor | complex | None = None, max: Tensor | complex | None = None) -> Array | Tensor:
    """`input` limited to [min, max]; `max` wins where they cross.  input: (*) -> (*)

    min, max: numbers, tensors that broadcast with `input`, or one of them None. The gradient goes to `input` where it
    lies within the bounds or on them, else to the bound, if that is a tensor.

    >>> import rushlight as torch
    >>> torch.clamp(torch.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if isinstance(input, Tensor) and (min is not None or max is not None):
        kind = input._array.dtype.kind
        known = PLAIN if kind == "f" else WHOLE if kind == "i" else ()
        if min.__class__ in known and max.__class__ in known:
            return clamp_numbers(input, min, max)
    return _clamped("clamp", input, min, max)


@function(method=True, out=True, elementwise=True)
def clamp_min(input: Tensor, min: Tensor | complex) -> Array | Tensor:
    """`input`, but at least `min`, a number or tensor.  input: (*) -> (*)"""
    return _clamped("clamp_min", input, min, None)


@function(method=True, out=True, elementwise=True)
def clamp_max(input: Tensor, max: Tensor | complex) -> Array | Tensor:
    """`input`, but at most `max`, a number or tensor.  input: (*) -> (*)"""
    return _clamped("clamp_max", input, None, max)


def clamp_(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Limit `input` to [min, max] in place."""
    return _clamped_inplace("clamp", input, min, max)


def clamp_min_(input: Tensor, min: Tensor | float) -> Tensor:
    """Raise `input` to at least `min` in place."""
    return _clamped_inplace("clamp_min", input, min, None)


def clamp_max_(input: Tensor, max: Tensor | float) -> Tensor:
    """Lower `input` to at most `max` in place."""
    return _clamped_inplace("clamp_max", input, None, max)


publish_inplace(clamp_, "clamp", "", ("clip",))
publish_inplace(clamp_min_, "clamp_min", "", ())
publish_inplace(clamp_max_, "clamp_max", "", ())


# where -----------------------------------------------------------------------------------------------


@elementwise(aten=("where.self",), promote=None, ns=None, half=None, masks=("condition",),
             grads={"input": lambda g, condition: keep(g, condition),
                    "other": lambda g, condition: named.masked_fill(g, condition, 0)}, complex_half="moves")  # fmt: skip
def where_op(condition: Array, input: Array, other: Array) -> Array:
    """`input` where `condition` is true, else `other`; both of one dtype.  (*), (*), (*) -> (*)"""
    return backend.choose(condition, input, other)


def _condition(condition: Array | Tensor) -> Array | Tensor:
    require_tensors("where", condition=condition)
    kind = raw(condition).dtype
    if kind == np.uint8:
        caller.warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version. "
            "Use a boolean condition instead."
        )
        return condition.bool() if isinstance(condition, Tensor) else condition.astype(bool)
    if kind.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {older(kind)}"
        )
    return condition


def _as_operand(x: Array | Tensor | complex | None, wanted: dtype, argument: str) -> Array | Tensor:
    """A number, tensor or array in the dtype `wanted`."""
    if isinstance(x, Tensor):
        from rushlight.ops.elementwise.convert import to_dtype

        return x if x._array.dtype == wanted.numpy else to_dtype(x, wanted)
    return cast(x, wanted.numpy) if isinstance(x, ndarray) else fitted("where", x, wanted.numpy)


def _common_dtype(a: object, b: object) -> dtype:
    """The dtype in which two arrays or numbers meet."""
    return dtypes.result_dtype([a, b])


def where(condition: Any, input: Any = None, other: Array | Tensor | complex | None = None, *, out: Any = None) -> Any:
    """`input` where `condition` is true, else `other`, broadcast; numbers are taken too.  (*) bool, (*), (*) -> (*)

    With `condition` alone: the indices where it is not zero, as nonzero(as_tuple=True) gives them.

    >>> import rushlight as torch
    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    for argument, x in (("input", input), ("other", other)):
        if not isinstance(x, call.OPERANDS):
            raise TypeError(f"where(): argument '{argument}' must be Tensor or Number, not {kind_of(x)}")
    condition = _condition(condition)
    if isinstance(condition, Tensor):
        input, other = (x.item() if isinstance(x, np.number) else x for x in (input, other))
    a, b = raw(input), raw(other)
    if a.__class__ is ndarray and a.dtype.kind == "f" and (b.__class__ is float or b.__class__ is int):
        other = fitted("where", b, a.dtype)
    elif a.__class__ is not ndarray or b.__class__ is not ndarray or a.dtype is not b.dtype:
        wanted = _common_dtype(a, b)
        input, other = _as_operand(input, wanted, "input"), _as_operand(other, wanted, "other")
    call.check_overlaps("where", out, (condition, input, other))
    result = where_op(condition, input, other)
    return result if out is None else call.write_out("where", out, result, same=True)


publish(where, "where", "", (), False)


def _where_method(self: Tensor, condition: Tensor, other: Tensor | complex) -> Tensor:
    """This tensor where `condition` is true, else `other`."""
    return where(condition, self, other)


Tensor.where = known_as(_where_method, "where", "Tensor")  # type: ignore[method-assign]


# nan_to_num ------------------------------------------------------------------------------------------


@elementwise(
    aten=("nan_to_num(input, nan=None, posinf=None, neginf=None)",),
    promote="arith",
    half=None,
    aux=("finite",),
    planes=1,
    grads={"input": lambda g, finite: keep(g, finite)},
)
def nan_to_num(input: Array, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> tuple[Any, ...]:  # fmt: skip
    """`input` with numbers in the place of NaN (default 0) and of infinities (default the largest finite ones).

    input: (*) -> (*)

    >>> import rushlight as torch
    >>> torch.nan_to_num(torch.tensor([torch.nan, 1.0]), nan=-1.0)
    tensor([-1.,  1.])
    """
    if input.dtype.kind in "biu":
        return input.copy("K"), None
    if input.dtype.kind == "c":
        out = np.empty_like(input)
        for to, part in ((out.real, input.real), (out.imag, input.imag)):
            to[...] = _finite(part, nan, posinf, neginf)
    else:
        out = _finite(input, nan, posinf, neginf)
    return out, np.isfinite(input) if recording() else None


def _finite(x: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    """An array of real numbers with others in the place of those that are not finite."""
    limits = dtypes.finfo(dtypes.of(x.dtype))
    above, below = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    return backend.finite(x, 0.0 if nan is None else nan, above, below)


nan_to_num.check(tensor_first)
