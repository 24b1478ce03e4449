"""Complex numbers: their parts as views, making them, angle, conjugation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import is_complex
from rushlight.dispatch import call, families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.formats import contiguous_format
from rushlight.dispatch.operands import held, raw
from rushlight.dispatch.registry import NAMESPACES, elementwise, function, op
from rushlight.engine.conform import tensor_functions
from rushlight.ops.elementwise.arith import conj, conj_physical
from rushlight.ops.elementwise.convert import copy
from rushlight.ops.elementwise.shared import keep, nothing, require_tensors
from rushlight.signs import CONJ, NEG
from rushlight.tensor import Tensor

PARTS: dict[np.dtype[Any], Any] = {
    dtypes.complex32.numpy: np.dtype(np.float16),
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
WHOLES = {part: whole for whole, part in PARTS.items()}


# Parts -----------------------------------------------------------------------------------------------


@op(
    aten=("real(input)",),
    view=True,
    linear=True,
    grads={"input": lambda g: g},
    batch=families.targeted,
    bits=lambda bits: bits & NEG,
)
def real_part(input: Array) -> Array:
    """The real part, a view.  (*) complex -> (*) real"""
    return dtypes.real_of(input)


@op(
    aten=("imag(input)",),
    view=True,
    linear=True,
    grads={"input": lambda g: g * 1j},
    batch=families.targeted,
    bits=lambda bits: bits & NEG ^ (NEG if bits & CONJ else 0),
)
def imag_part(input: Array) -> Array:
    """The imaginary part, a view.  (*) complex -> (*) real"""
    return dtypes.imag_of(input)


@function()
def real(input: Array | Tensor) -> Any:
    """The real part of a complex tensor, a view; a real tensor itself.  input: (*) -> (*)"""
    require_tensors("real", input=input)
    return real_part(input) if is_complex(held(input).dtype) else input


@function()
def imag(input: Array | Tensor) -> Array | Tensor:
    """The imaginary part of a complex tensor, a view.  input: (*) -> (*).  Raises RuntimeError for real tensors."""
    require_tensors("imag", input=input)
    if not is_complex(held(input).dtype):
        raise RuntimeError(f"imag is not implemented for tensors with non-complex dtypes, got {input.dtype}")
    return imag_part(input)


def _set_part(part: Callable[..., Any]) -> Callable[..., Any]:
    def setter(self: Tensor, value: Tensor | float) -> None:
        part(self).copy_(value) if isinstance(value, Tensor) else part(self).fill_(value)

    return setter


Tensor.real = property(real, _set_part(real), doc="The real part: a view, or this tensor where it is real.")  # type: ignore[assignment, method-assign]
Tensor.imag = property(imag, _set_part(imag), doc="The imaginary part of a complex tensor, a view.")  # type: ignore[assignment, method-assign]


def _pairs(g: Array | Tensor) -> Array | Tensor:
    """A gradient of pairs laid out so that they can be seen as complex numbers."""
    return g if raw(g).flags.c_contiguous else copy(g, contiguous_format)


def _unturned(bits: int) -> int:
    """The bits of pairs.  Raises RuntimeError for those of conjugates, whose two parts are of different signs."""
    if bits & CONJ:
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors: use view_as_real(x.resolve_conj()), "
                           "which is no view of x")  # fmt: skip
    return bits


@op(
    ns="",
    view=True,
    takes_out=False,
    linear=True,
    method=False,
    grads={"input": lambda g: view_as_complex(_pairs(g))},
    batch=families.targeted,
    bits=_unturned,
)
def view_as_real(input: Array) -> Array:
    """Real and imaginary part in a last dimension of size 2, a view.  input: (*) complex -> (*, 2) real

    Raises RuntimeError for real tensors and for conjugates that are views.
    """
    if not is_complex(input.dtype):
        raise RuntimeError(f"view_as_real is only supported for complex tensors, got {dtypes.of(input.dtype)}")
    return input[..., None].view(PARTS[input.dtype])


@op(
    ns="",
    view=True,
    takes_out=False,
    linear=True,
    method=False,
    autocast="float32",
    grads={"input": lambda g: view_as_real(g)},
    batch=families.complex_view,
)
def view_as_complex(input: Array) -> Array:
    """A last dimension of size 2 as real and imaginary part, a view.  input: (*, 2) float16, float32 or float64 -> (*) complex

    Raises RuntimeError for other dtypes, sizes, and where the strides do not allow it.
    """
    if input.dtype not in WHOLES:
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor "
                           f"of scalar type: {older(dtypes.of(input.dtype))}")  # fmt: skip
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got shape {list(input.shape)}")
    step = input.itemsize
    if input.strides[-1] != step and input.size:
        raise RuntimeError("Tensor must have a last dimension with stride 1: use contiguous() first")
    if any(s % (2 * step) for s, n in zip(input.strides[:-1], input.shape[:-1], strict=True) if n > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension: use contiguous()")
    return input.view(WHOLES[input.dtype])[..., 0]


# Making complex numbers ------------------------------------------------------------------------------


def _same_floats(name: str, taken: tuple[str, ...]) -> Callable[..., Any]:
    def check(operands: list[Any]) -> None:
        a, b = operands
        have = [older(dtypes.of(x.dtype)) if hasattr(x, "dtype") else type(x).__name__ for x in operands]
        if {"Half"} == set(have) and "float16" not in taken:
            raise NotImplementedError(f"\"{name}\" not implemented for 'Half': use .float()")
        if not all(str(getattr(x, "dtype", "")) in taken for x in operands):
            words = f"Expected both inputs to be Half, Float or Double tensors but got {' and '.join(have)}"
            raise RuntimeError(f"{name}(): {words}")
        if a.dtype != b.dtype:
            words = f"Expected object of scalar type {have[0]} but got scalar type {have[1]} for second argument"
            raise RuntimeError(f"{name}(): {words}")

    return check


def _whole(a: Array, b: Array) -> Array:
    shape = np.broadcast_shapes(a.shape, b.shape)
    return np.empty(shape, WHOLES[a.dtype])


@elementwise(linear=True, promote="compare", half=None, ns=None, strict=True,
             grads={"real": lambda g: real(g), "imag": lambda g: imag(g)})  # fmt: skip
def complex_op(real: Array, imag: Array) -> Array:
    """real + i imag, broadcast.  (*), (*) -> (*) complex"""
    out = _whole(real, imag)
    dtypes.real_of(out)[...], dtypes.imag_of(out)[...] = real, imag
    return out


@function()
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, broadcast.  (*), (*) of one real dtype -> (*) complex

    >>> import rushlight as torch
    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j])
    """
    result = complex_op(real, imag)
    if out is None:
        return result
    if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
        raise RuntimeError(f"complex(): Expected object of scalar type {older(result.dtype)} but got scalar type "
                           f"{older(out.dtype)} for argument 'out'")  # fmt: skip
    return call.write_out("complex", out, result)


