"""Spread and sums of exponentials: var, std, var_mean, std_mean, logsumexp, cov, corrcoef."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller, dtypes
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import families, shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, numpy_names
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import NAMESPACES, along, function, op
from rushlight.kernels.dispatch import is_half, rounded, summed_in, widened
from rushlight.kernels.reference.norms import beside_mean
from rushlight.kernels.rows import across
from rushlight.kernels.sums import joined
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.arith import by, conj
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.elementwise.shared import keep, plain
from rushlight.ops.reduce.sums import (
    axes,
    cast_first,
    count,
    fold,
    fold_of,
    left,
    mean_op,
    spread,
    sum_op,
    tensor_argument,
    unsqueezed,
)
from rushlight.tensor import Tensor, wrap


def squared_distance(x: Array, middle: Array) -> Array:
    """|x - middle|**2, real."""
    off = np.asarray(x - middle)
    if off.dtype.kind == "c":
        return off.real**2 + off.imag**2
    return np.multiply(off, off, out=off)


FEW = 1 << 13  # elements of an array of which one call is the fastest in any shape


def _long(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> bool:
    """Whether rows that become one number, or that are added up, fill vectors: of shorter ones many are computed with together."""
    last = None if dim is None else max(dim) + 1
    return last is None or (count(shape, dim) >= 32 if last == len(shape) else math.prod(shape[last:]) >= 32)


def squared_deviations(x: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    """The sum of |x - mean|**2 over `dim`, of 16 bits in float32.  Where all lies so near to the mean that its rounding counts, this is taken off."""
    wide = summed_in(x.dtype)
    found = joined("squared_deviations", x, dim, keepdim, wide) if x.size <= FEW or _long(x.shape, dim) else None
    if found is not None:
        return found
    x = x if x.dtype == wide else widened(x)
    n = max(count(x.shape, dim), 1)
    middle = fold(np.add, x, dim, True) / n
    total = fold_of(np.add, squared_distance, x, dim, keepdim, middle)
    if not beside_mean(total, middle.reshape(total.shape), n):
        return total
    middle += fold_of(np.add, np.subtract, x, dim, True, middle) / n  # of a constant this is exact
    rest = fold_of(np.add, np.subtract, x, dim, True, middle) / n
    return fold_of(np.add, lambda x, m, r: squared_distance(x - m, r), x, dim, keepdim, middle, rest)


def deviations(x: object, dim: tuple[int, ...] | None) -> Any:
    """x - mean, the mean made exact: what its rounding adds is subtracted, as a constant.  Not so of 16 bits, as in PyTorch."""
    off = x - mean_op(x, dim, True)
    if getattr(raw(off), "interpreted", False) or raw(off).dtype.itemsize == 2:
        return off
    rest = fold(np.add, raw(off), dim, True) / max(count(raw(off).shape, dim), 1)
    rest = np.where(np.isfinite(rest), rest, 0)
    if isinstance(off, np.ndarray):
        return np.subtract(off, rest, out=off)
    return off - wrap(np.asarray(rest))


def narrow(found: Array, input: Array) -> Array:
    """What was computed of `input`, in 16 bits where that is."""
    return rounded(found, input.dtype) if is_half(input.dtype) else found


def divided(total: Array, shape: tuple[int, ...], dim: tuple[int, ...] | None, correction: float) -> Any:
    """Sums of squares divided by the degrees of freedom."""
    free = max(count(shape, dim) - correction, 0.0)
    if free:
        return total / total.dtype.type(free)
    with np.errstate(all="ignore"):
        return np.asarray(total / total.dtype.type(0))


@op(
    aten=("var.correction",),
    half=None,
    aten_gradient="variance",
    shape=shapes.real_reduction,
    batch=families.shifted,
)
def var_op(input: Array, dim: tuple[int, ...] | None, correction: float, keepdim: bool) -> Array:
    """The variance over `dim`: squared deviations from the mean divided by N - correction.  (*) -> (*) real"""
    return narrow(divided(squared_deviations(input, dim, keepdim), input.shape, dim, correction), input)


def _var_raw(g: Array, input: Array, dim: tuple[int, ...] | None, correction: float, keepdim: bool) -> Array:
    if undefined(input.shape, dim, correction):
        return var_grad(g, input, dim, correction, keepdim)
    with np.errstate(invalid="ignore"):
        off = np.asarray(deviations(input, dim))
        return times(off, unsqueezed(by(g, slope(input.shape, dim, correction)), input.shape, dim, keepdim))


def slope(shape: tuple[int, ...], dim: tuple[int, ...] | None, correction: float) -> float:
    """2 / (N - correction), infinite where no degrees of freedom are left."""
    free = count(shape, dim) - correction
    return 2.0 / free if free else math.inf


def undefined(shape: tuple[int, ...], dim: tuple[int, ...] | None, correction: float) -> bool:
    """Whether the variance of all elements has no degrees of freedom: infinite or NaN, whatever the elements are."""
    return dim is None and count(shape, dim) <= correction


def times(off: Array, factor: Array) -> Array:
    """off * factor, in the memory of `off`."""
    return np.multiply(off, factor, out=off)


@var_op.grad("input", raw=_var_raw)
def _(g: Tensor, input: Tensor, dim: tuple[int, ...] | None, correction: float, keepdim: bool) -> Tensor:
    return var_grad(g, input, dim, correction, keepdim)


def var_grad(
    g: Array | Tensor, input: Array | Tensor, dim: tuple[int, ...] | None, correction: float, keepdim: bool
) -> Any:
    """The gradient of the variance.  The result is not saved for it, and may change."""
    shape = raw(input).shape
    with np.errstate(invalid="ignore"):
        if undefined(shape, dim, correction):
            return unsqueezed(g, shape, dim, keepdim) * limits(plain(input), raw(g).dtype)
        factor = unsqueezed(by(g, slope(shape, dim, correction)), shape, dim, keepdim)
        return deviations(input, dim) * factor


def limits(x: object, dtype: dtype | None) -> Any:
    """The slope of a variance without degrees of freedom: infinite, NaN at the mean; a constant, as the variance is."""
    return cast(x != mean_op(x, None, True), dtype) * math.inf


@op(
    aten=("std.correction",),
    half=None,
    aten_gradient="deviation",
    shape=shapes.real_reduction,
    batch=families.shifted,
)
def std_op(input: Array, dim: tuple[int, ...] | None, correction: float, keepdim: bool) -> Array:
    """The square root of the variance over `dim`.  (*) -> (*) real"""
    found = np.sqrt(divided(squared_deviations(input, dim, keepdim), input.shape, dim, correction))
    return narrow(found, input)


def _std_raw(g: Array, input: Array, out: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> Array:
    return _var_raw(np.asarray(of_root(g, out)), input, dim, correction, keepdim)


@std_op.grad("input", raw=_std_raw)
def _(
    g: Array | Tensor,
    input: Array | Tensor,
    out: Array | Tensor,
    dim: tuple[int, ...],
    correction: float,
    keepdim: bool,
) -> Array | Tensor:
    return var_grad(of_root(g, out), input, dim, correction, keepdim)


def of_root(g: Array | Tensor, std: Array | Tensor) -> Array | Tensor:
    """The gradient of the variance, given that of its square root."""
    zero = plain(std) == 0
    return keep(g / (std * 2 + zero), ~zero)  # whatever is derived from it divides by 1 there, not by 0


def with_mean(
    gs: list[Any], by_spread: Callable[..., Any], shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool
) -> Any:
    """The gradient by the input of a spread and the mean beside it.  gs: that of either, or None.

    by_spread: the gradient of the spread -> that of the input.
    """
    found = None if gs[0] is None else by_spread(gs[0])
    if gs[1] is None:
        return found
    by_mean = spread(gs[1] / max(count(shape, dim), 1), shape, dim, keepdim)
    return by_mean if found is None else found + by_mean


@op(
    aten=("var_mean.correction",),
    half=None,
    outputs=("var", "mean"),
    shape=shapes.variance_and_mean,
    batch=families.shifted,
)
def var_mean_op(input: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> tuple[Array, ...]:
    """The variance and the mean over `dim`.  (*) -> (*) real, (*)"""
    free = divided(squared_deviations(input, dim, keepdim), input.shape, dim, correction)
    return narrow(free, input), mean_op(input, dim, keepdim)


@var_mean_op.grad("input")
def _(gs: list[Any], input: Array | Tensor, dim: tuple[int, ...], correction: float, keepdim: bool) -> Array | Tensor:
    return with_mean(gs, lambda g: var_grad(g, input, dim, correction, keepdim), raw(input).shape, dim, keepdim)


@op(
    aten=("std_mean.correction",),
    half=None,
    outputs=("result0", "mean"),
    shape=shapes.variance_and_mean,
    batch=families.shifted,
)
def std_mean_op(input: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> tuple[Array, ...]:
    """The standard deviation and the mean over `dim`.  (*) -> (*) real, (*)"""
    free = divided(squared_deviations(input, dim, keepdim), input.shape, dim, correction)
    return narrow(np.sqrt(free), input), mean_op(input, dim, keepdim)


@std_mean_op.grad("input")
def _(
    gs: list[Any],
    input: Array | Tensor,
    result0: Array | Tensor,
    dim: tuple[int, ...],
    correction: float,
    keepdim: bool,
) -> Array | Tensor:
    def by_spread(g: Array | Tensor) -> Array | Tensor:
        return var_grad(of_root(g, result0), input, dim, correction, keepdim)

    return with_mean(gs, by_spread, raw(input).shape, dim, keepdim)


# Arguments -----------------------------------------------------------------------------------------


def free_arguments(dim: int | tuple[int, ...] | None, unbiased: Any, correction: int | None) -> tuple[Any, float]:
    """dim and correction of the overloads var(unbiased), var(dim, unbiased), var(dim, correction=)."""
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(bool(unbiased))
    elif unbiased is not None:
        raise TypeError("var() received both unbiased and correction: give one")
    return dim, float(raw(correction))


def spread_of(
    name: str, run: Callable[..., Any], input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Tensor | tuple[Tensor, ...]:
    """var or std of checked arguments."""
    array = tensor_argument(name, input)
    if array.dtype.kind in "biu":
        raise RuntimeError(f"{name}(): std and var only support floating point and complex dtypes, got "
                           f"{dtypes.of(array.dtype)}")  # fmt: skip
    dim, free = free_arguments(dim, unbiased, correction)
    where = axes(dim, array.ndim)
    if count(array.shape, where) - free <= 0 and all(left(array.shape, where)):
        caller.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                    "factor (input numel divided by output numel).")  # fmt: skip
    return run(input, where, free, keepdim)


def not_biased_alone(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether `unbiased` is not given without dimensions: that form has no `out`."""
    return not isinstance(args[1], bool) if len(args) > 1 else "unbiased" not in kwargs or along(args, kwargs)


