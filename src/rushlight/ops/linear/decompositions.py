"""Linear algebra: inverses, solves and decompositions on NumPy's LAPACK, with their gradients.

Legend: * batch dimensions, M rows, N columns, K = min(M, N). X^H is the conjugate transpose. Sources of the gradients:
Giles, An extended collection of matrix derivative results (2008); Wan and Zhang, arXiv:1909.02659 (complex SVD and QR).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rushlight.backends import lapack
from rushlight.basics import caller, dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.state import modes
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import joint_shape
from rushlight.dispatch.meta import placed
from rushlight.dispatch.operands import check_tensor, raw
from rushlight.dispatch.options import META
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.results import named, return_types
from rushlight.dispatch.rules import Making
from rushlight.levels import owned
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.elementwise.shared import opposite
from rushlight.ops.linear import factors, large
from rushlight.ops.shape.diagonal import diagonal_op, diagonal_zeros, tril, triu
from rushlight.ops.shape.reshape import permute_op
from rushlight.tensor import Tensor, wrap

NS = "linalg"
SOLVED = 1 << 17  # elements of matrices that are solved for together


def mT(x: Array | Tensor) -> Any:
    """The last two dimensions swapped."""
    n = len(x.shape)
    return permute_op(x, (*range(n - 2), n - 1, n - 2))


def mH(x: Array | Tensor) -> Any:
    """The conjugate transpose of the last two dimensions."""
    return conj(mT(x))


def like(values: Array, x: Array | Tensor) -> Array | Tensor:
    """A constant beside x: an array beside arrays, a tensor beside tensors, in its dtype."""
    if isinstance(x, Tensor):
        made = wrap(np.asarray(values, x._array.dtype))
        return placed(made, META) if x._meta else made
    return np.asarray(values, x.dtype)


def real_part(x: Any) -> Any:
    """The real part; of anything real, itself."""
    dtype = x._array.dtype if isinstance(x, Tensor) else x.dtype
    return x.real if dtype.kind == "c" else x


def is_complex(x: Array | Tensor) -> bool:
    """Whether x is complex."""
    return bool((x._array.dtype if isinstance(x, Tensor) else x.dtype).kind in dtypes.COMPLEX_KINDS)


def diagonal(x: Array | Tensor) -> Array | Tensor:
    """The diagonals of the last two dimensions.  (*, K, K) -> (*, K)"""
    n = len(x.shape)
    return diagonal_op(x, 0, n - 2, n - 1)


def as_diagonal(v: Array | Tensor) -> Array | Tensor:
    """Diagonal matrices.  (*, K) -> (*, K, K)"""
    n = len(v.shape)
    return diagonal_zeros(v, (*v.shape, v.shape[-1]), 0, n - 1, n)


def lower(x: Array | Tensor, k: int = 0) -> Array | Tensor:
    """The lower triangle."""
    return tril(x, k)


def upper(x: Array | Tensor, k: int = 0) -> Any:
    """The upper triangle."""
    return triu(x, k)


@functools.cache
def _type(name: str, fields: tuple[str, ...]) -> type[Any]:
    return vars(return_types).get(name) or named(name, *fields)


def pack(name: str, fields: tuple[str, ...], values: object) -> Any:
    """A result with named fields."""
    return _type(name, fields)(*values)


# Checks ----------------------------------------------------------------------------------------------


FLAT = {"pinv": "expected a tensor with 2 or more dimensions", "lu": "Expected tensor with 2 or more dimensions"}


def matrix(name: str, A: Tensor, square: bool = False, letter: str = "A") -> Tensor:
    """A checked, by its letter: a float or complex tensor of matrices."""
    check_tensor(f"linalg.{name}", letter, A, 1)
    if A.ndim < 2:
        words = FLAT.get(name) or f"The input tensor {letter} must have at least 2 dimensions"
        raise RuntimeError(f"linalg.{name}: {words}, got {A.ndim}.")
    if square and A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"linalg.{name}: A must be batches of square matrices, but they are {A.shape[-2]} by "
                           f"{A.shape[-1]} matrices")  # fmt: skip
    floating(name, A)
    return A


def floating(name: str, A: Tensor) -> None:
    """Raise RuntimeError, NotImplementedError for 16 bits, unless A is of a dtype that LAPACK knows."""
    takes = "it takes float32, float64, complex64 and complex128"
    if A.dtype.category < dtypes.FLOAT:
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got {older(A.dtype)}: {takes}"
        )
    if A.dtype not in (dtypes.float16, dtypes.bfloat16, dtypes.complex32):
        return
    if name in SAY_SO:
        raise RuntimeError(f"linalg.{name}: Low precision dtypes not supported. Got {older(A.dtype)}: {takes}")
    raise NotImplementedError(f"\"linalg.{name}\" not implemented for '{older(A.dtype)}': {takes}")


SAY_SO = ("inv", "inv_ex", "lstsq", "pinv", "slogdet")  # functions that refuse 16 bits by a RuntimeError of their own


class _LinAlgError(RuntimeError):
    """A matrix that the operation is not defined for: `torch.linalg.LinAlgError`, by the name that PyTorch shows of it."""


_LinAlgError.__module__ = "rushlight._C"  # where it is found by that name
LinAlgError = _LinAlgError


def first_bad(bad: Any) -> str:
    """Which matrix of a batch failed."""
    return "" if bad.ndim == 0 else f" (Batch element {int(np.flatnonzero(bad)[0])}):"


# Inverse and solve -----------------------------------------------------------------------------------


def guarded_solve(A: Array, B: Array) -> Array:
    """A^-1 B; of singular matrices, infinities, and of those with a NaN, NaN, which pivoting may step over.

    Large ones one by one, each in its own precision beside one copy of it. NumPy makes copies of all in float64: of
    many matrices, some go at a time.
    """
    batch = joint_shape(A.shape[:-2], B.shape[:-2])
    if factors.are_here(A) and A.dtype == B.dtype:
        return factors.solutions(A, B, batch)
    if large.by_itself(A) and A.dtype == B.dtype and (found := large.solutions(A, B, batch)) is not None:
        return found
    if batch and batch[0] > 1 and (A.size > SOLVED or B.size > SOLVED):
        A, B = np.broadcast_to(A, (*batch, *A.shape[-2:])), np.broadcast_to(B, (*batch, *B.shape[-2:]))
        out, some = np.empty(B.shape, np.result_type(A, B)), max(1, SOLVED * batch[0] // max(A.size, B.size))
        for start in range(0, batch[0], some):
            at = slice(start, start + some)
            out[at] = guarded_solve(A[at], B[at])
        return out
    try:
        out = np.linalg.solve(A, B)
    except np.linalg.LinAlgError:
        A, B = np.broadcast_to(A, (*batch, *A.shape[-2:])), np.broadcast_to(B, (*batch, *B.shape[-2:]))
        out = np.full(B.shape, np.inf, B.dtype)
        for i in np.ndindex(*batch):
            try:
                out[i] = np.linalg.solve(A[i], B[i])
            except np.linalg.LinAlgError:
                pass
    unknown = unknown_of(A)
    if unknown.any():
        out[np.broadcast_to(unknown, out.shape[:-2])] = np.nan
    return out


def unknown_of(A: Array) -> Array:
    """Which matrices have a NaN, which a library may step over.  (*, M, N) -> (*)"""
    return np.asarray(np.isnan(A).any((-2, -1)))


@op(autocast="float32", shown="linalg_solve_ex", batch=families.leading)
def solve_op(A: Array, B: Array) -> Array:
    """A^-1 B.  A: (*, N, N), B: (*, N, M) -> (*, N, M); infinite where A is singular."""
    return guarded_solve(A, B)


@solve_op.grad("A", "B", uses={"A": "A out", "B": "A"})
def _(g: Array | Tensor, A: Array | Tensor, out: Array | Tensor) -> tuple[Any, ...]:
    gB = solve_op(mH(A), g)
    return None if out is None else opposite(gB @ mH(out)), gB


def singular(A: Array) -> Array:
    """Which matrices are exactly singular, by their LU decomposition.  (*, N, N) -> (*)"""
    from rushlight.ops.linear.lu import factored

    A = everything(A)
    if factors.are_here(A) and not factors.is_heavy(A):
        return factors.zero_pivots(A) > 0
    unknown = unknown_of(A)
    with np.errstate(all="ignore"):
        found = np.asarray(np.linalg.slogdet(A)[0] == 0)
        if factors.are_here(A):  # what solves for them is made here, their inverses are not
            found |= factors.zero_pivots(A) > 0
        if unknown.any():
            found[unknown] = (np.diagonal(factored(A[unknown])[0], 0, -2, -1) == 0).any(-1)
    return found


@op(name="singular_order", batch=families.leading)
def singular_op(A: Array) -> Array:
    """For each matrix 0, or which of its pivots is the first to be zero, from 1.  (*, N, N) -> (*) int32"""
    from rushlight.ops.linear.lu import first_zero_pivot

    bad = singular(A)
    info = np.zeros(A.shape[:-2], np.int32)
    if bad.any():
        info[bad] = first_zero_pivot(A[bad])
    return info


def refuse_singular(name: str, A: Tensor) -> None:
    """Raise LinAlgError if a matrix is singular.  One on the device meta is not known to be."""
    if A._meta:
        return
    bad = singular(A._array)
    if bad.any():
        raise LinAlgError(
            f"{name}:{first_bad(bad)} {why_singular(name, everything(A._array)[bad][0])} because the input matrix is singular."
        )


def refuse_infinite(name: str, A: Tensor, found: Tensor) -> None:
    """As `refuse_singular`, of matrices that gave what is infinite where they are singular: else they are not looked at."""
    if found._meta or not found._array.shape[-1] or not np.isfinite(everything(found._array)).all():
        refuse_singular(name, A)


def why_singular(name: str, A: Array) -> str:
    """What could not be done with a singular matrix, in PyTorch's words: of an inverse, at which pivot."""
    from rushlight.ops.linear.lu import first_zero_pivot

    if "solve" in name:
        return "The solver failed"
    return f"The diagonal element {int(first_zero_pivot(A))} is zero, the inversion could not be completed"


