"""LU factorizations and what solves with them.

Gradients of the packed factor: W. Roth et al., as for all triangular factors: of A = P L U,
dA = P L (tril(X, -1) + triu(X)) U with X = L^-1 P^T dA U^-1; wide and tall matrices by blocks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends import lapack
from rushlight.backends.numpy import backend
from rushlight.basics import caller
from rushlight.dispatch import families
from rushlight.dispatch.call import write_out
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import joint_shape
from rushlight.dispatch.named import named
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function, op
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.elementwise.shared import opposite, plus
from rushlight.ops.linear.decompositions import first_bad, floating, like, lower, matrix, mH, mT, pack, upper
from rushlight.ops.linear.triangular import by_library, triangular_op
from rushlight.tensor import Tensor, wrap

NS = "linalg"
_TOGETHER = 48  # rows up to which the matrices of a batch are solved for together
_FEW = 100  # matrices up to which their exchanges are made one by one


def factored(A: Array) -> tuple[Any, Any]:
    """The factor with L below the diagonal and U from it on, and the rows exchanged, counted from one, as LAPACK does.

    It lies column by column in memory.
    """
    m, n = A.shape[-2:]
    LU = np.empty((*A.shape[:-2], n, m), A.dtype).swapaxes(-1, -2)
    if backend.substitutes(A.dtype) or not lapack.has("getrf", A.dtype) or math.prod(A.shape[:-2]) > 4 * min(m, n):
        rows = np.array(A, order="C")
        pivots, _ = backend.lu_factor(rows)
        LU[...] = rows
        return LU, pivots
    LU[...] = A
    pivots = np.empty((*A.shape[:-2], min(m, n)), np.int32)
    for i in np.ndindex(*A.shape[:-2]):
        pivots[i], _ = lapack.lu_in_place(LU[i]) or (0, 0)
    spread_nan(LU)
    return LU, pivots


def spread_nan(LU: Array) -> None:
    """Make NaN, in place, what comes of a pivot that is NaN: there are libraries that do not divide by it."""
    nan = np.isnan(np.diagonal(LU, 0, -2, -1))
    for i in map(tuple, np.argwhere(nan.any(-1))) if nan.any() else ():
        first = int(nan[i].argmax())
        LU[i][first + 1 :, first:] = np.nan


def first_zero_pivot(A: Array) -> Array:
    """Which diagonal element of U is the first to be zero, from 1; the order where rounding hides it.  (*, N, N) -> (*)"""
    zero = np.diagonal(factored(A)[0], axis1=-2, axis2=-1) == 0
    return np.where(zero.any(-1), zero.argmax(-1) + 1, A.shape[-1]).astype(np.int32)


def row_orders(pivots: Array, m: int) -> Array:
    """Which row stands where after exchanges one after another: P^T x = x[order] of A = P L U.  (*, K) -> (*, M)"""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    orders = np.broadcast_to(np.arange(m), (len(flat), m)).copy()
    if len(flat) <= _FEW:  # lists are faster for a few, arrays for many
        for order, exchanges in zip(orders, (flat - 1).tolist(), strict=True):
            order[:] = _exchange(list(range(m)), exchanges)
        return orders.reshape(*pivots.shape[:-1], m)
    rows = np.arange(len(flat))
    for j in range(flat.shape[1]):
        p = flat[:, j] - 1
        former = orders[rows, j].copy()
        orders[rows, j] = orders[rows, p]
        orders[rows, p] = former
    return orders.reshape(*pivots.shape[:-1], m)


def _exchange(order: list[int], pivots: list[int]) -> list[int]:
    """A list whose elements were exchanged, the first with that at the first pivot, and so on."""
    for j, p in enumerate(pivots):
        order[j], order[p] = order[p], order[j]
    return order


def permutation(pivots: Array, m: int) -> Array:
    """The matrices P of A = P L U, of exchanges one after another.  (*, K) -> (*, M, M) bool"""
    return np.arange(m)[:, None] == row_orders(pivots, m)[..., None, :]


def permutation_like(pivots: Array | Tensor, x: Array | Tensor, words: str = "") -> Any:
    """P, in the dtype and kind of `x`.  words: of the error for exchanges beyond the rows, where they may come from a user."""
    check_exchanges(pivots, raw(x).shape[-2], words)
    return cast(permutation_op(pivots, raw(x).shape[-2]), raw(x).dtype)


def check_exchanges(pivots: Array | Tensor, rows: int, words: str) -> None:
    """Raise RuntimeError, of such words, for exchanges beyond the rows, where there are words."""
    given = everything(raw(pivots)) if words else np.empty(0)
    if given.size and not (given.min() >= 1 and given.max() <= rows):
        raise RuntimeError(
            f"{words}: got numbers from {given.min()} to {given.max()}. Did you properly pass the result of lu_factor?"
        )


@op(name="lu_permutation", half=None, batch=families.leading)
def permutation_op(input: Array, m: int) -> Array:
    """As `permutation`.  (*, K) -> (*, M, M) bool"""
    return permutation(input, m)


@op(autocast="float32", outputs=("LU", "pivots", "info"), differentiable=(0,), batch=families.leading)
def lu_op(A: Array) -> tuple[Array, ...]:
    """The packed factor, the exchanges, and for each matrix 0 or the first zero on the diagonal of U, counted from one."""
    LU, pivots = factored(A)
    diagonal = np.diagonal(LU, 0, -2, -1)
    zero = diagonal == 0
    return LU, pivots, np.where(zero.any(-1), zero.argmax(-1) + 1 if zero.shape[-1] else 0, 0).astype(np.int32)


@lu_op.grad("A")
def _(g: Array | Tensor, LU: Array | Tensor, pivots: Array | Tensor) -> Array:
    m, n = raw(LU).shape[-2:]
    k = min(m, n)
    square, g1 = LU[..., :k, :k], g[..., :k, :k]
    L, U = parts(square)
    gL, gU = lower(g1, -1), upper(g1)
    below = mT(triangular_op(conj_of(U), mT(g[..., k:, :]), True)) if m > n else None  # of the rows below: gL2 U^-H
    beside = triangular_op(mH(L), g[..., k:], True) if n > m else None
    inner_L, inner_U = mH(L) @ gL, gU @ mH(U)
    if beside is not None:
        inner_L = inner_L - g[..., k:] @ mH(LU[..., k:])
    if below is not None:
        inner_U = inner_U - mH(LU[..., k:, :]) @ g[..., k:, :]
    inner = lower(inner_L, -1) + upper(inner_U)
    found = mT(triangular_op(conj_of(U), mT(triangular_op(mH(L), inner, True)), True))
    if beside is not None:
        found = named.cat([found, beside], -1)
    if below is not None:
        found = named.cat([found, below], -2)
    return exchanged(found, pivots, False)


def conj_of(x: Array | Tensor) -> Any:
    """The complex conjugate."""
    return mT(mH(x))


def check_pivot(name: str, pivot: bool) -> None:
    """Raise RuntimeError unless rows are exchanged."""
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU: pass pivot=True")


@function(ns=NS, out="same")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """The packed LU factor, the exchanges, and for each matrix 0 or a number that says it is singular.

    A: (*, M, N) -> LU (*, M, N), pivots (*, min(M, N)) int32, info (*) int32.
    """
    matrix("lu_factor_ex", A)
    check_pivot("linalg.lu_factor", pivot)
    found = lu_op(A)
    if check_errors:
        check_info("linalg.lu_factor_ex", found[2])
    return pack("linalg_lu_factor_ex", ("LU", "pivots", "info"), found)


def check_info(name: str, info: Tensor) -> None:
    """Raise RuntimeError where a diagonal element of U is zero, which of one on the device meta is not known."""
    if info._meta:
        return
    known = everything(info._array)
    bad = known[known > 0].ravel()
    if bad.size:
        i = int(bad[0])
        raise RuntimeError(
            f"torch.{name}:{first_bad(known > 0)} U[{i},{i}] is zero and using it on lu_solve would result in a division by zero. If "
            "you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )


@function(ns=NS, out="same")
def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """The packed LU factor and the exchanges of rows.  A: (*, M, N).  Raises RuntimeError where U is singular.

    For linalg.lu_solve; linalg.lu gives P, L and U apart.
    """
    matrix("lu_factor", A)
    check_pivot("linalg.lu_factor", pivot)
    LU, pivots, info = lu_op(A)
    check_info("linalg.lu_factor", info)
    return pack("linalg_lu_factor", ("LU", "pivots"), (LU, pivots))


def parts(LU: Array | Tensor) -> tuple[Any, Any]:
    """L and U of a packed factor."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = lower(LU[..., :k], -1)
    return L + like(np.eye(m, k, dtype=raw(L).dtype), L), upper(LU[..., :k, :])