@function(method=True, out=True, out_where=not_biased_alone)
@numpy_names
def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """The variance over all dimensions or those in `dim`: squared deviations divided by N - correction.  (*) -> (*)

    correction is 1 by default; unbiased=False means 0. Warns and gives inf or NaN where N <= correction.
    """
    return spread_of("var", var_op, input, dim, unbiased, keepdim, correction)


@function(method=True, out=True, out_where=not_biased_alone)
@numpy_names
def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """The standard deviation over all dimensions or those in `dim`: the square root of `var`.  (*) -> (*)

    Its gradient is zero where the deviation is zero.
    """
    return spread_of("std", std_op, input, dim, unbiased, keepdim, correction)


@function()
@numpy_names
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The variance and the mean, over all dimensions or those in `dim`.  (*) -> (*), (*)"""
    return spread_of("var_mean", var_mean_op, input, dim, unbiased, keepdim, correction)


@function()
@numpy_names
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The standard deviation and the mean, over all dimensions or those in `dim`.  (*) -> (*), (*)"""
    return spread_of("std_mean", std_mean_op, input, dim, unbiased, keepdim, correction)


# Sums of exponentials ------------------------------------------------------------------------------


def _logsumexp_shape(input: Array, dim: tuple[int, ...], keepdim: bool) -> list[shapes.Made]:
    dtype = dtypes.get_default_dtype().numpy if input.dtype.kind in "biu" else None
    return [shapes.reduced(input, dim, keepdim, dtype)]