@function(ns=NS, out="same", autocast="float32")
def inv(A: Tensor) -> Tensor:
    """The inverse.  A: (*, N, N) -> (*, N, N).  Raises RuntimeError where a matrix is singular."""
    matrix("inv", A, True)
    found: Tensor = inverse(A)
    refuse_infinite("linalg.inv", A, found)
    return found


@op(saved_as={"inverse": "out"}, autocast="float32", shown="linalg_inv_ex", batch=families.leading)
def inverse(A: Array) -> Array:
    """The inverse, infinite where singular.  (*, N, N) -> (*, N, N)"""
    if factors.are_here(A) and not factors.is_heavy(A):
        return factors.inverses(A)
    if large.by_itself(A) and (found := large.inverses(A)) is not None:
        return found
    return guarded_solve(A, np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape))


@inverse.grad("A")
def _(g: Array | Tensor, out: Array | Tensor) -> Array | Tensor:
    return opposite(mH(out) @ g @ mH(out))


function(name="inverse", method=True, out="same")(inv)


@function(ns=NS, out="same", autocast="float32")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, ...]:
    """The inverse, and for each matrix 0 or a number that says it is singular."""
    matrix("inv_ex", A, True)
    if check_errors:
        refuse_singular("linalg.inv_ex", A)
    return pack("linalg_inv_ex", ("inverse", "info"), (inverse(A), singular_op(A.detach())))


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is a batch of vectors."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