@elementwise(autocast="float32", promote="compare", half=None, method=False, inplace=False, strict=True, cut=True)
def polar(abs: Array, angle: Array) -> Array:
    """abs * (cos(angle) + i sin(angle)), broadcast.  (*), (*) of one real dtype -> (*) complex"""
    out = _whole(abs, angle)
    np.multiply(abs, np.cos(angle), out=out.real)
    np.multiply(abs, np.sin(angle), out=out.imag)
    return out


complex_op.check(_same_floats("complex", ("float16", "float32", "float64")))
polar.check(_same_floats("polar", ("float32", "float64")))


@polar.grad("abs")
def _(g: Array | Tensor, angle: Array | Tensor) -> Any:
    from rushlight.ops.elementwise.unary import cos, sin

    return real(g) * cos(angle) + imag(g) * sin(angle)


@polar.grad("angle")
def _(g: Array | Tensor, out: Array | Tensor) -> Any:
    return imag(g) * real(out) - real(g) * imag(out)


# Angle and conjugation -------------------------------------------------------------------------------


@elementwise(promote="float", inplace=False)
def angle(input: Array) -> Array:
    """The angle of complex numbers in radians; of real ones, 0 or pi, NaN for NaN.  input: (*) -> (*) real"""
    if input.dtype.kind == "c":
        return np.arctan2(input.imag, input.real)
    return backend.angle_of_real(input)


