"""Least squares, and the ranks that are found on the way.

Legend: * batch dimensions, M rows, N columns, R right sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends import lapack
from rushlight.dispatch import families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import joint_shape
from rushlight.dispatch.registry import function, op
from rushlight.levels.batch import everything
from rushlight.ops.linear import decompositions as base
from rushlight.ops.linear.decompositions import NS, mH, pack
from rushlight.ops.linear.matrix_functions import matrix_rank, pinv, pinv_op
from rushlight.tensor import Tensor, wrap


@op(
    saved_as={"b": "B"},
    autocast="float32",
    shown="linalg_lstsq",
    outputs=("solution", "rank"),
    differentiable=(0,),
    batch=families.leading,
)
def lstsq_op(A: Array, B: Array, rcond: float | None) -> tuple[Array, ...]:
    """The least X that minimises |A X - B|, by a QR decomposition with pivots, and ranks.  (*, M, N), (*, M, R) -> (*, N, R), (*)

    rcond: the condition of the part of R that counts, as LAPACK's gelsy takes it; None: the precision times the longer side.
    """
    batch = joint_shape(A.shape[:-2], B.shape[:-2])
    A, B = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (A, B))
    X, ranks = np.empty((*batch, A.shape[-1], B.shape[-1]), A.dtype), np.empty(batch, np.int64)
    share = max(A.shape[-2:]) * float(np.finfo(A.dtype).eps) if rcond is None else rcond
    for i in np.ndindex(*batch):
        X[i], ranks[i] = lapack.least_squares(A[i], B[i], share)
    return X, ranks


@lstsq_op.grad("A", "B", uses={"A": "A B solution", "B": "A"})
def _(
    g: Array | Tensor, A: Array | Tensor, B: Array | Tensor, solution: Array | Tensor, rcond: float | None
) -> tuple[Any, ...]:
    # Of X = P B with the pseudo-inverse P, whose derivative Golub and Pereyra (1973) give: three products of thin factors.
    P = pinv_op(A, None, rcond, False)
    back = mH(P) @ g
    if solution is None:
        return None, back
    left = B - A @ solution
    return left @ mH(P @ back) + (mH(P) @ solution) @ mH(g - mH(A) @ back) - back @ mH(solution), back


@function(ns=NS, out=True, autocast="float32")
def lstsq(
    input: Tensor, b: Tensor, rcond: float | Tensor | None = None, *, driver: str | None = None
) -> tuple[Tensor, ...]:
    """X that minimises |input X - b|, with residuals, rank and singular values.  input: (*, M, N), b: (*, M, R) or (*, M)"""
    A, B = input, b
    if isinstance(A, Tensor) and A.ndim < 2:
        raise RuntimeError(f"torch.linalg.lstsq: input must have at least 2 dimensions, got {A.ndim}.")
    base.matrix("lstsq", A)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver}"
        )
    if B.ndim < 1:
        raise RuntimeError("linalg.lstsq: other must have at least 1 dimension, got 0")
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"linalg.lstsq: Expected input and other to have the same dtype, got {A.dtype} and {B.dtype}"
        )
    vector = base.is_vector(A, B)
    if B.shape[-1 if vector else -2] != A.shape[-2]:
        raise RuntimeError(f"linalg.lstsq: input.size(-2) should match other.size({-1 if vector else -2}), got "
                           f"{list(A.shape)} and {list(B.shape)}")  # fmt: skip
    b = B.unsqueeze(-1) if vector else B
    if driver in (None, "gelsy") and _pivots_pay(A, b, rcond):
        x, rank = lstsq_op(A, b, None if rcond is None else float(rcond))
        residuals = base.real_part(x).reshape(-1)[:0]
        x = x.squeeze(-1) if vector else x
        return pack(
            "linalg_lstsq",
            ("solution", "residuals", "rank", "singular_values"),
            (x, residuals, rank, residuals.detach().clone()),
        )
    rcond = cutoff(A, rcond, driver)
    x = pinv(A, rcond) @ b
    x = x.squeeze(-1) if vector else x
    return pack(
        "linalg_lstsq", ("solution", "residuals", "rank", "singular_values"), (x, *_details(A, b, x, driver, rcond))
    )


def cutoff(A: Tensor, rcond: Any, driver: str | None) -> Any:
    """The share of the largest singular value up to which LAPACK's drivers drop one; None: that of matrix_rank.

    gels takes full rank for granted; gelsy, the default, keeps what is equal, and the largest always; gelsd takes a share
    that is not between 0 and 1 for the precision, gelss a negative one.
    """
    eps = float(np.finfo(A._array.dtype).eps)
    if driver == "gels":
        return 0.0
    if rcond is None:
        return None
    if driver in (None, "gelsy"):
        return min(float(rcond), 1.0) * (1 - eps)
    return eps if rcond < 0 or (driver == "gelsd" and not 0 < rcond < 1) else rcond


def _details(A: Tensor, b: Tensor, x: Tensor, driver: str | None, rcond: Any) -> tuple[Any, Any, Any]:
    m, n = A.shape[-2:]
    empty = wrap(np.empty(0, A._array.real.dtype))
    rank = matrix_rank(A, rtol=rcond) if driver not in ("gels",) else wrap(np.empty(0, np.int64))
    full = driver == "gels" or (everything(rank._array) == n).all()
    residuals = base.real_part(x).reshape(-1)[:0]
    if m > n and full and driver not in (None, "gelsy"):
        r = (A @ (x.unsqueeze(-1) if x.ndim < b.ndim else x) - b).abs()
        residuals = (r * r).sum(-2)
    S = base.svdvals(A).detach() if driver in ("gelsd", "gelss") else empty
    return residuals, rank, S


def _pivots_pay(A: Tensor, b: Tensor, rcond: object) -> bool:
    """Whether LAPACK's gelsy is here and has something to do, in numbers that are finite."""
    if isinstance(rcond, Tensor) or A._meta or 0 in (*A.shape, *b.shape) or not lapack.has("gelsy", A._array.dtype):
        return False
    return all(bool(np.isfinite(everything(x._array)).all()) for x in (A, b))
