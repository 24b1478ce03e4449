"""Norms: vector_norm and what is made of it: norm, dist, renorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import families, shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import also_named, numpy_names
from rushlight.dispatch.keeping.blocks import in_blocks
from rushlight.dispatch.named import linalg, named
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import numpy_dtype
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making
from rushlight.kernels.dispatch import FLOAT32, is_half, widened
from rushlight.kernels.sums import joined
from rushlight.ops.elementwise.floats import wide
from rushlight.ops.elementwise.shared import is_unknown, keep, nothing, number
from rushlight.ops.reduce.sums import axes, cast_first, count, fold, fold_of, tensor_argument, unsqueezed
from rushlight.ops.shape.reshape import broadcast
from rushlight.tensor import Tensor, wrap


def sizes_of(x: Array) -> Array:
    """|x|, in memory of its own; of 16 bits in float32."""
    own = widened(x) if is_half(x.dtype) else None
    return np.asarray(np.abs(x if own is None else own, out=own))


SUMS = {1: "sum_of_sizes", 2: "sum_of_squares"}  # what a kernel adds up for a norm


def norm_of_halves(x: Array, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """The p-norm of 16 bits, in float32 and rounded."""
    total = joined(SUMS[int(p)], x, dim, keepdim, FLOAT32) if p in SUMS else None
    if total is not None:
        return np.asarray(np.sqrt(total) if p == 2 else total).astype(x.dtype)
    lying = x if x.flags.c_contiguous and p not in SUMS else widened(x)
    return np.asarray(norm_by_folds(lying, p, dim, keepdim)).astype(x.dtype)


def norm_of(x: Array, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """The p-norm of an array over `dim`."""
    return norm_of_halves(x, p, dim, keepdim) if is_half(x.dtype) else norm_by_folds(x, p, dim, keepdim)


def norm_by_folds(x: Array, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """The same; of 16 bits that lie side by side in float32, but for the orders of `SUMS`."""
    if p == 0:
        return fold_of(np.add, lambda a: (a != 0).astype(wide(x.real.dtype)), x, dim, keepdim)
    if np.isinf(p):
        return fold_of(np.maximum if p > 0 else np.minimum, sizes_of, x, dim, keepdim)
    if p == 2:
        return euclidean(x, dim, keepdim)
    if p == 1:
        found = joined("sum_of_sizes", x, dim, keepdim)
        return fold_of(np.add, sizes_of, x, dim, keepdim) if found is None else found

    def powers(a: Array) -> Array:
        size = sizes_of(a)
        return np.power(size, size.dtype.type(p), out=size)

    total = fold_of(np.add, powers, x, dim, keepdim)
    return np.power(total, total.dtype.type(1 / p))


def euclidean(x: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """The 2-norm."""
    if dim is None and x.dtype.kind == "f" and x.flags.c_contiguous:
        flat = x.reshape(-1)
        found = np.sqrt(np.dot(flat, flat))
        return np.reshape(found, (1,) * x.ndim) if keepdim else found
    found = joined("sum_of_squares", x, dim, keepdim)
    return np.sqrt(fold_of(np.add, squares, x, dim, keepdim) if found is None else found)


def squares(a: Array) -> Array:
    """|a|**2."""
    return a.real * a.real + a.imag * a.imag if a.dtype.kind == "c" else a * a


@op(
    aten=("linalg_vector_norm(input, p=2, dim=None, keepdim=False)",),
    aten_gradient="norm",
    name="linalg_vector_norm",
    half=None,
    saved_as={"ord": "p"},
    complex_half="widens",
    shape=shapes.real_reduction,
    batch=families.shifted,
)
def norm_op(input: Array, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    """The p-norm over `dim`.  (*) -> (*) real"""
    return norm_of(input, p, dim, keepdim)


def norm_grad_once(g: Array, input: Array, out: Array, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    """As `norm_grad`, for first order, where less memory does."""
    if p == 0 or 0 in input.shape:
        return norm_grad(g, input, out, p, dim, keepdim)
    g, out = unsqueezed(g, input.shape, dim, keepdim), unsqueezed(out, input.shape, dim, keepdim)
    if p == 2:  # where the norm is 0, what 0 times the gradient is: NaN if that is infinite or NaN, as in `norm_grad`
        return input * np.where(out != 0, g / out, g * 0)
    if np.isinf(p):
        many = fold_of(np.add, lambda x, out: reaches(x, out).astype(np.intp), input, dim, True, out)
        g = g / many.astype(g.dtype)
    return in_blocks(lambda x, g, out: slope_of(g, x, out, p), input, input, g, out)


def _made_once(
    g: Array, input: Array, out: Array, p: float, dim: tuple[int, ...] | None, keepdim: bool, make: Making
) -> Array:
    made = make.gradient(0)
    if p not in (0, 2) and input.size:
        g, out = unsqueezed(g, input.shape, dim, keepdim), unsqueezed(out, input.shape, dim, keepdim)
        make.blocks(lambda x, g, out: slope_of(g, x, out, p), input, input, g, out)
    return made


@norm_op.grad("input", raw=norm_grad_once, shapes=_made_once)
def _(g: Tensor, input: Tensor, out: Tensor, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> object:
    return norm_grad(g, input, out, p, dim, keepdim)


@norm_op.tangent
def _(t_input: Tensor, input: Tensor, out: Tensor, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """Re <gradient, tangent>: zero where the gradient is zero by convention."""
    ones = broadcast(wrap(np.ones((), out._array.dtype)), out._array.shape)
    product = named.conj(norm_grad(ones, input, out, p, dim, keepdim)) * t_input
    return named.sum(named.real(product) if product.is_complex() else product, dim, keepdim)


def norm_grad(
    g: Array | Tensor, x: Array | Tensor, out: Array | Tensor, p: float, dim: tuple[int, ...] | None, keepdim: bool
) -> Any:
    """The gradient of the p-norm; where the norm has none, the subgradient of least size."""
    shape = raw(x).shape
    if p == 0 or 0 in shape:
        return nothing(x)
    g, out = unsqueezed(g, shape, dim, keepdim), unsqueezed(out, shape, dim, keepdim)
    if np.isinf(p):  # shared among the elements of that size
        hit = reaches(raw(x), raw(out))
        if isinstance(hit, Tensor):  # a level hides values
            g = g / named.sum(hit, dim, True)
        else:
            g = g / fold(np.add, hit, dim, True, dtype=np.intp).astype(raw(g).dtype)
    return slope_of(g, x, out, p)


def slope_of(g: Array | Tensor, x: Array | Tensor, out: Array | Tensor, p: float) -> Any:
    """The gradient of the p-norm, element by element: g and out broadcast to the shape of x."""
    if p == 1:
        return g * named.sgn(x)
    if np.isinf(p):
        return keep(named.sgn(x) * g, reaches(raw(x), raw(out)))
    if p == 2:
        return g * keep(x / out, raw(out) != 0)
    size = named.abs(x)
    if p < 1:  # infinite at zero, and taken as zero there; a quotient's derivative would have large terms in 16 bits
        return keep(named.sgn(x) * power(size, p - 1), raw(x) != 0) * keep(g * power(out, 1 - p), raw(out) != 0)
    scale = keep(g / power(out, p - 1), raw(out) != 0)
    if p > 2:
        return x * power(size, p - 2) * scale
    return named.sgn(x) * power(size, p - 1) * scale


def power(x: Array | Tensor, p: float) -> Array | Tensor:
    """x**p."""
    return x if p == 1 else named.pow(x, p)


def reaches(x: Array, out: Array) -> Array:
    """Which elements have the size of the norm of infinite order."""
    size = np.abs(x)
    return (size == out) | ((size != size) & (out != out))


# Public functions ----------------------------------------------------------------------------------


def check_floating(name: str, x: Tensor | list[Any], dtype: dtype | None) -> Any:
    """The input in the dtype of the norm.  Raises RuntimeError for integers and for dtypes that lose something."""
    array = tensor_argument(name, x)
    if array.dtype.kind in "biu":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {older(dtypes.of(array.dtype))}"
        )
    if dtype is None:
        return x
    have, want = dtypes.of(array.dtype), dtypes.of(numpy_dtype(name, dtype))
    if want.category < dtypes.FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {older(want)}")
    if have.category == dtypes.COMPLEX and want.category != dtypes.COMPLEX:
        raise RuntimeError(f"{name}: dtype should be complex for complex inputs, but got {older(want)}")
    if have.category != dtypes.COMPLEX and want.category == dtypes.COMPLEX:
        raise RuntimeError(f"{name}: dtype should be real for real inputs, but got {older(want)}")
    if dtypes.promote_types(have, want) is not want:
        raise RuntimeError(f"{name}: the dtype of the input ({older(have)}) should be convertible without narrowing to the "
                           f"specified dtype ({older(want)})")  # fmt: skip
    return cast_first(x, want.numpy)


def check_empty(name: str, shape: tuple[int, ...], dim: tuple[int, ...] | None, p: float) -> None:
    """Raise RuntimeError for norms over no elements that have no identity."""
    if (p < 0 or p == np.inf) and not count(shape, dim) and (p < 0 or dim is None or any(shape[d] == 0 for d in dim)):
        raise RuntimeError(f"{name} cannot compute the {p} norm on an empty tensor because the operation does not have "
                           "an identity")  # fmt: skip


@function(ns="linalg", out="same")
@also_named(input="x", axis="dim", keepdims="keepdim")
def vector_norm(
    x: Tensor,
    ord: complex = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    axis: int | Sequence[int] | None = None,
) -> Tensor:
    """The norm of order `ord` of vectors: over all elements, or over the dimensions in `dim`.  (*) -> (*) real

    ord: any number, inf (largest absolute value), -inf (smallest) and 0 (how many are not zero) included. Where the
    norm has no gradient, that of zero is zero and equal extremes share theirs.
    """
    return norm_over(x, order(ord), dim if axis is None else axis, keepdim, dtype)


def norm_over(x: Any, p: float, dim: int | Sequence[int] | None, keepdim: bool, dtype: dtype | None) -> Tensor:
    """`vector_norm` of an order that is a float."""
    x = check_floating("linalg.vector_norm", x, dtype)
    shape = raw(x).shape
    where = axes(dim, len(shape))
    check_empty("linalg.vector_norm", shape, where, p)
    return norm_op(x, p, where, keepdim)


def order(value: object) -> float:
    """The order of a norm as a float."""
    if isinstance(value, Tensor):
        value = number(value)
    if not isinstance(value, (int, float, np.number)):
        raise TypeError(f"linalg.vector_norm(): argument 'ord' must be Number, not {type(value).__name__}")
    return float(value)


@function(method=True)
@numpy_names
def norm(input: Tensor, p: float | str | None = "fro", dim: int | Sequence[int] | None = None, keepdim: bool = False,
         out: object = None, dtype: dtype | None = None) -> Tensor:  # fmt: skip
    """The norm over all elements or over the dimensions in `dim`.  (*) -> (*)

    p: a number (see linalg.vector_norm), None or "fro" (2), or "nuc", the sum of the singular values of matrices.
    """
    tensor_argument("norm", input)
    if p == "nuc":
        where = tuple(range(raw(input).ndim)) if dim is None and raw(input).ndim > 1 else dim
        where = (-2, -1) if where is None else where
        if isinstance(where, int):
            raise RuntimeError(f"norm(): dim must be a 2-tuple for the nuclear norm, which is of matrices. Got {where}")
        return linalg.matrix_norm(input, "nuc", where, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    if isinstance(dim, (tuple, list)) and not len(dim):
        dim = None
    if p == "fro" and isinstance(dim, (tuple, list)) and len(dim) > 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    p = 2 if p is None or p == "fro" else p
    if out is not None:
        return linalg.vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    return norm_over(input, order(p), dim, keepdim, dtype)


@function(method=True)
def dist(input: Tensor, other: Tensor, p: complex = 2) -> Tensor:
    """The p-norm of input - other, broadcast.  (*), (*) -> ()"""
    off = input - other
    if off.dtype.category < dtypes.FLOAT:
        raise RuntimeError(
            f"dist(): input dtype should be either floating point or complex. Got {older(off.dtype)} instead."
        )
    return norm_op(off, order(p), None, False)


@function(method=True, out="same", inplace=True)
@per_sample
@numpy_names
def renorm(input: Tensor, p: complex, dim: int, maxnorm: float) -> Tensor:
    """Slices along `dim` scaled down to have a p-norm of at most `maxnorm`.  (*) -> (*)"""
    array = tensor_argument("renorm", input)
    if array.dtype.kind in "biu":
        raise RuntimeError(f"renorm: expected a floating-point or complex tensor, got {dtypes.of(array.dtype)}")
    if isinstance(p, complex):
        raise RuntimeError(f"renorm: p must be real-valued, got {p}")
    if not order(p) > 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got p={p}")
    if not number(maxnorm) >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if array.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {array.ndim} dimensions")
    d = axes(dim, array.ndim)[0]
    others = tuple(i for i in range(array.ndim) if i != d)
    if getattr(array, "unread", False):
        return _renormed(input, order(p), others, maxnorm)
    norms = norm_of(widened(array) if array.dtype in dtypes.HALVES else array, order(p), others, True)
    usual = is_unknown(array) or bool(((norms > 0) & np.isfinite(norms)).all())
    large, safe = norms > maxnorm, order(p) >= 1 and usual
    # The norms of the other slices, which may be zero or NaN, take no part; those of 16 bits would overflow.
    wide = cast_first(input, np.dtype(np.float32)) if array.dtype in dtypes.HALVES else input
    size = norm_op(wide if safe else keep(wide, np.broadcast_to(large, array.shape)), order(p), others, True)
    factor = named.where(wrap(large), maxnorm / (size + 1e-7), 1.0)
    return cast_first(wide * cast_first(factor, raw(size).dtype), array.dtype)


def _renormed(input: Tensor, p: float, others: tuple[int, ...], maxnorm: float) -> Any:
    """`renorm` of what has no values to look at, by operators alone."""
    wide = cast_first(input, np.dtype(np.float32)) if input._array.dtype in dtypes.HALVES else input
    large = norm_op(wide.detach(), p, others, True) > maxnorm
    size = norm_op(named.where(large, wide, 0.0), p, others, True)
    factor = named.where(large, maxnorm / (size + 1e-7), 1.0)
    return cast_first(wide * cast_first(factor, raw(size).dtype), input._array.dtype)
