"""Scatter with sums, products, means, and extremes: scatter_reduce, index_reduce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.compute import fitted
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import numpy_names
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function, op
from rushlight.kernels.dispatch import is_half, recast, rounded, widened
from rushlight.kernels.pointwise.copies import copied
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.index.index_select import prepared
from rushlight.ops.index.masked import masked_fill_op
from rushlight.ops.index.raw_indices import add_along, gather_along, of_rows, put_along
from rushlight.ops.index.scatter import _padded as padded
from rushlight.ops.index.scatter import (
    checked_index,
    cut_to,
    gather_op,
    number,
    same_dtypes,
    scatter_add_op,
    scatter_op,
    scatter_value_op,
)
from rushlight.ops.shape.reshape import broadcast, reshape_op, slice_op
from rushlight.tensor import Tensor

EXACT = 1 << 24  # up to which float32 counts one by one
KINDS = ("sum", "prod", "mean", "amax", "amin")


def neutral(kind: str, dtype: np.dtype[Any]) -> Any:
    """The value that changes nothing in a reduction."""
    if kind in ("sum", "mean", "prod"):
        return dtype.type(kind == "prod")
    if dtype.kind == "b":
        return kind == "amin"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if kind == "amax" else limits.max
    return dtype.type(-np.inf if kind == "amax" else np.inf)


def reduce_into(out: Array, index: Array, src: Array, dim: int, kind: str, include_self: bool) -> None:
    """Reduce `src` into `out` at `index` along `dim`, in place. Means of 16 bits are divided before they are rounded."""
    if not index.size:
        return
    src = cut_to(src, index.shape)
    if kind == "mean" and is_half(out.dtype):
        wide = widened(out)
        reduce_into(wide, index, widened(src), dim, kind, include_self)
        rounded(wide, out.dtype, out)
        return
    if not include_self:
        put_along(out, index, dim, neutral(kind, out.dtype))
    if kind in ("sum", "mean"):
        add_along(out, index, dim, src)
        if kind == "mean":
            average(out, index, dim, include_self)
        return
    rows = of_rows(index, dim, out.shape) if out.flags.c_contiguous and out.ndim else None
    if rows is None:
        kernels.join_along(out, index, dim, src, kind)
    else:
        kernels.index_join_slices(out.reshape(1, len(out), -1), rows, src.reshape(1, len(rows), -1), kind)


def counts(
    shape: tuple[int, ...], index: Array, dim: int, include_self: bool, dtype: np.dtype[Any] | type[Any]
) -> Array:
    """How many values meet at each place, 1 where none."""
    n = np.full(shape, int(include_self), dtype)
    add_along(n, index, dim, np.ones(index.shape, dtype))
    return np.maximum(n, np.ones((), dtype), out=n)


def average(out: Array, index: Array, dim: int, include_self: bool) -> None:
    """Divide sums by how many values met, integers towards minus infinity."""
    n = counts(out.shape, index, dim, include_self, np.float32 if index.size < EXACT else np.float64)
    if out.dtype.kind in "iu":
        np.floor_divide(out, n.astype(out.dtype), out=out)
    else:
        np.divide(out, n.astype(out.real.dtype, copy=False), out=out)


@op(
    aten=("scatter_reduce.two(input, dim, index, src, reduce, *, include_self=True)",),
    aten_gradient="scattered",
    half=None,
    masks=("index",),
    shape=shapes.same,
    batch=families.shifted,
)
def scatter_reduce_op(input: Array, index: Array, src: Array, dim: int, reduce: str, include_self: bool) -> Array:
    """`input` with `src` reduced at `index` along `dim`.  (*), (*), (*) -> (*)"""
    out = copied(input)
    reduce_into(out, index, src, dim, reduce, include_self)
    return out


def _reduced_into(out: Array, index: Array, src: Array, dim: int, reduce: str, include_self: bool) -> None:
    reduce_into(out, index, src, dim, reduce, include_self)


scatter_reduce_op.into(_reduced_into)


@scatter_reduce_op.grad("input", "src")
def _(
    g: Array,
    input: Array,
    index: Array,
    src: Array,
    out: Array,
    dim: int,
    reduce: object,
    include_self: bool,
    needs: object,
) -> tuple[Array | Tensor, ...]:
    used = src if raw(src).shape == raw(index).shape else slice_op(src, (*[slice(n) for n in raw(index).shape], ...))
    if not raw(index).size:
        return g, np.zeros(raw(src).shape, raw(src).dtype)
    if reduce in ("sum", "mean"):
        n = counts(raw(g).shape, raw(index), dim, include_self, raw(g).real.dtype) if reduce == "mean" else None
        each = g if n is None else g / n
        to_input, to_src = each, gather_op(each, index, dim)
    elif reduce == "prod":
        to_input, to_src = product_grads(g, input, index, used, dim, include_self)
    else:
        to_input, to_src = extreme_grads(g, input, index, used, out, dim, include_self)
    if not include_self:
        # places that nothing was scattered to keep the input's value
        to_input = scatter_value_op(g, index, dim, 0)
    return to_input, padded(to_src, raw(src).shape)


def extreme_grads(
    g: Array, input: Array, index: Array, src: Array, out: Array, dim: int, include_self: bool
) -> tuple[Array, ...]:
    """Gradients of amax and amin: equal extremes share."""
    at = gather_along(raw(out), raw(index), dim)
    from_src = raw(src) == at
    dtype = raw(g).dtype
    from_input = raw(input) == raw(out) if include_self else np.zeros(raw(out).shape, np.bool_)
    n, by_src = recast(from_input, dtype), recast(from_src, dtype)
    add_along(n, raw(index), dim, by_src)
    made = raw(out)  # where it is NaN, which nothing is equal to, so are gradients
    each = g / np.where((n == 0) & (made != made), made, np.maximum(n, np.ones((), dtype)))
    return each * recast(from_input, dtype), gather_op(each, index, dim) * by_src


def product_grads(g: Array, input: Array, index: Array, src: Array, dim: int, include_self: bool) -> tuple[Array, ...]:
    """Gradients of prod: the product of the others, exact also where some of them are zero."""
    i, dtype = raw(index), raw(g).dtype
    start = input if include_self else scatter_value_op(input, index, dim, 1)
    zero_in, zero_src = (
        np.asarray(raw(start) == 0),
        np.asarray(raw(src) == 0),
    )  # of samples they are tensors, and refuse
    full_in, full_src = masked_fill_op(start, zero_in, 1), masked_fill_op(src, zero_src, 1)
    rest = g * conj(scatter_reduce_op(full_in, index, full_src, dim, "prod", True))
    to_input, to_src = rest / conj(full_in), gather_op(rest, index, dim) / conj(full_src)
    if not zero_in.any() and not zero_src.any():
        return to_input, to_src
    zeros = zero_in.astype(np.int64)
    add_along(zeros, i, dim, zero_src.astype(np.int64))
    none_in, none_src = masked_fill_op(start, ~zero_in, 0), masked_fill_op(src, ~zero_src, 0)
    total = scatter_add_op(none_in, index, none_src, dim)
    at = gather_along(zeros, i, dim)
    return (
        to_input * conj(zero_factor(zeros, zero_in, total, none_in, dtype)),
        to_src * conj(zero_factor(at, zero_src, gather_op(total, index, dim), none_src, dtype)),
    )


def zero_factor(
    zeros: Array, zero: Array, total: Array | Tensor, own: Array | Tensor, dtype: np.dtype[Any]
) -> Array | Tensor:
    """The product of the zeros among the others: 1 where there are none, and zero as an expression that has the right
    derivative where there is one; `total` is the sum of all zeros, `own` the element if it is one."""
    alone = (zeros - zero == 0).astype(dtype)
    other = (zeros - zero == 1).astype(dtype)
    return alone + (total - own) * other


def check_kind(name: str, reduce: str, kinds: tuple[str, ...], words: str = "reduce argument must be either") -> None:
    """Raise RuntimeError for a reduction that does not exist."""
    if reduce not in kinds:
        got = f"got {reduce}" if words.endswith("either") else f"but got {reduce}."
        raise RuntimeError(f"{name}(): {words} {', '.join(kinds[:-1])} or {kinds[-1]}{',' * (got[0] == 'g')} {got}")


def refuse_kind(reduce: str, dtype: np.dtype[Any]) -> None:
    """Raise NotImplementedError for means of bools, which are none, and extremes of complex numbers, which have no order."""
    if (reduce == "mean" and dtype.kind == "b") or (reduce in ("amax", "amin") and dtype.kind == "c"):
        kind = older(dtypes.of(dtype))
        raise NotImplementedError(f"\"scatter_gather_tensor_cpu_reduce_{reduce}\" not implemented for '{kind}'")


def scatter_reduce_call(run: Callable[..., Any], name: str, input: Tensor, dim: int, index: Tensor, src: Tensor,
                        reduce: str, include_self: bool) -> Tensor:  # fmt: skip
    """Check the arguments of scatter_reduce and have `run` carry it out."""
    check_kind(name, reduce, KINDS)
    refuse_kind(reduce, raw(input).dtype)
    dim = checked_index(name, input, dim, index, src)
    same_dtypes(name, input, src)
    return run(scatter_reduce_op.op, (input, index, src), (dim, reduce, include_self))


@function(method=True, out="same")
@numpy_names
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with `src` reduced at `index` along `dim`: "sum", "prod", "mean", "amax" or "amin".

    Without `include_self` what is there does not count, where something arrives.  (*), (*), (*) -> (*)
    """
    return scatter_reduce_call(call.by_function, "scatter_reduce", input, dim, index, src, reduce, include_self)