@op(
    aten=("logsumexp(input, dim, keepdim=False)",),
    aten_gradient="logsumexp",
    promote="float",
    shape=_logsumexp_shape,
    batch=families.shifted,
)
def logsumexp_op(input: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    """log(sum(exp(input))) over `dim`, without overflow.  (*) -> (*)"""
    if not count(input.shape, dim):
        return np.full(fold(np.add, input, dim, keepdim).shape, -np.inf, input.dtype)
    found = joined("log_sum", input, dim, keepdim)
    if found is not None:
        return found
    top = fold(np.maximum, input.real, dim, True)
    top = np.where(np.isinf(top), 0, top).astype(top.dtype, copy=False)
    total = np.log(fold_of(np.add, shifted_exp, input, dim, True, top))
    total += top
    return total if keepdim else total.reshape(left(input.shape, dim))


subtract_across, multiply_across = across(np.subtract), across(np.multiply)
LOWEST = {dtype.num: np.finfo(dtype).min for dtype in (np.dtype(np.float32), np.dtype(np.float64))}


def shifted_exp(x: Array, top: Array) -> Array:
    """exp(x - top)."""
    off = np.asarray(x - top)
    return np.exp(off, out=off)


def _logsumexp_raw(g: Array, input: Array, out: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    if input.ndim and input.dtype == out.dtype == g.dtype and out.dtype.num in LOWEST:
        known = np.maximum(out, LOWEST[out.dtype.num])  # of -inf the least number, from which all are as far away
        made: Array = subtract_across(input, unsqueezed(known, input.shape, dim, keepdim))
        backend.exp(made, out=made)
        return multiply_across(made, unsqueezed(g, input.shape, dim, keepdim), out=made)
    base = unsqueezed(np.where(np.isneginf(out.real), 0, out), input.shape, dim, keepdim).astype(out.dtype, copy=False)
    share = np.asarray(input - base)
    share = np.exp(share, out=share)
    share = np.conj(share, out=share) if share.dtype.kind == "c" else share
    share *= unsqueezed(g, input.shape, dim, keepdim)
    return share


@logsumexp_op.grad("input", raw=_logsumexp_raw)
def _(g: Tensor, input: Tensor, out: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    shape = raw(input).shape
    known = plain(out)
    hidden = known.__class__ is not np.ndarray
    base = keep(out, NAMESPACES[""]["real"](known) != -np.inf if hidden else ~np.isneginf(known.real))
    share = NAMESPACES[""]["exp"](input - unsqueezed(base, shape, dim, keepdim))
    return conj(share) * unsqueezed(g, shape, dim, keepdim)


@function(method=True, out=True, ns="")
@numpy_names
def logsumexp(input: Tensor, dim: int | Sequence[int] | None, keepdim: bool = False) -> Tensor:
    """log(sum(exp(input))) over the dimensions in `dim`, without overflow.  (*) -> (*)"""
    return logsumexp_op(input, axes(dim, tensor_argument("logsumexp", input).ndim), keepdim)


NAMESPACES.setdefault("special", {})["logsumexp"] = logsumexp


# Covariance ----------------------------------------------------------------------------------------


def check_weights(name: str, weights: Tensor | None, n: int, integer: bool) -> Tensor | None:
    """The array of fweights or aweights.  Raises RuntimeError where they do not fit."""
    if weights is None:
        return None
    w = raw(weights)
    if w.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions"
        )
    if (w.dtype.kind not in "iu") if integer else (w.dtype.kind not in "fV"):
        kind = "integral" if integer else "floating point"
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {dtypes.of(w.dtype)} dtype"
        )
    if w.size != n:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but "
                           f"got {w.size} != {n}")  # fmt: skip
    if not (everything(w) >= 0).all():
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights


@function(method=True)
@per_sample
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of variables (rows) over observations (columns).  (V, N) or (N) -> (V, V) or ()

    fweights: how often each observation counts; aweights: its weight.
    """
    array = tensor_argument("cov", input)
    if array.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {array.ndim} "
                           "dimensions")  # fmt: skip
    if array.dtype == np.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if array.ndim == 2 else input.reshape(1, -1)
    n = x.shape[1]
    f, a = check_weights("fweights", fweights, n, True), check_weights("aweights", aweights, n, False)
    weights = a if f is None else f if a is None else f * a
    free, average = float(n) - as_int(correction, "cov", "correction"), None
    if weights is not None:
        weights = weights.reshape(-1)
        total = sum_op(weights)
        if raw(total) == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        average = sum_op(x * weights, (1,), True) / total
        free = total - (correction if a is None else correction * sum_op(weights * a.reshape(-1)) / total)
    if raw(free) <= 0:
        caller.warn("cov(): degrees of freedom is <= 0")
        free = 0.0
    off = x - (mean_op(_floating(x), (1,), True) if average is None else average)
    right = off if weights is None else off * weights
    found = NAMESPACES[""]["mm"](off, cast_first(conj(right.t()), raw(off).dtype))
    return NAMESPACES[""]["true_divide"](found, free).squeeze()


def _floating(x: Tensor) -> Tensor:
    return x if raw(x).dtype.kind not in "biu" else cast(x, dtypes.get_default_dtype().numpy)


@function(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Correlation coefficients of variables (rows) over observations (columns).  (V, N) or (N) -> (V, V) or ()"""
    array = tensor_argument("corrcoef", input)
    if array.ndim > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{array.ndim} dimensions")  # fmt: skip
    c = cov(input)
    if not raw(c).ndim:
        return c / c
    d = c.diag()
    scale = d.real.sqrt() if raw(d).dtype.kind == "c" else d.sqrt()
    return clipped(c / scale.view(-1, 1) / scale.view(1, -1))


def clipped(c: Tensor) -> Tensor:
    """Coefficients within [-1, 1], in each part of complex ones."""
    if raw(c).dtype.kind == "c":
        return NAMESPACES[""]["complex"](c.real.clip(-1, 1), c.imag.clip(-1, 1))
    return c.clip(-1, 1)
