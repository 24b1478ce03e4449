"""Low-rank approximations by random projection.

Halko, Martinsson and Tropp, "Finding structure with randomness", 2011, algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.named import linalg, named
from rushlight.dispatch.operands import check_tensor
from rushlight.dispatch.registry import function
from rushlight.ops.linear.decompositions import mH
from rushlight.tensor import Tensor


def range_of(A: Tensor, q: int, niter: int, M: Any) -> Tensor:
    """An orthonormal basis (*, M, q) of about the range of A - M."""

    def times(x: Tensor) -> Any:
        return A @ x if M is None else A @ x - M @ x

    def adjoint_times(x: Tensor) -> Any:
        return mH(A) @ x if M is None else mH(A) @ x - mH(M) @ x

    R = named.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = linalg.qr(times(R)).Q
    for _ in range(niter):
        Q = linalg.qr(adjoint_times(Q)).Q
        Q = linalg.qr(times(Q)).Q
    return Q


@function()
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Any, Any, Any]:
    """U, S, V with A - M about U diag(S) V^H, of rank q.  A: (*, M, N) -> (*, M, q), (*, q), (*, N, q)

    niter: power iterations, more for singular values that fall slowly; M: of the shape of A, or broadcast to it. Random:
    the numbers come from torch's generator.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = M.expand(A.shape)
    if A.shape[-2] < A.shape[-1]:
        A = mH(A)
        M = None if M is None else mH(M)
        return reversed_sides(decomposed(A, q, niter, M))
    return decomposed(A, q, niter, M)


def reversed_sides(parts: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """The decomposition of the adjoint."""
    U, S, V = parts
    return V, S, U


def decomposed(A: Tensor, q: int, niter: int, M: object) -> tuple[Any, Any, Any]:
    """U, S, V of a matrix with at least as many rows as columns."""
    Q = range_of(A, q, niter, M)
    B = mH(Q) @ A
    if M is not None:
        B = B - mH(Q) @ M
    U, S, Vh = linalg.svd(B, full_matrices=False)
    return Q @ U, S, mH(Vh)


@function()
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:
    """U, S, V of the principal component analysis of the rows of A.  A: (*, M, N) -> (*, M, q), (*, q), (*, N, q)

    q: components, min(6, M, N) by default; center: subtract the mean of the columns; niter: see svd_lowrank. Raises
    ValueError for a q that does not fit.
    """
    check_tensor("pca_lowrank", "A", A)
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
