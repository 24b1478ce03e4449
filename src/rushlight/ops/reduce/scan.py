"""Running results along a dimension: cumsum, cumprod, cummax, cummin, logcumsumexp; differences, trapezoids."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import dtype
from rushlight.basics.naming import called
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import numpy_names, wrap_dim
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import numpy_dtype
from rushlight.dispatch.registry import NAMESPACES, function, op
from rushlight.dispatch.results import named
from rushlight.dispatch.rules import Making
from rushlight.kernels.reference.scans import ends
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.elementwise.complex_log import complex_logaddexp
from rushlight.ops.elementwise.floats import wide, widened
from rushlight.ops.elementwise.shared import keep, none_is_zero, parted
from rushlight.ops.index.scatter import gather_adjoint
from rushlight.ops.reduce.extrema import ordered
from rushlight.ops.reduce.sums import in_dtype, tensor_argument
from rushlight.ops.shape.join import cat_op
from rushlight.ops.shape.reshape import slice_op
from rushlight.tensor import Tensor

BLOCK, LINES = 1 << 17, 2048  # elements of which factors are made together, and lines


@op(aten_call="running", half=None, linear=True, shape=shapes.same, batch=families.shifted)
def cumsum_op(input: Array, dim: int, reverse: bool = False) -> Array:
    """Running sums along `dim`, from its end where `reverse`.  (*) -> (*)"""
    return backend.running(np.add, input, dim, reverse)


def _working(input: Array, dim: int) -> int:
    """The bytes of a piece of an array with gaps: laid out, or along its first dimension in float64."""
    if not input.ndim or input.flags.c_contiguous:
        return 0
    if not dim % input.ndim:
        return 2 * min(input.size, BLOCK // 2) * input.itemsize
    rows = max(1, BLOCK // 2 * len(input) // max(input.size, 1))
    return min(rows, len(input)) * (input.nbytes // max(len(input), 1))


cumsum_op.op.work(_working)
cumsum_op.grad("input")(lambda g, dim, reverse: cumsum_op(g, dim, not reverse))


@op(
    aten_call="running",
    aten_gradient="running_product",
    half=None,
    shape=shapes.same,
    batch=families.shifted,
)
def cumprod_op(input: Array, dim: int, reverse: bool = False) -> Array:
    """Running products along `dim`, from its end where `reverse`.  (*) -> (*)"""
    return backend.running(np.multiply, input, dim, reverse)


cumprod_op.op.work(_working)


@cumprod_op.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor, dim: int, reverse: bool) -> Array | Tensor:
    x = raw(input)
    if not x.ndim or x.shape[dim] <= 1:
        return g
    if not getattr(x, "interpreted", False) and none_is_zero(x):
        return parted(cumsum_op(g * conj(out), dim, not reverse), conj(input))
    # With zeros: what precedes an element, times a sum over what follows it, taken by a recurrence without division.
    n = x.shape[dim]
    one = np.ones((*x.shape[:dim], 1, *x.shape[dim + 1 :]), x.dtype)
    if reverse:
        before = join(slice_of(out, dim, 1, n), one, dim)
    else:
        before = join(one, slice_of(out, dim, 0, n - 1), dim)
    return conj(before) * recurrence(g, conj(input), dim, not reverse)


def slice_of(x: Array | Tensor, dim: int, start: int, stop: int) -> Array | Tensor:
    """Elements start to stop along `dim`."""
    return slice_op(x, ends(raw(x).ndim, dim, start, stop))


def join(a: Array | Tensor, b: Array | Tensor, dim: int) -> Array | Tensor:
    """Two arrays or tensors one after the other along `dim`."""
    return cat_op((a, b), dim)


@op(batch=families.shifted)
def recurrence(input: Array, factor: Array, dim: int, reverse: bool) -> Array:
    """out[k] = input[k] + factor[k-1] * out[k-1] along `dim`; from its end: factor[k+1] * out[k+1].  (*), (*) -> (*)

    Note the place of the factor: it belongs to the element that `out` comes from.
    """
    out = np.array(np.broadcast_to(input, np.broadcast_shapes(input.shape, factor.shape)),
                   np.result_type(input, factor))  # fmt: skip
    rows, factors = np.moveaxis(out, dim, 0), np.moveaxis(np.broadcast_to(factor, out.shape), dim, 0)
    order = range(len(rows) - 2, -1, -1) if reverse else range(1, len(rows))
    for k in order:
        j = k + 1 if reverse else k - 1
        rows[k] += factors[j] * rows[j]
    return out


@recurrence.grad("input", "factor", uses={"input": "factor", "factor": "factor out"})
def _(g: Array | Tensor, factor: Array | Tensor, out: Array | None, dim: int, reverse: bool) -> tuple[Any, ...]:
    # The adjoint runs the other way.
    back = adjoint_recurrence(g, conj(factor), dim, not reverse)
    return back, None if out is None else shift(back, dim, 1 if reverse else -1) * conj(out)


def shift(x: Array | Tensor, dim: int, by: int) -> Array | Tensor:
    """`x` moved along `dim` by one place, forwards for 1, backwards for -1, zeros moving in."""
    n, shape = raw(x).shape[dim], raw(x).shape
    edge = np.zeros((*shape[:dim], 1, *shape[dim + 1 :]), raw(x).dtype)
    return join(edge, slice_of(x, dim, 0, n - 1), dim) if by > 0 else join(slice_of(x, dim, 1, n), edge, dim)


def adjoint_recurrence(g: Array | Tensor, factor: Array | Tensor, dim: int, reverse: bool) -> Tensor:
    """out[k] = g[k] + factor[k] * out[k-1] along `dim`; from its end factor[k] * out[k+1]."""
    return recurrence(g, shift(factor, dim, 1 if reverse else -1), dim, reverse)


@op(aten_gradient="running_logsumexp", half=None, shape=shapes.same, batch=families.shifted)
def logcumsumexp_op(input: Array, dim: int) -> Array:
    """Logarithms of the running sums of exponentials along `dim`.  (*) -> (*)"""
    if input.dtype.kind != "c":
        return backend.running(np.logaddexp, input, dim)
    out = input.copy()
    out[np.isnan(out)] = complex(np.nan, np.nan)
    rows = np.moveaxis(out, dim, 0) if input.ndim else out.reshape(1)
    for k in range(1, len(rows)):
        rows[k] = complex_logaddexp(rows[k], rows[k - 1])  # the angle is about that of the last of equal size
    return out


def _slopes(g: Array, input: Array, out: Array, dim: int) -> object:
    """As the formula below, of some lines and places along them at a time, of 16 bits in float32."""
    if not out.size or not out.ndim:
        return _log_slopes(g, input, out, dim)
    shape, lines, some = _in_blocks(out, dim)
    n = shape[1]
    g, x, y = (np.broadcast_to(each, out.shape).reshape(shape) for each in (g, input, out))
    found = np.empty(shape, np.result_type(g, y))
    dtype = wide(found.dtype)
    for first in range(0, shape[0], lines):
        last, part = None, slice(first, first + lines)
        for stop in range(n, 0, -some):
            start = max(stop - some, 0)
            at, beyond = (part, slice(start, min(stop, n - 1))), (part, slice(start + 1, stop + 1))
            factors = np.ascontiguousarray(conj(exp_difference(*widened(y[at], y[beyond]))).swapaxes(0, 1))
            at = part, slice(start, stop)
            rows = np.array(g[at].swapaxes(0, 1), dtype, order="C")
            last = running(rows, factors, last)
            found[at] = conj(exp_difference(*widened(x[at], y[at]))) * rows.swapaxes(0, 1)
    return found.reshape(out.shape)


def _in_blocks(out: Array, dim: int) -> tuple[tuple[int, int, int], int, int]:
    """Its shape as (before, along, behind) `dim`; how many lines, and places along them, are computed with together."""
    n, behind = out.shape[dim], math.prod(out.shape[dim + 1 :])
    before, lines = out.size // (n * behind), max(1, LINES // behind)
    return (before, n, behind), lines, max(1, BLOCK // (min(lines, before) * behind))


def running(rows: Array, factors: Array, last: Array | None) -> Array:
    """rows[k] += factors[k] * rows[k + 1] from the end, where `last` is, if anything; the first of them."""
    for k in range(len(rows) - 1, -1, -1):
        if last is not None:
            rows[k] += factors[k] * last
        last = rows[k]
    return rows[0].copy()


def _bytes_of_slopes(out: Array, dim: int, make: Making) -> Array:
    """The gradient, and the factors of a block with what they are made of."""
    made = make.gradient(0)
    if out.size and out.ndim:
        (before, n, behind), lines, some = _in_blocks(out, dim)
        quarters = 25 if out.itemsize == 2 else 17  # of 16 bits with two float32 copies
        make.work(min(lines, before) * min(some, n) * behind * wide(out.dtype).itemsize * quarters // 4)
    return made


@logcumsumexp_op.grad("input", raw=_slopes, shapes=_bytes_of_slopes)
def _log_slopes(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor, dim: int) -> Array | Tensor:
    if not raw(input).ndim:
        return g
    g, input, out = widened(g, input, out)
    # sum over i >= k of g[i] exp(x[k] - out[i]), as exp(x[k] - out[k]) times a recurrence whose factors, exp(out[k] -
    # out[k+1]), never overflow: the running sum only grows.
    n = raw(out).shape[dim]
    step = exp_difference(slice_of(out, dim, 0, n - 1), slice_of(out, dim, 1, n)) if n else out
    edge = np.zeros((*raw(out).shape[:dim], 1, *raw(out).shape[dim + 1 :]), raw(out).dtype)
    factor = conj(join(edge, step, dim)) if n else conj(out)
    return conj(exp_difference(input, out)) * recurrence(g, factor, dim, True)


def exp_difference(a: Array | Tensor, b: Array | Tensor) -> Array:
    """exp(a - b), 0 where either is -inf."""
    alive = ~(np.isneginf(raw(a).real) | np.isneginf(raw(b).real))
    if alive.all():
        return NAMESPACES[""]["exp"](a - b)
    return keep(NAMESPACES[""]["exp"](keep(a, alive) - keep(b, alive)), alive)


# Extrema so far ------------------------------------------------------------------------------------


def _running_grad(g: Array | Tensor, indices: Array | Tensor, input_shape: tuple[int, ...], dim: int) -> Array | Tensor:
    return gather_adjoint(g, indices, input_shape, dim)


@op(
    aten=("cummax(input, dim)",),
    outputs=("values", "indices"),
    differentiable=(0,),
    half=None,
    grads={"input": _running_grad},
    shape=shapes.with_indices,
    batch=families.shifted,
)
def cummax_op(input: Array, dim: int) -> tuple[Array, ...]:
    """The largest elements so far along `dim` and where they are.  (*) -> (*), (*)"""
    return backend.running_extreme(input, dim, False)


@op(
    aten=("cummin(input, dim)",),
    outputs=("values", "indices"),
    differentiable=(0,),
    half=None,
    grads={"input": _running_grad},
    shape=shapes.with_indices,
    batch=families.shifted,
)
def cummin_op(input: Array, dim: int) -> tuple[Array, ...]:
    """The smallest elements so far along `dim` and where they are.  (*) -> (*), (*)"""
    return backend.running_extreme(input, dim, True)


# Public functions ----------------------------------------------------------------------------------


@function(method=True, out="computed")
@numpy_names
def cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Running sums along `dim`; of integers in int64.  (*) -> (*)"""
    x = in_dtype("cumsum", input, dtype)
    return cumsum_op(x, wrap_dim(dim, raw(x).ndim))


