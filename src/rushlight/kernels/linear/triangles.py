"""Triangular matrices: solving with them, and factors that they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import triangles as reference

__all__ = ["cholesky_factor", "lu_factor", "solve_by_lu", "substitute", "substitutes"]

exports(
    # cholesky.cpp: matrices, for each the order of the first minor that is not positive definite
    cholesky="aa",
    # lu.cpp: matrices, rows exchanged, for each matrix the first pivot that is zero
    lu="aaa",
    # the same, right sides, and that pivot
    solve="aaa",
    # triangles.cpp: triangular matrices, right sides, whether the upper triangle, whether with ones on its diagonal;
    # returns whether the strides were such that it was done
    substitute="aaii>n",
)


def cholesky_factor(A: Array) -> Array:
    """L with A = L L^H in place of A, of which the lower triangle is read.  A: (*, N, N) -> (*) int32

    Returns 0, or the order of the first leading minor that is not positive definite; then the matrix holds nothing of use.
    """
    failed = np.empty(A.shape[:-2], np.int32)
    table = native(A.dtype) if A.size else None
    if table is None:
        reference.cholesky_factor(A, failed)
    else:
        whole = contiguous(A)
        table.cholesky(_batch(whole), failed)
        _put(whole, A)
    return failed


def lu_factor(A: Array) -> tuple[Array, Array]:
    """L and U with P A = L U in place of A, L below the diagonal, which counts as ones.  A: (*, M, N) -> (*, K), (*) int32

    Returns with which row each of the first K = min(M, N) was exchanged, one after another, and which pivot is the
    first that is zero, or 0, both counted from one.
    """
    pivots, zero = np.empty((*A.shape[:-2], min(A.shape[-2:])), np.int32), np.empty(A.shape[:-2], np.int32)
    table = native(A.dtype) if A.size else None
    if table is None:
        reference.lu_factor(A, pivots)
        return pivots, reference.first_zero(A)
    whole = contiguous(A)
    table.lu(_batch(whole), pivots, zero)
    _put(whole, A)
    return pivots, zero


def solve_by_lu(A: Array, x: Array) -> Array:
    """A^-1 x in place of x, and in place of A its factors, as of `lu_factor`.  A: (*, N, N), x: (*, N, M) -> (*) int32

    Returns which pivot is the first that is zero, counted from one, or 0.
    """
    table = native(A.dtype) if A.dtype == x.dtype and x.size else None
    if table is None:
        return reference.solve_by_lu(A, x)
    zero, whole, rights = np.empty(A.shape[:-2], np.int32), contiguous(A), contiguous(x)
    table.solve(_batch(whole), _batch(rights), zero)
    _put(whole, A)
    _put(rights, x)
    return zero


def _batch(x: Array) -> Array:
    """Matrices as one batch of them.  (*, M, N) -> (B, M, N)"""
    return x[None] if x.ndim == 2 else x.reshape(-1, *x.shape[-2:])


def _put(whole: Array, x: Array) -> None:
    """What a kernel made of a contiguous copy goes back."""
    if whole is not x:
        x[...] = whole


def substitutes(dtype: np.dtype[Any]) -> bool:
    """Whether there are native kernels for numbers of a dtype."""
    return native(dtype) is not None


def substitute(A: Array, x: Array, upper: bool, unit: bool = False) -> None:
    """A^-1 x in place of x, row by row; what is divided by 0 becomes infinite.  The other triangle is not read.

    A: (*, N, N), which broadcasts to x, (*, N, M).  unit: the diagonal counts as ones, and is not read either.
    """
    if not x.size:
        return
    table = native(x.dtype) if A.dtype == x.dtype else None
    whole = contiguous(x)
    batch = x.shape[:-2]
    matrices = A if A.shape[:-2] == batch else np.broadcast_to(A, (*batch, *A.shape[-2:]))
    if table is None or not table.substitute(_batch(matrices), _batch(whole), int(upper), int(unit)):
        reference.substitute(A, whole, upper, unit)
    _put(whole, x)
