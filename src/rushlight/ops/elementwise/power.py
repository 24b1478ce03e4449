"""Powers and roots: pow, float_power, square, sqrt, rsqrt, hypot."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import call
from rushlight.dispatch.compute import fitted
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.plan import held_number
from rushlight.dispatch.registry import elementwise, function, publish_inplace
from rushlight.kernels.dispatch import dense, in_float32_blocks, is_half, memory_order, rounded, up
from rushlight.ops.elementwise.arith import by, conj, own_conj
from rushlight.ops.elementwise.convert import cast, to_dtype
from rushlight.ops.elementwise.floats import is_float
from rushlight.ops.elementwise.shared import SMALL, dtype_of, floating_into, keep, nothing, over, result_type_of, times
from rushlight.ops.elementwise.unary import log
from rushlight.tensor import Tensor

ndarray = np.ndarray


def _has_slope(g: Any, input: Any, exponent: Any) -> bool:
    """Whether one kernel has the gradient of input ** exponent."""
    if g.__class__ is not ndarray or input.__class__ is not ndarray or exponent.__class__ not in (int, float):
        return False
    alike = g.dtype == input.dtype and g.shape == input.shape and is_float(g.dtype) and g.itemsize > 2
    return alike and exponent != 0 and exponent == exponent // 1 and kernels.has_whole_power(g.dtype, exponent - 1)


def is_expanded(x: Array) -> bool:
    """Whether elements repeat, or others lie between them."""
    return not (x.flags.forc or dense(x.transpose(memory_order(x))))


# Squares and roots -----------------------------------------------------------------------------------


def _square_raw(g: Array, input: Array) -> Array:
    if _has_slope(g, input, 2) and not is_expanded(input):  # of which the kernel would take a copy
        return kernels.whole_power_backward(g, input, 2)
    return times(g, own_conj(np.multiply(input, input.dtype.type(2))))


@elementwise(promote="arith", half=None, same_out=False)
def square(input: Array) -> Array:
    """input * input.  input: (*) -> (*); bool tensors give int64.

    >>> import rushlight as torch
    >>> torch.square(torch.tensor([-3.0, 2.0]))
    tensor([9., 4.])
    """
    x = input.astype(np.int64) if input.dtype == bool else input
    return np.multiply(x, x)


square.grad("input", raw=_square_raw)(lambda g, input: g * conj(input * 2))
square.into(floating_into(square.op, lambda x: backend.multiply(x, x, out=x)))


def _sqrt_raw(g: Array, out: Array) -> Array:
    return over(g, own_conj(by(out, 2.0)))


@elementwise(ufunc="sqrt", foreach=True)
def sqrt(input: Array) -> Array:
    """Square root.  input: (*) -> (*), NaN below 0; keeps its result for the backward.

    >>> import rushlight as torch
    >>> torch.sqrt(torch.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """


sqrt.grad("input", raw=_sqrt_raw)(lambda g, out: g / conj(out + out))


def _rsqrt_raw(g: Array, out: Array) -> Array:
    slope = by(times(out, by(out, out)), -0.5)
    return times(g, own_conj(slope))


def _goes_at_once(x: Array) -> bool:
    """Whether roots below 1 are left to their kernel: of 16 bits all are, which are rounded once."""
    return is_float(x.dtype) and (x.size >= SMALL or x.itemsize == 2)


@elementwise(promote="float", half=None, foreach=True)
def rsqrt(input: Array) -> Array:
    """1 / sqrt(input).  input: (*) -> (*); keeps its result for the backward."""
    if _goes_at_once(input):
        return backend.reciprocal_root(input)
    root = np.asarray(backend.sqrt(input))
    return np.divide(1, root, out=root)


rsqrt.grad("input", raw=_rsqrt_raw, blocks=True)(lambda g, out: g * conj(out * out * out * -0.5))


def _rsqrt_into(x: Array) -> None:
    if _goes_at_once(x):
        backend.reciprocal_root(x, out=x)
    else:
        backend.sqrt(x, out=x)
        backend.true_divide(1, x, out=x)


rsqrt.into(floating_into(rsqrt.op, _rsqrt_into))


# pow -------------------------------------------------------------------------------------------------

# Exponents for which arithmetic is faster than pow.
QUICK: dict[Any, Any] = {
    1: lambda x: x.copy(),
    2: lambda x: np.multiply(x, x),
    3: lambda x: np.multiply(x, np.multiply(x, x)),
    -1: lambda x: np.true_divide(1, x),
    -2: lambda x: np.true_divide(1, np.multiply(x, x)),
}
# Of -inf and -0 roots are other numbers than powers are: PyTorch takes roots for Python's numbers alone.
ROOTS: dict[Any, Any] = {0.5: np.sqrt, -0.5: lambda x: np.true_divide(1, np.sqrt(x))}


FEW = (3, -2)  # those of several steps, which one kernel takes at once
WHOLE = 1 << 20  # exponents up to which whole numbers are sought among them
ONCE = (1, 2, -1)  # exponents of which a power is rounded once
HALF_ROOTS: dict[Any, Any] = {0.5: np.sqrt, -0.5: kernels.reciprocal_root}  # of 16 bits, rounded once


def _is_number_of(dtype: np.dtype[Any], exponent: Any) -> bool:
    """Whether an exponent is one number, which a dtype holds; float16 takes any as it holds it."""
    if exponent.__class__ is ndarray:
        return not exponent.ndim and exponent.dtype == dtype
    return bool(dtype == dtypes.float16.numpy or float(dtype.type(exponent)) == exponent)


def _power_of_halves(x: Array, exponent: Array | float) -> Array:
    """Powers of 16 bits: in float32, rounded once."""
    by: Any = exponent.item() if exponent.__class__ is ndarray and not np.ndim(exponent) else exponent
    if by.__class__ is not ndarray and by in ONCE:
        return np.asarray(QUICK[by](x)).astype(x.dtype, copy=False)
    if by.__class__ is not ndarray and by == by // 1 and kernels.has_whole_power(x.dtype, by):
        return kernels.whole_power(x, int(by))
    number = exponent.__class__ is not ndarray
    if number and by in HALF_ROOTS:
        return np.asarray(HALF_ROOTS[by](x))
    if _is_number_of(x.dtype, exponent) and by not in QUICK:
        found = np.sqrt(x) if by == 0.5 else np.power(x, x.dtype.type(by))
        return np.asarray(found if number else _no_roots(x, by, found))
    if exponent.__class__ is ndarray:
        found = in_float32_blocks(_power, x, exponent)
        return rounded(np.asarray(_power(*up(x, exponent))), x.dtype) if found is None else found
    found = in_float32_blocks(lambda a: _power(a, exponent), x)
    return rounded(np.asarray(_power(up(x)[0], exponent)), x.dtype) if found is None else found


def _power(x: Array, exponent: Array | float) -> Array:
    if is_half(x.dtype):
        return _power_of_halves(x, exponent)
    if x.dtype.kind in "iu":
        return _integer_power(x, exponent)
    by: Any = exponent
    number = by.__class__ is not ndarray
    if number or by.ndim == 0:
        by = by if number else by.item()
        if by in FEW and x.size > SMALL and is_float(x.dtype):
            return kernels.whole_power(x, int(by))
        quick = QUICK.get(by) or (ROOTS.get(by) if number or x.dtype.kind == "c" else None)
        if quick is not None:
            return np.asarray(quick(x)).astype(x.dtype, copy=False)
        if is_float(x.dtype) and abs(by) <= WHOLE and by == by // 1:
            return _whole_power(x, int(by))
    if x.dtype.kind == "c":
        return _complex_power(x, exponent)
    return _no_roots(x, exponent, np.power(x, exponent))


def _whole_power(x: Array, exponent: int) -> Array:
    """Powers whose exponents are whole numbers: NumPy takes 20 times as long where one element is below 0."""
    if kernels.has_whole_power(x.dtype, exponent):
        return kernels.whole_power(x, exponent)
    out = np.abs(x, out=np.empty_like(x))
    np.power(out, x.dtype.type(exponent), out=out)
    return np.copysign(out, x, out=out) if exponent % 2 else out


def _no_roots(x: Array, exponent: Any, out: Any) -> Array:
    """Powers whose exponents are 0.5: NumPy takes roots where one exponent is that of many numbers."""
    if exponent.__class__ is ndarray and exponent.shape == out.shape and exponent.flags.c_contiguous:
        return out
    half = exponent == 0.5
    if not np.any(half):
        return out
    if np.ndim(half) == 0:
        out = np.abs(out, out=out if out.__class__ is ndarray else None)
        below = x == -np.inf
        return np.where(below, out.dtype.type(np.inf), out) if np.any(below) else out
    out = np.where(half, np.abs(out), out)
    return np.where(half & (x == -np.inf), out.dtype.type(np.inf), out)


def _complex_power(x: Any, exponent: Any) -> Array:
    """Complex powers: 1 where the exponent is 0, and 0 of an infinity where it is below 0, of which NumPy has NaN."""
    out = np.where(exponent == 0, x.dtype.type(1), np.power(x, exponent))
    vanishing = np.isinf(x) & (np.real(exponent) < 0)
    return np.where(vanishing, x.dtype.type(0), out) if vanishing.any() else out


def _integer_power(x: Array, exponent: Any) -> Array:
    """Integer powers: those with negative exponents are 1, -1 or 0."""
    if x.dtype.kind == "u" or not (exponent < 0).any():
        return np.power(x, exponent)
    sign = np.where(exponent % 2 == 0, 1, x)
    below = np.where(np.abs(x) == 1, sign, 0)
    return np.where(exponent >= 0, np.power(x, np.maximum(exponent, 0)), below).astype(x.dtype)


def _check_exponent(operands: list[Any]) -> None:
    base, exponent = operands
    if isinstance(exponent, int) and exponent < 0 and getattr(base, "dtype", np.dtype(float)).kind in "iub":
        raise RuntimeError("Integers to negative integer powers are not allowed: convert the base to a floating-point "
                           "dtype, as in input.float()")  # fmt: skip
    _exponent_that_fits(base, exponent)


def _exponent_that_fits(base: Array | float, exponent: Array | float) -> None:
    """Raise RuntimeError for an exponent that is no number of the base's dtype of few bits."""
    dtype = getattr(base, "dtype", None)
    if isinstance(exponent, int) or (dtype in dtypes.HALVES and isinstance(exponent, float)):
        if dtype is not None and (dtype.kind in "iu" or dtype in dtypes.HALVES):
            fitted("pow", exponent, dtype, True)


def base_gradient(g: Array | Tensor, input: Array | Tensor | float, other: Array | Tensor | float) -> Any:
    """The gradient of input ** other with respect to `input`: 0 where the exponent is 0."""
    if isinstance(other, (int, float, complex)):
        if other == 0:
            return nothing(g)
        if other == 2:
            return g * conj(input * 2)
        if other == 1 and not isinstance(g, Tensor):  # a tensor's slope of 1 still depends on `input`, if with slope 0
            return g
        return g * conj(by(pow_op(input, other - 1), other))
    return keep(g * conj(other * pow_op(input, other - 1)), other != 0)


def _base_raw(g: Array, input: Array, other: Array | float) -> Array:
    if _has_slope(g, input, other):
        return kernels.whole_power_backward(g, input, int(other))
    if other.__class__ is int and other == 2:
        return _square_raw(g, input)
    return base_gradient(g, input, other)


def exponent_gradient(
    g: Array | Tensor, input: Array | Tensor | float, other: Any, out: Array | Tensor
) -> Array | Tensor:
    """The gradient of input ** other with respect to `other`: 0 where the base is 0 and the exponent is not below 0."""
    base = in_complex(input, dtype_of(out)) if dtype_of(out).kind == "c" else in_dtype(input, dtype_of(out))
    logarithm = log_of(base) if isinstance(base, (int, float, complex)) else log(base)
    exponent = other.real if dtype_of(other).kind == "c" else other
    return keep(g * conj(by(out, logarithm)), ~((input == 0) & (exponent >= 0)))


def in_complex(x: Array | Tensor | complex, dtype: np.dtype[Any]) -> Array | Tensor | complex:
    """A number, array or tensor in a complex dtype, where negative numbers have logarithms."""
    if isinstance(x, (int, float, complex)):
        return complex(x)
    return x if dtype_of(x).kind == "c" else cast(x, dtype)


def in_dtype(x: Array | Tensor | float, dtype: np.dtype[Any]) -> Any:
    """An array or tensor in a dtype, a number as it is: what is computed of one operand has the precision of the result."""
    if isinstance(x, (int, float, complex)) or dtype_of(x) == dtype:
        return x
    return cast(x, dtype)


def log_of(x: complex) -> complex:
    """The logarithm of a number as NumPy has it for arrays: -inf at 0 and NaN below."""
    if isinstance(x, complex):
        return cmath.log(x) if x else complex(-math.inf)
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


@elementwise(
    aten=("pow.Tensor_Tensor",),
    aten_call="power",
    promote="arith",
    saved_as={"exponent": "other"},
    ns=None,
    refuse="b",
    half=None,
    knows_numbers=True,
    takes_number=held_number,
)
def pow_op(input: Array, other: Array) -> Array:
    """input ** other, broadcast.  (*), (*) -> (*)"""
    return _power(input, other)


pow_op.check(_check_exponent)
pow_op.grad("input", raw=_base_raw, blocks=True)(base_gradient)
pow_op.grad("other")(exponent_gradient)


@pow_op.tangent
def _(
    input: Tensor | float, other: Tensor | float, out: Tensor, t_input: Tensor | None, t_other: Tensor | None
) -> Tensor:
    # The formulas multiply by the conjugate of a slope.  Their own adjoint would be 0 * NaN where they choose 0.
    terms = []
    if t_input is not None:
        terms.append(conj(base_gradient(conj(t_input), input, other)))
    if t_other is not None:
        terms.append(conj(exponent_gradient(conj(t_other), input, other, out)))
    return sum(terms[1:], terms[0])


@function(name="pow", method=True, out=True, elementwise=True)
def power(input: Tensor | complex, exponent: Tensor | complex) -> Array | Tensor:
    """input ** exponent, broadcast; either may be a number.  (*), (*) -> (*)

    Raises RuntimeError for integers to negative integer powers.

    >>> import rushlight as torch
    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """
    return pow_op(input, exponent)


def pow_(input: Tensor, exponent: Tensor | complex) -> Tensor:
    """input **= exponent."""
    return call.apply_inplace(pow_op.op, (input, exponent), ())


publish_inplace(pow_, "pow", "", ())


def _wide(input: Tensor, exponent: Tensor | complex) -> dtype:
    complex_ = result_type_of(input, exponent).category == dtypes.COMPLEX
    return dtypes.complex128 if complex_ else dtypes.float64


def _widened(x: Any, wide: Any) -> object:
    return to_dtype(x, wide) if isinstance(x, Tensor) else x


@function(method=True, out="same", elementwise=True)
def float_power(input: Tensor, exponent: Tensor | complex) -> Tensor:
    """input ** exponent in double precision (complex128 if either is complex), broadcast.  (*), (*) -> (*)"""
    wide = _wide(input, exponent)
    return pow_op(_widened(input, wide), _widened(exponent, wide))


def float_power_(input: Tensor, exponent: Tensor | complex) -> Tensor:
    """float_power in place.  Raises RuntimeError unless the tensor is of the result's dtype."""
    wide = _wide(input, exponent)
    if raw(input).dtype != wide.numpy:
        raise RuntimeError(f"the base given to float_power_ has dtype {dtypes.of(raw(input).dtype).name} but the "
                           f"operation's result requires dtype {wide.name}")  # fmt: skip
    return call.apply_inplace(pow_op.op, (input, _widened(exponent, wide)), ())


publish_inplace(float_power_, "float_power", "", ())


@elementwise(promote="arith", half=None, refuse="bic", strict=True)
def hypot(input: Array, other: Array) -> Array:
    """sqrt(input^2 + other^2), broadcast, without overflow.  (*), (*) -> (*)"""
    return backend.hypot(input, other)


hypot.grad("input")(lambda g, input, out: g * (input / out))
hypot.grad("other")(lambda g, other, out: g * (other / out))