@function(ns=NS, out="same")
def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """P, L and U with A = P L U.  A: (*, M, N) -> (*, M, M), (*, M, K), (*, K, N), K = min(M, N)"""
    matrix("lu", A)
    check_pivot("linalg.lu", pivot)
    LU, pivots, _ = lu_op(A)
    P = permutation_like(pivots, A)
    return pack("linalg_lu", ("P", "L", "U"), (P, *parts(LU)))


@function(out="same")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, ...]:
    """P, L and U of what lu_factor gave; empty tensors for what is not asked for."""
    if LU_pivots.dtype.numpy != np.int32 and unpack_pivots:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this "
                           "function is intended to be used with the output produced by torch.linalg.lu_factor")  # fmt: skip
    if unpack_pivots and LU_pivots.shape != (*LU_data.shape[:-2], min(LU_data.shape[-2:])):
        raise RuntimeError(f"torch.lu_unpack: LU_pivots of shape {list(LU_pivots.shape)} are not those of LU_data of shape "
                           f"{list(LU_data.shape)}: expected one for each row that may be exchanged")  # fmt: skip
    empty = wrap(np.empty(0, LU_data._array.dtype))
    L, U = parts(LU_data) if unpack_data else (empty, empty)
    P = empty
    if unpack_pivots:
        P = permutation_like(
            LU_pivots, LU_data, "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive"
        )
    return pack("lu_unpack", ("P", "L", "U"), (P, L, U))