@function(ns=NS, out="same", autocast="float32")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B (or X A = B).  A: (*, N, N), B: (*, N, M) or (*, N).  Raises RuntimeError where A is singular."""
    check_solve("solve", A, B, left)
    found: Tensor = solved(A, B, left)
    refuse_infinite("torch.linalg.solve", A, found)
    return found


def solved(A: Tensor, B: Tensor, left: bool) -> Any:
    """The solution for checked operands."""
    if is_vector(A, B):
        return solve_op(A, B.unsqueeze(-1)).squeeze(-1)
    return solve_op(A, B) if left else mT(solve_op(mT(A), mT(B)))


def check_solve(name: str, A: Tensor, B: Tensor, left: bool) -> None:
    """Raise RuntimeError for operands that do not fit."""
    matrix(name, A, True)
    check_tensor(f"linalg.{name}", "B", B, 2)
    if not B.ndim:
        raise RuntimeError(f"linalg.{name}: The input tensor B must have at least 2 dimensions, or be a vector, got 0.")
    if A.dtype != B.dtype:
        raise RuntimeError(f"linalg.{name}: Expected A and B to have the same dtype, but found A of type {older(A.dtype)} "
                           f"and B of type {older(B.dtype)} instead")  # fmt: skip
    vector = is_vector(A, B)
    if vector and not left:
        raise RuntimeError(f"linalg.{name}: Vector broadcasting of the left hand side is not supported for left=False")
    rows = B.shape[-1] if vector or not left else B.shape[-2]
    if rows != A.shape[-1]:
        raise RuntimeError(
            f"linalg.{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({A.shape[-2]}x{A.shape[-1]} and {'x'.join(map(str, B.shape[-2:]))})"
        )


@function(ns=NS, out="same")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """The solution, and for each matrix 0 or a number that says it is singular."""
    check_solve("solve_ex", A, B, left)
    if check_errors:
        refuse_singular("torch.linalg.solve_ex", A)
    return pack("linalg_solve_ex", ("result", "info"), (solved(A, B, left), singular_op(A.detach())))


# QR --------------------------------------------------------------------------------------------------


@op(
    aten=("linalg_qr(A, mode='reduced')",),
    autocast="float32",
    shown="linalg_qr",
    outputs=("Q", "R"),
    batch=families.leading,
)
def qr_op(A: Array, mode: str) -> tuple[Array, ...]:
    """The QR decomposition.  (*, M, N) -> (*, M, K), (*, K, N)"""
    found = None
    if mode != "r" and large.both_ways(A):
        found = large.one_by_one(lambda a: lapack.orthogonal(a, mode == "complete"), A)
    qr_of: Any = np.linalg.qr
    return tuple(qr_of(A, mode)) if found is None else found


def _qr_raw(g_Q: Array, g_R: Array, Q: Array, R: Array, mode: str) -> object:
    """As the formula below, in place, and without copies of a triangle in float64."""
    from rushlight.ops.linear.triangular import triangular_op

    refuse_complete(Q, R, mode)
    M = mH(g_Q) @ Q
    np.subtract(R @ mH(g_R), M, out=M)
    np.einsum("...ii->...i", M)[...] = real_part(np.einsum("...ii->...i", M)).copy()
    low = np.tril(M, -1)
    M = np.tril(M)
    M += mH(low)
    del low
    turned = Q @ M
    del M
    turned += g_Q
    return mH(triangular_op(R, mH(turned), True))


def refuse_complete(Q: Array | Tensor, R: Array | Tensor, mode: str) -> None:
    """Raise RuntimeError where the columns of Q beyond those of A are free."""
    if mode == "complete" and Q.shape[-2] > R.shape[-1]:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")


def _qr_bytes(g_Q: Array, Q: Array, R: Array, make: Making) -> Array:
    """Q with what is added to its gradient, and two triangles, beside the gradient."""
    made = make.gradient(0)
    make.work(Q.nbytes + R.nbytes)
    return made


@qr_op.grad("A", raw=_qr_raw, shapes=_qr_bytes)
def _(g_Q: Array | Tensor, g_R: Array | Tensor, Q: Array | Tensor, R: Array | Tensor, mode: str) -> Array | Tensor:
    refuse_complete(Q, R, mode)
    M = R @ mH(g_R) - mH(g_Q) @ Q
    low = lower(M, -1)
    middle = low + mH(low) + as_diagonal(real_part(diagonal(M)))
    return mH(solve_op(R, mH(g_Q + Q @ middle)))


@function(ns=NS, out="same", autocast="float32")
def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, ...]:
    """Q and R with A = Q R.  A: (*, M, N); mode: "reduced", "complete" or "r" (Q is empty)."""
    matrix("qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")  # fmt: skip
    m, n = A.shape[-2:]
    if m < n:
        Q, left = qr_op(A[..., :m], "complete" if mode == "complete" else "reduced")
        R = wide(Q, left, A[..., m:])
    else:
        Q, R = qr_op(A, "complete" if mode == "complete" else "reduced")
    if mode == "r":
        if A.requires_grad:
            R = no_gradient(R)
        Q = wrap(np.empty(0, A._array.dtype))
    return pack("linalg_qr", ("Q", "R"), (Q, R))


def wide(Q: Tensor, left: Tensor, rest: Tensor) -> Tensor:
    """R of a wide matrix: its square part decomposed, the rest multiplied by Q^H."""
    from rushlight.ops.shape.join import cat

    return cat([left, mH(Q) @ rest], -1)


@op(shape=shapes.same, batch=families.targeted)
def no_gradient(input: Array) -> Array:
    """A copy whose gradient is refused: R alone does not determine the gradient of QR."""
    return input.copy()


@no_gradient.grad("input")
def _(g: object) -> object:
    raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                       "linalg.qr(A, mode='reduced') if you are going to require gradients through linalg.qr.")  # fmt: skip


@function(name="qr", method=True, out="same")
def qr_torch(input: Tensor, some: bool = True) -> tuple[Tensor, ...]:
    """Q and R with input = Q R: reduced if `some`."""
    caller.warn_once("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future release: "
                     "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')")  # fmt: skip
    Q, R = qr(input, "reduced" if some else "complete")
    return pack("qr", ("Q", "R"), (Q, R))


# SVD -------------------------------------------------------------------------------------------------


@op(
    aten=("_linalg_svd",),
    autocast="float32",
    shown="linalg_svd",
    outputs=("U", "S", "Vh"),
    batch=families.leading,
)
def svd_op(A: Array, full_matrices: bool) -> tuple[Array, ...]:
    """The singular value decomposition.  (*, M, N) -> (*, M, K), (*, K), (*, K, N)"""
    return svd_of(A, full_matrices)


NOT_FINITE = "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."


def svd_of(A: Array, full_matrices: bool = True, vectors: bool = True) -> tuple[Array, ...]:
    """U, S and Vh, or (S,) without vectors.  Raises LinAlgError, the one of PyTorch, for matrices that are not finite."""
    if large.both_ways(A):
        found = large.one_by_one(lambda a: lapack.singular_vectors(a, vectors, full_matrices), A)
        if found is not None:
            return found
    try:
        return tuple(np.linalg.svd(A, full_matrices)) if vectors else (np.linalg.svd(A, compute_uv=False),)
    except np.linalg.LinAlgError:
        raise LinAlgError(NOT_FINITE) from None


def refuse_phases(name: str, what: str, turned: Array | Tensor) -> None:
    """Raise RuntimeError where a loss depends on the phases of complex vectors, which any algorithm chooses as it likes.

    turned: by vector, the products with their gradients (*, K), whose imaginary parts are the slopes of the loss by phase.
    """
    slopes = everything(raw(turned))
    if (
        slopes.dtype.kind == "c"
        and slopes.size
        and (np.abs(slopes.imag) > 1e-2 * np.maximum(1, np.abs(slopes).max())).any()
    ):
        raise RuntimeError(
            f"{name}_backward: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
            "loss function depends on this quantity, so it is ill-defined."
        )


def _svd_gradient(gs: Any, U: Any, S: Any, Vh: Any, full_matrices: bool) -> Array | Tensor:
    k = S.shape[-1]
    if full_matrices:
        U, Vh = U[..., :k], Vh[..., :k, :]
    g_U, g_S, g_Vh = gs
    if g_U is None and g_Vh is None:  # no gap between two is divided by: equal singular values have a gradient too
        return (U * g_S[..., None, :]) @ Vh
    g_U = U * 0 if g_U is None else g_U[..., :k]
    g_Vh = Vh * 0 if g_Vh is None else g_Vh[..., :k, :]
    return of_singular_vectors(g_U, S * 0 if g_S is None else g_S, g_Vh, U, S, Vh)


def _svd_bytes(gs: Any, U: Array, S: Array, Vh: Array, make: Making) -> Array:
    """Two matrices (*, K, K) beside the gradient where vectors have gradients; else one of the size of U.

    Where A is not square, a second gradient is added, beside a matrix of the size of the longer vectors.
    """
    made, within, longer = make.gradient(0), S.size * S.shape[-1] * U.itemsize, max(U.nbytes, Vh.nbytes)
    if gs[0] is None and gs[2] is None:
        make.work(U.nbytes)
    else:
        make.work(2 * within if longer == within else made.nbytes + longer)
    return made


svd_op.grad("A", raw=_svd_gradient, shapes=_svd_bytes)(_svd_gradient)


def of_singular_vectors(
    g_U: object, g_S: Any, g_Vh: Any, U: Array | Tensor, S: Array | Tensor, Vh: Array | Tensor
) -> Array | Tensor:
    """The gradient of a matrix by those of its singular vectors and values: U (*, M, K), S (*, K), Vh (*, K, N)."""
    m, n, k = U.shape[-2], Vh.shape[-1], S.shape[-1]
    V, g_V = mH(Vh), mH(g_Vh)
    UgU, VgV = mH(U) @ g_U, mH(V) @ g_V
    along = diagonal(UgU) - conj(diagonal(UgU))
    refuse_phases("svd", "singular vectors", diagonal(UgU) + diagonal(VgV))
    inside = multiplied(skew(UgU), S[..., None, :])
    del UgU
    other = multiplied(skew(VgV), S[..., :, None])
    del VgV
    inside = inside + other
    del other
    inside = multiplied(inside, inverse_gaps(S * S)) + as_diagonal(g_S)
    if is_complex(U):
        inside = inside + as_diagonal(along / (2 * S))
    gA = U @ inside @ Vh
    if m > k:
        gA = gA + outside_of(U, g_U / S[..., None, :]) @ Vh
    if n > k:
        gA = gA + U @ mH(outside_of(V, g_V / S[..., None, :]))
    return gA


def outside_of(Q: Array | Tensor, x: Array | Tensor) -> Array | Tensor:
    """What of x is orthogonal to the columns of Q."""
    inside = Q @ (mH(Q) @ x)
    return x - inside if isinstance(inside, Tensor) else np.subtract(x, inside, out=inside)


def inverse_gaps(values: Array | Tensor) -> Array | Tensor:
    """1 / (values_j - values_i), and 0 on the diagonal.  (*, K) -> (*, K, K)"""
    gaps = values[..., None, :] - values[..., :, None]
    if isinstance(gaps, Tensor):
        eye = np.eye(values.shape[-1])
        return like(1 - eye, gaps) / (gaps + like(eye, gaps))
    np.einsum("...ii->...i", gaps)[...] = np.inf
    return np.divide(1, gaps, out=gaps)


def multiplied(own: Any, x: Array | Tensor | float) -> Any:
    """own * x, where `own` is a temporary of a formula's: as an array, its memory is used again."""
    return own * x if isinstance(own, Tensor) or isinstance(x, Tensor) else np.multiply(own, x, out=own)