@function(method=True, out="computed")
@numpy_names
def cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Running products along `dim`; of integers in int64.  The gradient is exact also at zeros.  (*) -> (*)"""
    x = in_dtype("cumprod", input, dtype)
    return cumprod_op(x, wrap_dim(dim, raw(x).ndim))


def _in_place(name: str, run: Any) -> Callable[..., Any]:
    def inplace(self: Any, dim: int, *, dtype: dtype | None = None) -> Tensor:
        if dtype is not None and numpy_dtype(name, dtype) != self._array.dtype:
            raise RuntimeError(f"{name}_(): the dtype {dtype} must be that of the tensor, {self.dtype}, as it is "
                               "changed in place")  # fmt: skip

        if self._held.dtype.kind == "b":
            raise RuntimeError(f"{name}_(): a bool tensor cannot hold the result: use {name}(), whose result is int64")
        return call.apply_inplace(run.op, (self,), (wrap_dim(dim, self._array.ndim), False))

    return function(method=True, ns="Tensor")(called(inplace, f"{name}_", f"In-place version of `{name}`."))


cumsum_, cumprod_ = _in_place("cumsum", cumsum_op), _in_place("cumprod", cumprod_op)


@function(method=True, out="same")
@numpy_names
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Logarithms of the running sums of exponentials along `dim`, without overflow.  (*) -> (*)"""
    array = tensor_argument("logcumsumexp", input)
    if array.dtype.kind in "biu":
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{older(dtypes.of(array.dtype))}': convert "
                                  "it with .float()")  # fmt: skip
    return logcumsumexp_op(input, wrap_dim(dim, array.ndim))


_cummax, _cummin = named("cummax", "values", "indices"), named("cummin", "values", "indices")


@function(method=True, out="same")
@numpy_names
def cummax(input: Tensor, dim: int) -> tuple[Tensor, ...]:
    """The largest elements so far along `dim` and their indices.  (*) -> (*), (*)"""
    return _cummax(*cummax_op(input, wrap_dim(dim, ordered("cummax", input).ndim)))


@function(method=True, out="same")
@numpy_names
def cummin(input: Tensor, dim: int) -> tuple[Tensor, ...]:
    """The smallest elements so far along `dim` and their indices.  (*) -> (*), (*)"""
    return _cummin(*cummin_op(input, wrap_dim(dim, ordered("cummin", input).ndim)))
