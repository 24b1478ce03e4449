"""What decompositions make, by shapes: for tensors on the device meta and for estimates of memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends import lapack
from rushlight.basics.arrays import Array
from rushlight.dispatch.dims import joint_shape
from rushlight.dispatch.shapes import Made
from rushlight.ops.linear import decompositions as base
from rushlight.ops.linear import eigen, factors, large
from rushlight.ops.linear.cholesky import cholesky_inverse_op, cholesky_op, cholesky_solve_op, factor_op, positive_op
from rushlight.ops.linear.ldl import ldl_solve_op
from rushlight.ops.linear.lstsq import lstsq_op
from rushlight.ops.linear.lu import lu_op, lu_solve_op, permutation_op
from rushlight.ops.linear.matrix_functions import det_op, exp_op, pinv_op, slogdet_op
from rushlight.ops.linear.triangular import triangular_op

INT32 = np.dtype(np.int32)


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part."""
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts are of this one."""
    return dtype if dtype.kind == "c" else np.result_type(dtype, np.complex64)


def _batch(shape: tuple[int, ...], *ends: int) -> tuple[int, ...]:
    """The shape of a batch of matrices, with other last dimensions."""
    return (*shape[:-2], *ends)


@lu_solve_op.shape
def _(LU: Array, B: Array) -> list[Made]:
    return _solution(LU, B)


@ldl_solve_op.shape
def _(LD: Array, B: Array) -> list[Made]:
    return _solution(LD, B)


@base.solve_op.shape
def _(A: Array, B: Array) -> list[Made]:
    return _solution(A, B)


@base.solve_op.work
def _(A: Array, B: Array) -> int:
    if factors.are_here(A):
        return factors.bytes_of(A)
    if large.by_itself(A):
        return A.shape[-1] ** 2 * A.dtype.itemsize
    return min(A.size, base.SOLVED) * 8 + min(B.size, base.SOLVED) * 16


@triangular_op.shape
def _(A: Array, B: Array, upper: bool) -> list[Made]:
    return _solution(A, B)


def _solution(A: Array, B: Array) -> list[Made]:
    batch = joint_shape(A.shape[:-2], B.shape[:-2])
    return [Made((*batch, *B.shape[-2:]), np.result_type(A.dtype, B.dtype))]


@cholesky_solve_op.shape
def _(input: Array, input2: Array, upper: bool) -> list[Made]:
    return _solution(input2, input)


@base.singular_op.shape
def _(A: Array) -> list[Made]:
    return [Made(A.shape[:-2], INT32)]


@positive_op.shape
def _(A: Array, factor: Array) -> list[Made]:
    return [Made(A.shape[:-2], INT32)]


@base.inverse.work
def _(A: Array) -> int:
    if factors.are_here(A) and not factors.is_heavy(A):
        return factors.bytes_of(A) + A.shape[-1] ** 2 * A.dtype.itemsize
    if large.by_itself(A):
        return int(A.shape[-1] * lapack.PANEL * A.dtype.itemsize)
    return min(A.size, base.SOLVED) * 24  # A, the identity and the result in double precision


@exp_op.work
def _(A: Array) -> int:
    return int(6 * A.nbytes)


@det_op.work
@slogdet_op.work
def _(A: Array) -> int:
    return int(A.nbytes if factors.are_here(A) or large.by_itself(A) else 8 * A.size)


@base.inverse.shape
@exp_op.shape
def _(A: Array) -> list[Made]:
    return [Made(A.shape, A.dtype)]


@cholesky_op.shape
def _(A: Array, upper: bool) -> list[Made]:
    return [Made(A.shape, A.dtype)]


@factor_op.shape
def _(input: Array, upper: bool) -> list[Made]:
    return [Made(input.shape, input.dtype)]


@cholesky_inverse_op.shape
def _(input: Array, upper: bool) -> list[Made]:
    return [Made(input.shape, input.dtype)]


@base.qr_op.shape
def _(A: Array, mode: str) -> list[Made]:
    m, n = A.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return [Made(_batch(A.shape, m, k), A.dtype), Made(_batch(A.shape, k, n), A.dtype)]


@base.svd_op.shape
def _(A: Array, full_matrices: bool) -> list[Made]:
    m, n = A.shape[-2:]
    k = min(m, n)
    left, right = (m, n) if full_matrices else (k, k)
    return [Made(_batch(A.shape, m, left), A.dtype), Made(_batch(A.shape, k), _real(A.dtype)),
            Made(_batch(A.shape, right, n), A.dtype)]  # fmt: skip


@base.svd_op.work
def _(A: Array) -> int:
    return _one(A, 1, 3) if large.both_ways(A) else _doubled(A)


@base.singular_values.work
def _(A: Array) -> int:
    return _one(A, 1, 0) if large.both_ways(A) else _doubled(A)


@eigen.eigh_op.work
def _(A: Array) -> int:
    return _one(A, 0, 2) if large.by_itself(A) else _doubled(A)


@eigen.eigenvalues.work
def _(A: Array) -> int:
    return _one(A, 1, 0) if large.by_itself(A) else _doubled(A)


def _one(A: Array, copies: int, squares: int) -> int:
    """Bytes of copies of one matrix, and of so many of the lesser of its sides squared."""
    m, n = A.shape[-2:]
    return int((copies * m * n + squares * min(m, n) ** 2) * A.itemsize)


def _doubled(A: Array) -> int:
    """Bytes of what NumPy makes of matrices in double precision, which theirs is made of."""
    return 0 if A.dtype.char in "dD" else 2 * int(A.nbytes)


@eigen.eigh_op.shape
def _(A: Array, UPLO: str) -> list[Made]:
    return [Made(A.shape[:-1], _real(A.dtype)), Made(A.shape, A.dtype)]


@eigen.eig_op.shape
def _(A: Array) -> list[Made]:
    return [Made(A.shape[:-1], _complex(A.dtype)), Made(A.shape, _complex(A.dtype))]


@det_op.shape
def _(A: Array) -> list[Made]:
    return [Made(A.shape[:-2], A.dtype)]


@slogdet_op.shape
def _(A: Array) -> list[Made]:
    return [Made(A.shape[:-2], A.dtype), Made(A.shape[:-2], _real(A.dtype))]


@pinv_op.shape
def _(A: Array, atol: object, rtol: object, hermitian: bool) -> list[Made]:
    return [Made(_batch(A.shape, A.shape[-1], A.shape[-2]), A.dtype)]


@lu_op.shape
def _(A: Array) -> list[Made]:
    return [Made(A.shape, A.dtype), Made(_batch(A.shape, min(A.shape[-2:])), INT32), Made(A.shape[:-2], INT32)]


@permutation_op.shape
def _(input: Array, m: int) -> list[Made]:
    return [Made((*input.shape[:-1], m, m), np.dtype(np.bool_))]


@base.singular_values.shape
def _(A: Array) -> list[Made]:
    return [Made(_batch(A.shape, min(A.shape[-2:])), _real(A.dtype))]


@eigen.eigenvalues.shape
def _(A: Array, UPLO: str) -> list[Made]:
    return [Made(A.shape[:-1], _real(A.dtype))]


@lstsq_op.shape
def _(A: Array, B: Array, rcond: float | None) -> list[Made]:
    batch = joint_shape(A.shape[:-2], B.shape[:-2])
    return [Made((*batch, A.shape[-1], B.shape[-1]), A.dtype), Made(batch, np.dtype(np.int64))]
