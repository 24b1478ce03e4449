"""Substitution and factors, in NumPy."""

from __future__ import annotations

import math

import numpy as np

from rushlight.basics.arrays import Array


def substitute(A: Array, x: Array, upper: bool, unit: bool = False) -> None:
    """Solve row by row, in place of x; what is divided by 0 becomes infinite.  A: (*, N, N), x: (*, N, M)"""
    n = A.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        x[..., i, :] -= np.matmul(A[..., i : i + 1, known], x[..., known, :])[..., 0, :]
        if not unit:
            x[..., i, :] /= A[..., i, i][..., None]


def cholesky_factor(A: Array, failed: Array) -> None:
    """Factors in place, one column after another; `failed`: the order of the first minor that is not positive definite.  A: (*, N, N)"""
    failed[...] = 0
    with np.errstate(all="ignore"):
        for k in range(A.shape[-1]):
            squared = A[..., k, k].real
            failed[(failed == 0) & ~(squared > 0)] = k + 1
            A[..., k, k] = np.sqrt(squared)
            column = A[..., k + 1 :, k]
            column /= A[..., k, k, None]
            A[..., k + 1 :, k + 1 :] -= column[..., :, None] * np.conj(column)[..., None, :]
    A[...] = np.tril(A)


def lu_factor(A: Array, pivots: Array) -> None:
    """Factors in place, one column after another, of all matrices at once, and the rows exchanged.  A: (*, M, N)"""
    m, n = A.shape[-2:]
    flat, k = A.copy().reshape(math.prod(A.shape[:-2]), m, n), min(m, n)
    batch, exchanged = np.arange(len(flat)), pivots.reshape(len(flat), k)
    for j in range(k if A.size else 0):
        column = flat[:, j:, j]
        p = j + (np.abs(column.real) + np.abs(column.imag)).argmax(-1)  # the size that LAPACK goes by
        exchanged[:, j] = p + 1
        swapped = flat[batch, p].copy()
        flat[batch, p] = flat[:, j]
        flat[:, j] = swapped
        pivot = flat[:, j, j, None]
        column = flat[:, j + 1 :, j]
        np.divide(column, pivot, out=column, where=pivot != 0)
        flat[:, j + 1 :, j + 1 :] -= column[:, :, None] * flat[:, None, j, j + 1 :]
    A[...] = flat.reshape(A.shape)


def first_zero(factors: Array) -> Array:
    """Which pivot is the first that is zero, from one, or 0.  (*, M, N) -> (*) int32"""
    none = np.diagonal(factors, 0, -2, -1) == 0
    found = np.where(none.any(-1), none.argmax(-1) + 1, 0) if none.size else np.zeros(none.shape[:-1])
    return np.asarray(found, np.int32)


def solve_by_lu(A: Array, x: Array) -> Array:
    """A^-1 x in place of x, and in place of A its factors; which pivot is the first that is zero.  A: (*, N, N), x: (*, N, M)"""
    pivots = np.empty(A.shape[:-1], np.int32)
    lu_factor(A, pivots)
    for i in np.ndindex(*pivots.shape[:-1]):
        for k, p in enumerate((pivots[i] - 1).tolist()):
            x[i][[k, p]] = x[i][[p, k]]
    with np.errstate(all="ignore"):
        substitute(A, x, False, True)
        substitute(A, x, True)
    return first_zero(A)