def skew(X: Array | Tensor) -> Array | Tensor:
    """X - X^H."""
    return X - mH(X)


@function(ns=NS, out="same", autocast="float32")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """U, S, Vh with A = U diag(S) Vh, S descending.  A: (*, M, N)"""
    matrix("svd", A)
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    U, S, Vh = svd_op(A, full_matrices and A.shape[-1] != A.shape[-2])
    return pack("linalg_svd", ("U", "S", "Vh"), (U, S, Vh))


@function(name="svd", method=True, out="same")
def svd_torch(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, ...]:
    """U, S, V with input = U diag(S) V^H."""
    if not compute_uv:
        m, n = input.shape[-2:]
        S = svdvals(input)
        zeros = [wrap(np.zeros((*input.shape[:-2], s, s), input._array.dtype)) for s in (m, n)]
        return pack("svd", ("U", "S", "V"), (zeros[0], S, zeros[1]))
    U, S, Vh = svd(input, not some)
    return pack("svd", ("U", "S", "V"), (U, S, mH(Vh)))


@function(ns=NS, out="same", autocast="float32")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, descending.  A: (*, M, N) -> (*, K)"""
    matrix("svdvals", A)
    if driver is not None:
        raise RuntimeError(
            f"linalg.svdvals: driver={driver!r} chooses among methods of cuSOLVER: leave it out on the CPU"
        )
    return svd_op(A, False)[1] if followed(A) else singular_values(A)


def followed(A: Tensor) -> bool:
    """Whether a derivative of A may be asked for, which takes the vectors, or it belongs to a level."""
    return (modes.grad and A.requires_grad) or (bool(modes.levels) and owned((A,)))


@op(autocast="float32", shown="linalg_svdvals", batch=families.leading)
def singular_values(A: Array) -> Array:
    """The singular values alone, in half the time.  (*, M, N) -> (*, K)"""
    return svd_of(A, vectors=False)[0]
