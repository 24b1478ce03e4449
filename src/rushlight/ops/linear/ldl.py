"""LDL factorizations of symmetric and Hermitian matrices that need not be positive definite.

Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems", 1977: the diagonal
pivoting that LAPACK's sytf2 and hetf2 do, so that the packed factor and the pivots are theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import joint_shape
from rushlight.dispatch.registry import function, op
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.linear.decompositions import floating, guarded_solve, matrix, pack
from rushlight.tensor import Tensor

NS = "linalg"
ALPHA = (1 + np.sqrt(17)) / 8


def size(x: Any) -> Any:
    """|Re| + |Im|, which LAPACK goes by."""
    return np.abs(x.real) + np.abs(x.imag)


def choose(A: Array, k: int) -> tuple[int, int]:
    """The row to exchange with, and the size (1 or 2) of the block of D at k; a row of -1 where the column is zero."""
    n = len(A)
    here = abs(A[k, k].real) if np.iscomplexobj(A) and hermitian_of(A) else float(size(A[k, k]))
    below = size(A[k + 1 :, k])
    if k + 1 == n or max(here, below.max()) == 0:
        return (k, 1) if here else (-1, 1)
    r = k + 1 + int(below.argmax())
    largest = float(below.max())
    if here >= ALPHA * largest:
        return k, 1
    others = [*size(A[r, k:r]), *size(A[r + 1 :, r])]
    most = float(max(others))
    if here >= ALPHA * largest * (largest / most):
        return k, 1
    if float(size(A[r, r])) >= ALPHA * most:
        return r, 1
    return r, 2


def hermitian_of(A: Array) -> bool:
    """Whether the matrix at work is Hermitian: its diagonal is kept real then."""
    return bool(np.all(np.diagonal(A).imag == 0))


def exchange(A: Array, k: int, r: int, hermitian: bool) -> None:
    """Exchange rows and columns k and r > k of the lower triangle from column k on."""
    A[r + 1 :, [k, r]] = A[r + 1 :, [r, k]]
    middle = A[k + 1 : r, k].copy()
    A[k + 1 : r, k] = A[r, k + 1 : r].conj() if hermitian else A[r, k + 1 : r]
    A[r, k + 1 : r] = middle.conj() if hermitian else middle
    if hermitian:
        A[r, k] = A[r, k].conj()
    A[k, k], A[r, r] = A[r, r].copy(), A[k, k].copy()


def factor(A: Array, hermitian: bool) -> tuple[Any, Any, int]:
    """The packed lower factor of one matrix, its pivots as LAPACK gives them, and the first zero pivot from one, or 0."""
    A, n = np.tril(A), len(A)
    conj = np.conj if hermitian else np.asarray
    pivots, info, k = np.zeros(n, np.int32), 0, 0
    if hermitian and np.iscomplexobj(A):
        A[np.arange(n), np.arange(n)] = np.diagonal(A).real
    while k < n:
        r, width = choose(A, k)
        if r < 0:
            info, pivots[k], k = info or k + 1, k + 1, k + 1
            continue
        at = k + width - 1
        if r != at:
            exchange(A, at, r, hermitian)
            if width == 2:
                A[[at, r], k] = A[[r, at], k]
        if width == 1:
            column = A[k + 1 :, k].copy()
            A[k + 1 :, k + 1 :] -= np.tril(np.outer(column, conj(column)) / A[k, k])
            A[k + 1 :, k] = column / A[k, k]
            pivots[k] = r + 1
        else:
            D = np.array([[A[k, k], conj(A[k + 1, k])], [A[k + 1, k], A[k + 1, k + 1]]])
            block = A[k + 2 :, k : k + 2].copy()
            rows = np.linalg.solve(D.T, block.T).T
            A[k + 2 :, k + 2 :] -= np.tril(rows @ conj(block.T))
            A[k + 2 :, k : k + 2] = rows
            pivots[k] = pivots[k + 1] = -(r + 1)
        if hermitian and np.iscomplexobj(A):
            A[np.arange(n), np.arange(n)] = np.diagonal(A).real
        k += width
    return A, pivots, info


@op(outputs=("LD", "pivots", "info"), batch=families.leading)
def ldl_op(A: Array, hermitian: bool) -> tuple[Array, ...]:
    """Packed factors, pivots, and for each matrix 0 or the first zero pivot, counted from one."""
    LD, pivots = np.empty(A.shape, A.dtype), np.empty(A.shape[:-1], np.int32)
    info = np.zeros(A.shape[:-2], np.int32)
    for i in np.ndindex(*A.shape[:-2]):
        LD[i], pivots[i], info[i] = factor(A[i], hermitian)
    return LD, pivots, info


@ldl_op.shape
def _(A: Array) -> list[shapes.Made]:
    of_numbers = np.dtype(np.int32)
    return [shapes.packed(A), shapes.Made(A.shape[:-1], of_numbers), shapes.Made(A.shape[:-2], of_numbers)]


@ldl_op.grad("A")
def _(gs: object) -> object:
    raise NotImplementedError(
        "the derivative for 'linalg_ldl_factor' is not implemented: use linalg.solve(), or detach() the matrix"
    )


@function(ns=NS, out="same")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> tuple[Tensor, ...]:
    """The packed LDL factor, its pivots, and for each matrix 0 or a number that says it is singular.

    A: (*, N, N), of which the lower triangle is looked at -> LD (*, N, N), pivots (*, N) int32, info (*) int32.
    """
    matrix("ldl_factor_ex", A, True)
    found = ldl_op(A, hermitian)
    if check_errors:
        check_info("ldl_factor_ex", found[2])
    return pack("linalg_ldl_factor_ex", ("LD", "pivots", "info"), found)


def check_info(name: str, info: Tensor) -> None:
    """Raise RuntimeError where D is singular."""
    known = everything(info._array)
    bad = known[known > 0].ravel()
    if bad.size:
        raise RuntimeError(f"torch.linalg.{name}: The diagonal element {int(bad[0])} of D is zero: D is singular, and solving "
                           "with it would divide by zero")  # fmt: skip


@function(ns=NS, out="same")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> tuple[Tensor, ...]:
    """The packed factor and pivots of A = P L D L^T P^T (L^H if hermitian), for linalg.ldl_solve.

    A: (*, N, N), of which the lower triangle is looked at. It has no gradient.
    """
    matrix("ldl_factor", A, True)
    LD, pivots, info = ldl_op(A, hermitian)
    check_info("ldl_factor", info)
    return pack("linalg_ldl_factor", ("LD", "pivots"), (LD, pivots))


def unpacked(LD: Array, pivots: Array, hermitian: bool) -> tuple[Any, Any]:
    """M = P L and D with A = M D M^T (M^H if hermitian), of one packed factor."""
    n = len(LD)
    M, D = np.eye(n, dtype=LD.dtype), np.zeros_like(LD)
    k, steps = 0, []
    while k < n:
        width = 1 if pivots[k] > 0 else 2
        D[k : k + width, k : k + width] = np.tril(LD[k : k + width, k : k + width])
        if width == 2:
            D[k, k + 1] = LD[k + 1, k].conj() if hermitian else LD[k + 1, k]
        steps.append((k, width, abs(int(pivots[k])) - 1))
        k += width
    for k, width, r in reversed(steps):
        M[k + width :] += LD[k + width :, k : k + width] @ M[k : k + width]
        at = k + width - 1
        M[[at, r]] = M[[r, at]]
    return M, D


@op(batch=families.with_pivots)
def ldl_solve_op(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    """A^-1 B.  (*, N, N), (*, N), (*, N, K) -> (*, N, K)"""
    batch = joint_shape(LD.shape[:-2], B.shape[:-2])
    LD, pivots, B = (np.broadcast_to(x, (*batch, *x.shape[k:])) for x, k in ((LD, -2), (pivots, -1), (B, -2)))
    out = np.empty(B.shape, B.dtype)
    for i in np.ndindex(*batch):
        M, D = unpacked(LD[i], pivots[i], hermitian)
        back = M.conj().T if hermitian else M.T
        out[i] = np.linalg.solve(back, guarded_solve(D, np.linalg.solve(M, B[i])))
    return out


@ldl_solve_op.grad("B")
def _(g: object, LD: object, pivots: object, hermitian: bool) -> object:
    return ldl_solve_op(LD, pivots, g, True) if hermitian else conj(ldl_solve_op(LD, pivots, conj(g), False))


@ldl_solve_op.grad("LD")
def _(g: object) -> object:
    raise NotImplementedError(
        "the derivative for 'linalg_ldl_solve: LD' is not implemented: use linalg.solve(), or detach() the factor"
    )


@function(ns=NS, out="same")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, given what ldl_factor gave.  LD: (*, N, N), pivots: (*, N), B: (*, N, K) -> (*, N, K)"""
    matrix("ldl_solve", LD, True)
    floating("ldl_solve", B)
    if B.ndim < 2 or B.shape[-2] != LD.shape[-1] or B.dtype != LD.dtype:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected B to have matrices of {LD.shape[-1]} rows and dtype {LD.dtype}, "
                           f"got {list(B.shape)} of {B.dtype}")  # fmt: skip
    if pivots._array.dtype.kind not in "iu" or tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers of shape {list(LD.shape[:-1])}, got "
                           f"{list(pivots.shape)} of {pivots.dtype}")  # fmt: skip
    return ldl_solve_op(LD, pivots, B, hermitian)
