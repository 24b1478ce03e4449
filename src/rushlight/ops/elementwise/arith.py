"""Arithmetic: addition, subtraction, multiplication, negation, conjugation, and products that are added."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtypes import COMPLEX_KINDS, is_complex_half
from rushlight.dispatch import call, costs
from rushlight.dispatch.compute import FLOAT32, FLOAT64, LARGEST, cast, compute, fitted
from rushlight.dispatch.declare import Array
from rushlight.dispatch.keeping.shown import always
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import elementwise, function, inplace_of, publish, publish_inplace
from rushlight.kernels.dispatch import is_half, of_halves, summed_in, up
from rushlight.kernels.rows import across
from rushlight.ops.elementwise.old_orders import in_old_order
from rushlight.ops.elementwise.shared import factor, in_blocks, require_tensors, result_type_of
from rushlight.overrides.public import Unnoticed, public_of, retried
from rushlight.tensor import Tensor


def conj(x: object) -> Any:
    """Complex conjugate of an array, tensor or number; of anything real, itself."""
    if x.__class__ is np.ndarray or isinstance(x, np.generic):
        return np.conjugate(x) if is_complex_half(x.dtype) else x.conj() if x.dtype.kind == "c" else x
    if isinstance(x, Tensor):
        return conj_op(x) if x._array.dtype.kind in COMPLEX_KINDS else x
    return x.conjugate() if isinstance(x, complex) else x


def own_conj(t: Array | Tensor) -> Any:
    """Complex conjugate of an array that is a temporary of a formula's own, in its memory."""
    return np.conjugate(t, out=t) if t.__class__ is np.ndarray and t.dtype.kind == "c" else conj(t)


def _conjugated(x: Array) -> None:
    if x.dtype.kind == "c":
        backend.conjugate(x, out=x)


@elementwise(promote="arith", half=None, ns=None, name="conj_physical",
             grads={"input": lambda g: conj(g)}, complex_half="widens")  # fmt: skip
def conj_op(input: Array) -> Array:
    """Complex conjugate of each element, computed.  input: (*) -> (*)"""
    return backend.conjugate(input) if input.dtype.kind == "c" else input.copy()


conj_op.into(_conjugated)
publish_inplace(inplace_of(conj_op.op), "conj_physical", "", ())


@function(method=True, out="same", elementwise=True)
def conj_physical(input: Tensor) -> Tensor:
    """Complex conjugate of each element, computed; a real tensor is returned as it is.  input: (*) -> (*)"""
    require_tensors("conj_physical", input=input)
    return conj_op(input) if raw(input).dtype.kind in COMPLEX_KINDS else input


INVERTING = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."


def _no_negative(words: str) -> RuntimeError:
    """What is raised for bools, instead of that they are none of the dtypes that `words` names."""
    return RuntimeError(f"Negation, the `-` operator, on a bool tensor is not supported. {INVERTING}")


@elementwise(linear=True, ufunc="negative", promote="arith", aliases=("negative",), refuse="b", refusal=_no_negative,
             grads={"input": lambda g: -g}, complex_half="widens", foreach=True)  # fmt: skip
def neg(input: Array) -> Array:
    """-input.  input: (*) -> (*).  Raises RuntimeError for bool tensors: use ~ or logical_not() there."""


@function(method=True)
def positive(input: Tensor) -> Tensor:
    """`input` itself.  Raises RuntimeError for bool tensors."""
    require_tensors("positive", input=input)
    if raw(input).dtype == bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def by(g: Array | Tensor, x: Array | Tensor | complex) -> Any:
    """g * x: where `x` is a number, and `g` an array of 16-bit numbers, as the operator has it."""
    if g.__class__ is np.ndarray and g.itemsize == 2:
        found = of_halves(np.multiply, g, x)
        if found is not None:
            return found
    if x.__class__ is np.ndarray or g.__class__ is not np.ndarray or exact(g, x):
        return g * x
    return mul(g, x)


