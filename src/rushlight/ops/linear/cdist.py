"""cdist: distances between all pairs of rows of two matrices, in blocks that bound the memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import common_shape
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import NAMESPACES, function, op
from rushlight.dispatch.rules import Making, of_laid_out
from rushlight.kernels.dispatch import FLOAT32, is_half, summed, up
from rushlight.kernels.pointwise.distances import NORMS
from rushlight.kernels.reference.distances import BLOCK
from rushlight.ops.shape.reshape import broadcast
from rushlight.ops.shape.views import unsqueeze
from rushlight.tensor import Tensor

SHORT = 64  # elements of rows up to which a product of longer ones costs less than passes over the distances
MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def euclidean(x1: Array, x2: Array) -> Array:
    """Euclidean distances by one matrix product: |a|^2 + |b|^2 - 2 a.b"""
    a2, b2 = (summed("...k,...k->...", x, x)[..., None] for x in (x1, x2))
    if x1.shape[-1] <= SHORT:  # the squares are two more summands, which cost less than to go through the result again
        left = np.concatenate([x1 * -2, a2, np.ones_like(a2)], -1)
        out = backend.matmul(left, np.concatenate([x2, np.ones_like(b2), b2], -1).swapaxes(-1, -2))
    else:
        out = backend.matmul(x1, x2.swapaxes(-1, -2))
        out *= -2
        out += a2
        out += b2.swapaxes(-1, -2)
    backend.maximum(out, 0, out=out)
    return backend.sqrt(out, out=out)


@op(autocast="float32", batch=families.distances)
def cdist_op(x1: Array, x2: Array, p: float, product: bool) -> Array:
    """Distances of all pairs of rows.  (*, P, M), (*, R, M) -> (*, P, R)"""
    if x1.shape[-1] == 0 or 0 in x1.shape or 0 in x2.shape:
        return np.zeros((*x1.shape[:-1], x2.shape[-2]), x1.dtype)
    if product:
        return euclidean(x1, x2)
    return backend.distances(x1, x2, p)


@cdist_op.shape
def _(x1: Array, x2: Array) -> list[shapes.Made]:
    return [shapes.Made((*x1.shape[:-1], x2.shape[-2]), x1.dtype)]


def _block_of_differences(x1: Array, x2: Array) -> int:
    """The bytes of those that exist at once where a norm has no kernel."""
    each = max(x2.shape[-2] * x2.shape[-1], 1)
    return min(max(BLOCK // each, 1), x1.shape[-2]) * each * x1.itemsize


@cdist_op.work
def _(x1: Array, x2: Array, p: float, product: bool) -> int:
    return 0 if product or p in NORMS else 2 * _block_of_differences(x1, x2)


def cdist_grads(
    g: Array, x1: Array, x2: Array, out: Array, p: float, product: bool, needs: tuple[bool, bool]
) -> tuple[Any, ...]:
    """Both gradients, in blocks; where distances came of a product, by products with the weights g / distance."""
    g, x1, x2, out = up(g, x1, x2, out)
    if p == 2 and product:
        w = np.divide(g, out, out=np.zeros(out.shape, out.dtype), where=out != 0)
        return (weighted(w, x1, x2) if needs[0] else None,
                weighted(w.swapaxes(-1, -2), x2, x1) if needs[1] else None)  # fmt: skip
    of_x1, of_x2 = backend.distances_backward(g, x1, x2, out, p)
    return of_x1, of_x2


def weighted(w: Array, x: Array, other: Array) -> Array:
    """The sums over j of w[i, j] * (x[i] - other[j])."""
    found: Array = w.sum(-1)[..., None] * x
    found -= backend.matmul(w, other)
    return found


def _bytes_of_grads(
    g: Array, x1: Array, x2: Array, out: Array, p: float, product: bool, needs: tuple[bool, bool], make: Making
) -> Any:
    half = is_half(x1.dtype)  # all are copied to float32, and so are the gradients
    copies = [make.array(x.shape, FLOAT32) for x in (g, x1, x2, out)] if half else []
    g, x1, x2, out = copies or (g, x1, x2, out)

    def gradient(i: int) -> Array:
        return make.array((x1, x2)[i].shape, FLOAT32) if half else make.gradient(i)

    if p != 2 or not product:
        if p in NORMS and not half:
            return _of_kernel(g, needs, make)
        found = [gradient(i) if needs[i] or p not in NORMS else None for i in range(2)]
        if p not in NORMS:
            make.work(_block_of_differences(x1, x2) * 9 // 4)  # with their sizes, and where those are 0
        return found
    make.work(out.nbytes + out.size)  # the weights, and where there are any
    weights = make.array(out.shape, out.dtype)
    made: list[Any] = [None, None]
    for i, x in enumerate((x1, x2)):
        made[i] = gradient(i) if needs[i] else None
        make.work(x.nbytes if needs[i] else 0)
    del weights
    return made


_of_kernel = of_laid_out(0, 1)


@cdist_op.grad("x1", "x2", raw=cdist_grads, shapes=_bytes_of_grads)
def _(g: Tensor, x1: Tensor, x2: Tensor, p: float) -> tuple[Tensor, ...]:
    # for second order: through the differences themselves
    d = unsqueeze(x1, -2) - unsqueeze(x2, -3)
    slope = smooth_slopes(d, p) * unsqueeze(g, -1)
    return slope.sum(-2), -slope.sum(-3)


def smooth_slopes(d: Tensor, p: float) -> Any:
    """The derivative of the p-norms of the rows of `d` by their elements, 0 where there is none, from operators."""
    space = NAMESPACES[""]
    sign = space["sign"](d)
    if p == 0:
        return sign * 0
    if p == 1:
        return sign
    if p == 2:  # curved across the difference too, where it has coordinates of 0
        total = (d * d).sum(-1, keepdim=True)
        none = total == 0
        return d / total.masked_fill(none, 1).sqrt() * (~none).to(d.dtype)
    size = space["abs"](d)
    if p == math.inf:
        return sign * (size == space["amax"](size, -1, True)).to(d.dtype)
    apart = (d != 0).to(d.dtype)
    size = size.masked_fill(d == 0, 1)
    total = (size**p * apart).sum(-1, keepdim=True)
    dist = total.masked_fill(total == 0, 1) ** (1 / p)
    return sign * (size / dist) ** (p - 1) * apart


@function()
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: object = MODES[0]) -> Tensor:
    """The p-norm distances of all pairs of rows, batches broadcast.  (*, P, M), (*, R, M) -> (*, P, R)

    compute_mode: whether Euclidean distances go by a matrix product, faster and less exact: with more than 25 rows
    ("use_mm_for_euclid_dist_if_necessary"), always ("use_mm_...") or never ("donot_use_mm_...").
    """
    a, b = raw(x1), raw(x2)
    for name, x in (("X1", a), ("X2", b)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if x.dtype.kind not in "fV":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {dtypes.of(x.dtype)}")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"cdist: X1 and X2 must have the same dtype, got {dtypes.of(a.dtype)} and {dtypes.of(b.dtype)}"
        )
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode is None:
        compute_mode = MODES[0]
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    lead = common_shape(a.shape[:-2], b.shape[:-2])
    if lead is None:
        raise RuntimeError(
            f"cdist: the batch dimensions of shapes {list(a.shape)} and {list(b.shape)} do not broadcast"
        )
    x1, x2 = (x if raw(x).shape[:-2] == lead else broadcast(x, (*lead, *raw(x).shape[-2:])) for x in (x1, x2))
    many = a.shape[-2] > 25 or b.shape[-2] > 25
    product = p == 2 and (compute_mode == MODES[1] or (compute_mode == MODES[0] and many))
    return cdist_op(x1, x2, float(p), product)
