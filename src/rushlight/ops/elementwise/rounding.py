"""Magnitude, sign and rounding: abs, sign, sgn, floor, ceil, round, trunc, frac, copysign, nextafter, frexp, ldexp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtypes import is_complex, is_complex_half
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.compute import refuse_complex32
from rushlight.dispatch.declare import Array
from rushlight.dispatch.keeping.blocks import in_blocks
from rushlight.dispatch.keeping.sides import of_zero
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import elementwise, function, op, publish_inplace
from rushlight.dispatch.results import named
from rushlight.kernels.dispatch import in_float32_blocks, is_half, recast, up
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.elementwise.convert import to_dtype
from rushlight.ops.elementwise.power import pow_op
from rushlight.ops.elementwise.shared import complex_refused, keep, nothing, require_tensors, tensor_first, times
from rushlight.tensor import Tensor


def _unordered(name: str) -> Callable[[str], Exception]:
    """What is raised for complex numbers, which no whole number is beside, and for bools."""
    return complex_refused(NotImplementedError, f"{name} is not supported for complex inputs")


# Magnitude and sign ----------------------------------------------------------------------------------


@elementwise(
    promote="arith",
    half=None,
    aliases=("absolute",),
    same_out="real",
    refuse="b",
    inplace=False,
    complex_half="widens",
    foreach=True,
    sides=of_zero,
)
def abs(input: Array) -> Array:
    """Absolute value; of complex tensors, real.  input: (*) -> (*)

    >>> import rushlight as torch
    >>> torch.abs(torch.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """
    return np.absolute(input)


def _abs_raw(g: Array, input: Array) -> Any:
    return in_blocks(_signed, g, g, input) if input.dtype == np.int8 else times(g, _sign(input))


def _signed(g: Array, sides: Array) -> Array:
    """`g` times -1, 0 or 1, given in bytes.  (*), (*) -> (*)"""
    signs = sides.astype(g.dtype)
    return np.multiply(g, signs, out=signs)


abs.grad("input", raw=_abs_raw)(lambda g, input: g * sgn(input))  # bytes in its place: see `sides`


def _sign(x: Any) -> Array:
    """The sign of real numbers (0 for NaN), x / |x| of complex ones, 0 for 0; bools as they are."""
    if is_complex_half(x.dtype):
        return _sign(x.astype(np.complex64))
    if x.dtype.kind == "c":
        size = np.asarray(np.absolute(x))
        out = np.asarray(np.true_divide(x, size, where=size != 0, out=np.zeros(size.shape, x.dtype)))
        return out
    if x.dtype.kind in "iu":
        return np.sign(x)
    if x.dtype.kind == "b":
        return x.copy()
    return backend.sign(x)


def _abs_inplace(input: Tensor) -> Tensor:
    if isinstance(input, Tensor) and is_complex(input._array.dtype):
        raise RuntimeError("In-place abs is not supported for complex tensors: their absolute values are real")
    return call.apply_inplace(abs.op, (input,), ())


publish_inplace(_abs_inplace, "abs", "", ("absolute",))
abs.into(lambda x: np.absolute(x, out=x))


@elementwise(
    promote="arith",
    half=None,
    refuse="c",
    grads={"input": lambda g: nothing(g)},
    foreach=True,
    refusal=complex_refused(
        NotImplementedError,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    ),
)
def sign(input: Array) -> Array:
    """-1, 0 or 1; 0 for NaN.  input: (*) -> (*).  For complex tensors use `sgn`."""
    return _sign(input)


@elementwise(promote="arith", half=None, complex_half="widens")
def sgn(input: Array) -> Array:
    """The sign; of complex numbers input / |input|, 0 for 0.  input: (*) -> (*)"""
    return _sign(input)


@sgn.grad("input")
def sgn_slope(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor) -> Array | Tensor:
    """The gradient of sgn, which is its tangent as well: the part across the number, by its size; 0 at 0."""
    dtype = raw(input).dtype
    if is_complex_half(dtype):
        refuse_complex32("sgn_backward")
    if dtype.kind != "c":
        return nothing(g)
    along = (g * conj(out)).real
    return keep((g - out * along) / abs(input), input != 0)


sgn.tangent(lambda input, out, t_input: sgn_slope(t_input, input, out))


@elementwise(promote="arith", half=None, refuse="c")
def signbit(input: Array) -> Array:
    """Whether the sign bit is set: True for -0.0 too.  input: (*) -> (*) bool"""
    return np.signbit(input) if input.dtype.kind in "fV" else np.less(input, 0)


# Rounding --------------------------------------------------------------------------------------------


def _rounded(ufunc: str) -> Any:
    fn = getattr(np, ufunc)

    def forward(x: Array) -> Array:
        return x.copy() if x.dtype.kind in "iu" else fn(x)

    return forward


def _into(ufunc: np.ufunc) -> Callable[..., Any]:
    def into(x: Array) -> None:
        if x.dtype.kind not in "iu":
            ufunc(x, out=x)

    return into


@elementwise(promote="arith", half=None, refuse="bc", refusal=_unordered("floor"), grads={"input": lambda g: nothing(g)},
             foreach=True)  # fmt: skip
def floor(input: Array) -> Array:
    """The largest whole number not above each element.  input: (*) -> (*)"""
    return _floor(input)


@elementwise(promote="arith", half=None, refuse="bc", refusal=_unordered("ceil"), grads={"input": lambda g: nothing(g)},
             foreach=True)  # fmt: skip
def ceil(input: Array) -> Array:
    """The smallest whole number not below each element.  input: (*) -> (*)"""
    return _ceil(input)


@elementwise(promote="arith", half=None, refuse="bc", refusal=_unordered("trunc"), aliases=("fix",),
             grads={"input": lambda g: nothing(g)}, foreach=True)  # fmt: skip
def trunc(input: Array) -> Array:
    """The whole part: rounded toward zero.  input: (*) -> (*)"""
    return _trunc(input)


_floor, _ceil, _trunc = _rounded("floor"), _rounded("ceil"), _rounded("trunc")
floor.into(_into(np.floor))
ceil.into(_into(np.ceil))
trunc.into(_into(np.trunc))


@elementwise(promote="arith", half=None, refuse="bic", grads={"input": lambda g: g}, foreach=True)
def frac(input: Array) -> Array:
    """input - trunc(input).  input: (*) -> (*)"""
    whole = np.asarray(np.trunc(input))
    return np.subtract(input, whole, out=whole)


@elementwise(
    aten=("round(input, *, decimals=0)",),
    promote="arith",
    refuse="bc",
    half=None,
    ns=None,
    grads={"input": lambda g: nothing(g)},
    foreach=True,
)
def round_op(input: Array, decimals: int) -> Array:
    """`input` rounded to `decimals` places, halves to even.  (*) -> (*)"""
    if input.dtype.kind in "iu":
        if decimals:
            raise NotImplementedError("round(): decimals are supported for floating-point tensors alone, got "
                                      f"{input.dtype} and decimals={decimals}")  # fmt: skip
        return input.copy()
    if not decimals:
        return np.rint(input)
    if is_half(input.dtype):
        found = in_float32_blocks(lambda x: _to_places(x, decimals), input)
        return _to_places(up(input)[0], decimals).astype(input.dtype) if found is None else found
    return _to_places(input, decimals)


def _to_places(input: Array, decimals: int) -> Array:
    scale = input.dtype.type(10.0 ** np.abs(decimals))
    out = np.asarray(input * scale if decimals > 0 else input / scale)
    np.rint(out, out=out)
    return np.divide(out, scale, out=out) if decimals > 0 else np.multiply(out, scale, out=out)


@function(name="round", method=True, out="same", elementwise=True)
def round_(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest whole number, halves to even; with `decimals`, the nearest with so many places.  input: (*) -> (*)

    >>> import rushlight as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 2.7]))
    tensor([0., 2., 3.])
    """
    return round_op(input, decimals)


def _round_inplace(input: Tensor, *, decimals: int = 0) -> Tensor:
    return call.apply_inplace(round_op.op, (input,), (decimals,))


publish_inplace(_round_inplace, "round", "", ())


# Parts of floating-point numbers ---------------------------------------------------------------------


@elementwise(aten=("copysign.Tensor",), promote="float", half=None, refuse="c")
def copysign(input: Array, other: Array) -> Array:
    """The magnitude of `input` with the sign of `other`, broadcast.  (*), (*) -> (*)"""
    return backend.copysign(input, other)


@copysign.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor) -> Any:
    return keep(g * (out / input), input != 0)