def exact(g: Array, x: object) -> bool:
    """Whether NumPy takes the number `x` beside `g` as the operator does."""
    return (x.__class__ is float or x.__class__ is int) and g.itemsize > 2 and g.dtype.kind in "fc"


# Addition --------------------------------------------------------------------------------------------


@elementwise(
    saved_as={"alpha": always(1)},
    aten=("add.Tensor",),
    linear=True,
    ufunc="add",
    promote="arith",
    ns=None,
    grads={"input": lambda g: g, "other": lambda g: g},
    complex_half="widens",
    cost=costs.elements,
    numbers=True,
    again=20,
    behind="sum",
    over=True,
)
def add(input: Array, other: Array) -> Array:
    """input + other, broadcast.  (*), (*) -> (*)"""


add.large(across(np.add))


@elementwise(aten=("add.Tensor(input, other, *, alpha=1)",), linear=True, promote="arith", half=None, ns=None,
             grads={"input": lambda g: g, "other": lambda g, alpha: by(g, conj(alpha))}, complex_half="widens")  # fmt: skip
def add_scaled(input: Array, other: Array, alpha: int) -> Array:
    """input + alpha * other, broadcast.  (*), (*) -> (*)"""
    if _pairs(input, other):
        return backend.scaled_sum(input, other, float(alpha))
    if is_half(input.dtype):  # in float32, rounded once
        x, y = up(input, other)
        return np.asarray(x + y * np.float32(alpha)).astype(input.dtype)
    scaled = backend.multiply(other, cast(alpha, other.dtype))
    whole = scaled.__class__ is np.ndarray and input.shape == scaled.shape  # of arrays of no dimension it is a number
    return backend.add(input, scaled, out=scaled if whole else None)


def _pairs(x: Array, y: Array) -> bool:
    """Whether there is a kernel for the arrays: they have one shape and one dtype of real numbers."""
    return x.shape == y.shape and x.dtype == y.dtype and bool(x.ndim) and (x.dtype.kind == "f" or is_half(x.dtype))


def _plus_scaled(x: Array, *rest: Any) -> None:
    other, alpha = rest
    x += other * alpha


_add_in_blocks = in_blocks(add_scaled.op, _plus_scaled)


def _add_into(x: Array, *rest: Any) -> None:
    other, alpha = rest
    if other.__class__ is np.ndarray and _pairs(x, other):
        backend.scaled_sum(x, other, float(alpha), out=x)
    else:
        _add_in_blocks(x, other, alpha)


add_scaled.into(_add_into)


def _takes_fractions(x: Any) -> bool:
    """Whether `x` is an array of float32 or float64 numbers."""
    return x.__class__ is np.ndarray and x.dtype.kind == "f" and x.dtype.itemsize > 2