@function(ns=NS, out="same", autocast="float32")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B (X A = B if not left, A^H in place of A if adjoint), given the LU factor of A.

    LU: (*, N, N), pivots: (*, N), B: (*, N, M) or (*, M, N) -> as B.
    """
    matrix("lu_solve", LU, True)
    check_lu_solve(LU, pivots, B, left)
    if not left:
        return mH(lu_solve(LU, pivots, mH(B), left=True, adjoint=not adjoint))
    check_exchanges(
        pivots, LU.shape[-2], "Pivots given to lu_solve must all be smaller or equal to LU.size(-2), and larger than 0"
    )
    return lu_solve_op(LU, pivots.unsqueeze(-1), B, adjoint)


def exchanged(x: Array | Tensor, pivots: Array | Tensor, back: bool) -> Any:
    """P x, or P^T x with `back`, of the matrices P that exchange rows as `pivots` say."""
    if isinstance(x, Tensor):
        P = permutation_like(pivots, x)
        return (mT(P) if back else P) @ x
    orders = row_orders(raw(pivots), x.shape[-2])
    orders = np.broadcast_to(orders if back else orders.argsort(-1), x.shape[:-1])
    return np.take_along_axis(x, orders[..., None], -2)


@op(autocast="float32", shown="linalg_lu_solve", masks=("pivots",), batch=families.leading)
def lu_solve_op(LU: Array, pivots: Array, B: Array, adjoint: bool) -> Array:
    """As `lu_solve` from the left, the exchanges as columns: (*, N, 1)."""
    pivots = pivots[..., 0]
    if LU.shape[:-2] != B.shape[:-2]:
        B = np.broadcast_to(B, (*joint_shape(LU.shape[:-2], B.shape[:-2]), *B.shape[-2:]))
    if adjoint:
        return exchanged(solved_by(LU, solved_by(LU, B.copy(), True, True), False, True), pivots, False)
    return solved_by(LU, solved_by(LU, exchanged(B, pivots, True), False, False), True, False)


def solved_by(LU: Array, x: Array, upper: bool, adjoint: bool) -> Array:
    """L^-1 x, or U^-1 x if `upper`, of a packed factor, of L^H and U^H if `adjoint`; in place of x where a kernel or LAPACK does it."""
    A = mH(LU) if adjoint else LU
    if backend.substitutes(x.dtype) and A.dtype == x.dtype:
        backend.substitute(A, x, upper != adjoint, not upper)
        return x
    alone = LU.ndim == 2 or LU.shape[-1] > _TOGETHER
    whole = alone and (not upper or bool(LU.diagonal(0, -2, -1).all()))
    with np.errstate(all="ignore"):
        if whole and by_library(A, x, upper != adjoint, not upper):
            return x
    factor = parts(LU)[upper]
    return triangular_op(mH(factor) if adjoint else factor, x, upper != adjoint)


@lu_solve_op.grad("LU", "B", uses={"LU": "LU pivots out", "B": "LU pivots"})
def _(
    g: Array | Tensor, LU: Array | Tensor, pivots: Array | Tensor, out: Array | Tensor | None, adjoint: bool
) -> tuple[Any, ...]:
    (L, U), pivots = parts(LU), pivots[..., 0]
    if adjoint:
        half = triangular_op(L, exchanged(g, pivots, True), False)
        back = triangular_op(U, half, True)
        if out is None:
            return None, back
        turned = exchanged(out, pivots, True)
        return opposite(plus(lower(turned @ mH(half), -1), upper(mH(L) @ turned @ mH(back)))), back
    half = triangular_op(mH(U), g, False)
    turned = triangular_op(mH(L), half, True)
    back = exchanged(turned, pivots, False)
    if out is None:
        return None, back
    return opposite(plus(lower(turned @ mH(U @ out), -1), upper(half @ mH(out)))), back


def check_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool) -> None:
    """Raise RuntimeError for operands that do not fit."""
    matrix("lu_solve", B, letter="B")
    if LU.dtype != B.dtype:
        raise RuntimeError(f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {LU.dtype} and B "
                           f"of type {B.dtype} instead")  # fmt: skip
    if pivots.dtype.numpy != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if LU.shape[-1] != pivots.shape[-1] or tuple(LU.shape[:-2]) != tuple(pivots.shape[:-1]):
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix, got "
                           f"{list(pivots.shape)} for LU of shape {list(LU.shape)}")  # fmt: skip
    if B.shape[-2 if left else -1] != LU.shape[-1]:
        raise RuntimeError(f"linalg.lu_solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({LU.shape[-2]}x{LU.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})")  # fmt: skip


@function(name="lu_solve", method=True, out="same")
def lu_solve_torch(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = b, given the LU factor of A.  Deprecated: use linalg.lu_solve, whose arguments are in another order."""
    return lu_solve(LU_data, LU_pivots, b)


