"""Large matrices, which LAPACK takes one by one, in their own precision: NumPy's routines make copies of all in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.backends import lapack
from rushlight.basics.arrays import Array

ROWS = 128  # from which a call for each matrix costs little


def by_itself(A: Array) -> bool:
    """Whether matrices (*, M, N) are so large, and the library has what takes them."""
    return A.size > 0 and A.shape[-1] >= ROWS and A.dtype.char in "fdFD" and lapack.has("getrf", A.dtype)


def both_ways(A: Array) -> bool:
    """As `by_itself`, of rows and columns."""
    return A.shape[-2] >= ROWS and by_itself(A)


def solutions(A: Array, B: Array, batch: tuple[int, ...]) -> Array | None:
    """A^-1 B, beside one copy of a matrix; None where the library has nothing for it.  (*, N, N), (*, N, M) -> (*batch, N, M)"""
    A, out = (
        np.broadcast_to(A, (*batch, *A.shape[-2:])),
        np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])), order="C"),
    )
    for i in np.ndindex(*batch):
        zero = lapack.solve_by_lu_in_place(np.array(A[i], order="C"), out[i])
        if zero is None:
            return None
        mark(A[i], out[i], zero)
    return out


def inverses(A: Array) -> Array | None:
    """A^-1, in place of one copy of all; None where the library has nothing for it.  (*, N, N) -> (*, N, N)"""
    out = np.array(A, order="C")
    for i in np.ndindex(*A.shape[:-2]):
        zero = lapack.inverse_in_place(out[i])
        if zero is None:
            return None
        mark(A[i], out[i], zero)
    return out


def one_by_one(find: Callable[[Array], tuple[Array, ...] | int | None], A: Array) -> tuple[Array, ...] | None:
    """What is found of each matrix, together; None where the library has nothing for it, or found nothing.  (*, M, N)"""
    found = []
    for i in np.ndindex(*A.shape[:-2]):
        made = find(A[i])
        if not isinstance(made, tuple):
            return None
        found.append(made)
    if A.ndim == 2:
        return found[0]
    return tuple(np.stack(x).reshape(*A.shape[:-2], *x[0].shape) for x in zip(*found, strict=True))


def mark(A: Array, out: Array, zero: int) -> None:
    """What was made of A: NaN if there is one in it, which pivoting may step over, infinite if a pivot is zero."""
    if np.isnan(A.min()):  # which finds one without an array of bools
        out[...] = np.nan
    elif zero:
        out[...] = np.inf


def pivots_of(A: Array) -> Array:
    """The pivots of a matrix in double precision, the first of them negative where rows were exchanged an odd number of times."""
    factor = np.array(A, order="F")
    exchanged, _ = lapack.lu_in_place(factor) or (np.empty(0), 0)
    found = np.diagonal(factor).astype(np.result_type(A.dtype, np.float64))
    if np.isnan(A.min()):  # which pivoting may step over
        found[:] = np.nan
    found[0] *= (-1) ** np.count_nonzero(exchanged != np.arange(1, len(A) + 1))
    return found