copysign.grad("other")(lambda g: nothing(g))
copysign.check(tensor_first)


def _not_derived(name: str) -> Callable[..., Any]:
    def formula(g: Array | Tensor) -> Any:
        raise RuntimeError(f"the derivative for {name} is not implemented: detach() its arguments where they are "
                           "constants")  # fmt: skip

    return formula


@elementwise(promote="arith", half=None, refuse="bic", strict=True,
             grads={"input": lambda g, input, other: keep(g, input != other),
                    "other": lambda g: nothing(g)})  # fmt: skip
def nextafter(input: Array, other: Array) -> Array:
    """The next number after `input` in the direction of `other`, broadcast.  (*), (*) -> (*)"""
    return backend.nextafter(input, other)


def _same_kind(operands: list[Any]) -> None:
    a, b = operands
    kinds = {x.dtype for x in (a, b) if isinstance(x, (np.ndarray, np.generic))}
    if len(kinds) > 1:
        raise RuntimeError(f"heaviside is not yet implemented for tensors with different dtypes, got {a.dtype} and "
                           f"{b.dtype}: convert one of them")  # fmt: skip


@elementwise(promote="arith", half=None, refuse="c", strict=True, same_out=True, cut=True,
             refusal=complex_refused(RuntimeError, "heaviside is not yet implemented for complex tensors"),
             grads={"input": _not_derived("heaviside"), "values": _not_derived("heaviside")})  # fmt: skip