def check_alpha(alpha: Any, *operands: object) -> float:
    """`alpha` as a number.  Raises RuntimeError where its kind is above that of the result."""
    if alpha.__class__ is float and -LARGEST <= alpha <= LARGEST and _takes_fractions(raw(operands[0])):
        return alpha
    alpha = factor("alpha", alpha)
    category = result_type_of(*operands).category
    if isinstance(alpha, bool):
        if category != dtypes.BOOL:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
    elif category <= dtypes.INTEGER and isinstance(alpha, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    elif category < dtypes.COMPLEX and isinstance(alpha, complex):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    elif not isinstance(alpha, (int, float, complex)):
        raise TypeError(f"argument 'alpha' must be Number, not {type(alpha).__name__}")
    fitted("alpha", alpha, result_type_of(*operands).numpy, True)
    return alpha


def numbers(*operands: Tensor | complex) -> bool:
    """Whether all operands are Python's numbers."""
    return all(isinstance(x, (int, float, complex)) for x in operands)


def _finish(name: str, result: Tensor, out: Any) -> Tensor:
    return result if out is None else call.write_out(name, out, result)


def _given(alpha: object, out: object) -> dict[str, Any]:
    """The keywords of `add` and `sub` that were given."""
    return {**({} if alpha == 1 else {"alpha": alpha}), **({} if out is None else {"out": out})}


def add_public(
    input: Tensor, other: Tensor | complex, *old: object, alpha: complex = 1, out: Tensor | None = None
) -> Any:
    """input + alpha * other, broadcast.  (*), (*) -> (*)

    >>> import rushlight as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=0.5)
    tensor([ 6., 12.])
    """
    try:
        if old:
            return in_old_order(add_public, (input, other, *old), _given(alpha, out))
        if alpha.__class__ is int and alpha == 1:
            return add(input, other) if out is None else add(input, other, out=out)
        alpha = check_alpha(alpha, input, other)
        call.check_overlaps("add", out, (input, other))
        return _finish(
            "add", add(input, other * alpha) if numbers(input, other) else add_scaled(input, other, alpha), out
        )
    except Unnoticed as error:
        return retried(public_of(add_public), error, input, other, **_given(alpha, out))


def add_(input: Tensor, other: Tensor | complex, *old: object, alpha: object = 1) -> Tensor:
    """input += alpha * other."""
    if old:
        return in_old_order(add_, (input, other, *old), _given(alpha, None))
    if alpha.__class__ is int and alpha == 1:
        return call.apply_inplace(add.op, (input, other), ())
    return call.apply_inplace(add_scaled.op, (input, other), (check_alpha(alpha, input, other),))


publish(add_public, "add", "", (), True)
publish_inplace(add_, "add", "", ())


# Subtraction -----------------------------------------------------------------------------------------


def refuse_bools(operands: list[Any]) -> None:
    """Raise RuntimeError if any operand is bool: subtraction is not defined there."""
    bools = [isinstance(x, (bool, np.bool_)) or getattr(x, "dtype", None) == np.bool_ for x in operands]
    if all(bools):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                           "`logical_xor()` operator instead.")  # fmt: skip
    if any(bools):
        raise RuntimeError(f"Subtraction, the `-` operator, with a bool tensor is not supported. {INVERTING}")


@elementwise(
    saved_as={"alpha": always(1)},
    aten=("sub.Tensor",),
    linear=True,
    ufunc="subtract",
    promote="arith",
    ns=None,
    grads={"input": lambda g: g, "other": lambda g: -g},
    complex_half="widens",
    cost=costs.elements,
    numbers=True,
)
def sub(input: Array, other: Array) -> Array:
    """input - other, broadcast.  (*), (*) -> (*)"""


sub.large(across(np.subtract))


@elementwise(
    aten=("rsub.Tensor", "rsub.Scalar"),
    linear=True,
    name="rsub",
    half=None,
    promote="arith",
    ns=None,
    grads={"input": lambda g: -g, "other": lambda g: g},
    complex_half="widens",
)
def subtracted(input: Array, other: Array) -> Array:
    """other - input, broadcast.  (*), (*) -> (*)"""
    return np.subtract(other, input)


sub.check(refuse_bools)
subtracted.check(refuse_bools)


def sub_public(
    input: Tensor | complex, other: Tensor | complex, *old: object, alpha: object = 1, out: object = None
) -> Tensor:
    """input - alpha * other, broadcast.  (*), (*) -> (*).  Raises RuntimeError for bool tensors."""
    try:
        if old:
            return in_old_order(sub_public, (input, other, *old), _given(alpha, out))
        if alpha.__class__ is int and alpha == 1:
            return sub(input, other) if out is None else sub(input, other, out=out)
        refuse_bools([raw(input), raw(other)])
        alpha = check_alpha(alpha, input, other)
        call.check_overlaps("sub", out, (input, other))
        return _finish(
            "sub", sub(input, other * alpha) if numbers(input, other) else add_scaled(input, other, -alpha), out
        )
    except Unnoticed as error:
        return retried(public_of(sub_public), error, input, other, **_given(alpha, out))