@function(method=True)
def scatter_reduce_(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of `scatter_reduce`."""
    return scatter_reduce_call(call.apply_inplace, "scatter_reduce_", input, dim, index, src, reduce, include_self)


def index_reduce_call(run: Callable[..., Any], name: str, input: Tensor, dim: int, index: Tensor, source: Tensor,
                      reduce: str, include_self: bool) -> Tensor:  # fmt: skip
    """Check the arguments of index_reduce and have `run` carry it out, as scatter_reduce with an expanded index."""
    check_kind(name, reduce, ("prod", "mean", "amax", "amin"), "Expected reduce to be one of")
    refuse_kind(reduce, raw(input).dtype)
    at, source, d = prepared(name, input, dim, index, source)
    target = input if raw(input).ndim else reshape_op(input, (1,))
    shape = raw(source).shape
    spread = broadcast(reshape_op(at, (-1, *[1] * (len(shape) - d - 1))) if len(shape) - d > 1 else at, shape)
    found = run(scatter_reduce_op.op, (target, spread, source), (d, reduce, include_self))
    if run is call.apply_inplace:
        return input
    return found if raw(input).ndim else reshape_op(found, ())


@function(method=True, out="same")
@numpy_names
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with the slices of `source` reduced at `index` of dimension `dim`: "prod", "mean", "amax" or "amin"."""
    return index_reduce_call(call.by_function, "index_reduce", input, dim, index, source, reduce, include_self)


@function(method=True)
def index_reduce_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of `index_reduce`."""
    return index_reduce_call(call.apply_inplace, "index_reduce_", input, dim, index, source, reduce, include_self)


def scatter_call(
    run: Callable[..., Any],
    name: str,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any,
    value: complex | None,
    reduce: complex | str | None,
) -> Tensor:
    """Choose the operator for the arguments of scatter and have `run` carry it out."""
    if src is None:
        src = value
    if src is None:
        raise TypeError(f"{name}() missing required argument: src or value")
    constant = number(src)
    dim = checked_index(name, input, dim, index, None if constant else src)
    if not constant:
        same_dtypes(name, input, src)
    if constant:
        src = fitted(name, src, raw(input).dtype, True)[()]
    if reduce is None:
        return run(scatter_value_op.op, (input, index), (dim, src)) if constant else \
            run(scatter_op.op, (input, index, src), (dim,))  # fmt: skip
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"{name}(): reduce argument must be either add or multiply, got {reduce!r}")
    if constant:
        src = np.full(raw(index).shape, src, raw(input).dtype)
    if reduce == "add":
        return run(scatter_add_op.op, (input, index, src), (dim,))
    return run(scatter_reduce_op.op, (input, index, src), (dim, "prod", True))


@function(method=True, out="same")
@numpy_names
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | complex | None = None,
    *,
    value: complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """`input` with `src` (a tensor no smaller than index, or a number) put at `index` along `dim`.

    reduce: "add" or "multiply" combines with what is there.  Of repeated indices, any one may win.  (*), (*) -> (*)
    """
    return scatter_call(call.by_function, "scatter", input, dim, index, src, value, reduce)


@function(method=True)
def scatter_(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | complex | None = None,
    *,
    value: complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """In-place version of `scatter`."""
    return scatter_call(call.apply_inplace, "scatter_", input, dim, index, src, value, reduce)