@angle.grad("input")
def _(g: Array | Tensor, input: Array | Tensor) -> Any:
    if not is_complex(held(input).dtype):
        return nothing(g)
    from rushlight.ops.elementwise.power import hypot

    zero = input == 0
    size = hypot(real(input) + _as_number(zero), imag(input))  # whose square may be beyond the dtype, or 0 in it
    return input / size * keep(g / size, ~zero) * 1j


def _as_number(mask: Array | Tensor) -> Array | Tensor:
    """A mask as a factor or summand: 1 where True."""
    return mask * 1.0


@op(
    name="conj",
    view=True,
    linear=True,
    grads={"input": lambda g: conj(g)},
    batch=families.targeted,
    turns=CONJ,
    pointwise=True,
)
def conj_view(input: Array) -> Array:
    """The complex conjugate: of a tensor a view with its conjugate bit turned.  (*) complex -> (*)"""
    return np.conjugate(input)


@op(
    view=True,
    linear=True,
    grads={"input": lambda g: -g},
    batch=families.targeted,
    turns=NEG,
)
def neg_view(input: Array) -> Array:
    """The negative: of a tensor a view with its negative bit turned.  (*) -> (*)"""
    return -input


for _view in (conj_view.op, neg_view.op):
    _view.call = call.general(_view)
tensor_functions["view_as_real"], tensor_functions["view_as_complex"] = view_as_real.op, view_as_complex.op
tensor_functions["turns"] = (conj_view.op, neg_view.op)


@function(name="conj", method=True)
def conj_public(input: Tensor) -> Tensor:
    """The complex conjugate, a view: writing to it writes to `input`.  input: (*) -> (*); a real tensor itself.

    >>> import rushlight as torch
    >>> x = torch.tensor([1 + 2j])
    >>> y = x.conj().mul_(1j)
    >>> x, y.is_conj()
    (tensor([2.-1.j]), True)
    """
    require_tensors("conj", input=input)
    return conj_view.op.call(input) if is_complex(held(input).dtype) else input


@function(name="_conj")
def conj_of_complex(input: Tensor) -> Tensor:
    """As `conj`.  Raises RuntimeError for real tensors."""
    require_tensors("_conj", input=input)
    if not is_complex(held(input).dtype):
        raise RuntimeError(f"_conj: expected a complex tensor, got {input.dtype}")
    return conj_view.op.call(input)


@function(name="_neg_view")
def neg_view_public(input: Tensor) -> Tensor:
    """-input, a view: writing to it writes to `input`.  input: (*) -> (*).  Raises RuntimeError for bool tensors."""
    require_tensors("_neg_view", input=input)
    if held(input).dtype.kind == "b":
        raise RuntimeError("_neg_view: bool tensors have no negative: use ~ or logical_not() there")
    return neg_view.op.call(input)


def bits_of(input: Tensor) -> int:
    """The bits of a tensor; of the samples, inside vmap."""
    while getattr(held(input), "interpreted", False):
        input = held(input).tensor
    return input._bits if isinstance(input, Tensor) else 0


@function(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself, or a copy without its conjugate bit.  (*) -> (*)"""
    require_tensors("resolve_conj", input=input)
    return copy(input, None) if bits_of(input) & CONJ else input


@function(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself, or a copy without its negative bit.  (*) -> (*)"""
    require_tensors("resolve_neg", input=input)
    return copy(input, None) if bits_of(input) & NEG else input


@function(method=True)
def is_conj(input: Tensor) -> bool:
    """Whether the elements are the conjugates of what the memory holds: see `conj`."""
    require_tensors("is_conj", input=input)
    return bool(bits_of(input) & CONJ)


@function(method=True)
def is_neg(input: Tensor) -> bool:
    """Whether the elements are the negatives of what the memory holds: the imaginary part of a conjugate."""
    require_tensors("is_neg", input=input)
    return bool(bits_of(input) & NEG)


NAMESPACES[""]["_conj_physical"] = conj_physical
__all__ = ["conj_physical"]
