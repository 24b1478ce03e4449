"""The Cholesky decomposition, and what is made of its factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends import lapack
from rushlight.backends.numpy import backend
from rushlight.basics import caller
from rushlight.dispatch import families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import also_named
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.shared import opposite, plus
from rushlight.ops.linear.decompositions import (
    NS,
    LinAlgError,
    as_diagonal,
    diagonal,
    first_bad,
    lower,
    matrix,
    mH,
    pack,
)
from rushlight.ops.linear.triangular import check_fits, clear_above, of_two_types, triangular_op
from rushlight.tensor import Tensor

_TOGETHER = 64  # rows up to which NumPy's loop over a batch costs less than calls of LAPACK from here


@op(
    saved_as={"L": "out"},
    aten=("linalg_cholesky_ex(A, *, upper=False)",),
    aten_more=True,
    autocast="float32",
    shown="linalg_cholesky_ex",
    batch=families.leading,
)
def cholesky_op(A: Array, upper: bool) -> Array:
    """L with A = L L^H, or U with A = U^H U, from that triangle alone; NaN where A is not positive definite."""
    if upper:
        A = _turned(A)
    if A.ndim > 2 and A.shape[-1] <= _TOGETHER and not backend.substitutes(A.dtype):
        try:
            found = np.linalg.cholesky(A)
            if not np.isnan(np.diagonal(found, 0, -2, -1)).any():
                return _turned(found) if upper else found
        except np.linalg.LinAlgError:
            pass
    out = np.array(A, order="C")
    failed = _factor(out) > 0
    if failed.any():
        out[failed] = np.nan
    return _turned(out) if upper else out


def _turned(A: Array) -> Array:
    """The conjugate transpose, of real matrices a view."""
    turned = A.swapaxes(-1, -2)
    return np.conj(turned) if A.dtype.kind == "c" else turned


def _factor(A: Array) -> Array:
    """L with A = L L^H in place of contiguous matrices; 0, or the order of the first minor that is not positive definite.

    (*, N, N) -> (*) int32
    """
    if backend.substitutes(A.dtype):
        return backend.cholesky_factor(A)
    failed = np.empty(A.shape[:-2], np.int32)
    for i in np.ndindex(*failed.shape):
        wrong = lapack.cholesky_in_place(A[i])
        failed[i] = backend.cholesky_factor(A[i]) if wrong is None else wrong or _unknown(A[i])
    clear_above(A)
    return failed


def _unknown(factor: Array) -> int:
    """Which element of the diagonal is the first NaN, counted from one, or 0: LAPACK does not always say."""
    unknown = np.isnan(factor.diagonal())
    return int(unknown.argmax()) + 1 if unknown.any() else 0


def _raw(g: Array, out: Array, upper: bool) -> object:
    """As the formula below, in place."""
    L, gL = (mH(out), mH(g)) if upper else (out, g)
    phi = clear_above(mH(L) @ gL)
    diagonals = np.einsum("...ii->...i", phi)
    kept = diagonals.copy()
    phi += mH(phi)
    diagonals[...] = kept
    phi *= 0.5
    return _between(mH(L), phi, True)


def _bytes(g: Array, make: Making) -> Array:
    """The gradient, and two matrices on the way to it."""
    made = make.gradient(0)
    make.work(2 * g.nbytes)
    return made


@cholesky_op.grad("A", raw=_raw, shapes=_bytes)
def _(g: Array | Tensor, out: Array | Tensor, upper: bool) -> Array | Tensor:
    L, gL = (mH(out), mH(g)) if upper else (out, g)
    phi = mH(L) @ gL
    return _between(mH(L), (lower(phi) + mH(lower(phi, -1))) * 0.5, True)


def _between(A: Array | Tensor, B: Array | Tensor, upper: bool) -> Array | Tensor:
    """A^-1 B A^-H of a triangular A."""
    return mH(triangular_op(A, mH(triangular_op(A, B, upper)), upper))


@cholesky_op.tangent
def _(t_A: Tensor, out: Tensor, upper: bool) -> object:
    """A tangent is as Hermitian as A: of one that is not, the triangle below the diagonal counts in the basis of L."""
    L = mH(out) if upper else out
    phi = lower(_between(L, t_A, False))
    tL = L @ (phi - 0.5 * as_diagonal(diagonal(phi)))
    return mH(tL) if upper else tL


def positive(A: Array, factor: Array) -> Array:
    """For each matrix 0, or the order of the leading minor that is not positive definite.  2 of (*, N, N) -> (*) int32

    factor: what `cholesky_op` made of them, which is NaN where there is such a minor, as it is of a matrix with a NaN.  Those are
    factored again, in the same way: of a matrix that is nearly singular another way may find no such minor.
    """
    info = np.zeros(A.shape[:-2], np.int32)
    unknown = np.isnan(np.diagonal(factor, 0, -2, -1)).any(-1)
    if unknown.any():
        info[unknown] = _factor(np.array(A[unknown], order="C"))
    return info


@op(name="positive_order", batch=families.leading)
def positive_op(A: Array, factor: Array) -> Array:
    """As `positive`, as an operator."""
    return positive(A, factor)


@function(ns=NS, out="same", autocast="float32")
@also_named(input="A")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L with A = L L^H (or U with A = U^H U).  A: (*, N, N).  Raises RuntimeError unless positive definite."""
    matrix("cholesky", A, True)
    found = cholesky_op(A, upper)
    if not A._meta and np.isnan(everything(found._array)[..., :1, :1]).any():  # which is of all of such a matrix
        info = positive(everything((mH(A) if upper else A)._array), everything(found._array))
        raise LinAlgError(f"linalg.cholesky:{first_bad(info)} The factorization could not be completed because the input is "
                          f"not positive-definite (the leading minor of order {int(info[info > 0].ravel()[0])} is not "
                          "positive-definite).")  # fmt: skip
    return found