def heaviside(input: Array, values: Array) -> Array:
    """0 below 0, 1 above, `values` at 0, broadcast.  (*), (*) of one dtype -> (*)"""
    return np.where(input == 0, values, recast(input > 0, input.dtype))


heaviside.check(_same_kind)


FREXP = named("frexp", "mantissa", "exponent")


@op(outputs=("mantissa", "exponent"), half=None, differentiable=(0,), promote="arith",
    refuse="bic", refusal=lambda words: RuntimeError(f"torch.frexp() only supports floating-point dtypes: {words}"),
    batch=families.targeted)  # fmt: skip
def frexp_op(input: Array) -> tuple[Array, ...]:
    """Mantissa and exponent.  (*) -> (*), (*) int32"""
    mantissa, exponent = np.frexp(up(input)[0])
    return recast(mantissa, input.dtype), exponent


@frexp_op.shape
def _(input: Array) -> list[shapes.Made]:
    return [shapes.like(input), shapes.like(input)._replace(dtype=np.dtype(np.int32))]


frexp_op.grad("input")(lambda g, exponent: g / pow_op(2.0, exponent))


@function(method=True, out="same", elementwise=True)
def frexp(input: Tensor) -> Any:
    """`input` as mantissa * 2^exponent, the mantissa in [0.5, 1) or 0.  (*) -> named tuple of (*), (*) int32"""
    return FREXP(*frexp_op(input))


@elementwise(promote=None, ns=None, masks=("other",), cut=True)
def ldexp_op(input: Array, other: Array) -> Array:
    """input * 2^other of floating-point or complex numbers and integers, without forming the power.  (*), (*) -> (*)"""
    power = np.clip(other, -10000, 10000).astype(np.int32)
    if input.dtype.kind != "c":
        return np.ldexp(input, power)
    out = np.empty(np.broadcast_shapes(input.shape, power.shape), input.dtype)
    out.real, out.imag = np.ldexp(input.real, power), np.ldexp(input.imag, power)
    return out


ldexp_op.grad("input")(lambda g, other: ldexp_op(g, other))


@function(method=True, out=True, elementwise=True)
def ldexp(input: Tensor, other: Tensor | complex) -> Tensor:
    """input * 2^other, broadcast.  (*), (*) -> (*); of integers in the default floating-point dtype."""
    require_tensors("ldexp", input=input, other=other)
    if raw(other).dtype.kind not in "biu":
        return input * pow_op(2.0, exponent_for(input, other))
    exact = raw(input).dtype.kind not in "biu"
    return ldexp_op(input if exact else to_dtype(input, dtypes.get_default_dtype()), other)


def ldexp_(input: Tensor, other: Tensor | complex) -> Tensor:
    """input *= 2^other."""
    require_tensors("ldexp_", input=input, other=other)
    if raw(other).dtype.kind in "biu" and raw(input).dtype.kind not in "biu":
        return call.apply_inplace(ldexp_op.op, (input, other), ())
    return input.mul_(pow_op(2.0, exponent_for(input, other)))


def exponent_for(input: object, other: Any) -> Any:
    """A floating-point exponent as it is raised: one without dimensions with the precision of both, but for one of 16 bits
    beside float32; one of 16 bits beside complex numbers, whose parts have 32 at least, in float32.
    """
    base, exponent = dtypes.of(raw(input).dtype), dtypes.of(raw(other).dtype)
    if raw(other).ndim == 0 and not exponent.is_complex and base is not dtypes.float32:
        return to_dtype(other, dtypes.promote_types(base, exponent).to_real())
    halves = is_complex(raw(input).dtype) and raw(other).dtype.itemsize == 2
    return to_dtype(other, dtypes.float32) if halves else other


publish_inplace(ldexp_, "ldexp", "", ())