def sub_(input: Tensor, other: Tensor | complex, *old: object, alpha: object = 1) -> Tensor:
    """input -= alpha * other."""
    if old:
        return in_old_order(sub_, (input, other, *old), _given(alpha, None))
    refuse_bools([raw(input), raw(other)])
    if alpha.__class__ is int and alpha == 1:
        return call.apply_inplace(sub.op, (input, other), ())
    return call.apply_inplace(add_scaled.op, (input, other), (-check_alpha(alpha, input, other),))


publish(sub_public, "sub", "", ("subtract",), True)
publish_inplace(sub_, "sub", "", ("subtract",))


@function()
def rsub(input: Tensor, other: Tensor | complex, alpha: complex = 1) -> Tensor:
    """other - alpha * input, broadcast.  (*), (*) -> (*)"""
    require_tensors("rsub", input=input)
    if alpha.__class__ is int and alpha == 1:
        return subtracted(input, other)
    refuse_bools([raw(input), raw(other)])
    return add_scaled(other, input, -check_alpha(alpha, input, other))


# Multiplication --------------------------------------------------------------------------------------


@elementwise(
    aten=("mul.Tensor",),
    factors=(0, 1),
    ufunc="multiply",
    promote="arith",
    aliases=("multiply",),
    grads={"input": lambda g, other: by(g, conj(other)), "other": lambda g, input: by(g, conj(input))},
    complex_half="widens",
    cost=costs.elements,
    scales=np.multiply,
    numbers=True,
    inline={"input": "g * {other}", "other": "g * {input}"},
    again=20,
    behind="product",
    over=True,
)
def mul(input: Array, other: Array) -> Array:
    """input * other, broadcast.  (*), (*) -> (*)

    >>> import rushlight as torch
    >>> torch.mul(torch.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """


mul.large(across(np.multiply))


# Products and quotients that are added ---------------------------------------------------------------


@elementwise(aten=("addcmul(input, tensor1, tensor2, *, value=1)",), promote="arith", half=None, ns=None, strict=True, refuse="b",
             grads={"input": lambda g: g,
                    "tensor1": lambda g, tensor2, value: g * conj(_scaled(tensor2, value)),
                    "tensor2": lambda g, tensor1, value: g * conj(_scaled(tensor1, value))}, complex_half="widens")  # fmt: skip
def addcmul_op(input: Array, tensor1: Array, tensor2: Array, value: float) -> Array:
    """input + value * tensor1 * tensor2, broadcast.  (*), (*), (*) -> (*)"""
    return backend.add_product(input, tensor1, tensor2, _factor_of(value, input))


def _scaled(x: Array | Tensor, value: float) -> Array | Tensor:
    return x if value.__class__ is int and value == 1 else by(x, value)


def _factor_of(value: float, x: Array) -> Any:
    """A factor in what `x` is computed in; None of 1."""
    return cast(value, summed_in(x.dtype)) if value != 1 else None


def _addcmul_into(x: Array, a: Array, b: Array, value: object) -> None:
    if is_half(x.dtype):  # rounded once
        x[...] = compute(addcmul_op.op, [x, a, b], (value,))[0][0]
        return
    t = a * b
    if value != 1:
        t *= value
    x += t


addcmul_op.into(in_blocks(addcmul_op.op, _addcmul_into))


def _value(value: Any, *tensors: object) -> Tensor | complex:
    """The factor as a number of the result's kind."""
    if value.__class__ is int and value == 1:
        return 1
    if value.__class__ is float and -LARGEST <= value <= LARGEST and _are_floats(tensors):
        return value
    require_tensors("addcmul", input=tensors[0], tensor1=tensors[1], tensor2=tensors[2])
    value, dtype = factor("value", value), result_type_of(*tensors)
    fitted("addcmul", value, dtype.numpy)
    return int(value) if dtype.category <= dtypes.INTEGER else value


