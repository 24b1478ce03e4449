"""Triangular matrices: what solves with them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rushlight.backends import lapack
from rushlight.backends.numpy import backend
from rushlight.basics.dtype_words import older
from rushlight.dispatch import families
from rushlight.dispatch import functions as ops
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import joint_shape
from rushlight.dispatch.registry import function, op
from rushlight.ops.elementwise.shared import opposite
from rushlight.ops.linear.decompositions import NS, followed, guarded_solve, like, matrix, mH, mT, pack
from rushlight.tensor import Tensor

_LEAF = 48  # rows that are solved for at once
_LARGE = 512  # the same by the native kernel
_MASKED = 512  # rows up to which a mask of a triangle is kept


@op(autocast="float32", shown="linalg_solve_triangular", batch=families.leading)
def triangular_op(A: Array, B: Array, upper: bool) -> Array:
    """A^-1 B of triangular matrices, whose other triangle is not read.  A: (*, N, N), B: (*, N, M) -> (*, N, M)

    Its derivatives are those by all elements of A, which are to be zero in the other triangle where they are asked for.
    """
    batch = () if A.ndim == B.ndim == 2 else joint_shape(A.shape[:-2], B.shape[:-2])
    out = np.empty((*batch, *B.shape[-2:]), np.result_type(A, B))
    out[...] = B
    native, n = backend.substitutes(out.dtype), A.shape[-1]
    if native and (n <= _LEAF or (n <= _LARGE and out.shape[-1] > 1)):
        backend.substitute(A, out, upper)
        return out
    with np.errstate(all="ignore"):
        if not A.diagonal(0, -2, -1).all():
            backend.substitute(A, out, upper)
        elif n <= _LEAF or (native and out.shape[-1] > 1) or not by_library(A, out, upper):
            # LAPACK, which solves for small parts where no kernel does, looks at all of them
            _by_halves(A if native else np.triu(A) if upper else np.tril(A), out, upper)
    return out


def clear_above(A: Array) -> Array:
    """Zeros above the diagonal, in place.  (*, N, N) -> (*, N, N)"""
    n = A.shape[-1]
    if n <= _MASKED:
        np.copyto(A, 0, where=_above(n))
        return A
    for i in range(n - 1):
        A[..., i, i + 1 :] = 0
    return A


@functools.lru_cache(8)
def _above(n: int) -> Array:
    """Where a matrix is above its diagonal.  -> (N, N) bool"""
    return ~np.tri(n, dtype=bool)


def by_library(A: Array, x: Array, upper: bool, unit: bool = False) -> bool:
    """Solve by BLAS, one matrix after another; whether it was done.  In place of x.

    The other triangle of A is not read, nor, with `unit`, the diagonal, which counts as ones.
    """
    if not (lapack.has("trsm", x.dtype) and A.dtype == x.dtype and x.flags.c_contiguous):
        return False
    if A.shape[:-2] != x.shape[:-2]:
        A = np.broadcast_to(A, (*x.shape[:-2], *A.shape[-2:]))
    for i in np.ndindex(*x.shape[:-2]):
        if not lapack.solve_in_place(A[i], x[i], upper, unit):
            lapack.solve_in_place(A[i].copy(), x[i], upper, unit)
    return True


def _by_halves(A: Array, x: Array, upper: bool) -> None:
    """Solve for one half, then for the other without what the first gives: most of it is products.  In place of x."""
    n = A.shape[-1]
    native = backend.substitutes(x.dtype)
    if n <= (_LARGE if native else _LEAF):
        (backend.substitute if native else _at_once)(A, x, upper)
        return
    low, high = slice(0, n // 2), slice(n // 2, n)
    first, second = (high, low) if upper else (low, high)
    _by_halves(A[..., first, first], x[..., first, :], upper)
    x[..., second, :] -= backend.matmul(A[..., second, first], x[..., first, :])
    _by_halves(A[..., second, second], x[..., second, :], upper)


def _at_once(A: Array, x: Array, upper: bool) -> None:
    """Solve by LAPACK, or, for more columns than rows, with the inverse where that is finite.  In place of x."""
    if not upper:  # LAPACK looks for pivots, and of an upper triangle takes the diagonal: this is back substitution
        A, x = A[..., ::-1, ::-1], x[..., ::-1, :]
    n = A.shape[-1]
    back = guarded_solve(A, np.eye(n, dtype=A.dtype)) if x.shape[-1] > n else None
    usable = back is not None and np.isfinite(back).all()
    x[...] = backend.matmul(back, x) if usable else guarded_solve(A, x)


@triangular_op.grad("A", "B", uses={"A": "A out", "B": "A"})
def _(g: Array | Tensor, A: Array | Tensor, out: Array | Tensor | None, upper: bool) -> tuple[Any, ...]:
    gB = triangular_op(mH(A), g, not upper)
    return None if out is None else opposite(gB @ mH(out)), gB


@function(ns=NS, out="same")
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """X with A X = B (or X A = B) for triangular A, whose other triangle is not looked at."""
    matrix("solve_triangular", A, True)
    matrix("solve_triangular", B, letter="B")
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    if unitriangular or followed(A):  # its gradient is that of the triangle
        A = ops.triu(A, int(unitriangular)) if upper else ops.tril(A, -int(unitriangular))
    if unitriangular:
        A = A + like(np.eye(A.shape[-1]), A)
    return triangular_op(A, B, upper) if left else mT(triangular_op(mT(A), mT(B), not upper))


def of_two_types(b: Tensor, A: Tensor) -> str:
    """That what is solved for and the matrix are of two dtypes."""
    return f"Expected b and A to have the same dtype, but found b of type {older(b.dtype)} and A of type {older(A.dtype)} instead"


def check_fits(name: str, b: Tensor, A: Tensor) -> None:
    """Raise RuntimeError unless b has columns of as many elements as the matrices A, which are square, have."""
    if b.ndim < 2 or A.ndim < 2:
        which, x = ("b", b) if b.ndim < 2 else ("A", A)
        raise RuntimeError(
            f"{name}: Expected {which} to have at least 2 dimensions, but it has {x.ndim} dimensions instead"
        )
    if A.shape[-1] == A.shape[-2] != b.shape[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {A.shape[-1]} by {A.shape[-1]} but each b "
                           f"matrix is {b.shape[-2]} by {b.shape[-1]}")  # fmt: skip


@function(out="same", autocast="float32")
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> tuple[Tensor, ...]:  # fmt: skip
    """Deprecated: use linalg.solve_triangular.  The solution, and a copy of A."""
    if input.dtype is not A.dtype:
        raise RuntimeError(f"triangular_solve: {of_two_types(input, A)}")
    check_fits("triangular_solve", input, A)
    x = solve_triangular(mT(A) if transpose else A, input, upper=upper != transpose, unitriangular=unitriangular)
    return pack("triangular_solve", ("solution", "cloned_coefficient"), (x, A.clone()))


Tensor.triangular_solve = triangular_solve  # type: ignore[assignment, method-assign]