@function(name="lu", out="same")
def lu_torch(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The packed LU factor and the exchanges, and with `get_infos` the info of lu_factor_ex.  Deprecated.

    A singular matrix has a factor too, with zeros on the diagonal of U.
    """
    caller.warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a "
        "future release: LU, pivots = torch.linalg.lu_factor(A, compute_pivots)"
    )
    matrix("lu", A)
    check_pivot("lu", pivot)
    LU, pivots, info = lu_op(A)
    if get_infos:
        return pack("_lu_with_info", ("LU", "pivots", "info"), (LU, pivots, info))
    return LU, pivots


@function(method=True, ns="Tensor", name="lu")
def lu_of(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """`torch.lu`, whose results have no names here."""
    return tuple(lu_torch(self, pivot, get_infos))


# QR by reflections -----------------------------------------------------------------------------------------------


@op(autocast="float32", outputs=("a", "tau"), batch=families.leading)
def geqrf_op(input: Array) -> tuple[Array, ...]:
    """R, with the Householder vectors below it, and their factors, as LAPACK's geqrf gives them."""
    m, n = input.shape[-2:]
    a = np.empty(input.shape, input.dtype)
    tau = np.empty((*input.shape[:-2], min(m, n)), input.dtype)
    for i in np.ndindex(*input.shape[:-2]):
        h, tau[i] = np.linalg.qr(input[i], mode="raw") if input[i].size else (input[i].T, 0)
        a[i] = h.T
    return a, tau


@geqrf_op.grad("input")
def _(gs: object) -> object:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented: use linalg.qr(), or detach() the matrix")


@function(method=True, autocast="float32")
def geqrf(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """The QR factorization as LAPACK keeps it: (a, tau), for ormqr and linalg.householder_product.  It has no gradient."""
    matrix("geqrf", input)
    found = pack("geqrf", ("a", "tau"), geqrf_op(input))
    return found if out is None else write_out("geqrf", out, found)


@function(method=True, out="same", autocast="float32")
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q C (C Q if not left; Q^H in place of Q if `transpose`), Q being the product of Householder reflections.

    input, the reflections: (*, MN, K); input2, their factors tau: (*, K); input3, C: (*, M, N).
    """
    tau, other = input2, input3
    check_ormqr(input, tau, other, left)
    m = input.shape[-2]
    forward = left == transpose  # whether the first reflection is applied first
    found = other if tau.shape[-1] else other.clone()
    for i in range(tau.shape[-1]) if forward else reversed(range(tau.shape[-1])):
        column = input[..., i] * like(np.arange(m) > i, input) + like(np.arange(m) == i, input)
        v, factor = column[..., None], tau[..., i][..., None, None]
        factor = conj_of(factor) if transpose else factor
        found = found - (factor * (v @ (mH(v) @ found)) if left else factor * ((found @ v) @ mH(v)))
    return found


def check_ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    """Raise RuntimeError for operands that do not fit."""
    for which, x in (("input", input), ("other", other)):
        if x.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {which} must have at least 2 dimensions, got {x.ndim}.")
    if tau.ndim and tau.shape[-1] > min(other.shape[-2 if left else -1], input.shape[-1]):
        raise RuntimeError("torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1]), or smaller, got "
                           f"{list(tau.shape)}, {list(other.shape)} and {list(input.shape)}")  # fmt: skip
    floating("ormqr", input)
    side = -2 if left else -1
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2], got {list(other.shape)} and "
                           f"{list(input.shape)}")  # fmt: skip
    if input.ndim - tau.ndim != 1 or tuple(tau.shape[:-1]) != tuple(input.shape[:-2]):
        raise RuntimeError("torch.ormqr: Expected tau to have one dimension less than input, and the same batches, but got "
                           f"tau {list(tau.shape)} and input {list(input.shape)}")  # fmt: skip
    if input.ndim != other.ndim or tuple(input.shape[:-2]) != tuple(other.shape[:-2]):
        raise RuntimeError("torch.ormqr: Expected other to have the same number of dimensions and batches as input, but got "
                           f"other {list(other.shape)} and input {list(input.shape)}")  # fmt: skip
    if not input.dtype == tau.dtype == other.dtype:
        raise RuntimeError("torch.ormqr: Expected input, tau and other to have the same dtype, but they are "
                           f"{input.dtype}, {tau.dtype} and {other.dtype}")  # fmt: skip