def _are_floats(tensors: tuple[Any, ...]) -> bool:
    """Whether all are tensors of float32 or float64."""
    for x in tensors:
        if not isinstance(x, Tensor) or (x._held.dtype is not FLOAT32 and x._held.dtype is not FLOAT64):
            return False
    return True


@function(method=True, out=True, elementwise=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *old: object, value: Tensor | complex = 1) -> Tensor:
    """input + value * tensor1 * tensor2, broadcast.  (*), (*), (*) -> (*)"""
    if old:
        return in_old_order(addcmul, (input, tensor1, tensor2, *old), {"value": value})
    return addcmul_op(input, tensor1, tensor2, _value(value, input, tensor1, tensor2))


def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *old: object, value: object = 1) -> Tensor:
    """input += value * tensor1 * tensor2."""
    if old:
        return in_old_order(addcmul_, (input, tensor1, tensor2, *old), {"value": value})
    return call.apply_inplace(addcmul_op.op, (input, tensor1, tensor2), (_value(value, input, tensor1, tensor2),))


publish_inplace(addcmul_, "addcmul", "", ())


@elementwise(aten=("addcdiv(input, tensor1, tensor2, *, value=1)",), promote="arith", half=None, ns=None, strict=True, refuse="b",
             grads={"input": lambda g: g, "tensor1": lambda g, tensor2, value: _scaled(g, conj(value)) / conj(tensor2),
                    "tensor2": lambda g, tensor1, tensor2, value: -g * conj(
                        _scaled(tensor1, value) / (tensor2 * tensor2))})  # fmt: skip
def addcdiv_op(input: Array, tensor1: Array, tensor2: Array, value: float) -> Array:
    """input + value * tensor1 / tensor2, broadcast.  (*), (*), (*) -> (*)"""
    return backend.add_quotient(input, tensor1, tensor2, _factor_of(value, input))


def _addcdiv_into(x: Array, a: Array, b: Array, value: Any) -> None:
    if is_half(x.dtype):
        x[...] = compute(addcdiv_op.op, [x, a, b], (value,))[0][0]
        return
    t = a / b
    if value != 1:
        t *= value
    x += t


addcdiv_op.into(in_blocks(addcdiv_op.op, _addcdiv_into))


def _divisible(value: Tensor | complex, *tensors: object) -> float:
    """The factor as a number.  Raises RuntimeError where the quotient would be one of integers."""
    require_tensors("addcdiv", input=tensors[0], tensor1=tensors[1], tensor2=tensors[2])
    if all(dtypes.of(raw(t).dtype).category <= dtypes.INTEGER for t in tensors[1:]):
        raise RuntimeError("addcdiv(): Integer division with addcdiv is no longer supported: convert tensor1 or tensor2 to a "
                           "floating-point dtype, as in tensor1.float()")  # fmt: skip
    found = factor("value", value)
    if isinstance(found, complex) and not any(dtypes.of(raw(t).dtype).is_complex for t in tensors):
        raise RuntimeError(f"addcdiv(): value={found} is complex, and the tensors are real: make one of them complex")
    return found


@function(method=True, out=True, elementwise=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *old: object, value: Tensor | complex = 1) -> Tensor:
    """input + value * tensor1 / tensor2, broadcast.  (*), (*), (*) -> (*).  Raises RuntimeError for integers."""
    if old:
        return in_old_order(addcdiv, (input, tensor1, tensor2, *old), {"value": value})
    return addcdiv_op(input, tensor1, tensor2, _divisible(value, input, tensor1, tensor2))


def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *old: object, value: Any = 1) -> Tensor:
    """input += value * tensor1 / tensor2."""
    if old:
        return in_old_order(addcdiv_, (input, tensor1, tensor2, *old), {"value": value})
    return call.apply_inplace(addcdiv_op.op, (input, tensor1, tensor2), (_divisible(value, input, tensor1, tensor2),))


publish_inplace(addcdiv_, "addcdiv", "", ())
