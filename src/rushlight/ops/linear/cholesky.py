"""The Cholesky decomposition, and what is made of its factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller
from rushlight.dispatch import families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.registry import function, op
from rushlight.levels.batch import everything
from rushlight.ops.linear.decompositions import (
    NS,
    LinAlgError,
    as_diagonal,
    diagonal,
    first_bad,
    lower,
    matrix,
    mH,
    mT,
    pack,
)
from rushlight.ops.linear.triangular import triangular_op

if TYPE_CHECKING:
    from rushlight.tensor import Tensor


@op(autocast="float32", shown="linalg_cholesky_ex", ns=None, batch=families.leading)
def cholesky_op(A: Array, upper: bool) -> Array:
    """L with A = L L^H, or U with A = U^H U, from that triangle alone; NaN where A is not positive definite."""
    if upper:
        A = np.conj(np.swapaxes(A, -1, -2))
    out = np.empty(A.shape, A.dtype)
    for i in np.ndindex(*A.shape[:-2]):
        try:
            out[i] = np.linalg.cholesky(A[i])
        except np.linalg.LinAlgError:
            out[i] = np.nan
    return np.conj(np.swapaxes(out, -1, -2)) if upper else out


def _raw(g: Array, out: Array, upper: bool) -> Any:
    """As the formula below, in place."""
    L, gL = (mH(out), mH(g)) if upper else (out, g)
    phi = np.tril(mH(L) @ gL)
    phi += mH(np.tril(phi, -1))
    phi *= 0.5
    return _between(mH(L), phi, True)


@cholesky_op.grad("A", raw=_raw)
def _(g: Array | Tensor, out: Array | Tensor, upper: bool) -> Array | Tensor:
    L, gL = (mH(out), mH(g)) if upper else (out, g)
    phi = mH(L) @ gL
    return _between(mH(L), (lower(phi) + mH(lower(phi, -1))) * 0.5, True)


def _between(A: Array | Tensor, B: Array | Tensor, upper: bool) -> Array | Tensor:
    """A^-1 B A^-H of a triangular A."""
    return mH(triangular_op(A, mH(triangular_op(A, B, upper)), upper))


@cholesky_op.tangent
def _(t_A: Tensor, out: Tensor, upper: bool) -> Any:
    """A tangent is as Hermitian as A: of one that is not, the triangle below the diagonal counts in the basis of L."""
    L = mH(out) if upper else out
    phi = lower(_between(L, t_A, False))
    tL = L @ (phi - 0.5 * as_diagonal(diagonal(phi)))
    return mH(tL) if upper else tL


def positive(A: Array) -> Array:
    """For each matrix 0, or the order of the leading minor that is not positive definite.  (*, N, N) -> (*) int32"""
    info = np.zeros(A.shape[:-2], np.int32)
    for i in np.ndindex(*A.shape[:-2]):
        if not _minor(A[i]):
            info[i] = next((k for k in range(1, A.shape[-1] + 1) if not _minor(A[i][:k, :k])), A.shape[-1])
    return info


@op(ns=None, name="positive_order", batch=families.leading)
def positive_op(A: Array) -> Array:
    """As `positive`, as an operator."""
    return positive(A)


def _minor(A: Array) -> bool:
    try:
        return not np.isnan(np.linalg.cholesky(A)).any()
    except np.linalg.LinAlgError:
        return False


@function(ns=NS, out=True, autocast="float32")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L with A = L L^H (or U with A = U^H U).  A: (*, N, N).  Raises RuntimeError unless positive definite."""
    matrix("cholesky", A, True)
    found = cholesky_op(A, upper)
    if not A._meta and np.isnan(np.diagonal(everything(found._array), 0, -2, -1)).any():
        info = positive(everything((mH(A) if upper else A)._array))
        raise LinAlgError(f"linalg.cholesky:{first_bad(info)} The factorization could not be completed because the input is "
                          f"not positive-definite (the leading minor of order {int(info[info > 0].ravel()[0])} is not "
                          "positive-definite).")  # fmt: skip
    return found


@function(ns=NS, out=True, autocast="float32")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The factor, and for each matrix 0 or the order of the minor that is not positive definite."""
    matrix("cholesky_ex", A, True)
    if check_errors:
        cholesky(A, upper=upper)
    looked_at = mH(A.detach()) if upper else A.detach()
    return pack("linalg_cholesky_ex", ("L", "info"), (cholesky_op(A, upper), positive_op(looked_at)))


@function(name="cholesky", method=True, out=True)
def cholesky_torch(input: Tensor, upper: bool = False) -> Tensor:
    """L with input = L L^H (or U^H U)."""
    caller.warn_once("torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future release: "
                     "L = torch.linalg.cholesky(A), U = torch.linalg.cholesky(A).mH")  # fmt: skip
    return cholesky(input, upper=upper)


@op(ns=None, grads={"input": lambda g: g}, batch=families.leading)
def factor_op(input: Array, upper: bool) -> Array:
    """The triangle of a factor.  Its derivatives are those by all elements, as if the other triangle were looked at."""
    return np.triu(input) if upper else np.tril(input)


factor_op.tangent(lambda t_input: t_input)


@function(method=True, out=True, autocast="float32")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of L L^H (or U^H U), given the factor.  (*, N, N) -> (*, N, N)"""
    matrix("cholesky_inverse", input, True)
    return cholesky_inverse_op(factor_op(input, upper), upper)


@op(autocast="float32", ns=None, batch=families.leading)
def cholesky_inverse_op(input: Array, upper: bool) -> Array:
    """The inverse of L L^H (or U^H U), of a factor that is triangular."""
    back = triangular_op(mH(input) if upper else input, np.eye(input.shape[-1], dtype=input.dtype), False)
    return backend.matmul(mH(back), back)


@cholesky_inverse_op.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor, upper: bool) -> Array | Tensor:
    common = out @ (g + mH(g)) @ out
    return -(input @ common) if upper else -(common @ input)


@cholesky_inverse_op.tangent
def _(t_input: Tensor, input: Tensor, out: Tensor, upper: bool) -> Tensor:
    change = mH(t_input) @ input if upper else t_input @ mH(input)
    return -(out @ (change + mH(change)) @ out)


@op(autocast="float32", shown="cholesky_solve", ns=None, batch=families.leading)
def cholesky_solve_op(input: Array, input2: Array, upper: bool) -> Array:
    """As `cholesky_solve`.  Its derivatives by the factor are those by all elements."""
    factor = np.conj(mT(np.triu(input2))) if upper else np.tril(input2)
    return triangular_op(mH(factor), triangular_op(factor, input, False), True)


@cholesky_solve_op.grad("input", "input2", uses={"input": "input2", "input2": "input2 out"})
def _(g: Array | Tensor, input2: Array | Tensor, out: Array | Tensor | None, upper: bool) -> Any:
    back = cholesky_solve_op(g, input2, upper)
    if out is None:
        return back, None
    both = back @ mH(out)
    both = both + mH(both)
    return back, -(input2 @ both if upper else both @ input2)


@function(method=True, out=True, autocast="float32")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with L L^H X = input (or U^H U X), given the factor L, `input2`.  input: (*, N, M), input2: (*, N, N)"""
    matrix("cholesky_solve", input2, True)
    matrix("cholesky_solve", input)
    return cholesky_solve_op(input, input2, upper)
