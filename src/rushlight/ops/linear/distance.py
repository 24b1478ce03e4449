"""Distances and similarities of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import numpy_names, wrap_dim
from rushlight.dispatch.named import linalg
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.operands import check_tensor, one_number
from rushlight.dispatch.registry import NAMESPACES, function, op
from rushlight.dispatch.rules import Making, of_laid_out
from rushlight.kernels.dispatch import BLOCK, up
from rushlight.ops.elementwise.floats import as_numbers, wide, widened
from rushlight.ops.reduce.norms import euclidean
from rushlight.ops.reduce.sums import fold_of
from rushlight.tensor import Tensor

F = "nn.functional"


def unit(x: Array | Tensor, dim: int, eps: float) -> tuple[Any, Any, Any]:
    """x / max(norm, eps) along `dim`, that divisor, and 1 where it depends on x, else 0."""
    square = ops.sum(x * x, dim, True)
    norm = ops.sqrt(ops.clamp_min(square, eps * eps))
    return x / norm, norm, square > eps * eps


@op(name="cosine_similarity", promote="arith", refuse="bic", refusal=RuntimeError, batch=families.along_both)
def cosine_op(x1: Array, x2: Array, dim: int, eps: float) -> Array:
    """Sums of x1 * x2 along `dim` over the product of the norms, each at least eps.  (*), (*) -> (*)"""
    product = fold_of(np.add, lambda a, b: a * b.conj(), x1, (dim,), False, x2)
    norms = [np.maximum(euclidean(x, (dim,), False), eps) for x in (x1, x2)]
    return product / (norms[0] * norms[1])


@cosine_op.shape
def _(x1: Array, dim: int) -> list[shapes.Made]:
    return [shapes.reduced(x1, dim, False)]


def _cosine_raw(g: Array, x1: Array, x2: Array, dim: int, eps: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """As the formula below, of some rows at a time where the sums are within them."""
    some = _rows_of_cosine(x1, dim)
    if some >= len(x1) or x1.dtype != x2.dtype:
        return tuple(_cosine_slopes(g, x1, x2, dim, eps, needs))
    made = [np.empty(x1.shape, x1.dtype) if need else None for need in needs]
    for at in (slice(i, i + some) for i in range(0, len(x1), some)):
        for whole, part in zip(made, _cosine_slopes(g[at], x1[at], x2[at], dim, eps, needs), strict=True):
            if whole is not None:
                whole[at] = part
    return tuple(made)


def _rows_of_cosine(x: Array, dim: int) -> int:
    return len(x) if dim == 0 else max(BLOCK * len(x) // max(x.size, 1), 1)


def _bytes_of_cosine(x1: Array, x2: Array, dim: int, needs: tuple[bool, ...], make: Making) -> list[Any]:
    """The gradients, and what the formula makes of some rows."""
    some = min(_rows_of_cosine(x1, dim), len(x1))
    whole = some == len(x1) or x1.dtype != x2.dtype
    made = [make.gradient(i) if need else None for i, need in enumerate(needs)]
    each = x1.size // max(len(x1), 1) * (len(x1) if whole else some)
    make.work(each * wide(x1.dtype).itemsize * (3 if whole and x1.itemsize > 2 else 6))
    return made


@cosine_op.grad("x1", "x2", raw=_cosine_raw, shapes=_bytes_of_cosine)
def _cosine_slopes(
    g: Array | Tensor, x1: Array | Tensor, x2: Array | Tensor, dim: int, eps: float, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    g, x1, x2 = widened(g, as_numbers(x1, g), as_numbers(x2, g))
    h1, n1, free1 = unit(x1, dim, eps)
    h2, n2, free2 = unit(x2, dim, eps)
    c, g = ops.sum(h1 * h2, dim, True), ops.unsqueeze(g, dim)
    of_x1 = g * (h2 - h1 * (c * free1)) / n1 if needs[0] else None
    return of_x1, g * (h1 - h2 * (c * free2)) / n2 if needs[1] else None


@function(ns="")
@numpy_names
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along `dim` of the broadcast shape.  (*), (*) -> (*)"""
    for name, x in (("x1", x1), ("x2", x2)):
        check_tensor("cosine_similarity", name, x)
    eps = one_number("cosine_similarity", "eps", eps)
    if eps < 0:
        raise RuntimeError(f"cosine_similarity: eps must be greater than or equal to 0, got {eps}")
    if x1._array.shape != x2._array.shape:
        x1, x2 = ops.broadcast_tensors(x1, x2)
    dim = wrap_dim(dim, x1._array.ndim)
    if not x1._array.ndim:
        return cosine_op(x1.reshape(1), x2.reshape(1), 0, eps)
    return cosine_op(x1, x2, dim, eps)


@function(ns="")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of order `p` of x1 - x2 + eps along the last dimension.  (*, D), (*, D) -> (*)"""
    return linalg.vector_norm(x1 - x2 + one_number("pairwise_distance", "eps", eps), p, -1, keepdim)


# All pairs of rows ------------------------------------------------------------------------------------------------


def slope_of(d: Array | Tensor, norm: Array | Tensor, p: float) -> Array | Tensor:
    """The gradient of the norm of order `p` by the rows `d`, 0 where the norm is.  (N, M), (N,) -> (N, M)"""
    if p == 0:
        return d * 0
    if p == 1:
        return ops.sign(d)
    norm = ops.unsqueeze(norm, -1)
    if p == math.inf:
        return ops.sign(d) * (ops.abs(d) == norm)
    safe = ops.where(norm == 0, ops.ones_like(norm), norm)
    if p == 2:
        return d / safe
    zero = ops.where(d == 0, ops.ones_like(d), d)  # 0 to a negative power would be infinite
    return ops.sign(d) * (ops.abs(zero) / safe) ** (p - 1)


@op()
def pdist_op(input: Array, p: float) -> Array:
    """Distances of order `p` of the rows i < j of `input`, i by i.  (N, M) -> (N * (N - 1) / 2,)"""
    return backend.own_distances(input, p)


@pdist_op.shape
def _(input: Array) -> list[shapes.Made]:
    return [shapes.Made((len(input) * (len(input) - 1) // 2,), input.dtype)]


def _pdist_raw(g: Array, input: Array, out: Array, p: float) -> Array:
    return backend.own_distances_backward(*up(g, input, out), p)


@pdist_op.grad("input", raw=_pdist_raw, shapes=of_laid_out(0))
def _(g: Tensor, input: Tensor, out: Tensor, p: float) -> Tensor:
    g, input, out = widened(g, input, out)
    rows, columns = np.triu_indices(input.shape[0], 1)
    i, j = ops.from_numpy(rows), ops.from_numpy(columns)
    part = slope_of(ops.index_select(input, 0, i) - ops.index_select(input, 0, j), out, p) * ops.unsqueeze(g, -1)
    zero = ops.zeros_like(input)
    return ops.index_add(ops.index_add(zero, 0, i, part), 0, j, -part)


@function(ns="")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """Distances of order `p` of every pair of rows i < j.  (N, M) -> (N * (N - 1) / 2,)

    Raises RuntimeError for other numbers of dimensions and a negative `p`.
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"pdist only supports floating-point dtypes, got {input.dtype}")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    return pdist_op(input, float(p))


for _name in ("cosine_similarity", "pairwise_distance", "pdist"):
    NAMESPACES[F][_name] = NAMESPACES[""][_name]