@function(ns=NS, out="same", autocast="float32")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, ...]:
    """The factor, and for each matrix 0 or the order of the minor that is not positive definite."""
    matrix("cholesky_ex", A, True)
    if check_errors:
        cholesky(A, upper=upper)
    looked_at, L = mH(A.detach()) if upper else A.detach(), cholesky_op(A, upper)
    return pack("linalg_cholesky_ex", ("L", "info"), (L, positive_op(looked_at, L.detach())))


@function(name="cholesky", method=True, out=True)
def cholesky_torch(input: Tensor, upper: bool = False) -> Tensor:
    """L with input = L L^H (or U^H U)."""
    caller.warn_once("torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future release: "
                     "L = torch.linalg.cholesky(A), U = torch.linalg.cholesky(A).mH")  # fmt: skip
    return cholesky(input, upper=upper)


@op(grads={"input": lambda g: g}, batch=families.leading)
def factor_op(input: Array, upper: bool) -> Array:
    """The triangle of a factor.  Its derivatives are those by all elements, as if the other triangle were looked at."""
    return np.triu(input) if upper else np.tril(input)


factor_op.tangent(lambda t_input: t_input)


@function(method=True, out=True, autocast="float32")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of L L^H (or U^H U), given the factor.  (*, N, N) -> (*, N, N)"""
    matrix("cholesky_inverse", input, True)
    return cholesky_inverse_op(factor_op(input, upper), upper)


@op(autocast="float32", batch=families.leading)
def cholesky_inverse_op(input: Array, upper: bool) -> Array:
    """The inverse of L L^H (or U^H U), of a factor that is triangular."""
    zero = np.diagonal(input, axis1=-2, axis2=-1) == 0
    if zero.any():
        batch, which = np.argwhere(zero.reshape(-1, zero.shape[-1]))[0]
        where = f"(Batch element {batch}): " if input.ndim > 2 else ""
        raise LinAlgError(
            f"cholesky_inverse: {where}The diagonal element {which + 1} is zero, the inversion could not be completed "
            "because the input matrix is singular."
        )
    back = triangular_op(mH(input) if upper else input, np.eye(input.shape[-1], dtype=input.dtype), False)
    return backend.matmul(mH(back), back)


@cholesky_inverse_op.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor, upper: bool) -> Array | Tensor:
    common = out @ (g + mH(g)) @ out
    return opposite(input @ common if upper else common @ input)


@cholesky_inverse_op.tangent
def _(t_input: Tensor, input: Tensor, out: Tensor, upper: bool) -> Tensor:
    change = mH(t_input) @ input if upper else t_input @ mH(input)
    return -(out @ (change + mH(change)) @ out)


@op(autocast="float32", shown="cholesky_solve", batch=families.leading)
def cholesky_solve_op(input: Array, input2: Array, upper: bool) -> Array:
    """As `cholesky_solve`.  Its derivatives by the factor are those by all elements."""
    factor = _turned(input2) if upper else input2
    return triangular_op(_turned(factor), triangular_op(factor, input, False), True)


@cholesky_solve_op.grad("input", "input2", uses={"input": "input2", "input2": "input2 out"})
def _(g: Array | Tensor, input2: Array | Tensor, out: Array | Tensor | None, upper: bool) -> tuple[Any, ...]:
    back = cholesky_solve_op(g, input2, upper)
    if out is None:
        return back, None
    if back.shape[-1] * 3 <= back.shape[-2]:  # few columns: no matrix is multiplied by another
        if upper:
            return back, opposite(plus((input2 @ back) @ mH(out), (input2 @ out) @ mH(back)))
        return back, opposite(plus(back @ (mH(out) @ input2), out @ (mH(back) @ input2)))
    both = back @ mH(out)
    both = both + mH(both)
    return back, opposite(input2 @ both if upper else both @ input2)


@function(method=True, out=True, autocast="float32")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with L L^H X = input (or U^H U X), given the factor L, `input2`.  input: (*, N, M), input2: (*, N, N)"""
    check_fits("cholesky_solve", input, input2)
    matrix("cholesky_solve", input2, True)
    matrix("cholesky_solve", input)
    if input.dtype is not input2.dtype:
        raise RuntimeError(f"cholesky_solve: {of_two_types(input, input2)}")
    return cholesky_solve_op(input, input2, upper)
