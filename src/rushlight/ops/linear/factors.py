"""What is made of the LU factors of the native kernels: solutions, inverses, determinants, in the precision of the matrices."""

from __future__ import annotations

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.arrays import Array

_TOGETHER = 1 << 16  # elements of matrices whose factors are held at once
_HEAVY = 1 << 19  # bytes


def are_here(A: Array) -> bool:
    """Whether there are kernels for matrices of this dtype, and elements."""
    return A.size > 0 and backend.substitutes(A.dtype)


def bytes_of(A: Array) -> int:
    """Bytes of the factors that `solutions` holds at once."""
    some = max(1, _TOGETHER // A.shape[-1] ** 2)
    return int(min(A.size, some * A.shape[-1] ** 2) * A.dtype.itemsize)


def solutions(A: Array, B: Array, batch: tuple[int, ...]) -> Array:
    """A^-1 B: infinite of singular matrices, NaN of those with a NaN.  (*, N, N), (*, N, M) -> (*batch, N, M)"""
    out = np.empty((*batch, *B.shape[-2:]), A.dtype)
    if not out.size:
        return out
    out[...] = B
    if A.shape[:-2] != batch:
        A = np.broadcast_to(A, (*batch, *A.shape[-2:]))
    if A.size <= _TOGETHER or A.ndim == 2:
        _solve(A, out)
        return out
    matrices, rights = A.reshape(-1, *A.shape[-2:]), out.reshape(-1, *out.shape[-2:])
    some = max(1, _TOGETHER // A.shape[-1] ** 2)
    for start in range(0, len(matrices), some):
        _solve(matrices[start : start + some], rights[start : start + some])
    return out


def _solve(A: Array, x: Array) -> None:
    """A^-1 x in place of x.  (*, N, N), (*, N, M)"""
    zero = backend.solve_by_lu(np.array(A, order="C"), x)
    if zero.any():
        x[zero > 0] = np.inf
    unknown = _unknown(A)
    if unknown is not None:
        x[unknown] = np.nan


def _unknown(A: Array) -> Array | None:
    """Which matrices have a NaN, which pivoting may step over; None where none has.  (*, M, N) -> (*) bool"""
    return (
        np.asarray(np.isnan(A).any((-2, -1))) if np.isnan(A.min()) else None
    )  # the least finds one without an array of bools


def inverses(A: Array) -> Array:
    """As `solutions`, of the identity.  (*, N, N)"""
    return solutions(A, np.eye(A.shape[-1], dtype=A.dtype), A.shape[:-2])


def is_heavy(A: Array) -> bool:
    """Whether another copy of a matrix is too much to find its inverse."""
    return A.shape[-1] ** 2 * A.itemsize > _HEAVY


def zero_pivots(A: Array) -> Array:
    """Which pivot of each matrix is the first that is zero, from one, or 0: of the factors that solve for it.  (*, N, N) -> (*) int32"""
    return backend.lu_factor(np.array(A, order="C"))[1]


def pivots_of(A: Array) -> Array:
    """The pivots, the first negative where rows were exchanged an odd number of times; NaN of matrices with a NaN.  (*, N, N) -> (*, N) float64"""
    factor = np.array(A, order="C")
    pivots, _ = backend.lu_factor(factor)
    found = factor.diagonal(0, -2, -1).astype(np.float64)
    exchanged = pivots != np.arange(1, A.shape[-1] + 1, dtype=np.int32)
    found[..., 0] *= 1 - 2 * (np.add.reduce(exchanged, -1, np.int64) % 2)
    unknown = _unknown(A)
    if unknown is not None:
        found[unknown] = np.nan
    return found
