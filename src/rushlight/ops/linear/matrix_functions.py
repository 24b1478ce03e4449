"""Linear algebra: determinants, norms of matrices, pseudo-inverses, powers and functions of matrices.

Legend: * batch dimensions, M rows, N columns, K = min(M, N).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import families
from rushlight.dispatch import functions as ops
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.call import write_out
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import also_named, as_int, listed, numpy_names, wrap_dims
from rushlight.dispatch.named import named
from rushlight.dispatch.operands import check_tensor, raw
from rushlight.dispatch.options import shape_alone
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.elementwise.floats import widened
from rushlight.ops.linear import decompositions as base
from rushlight.ops.linear import factors, large
from rushlight.ops.linear.decompositions import NS, inverse, is_complex, like, mH, mT, pack
from rushlight.ops.linear.eigen import eigh_of
from rushlight.ops.linear.triangular import triangular_op
from rushlight.ops.shape.moved_views import broadcast_shapes
from rushlight.ops.shape.reshape import permute_op, reshape_op
from rushlight.tensor import Tensor, wrap

# Determinants ----------------------------------------------------------------------------------------


WELL = 1e3  # condition of a matrix up to which its inverse loses three digits at most


def cofactors(A: Array) -> Array:
    """The matrix of cofactors, det(A) A^-T where A is not singular: from the SVD, whose factors never are.

    That of one number is 1, whatever it is; those of more are NaN where one is infinite or NaN.
    """
    if A.shape[-1] == 1:
        return np.ones_like(A)
    lost = np.logical_not(np.isfinite(A).all((-2, -1), keepdims=True))
    U, S, Vh = base.svd_of(np.where(lost, 0, A) if lost.any() else A)
    n = S.shape[-1]
    others = np.ones_like(S)
    for i in range(n):
        others[..., i] = np.prod(np.delete(S, i, -1), -1)
    turn = np.linalg.det(U) * np.linalg.det(Vh)
    C = np.conj((U * others[..., None, :]) @ Vh) * turn[..., None, None]
    return np.asarray(np.where(lost, math.nan, C) if lost.any() else C, A.dtype)


@op(shown="linalg_det", batch=families.leading)
def det_op(A: Array) -> Array:
    """The determinant.  (*, N, N) -> (*)"""
    if not _pivots_tell(A):
        with np.errstate(all="ignore"):
            found = np.asarray(np.linalg.det(A))
        found[base.unknown_of(A)] = math.nan
        return found
    with np.errstate(all="ignore"):
        return np.asarray(_product(pivots_of(A)).astype(A.dtype))


def _product(pivots: Array) -> Array:
    """The products of the last dimension; by logarithms where a number on the way to one may be out of range.  (*, N) -> (*)"""
    found = np.asarray(pivots.prod(-1))
    lost = np.logical_not(np.abs(found) >= np.finfo(np.float64).tiny) | np.isinf(found)
    if lost.any():
        some = pivots[lost]
        found[lost] = np.sign(some).prod(-1) * np.exp(np.log(np.abs(some)).sum(-1))
    return found


def _pivots_tell(A: Array) -> bool:
    """Whether a determinant is made of pivots here, and not by NumPy."""
    return factors.are_here(A) or large.by_itself(A)


def pivots_of(A: Array) -> Array:
    """The pivots in double precision, the first of them negative where rows were exchanged an odd number of times.  (*, N, N) -> (*, N)"""
    if factors.are_here(A):
        return factors.pivots_of(A)
    return np.stack([large.pivots_of(a) for a in A.reshape(-1, *A.shape[-2:])]).reshape(A.shape[:-1])


def _det_raw(g: Array, A: Array, out: Array) -> Array:
    """As the formula below, of matrices that are far from singular; of others by the cofactors."""
    g = g[..., None, None]
    with np.errstate(all="ignore"):
        back = inverse.op.forward(A)
        condition = _size(A) * _size(back)
        if (condition < WELL).all() and out.all() and np.isfinite(out).all():
            back = np.swapaxes(np.multiply(back, out[..., None, None], out=back), -1, -2)
            return np.multiply(np.conj(back, out=back), g, dtype=A.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # products of many singular values
        return g * np.conj(cofactors(A))


def _size(A: Array) -> Array:
    """The Frobenius norms of matrices, without memory of their size where they are real.  (*, N, N) -> (*)"""
    return np.sqrt(np.einsum("...ij,...ij->...", A, A.conj() if A.dtype.kind == "c" else A).real)


def _det_bytes(g: Array, A: Array, make: Making) -> Array:
    """The gradient, and the singular value decomposition of which the cofactors are: large matrices need it nearly always."""
    made = make.gradient(0)
    make.work(6 * A.nbytes + A.nbytes // 64)
    return made


@det_op.grad("A", raw=_det_raw, shapes=_det_bytes)
def _(g: Array | Tensor, A: Array | Tensor, out: Array | Tensor) -> Tensor:
    if bool(base.singular(A._array if isinstance(A, Tensor) else A).any()):
        raise RuntimeError("det: the second derivative at a singular matrix is not implemented")
    return (g * conj(out))[..., None, None] * mH(inverse(A))


@function(ns=NS, out="same")
def det(A: Tensor) -> Tensor:
    """The determinant.  A: (*, N, N) -> (*)"""
    base.matrix("det", A, True)
    return det_op(A)


function(name="det", method=True)(det)


@op(shown="linalg_slogdet", outputs=("sign", "logabsdet"), batch=families.leading)
def slogdet_op(A: Array) -> tuple[Array, ...]:
    """Sign and logarithm of the absolute value of the determinant.  (*, N, N) -> (*), (*)"""
    signs, sizes = _sign_and_size(A)
    unknown = base.unknown_of(A)
    sizes[unknown], signs[unknown] = (
        math.nan,
        math.nan if A.dtype.kind == "c" else 0,
    )  # as the sign of NaN is, of either
    return signs, sizes


def _sign_and_size(A: Array) -> tuple[Array, Array]:
    """As `slogdet_op`, of matrices without a NaN."""
    if not _pivots_tell(A):
        with np.errstate(invalid="ignore"):
            sign, size = np.linalg.slogdet(A)
        return np.asarray(sign), np.asarray(size)
    pivots = pivots_of(A)
    with np.errstate(all="ignore"):
        sizes = np.log(abs(pivots)).sum(-1)
    signs = np.sign(pivots).prod(-1)
    return np.asarray(signs, A.dtype), np.asarray(sizes, base.real_part(A).dtype)


@slogdet_op.grad("A")
def _(g_sign: Array | Tensor, g_logabsdet: Array | Tensor, A: Array | Tensor, sign: Array | Tensor) -> Array | Tensor:
    back = mH(inverse(A))
    if not is_complex(A):
        return g_logabsdet[..., None, None] * back
    part = conj(sign) * g_sign
    both = g_logabsdet + (part - base.real_part(part))
    return both[..., None, None] * back


def _slogdet(name: str, A: Tensor) -> tuple[Tensor, ...]:
    base.matrix("slogdet", A, True)
    return pack(name, ("sign", "logabsdet"), slogdet_op(A))


@function(ns=NS, out="same")
def slogdet(A: Tensor) -> Any:
    """Sign and log of the absolute value of the determinant.  A: (*, N, N) -> (*), (*)"""
    return _slogdet("linalg_slogdet", A)


@function(name="slogdet", method=True, out="same")
def slogdet_torch(input: Tensor) -> Any:
    """Sign and log of the absolute value of the determinant."""
    return _slogdet("slogdet", input)


@function(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where it is negative.  (*, N, N) -> (*)"""
    base.matrix("logdet", input, True)
    sign, log = slogdet_op(input)
    if is_complex(input):
        return sign.log() + log
    return log + sign.detach().log()


# Norms -----------------------------------------------------------------------------------------------


def _two_dims(name: str, A: Tensor, dim: tuple[int, ...]) -> tuple[int, int]:
    if len(dim) != 2:
        raise RuntimeError(f"linalg.{name}: dim must be a 2-tuple. Got {list(dim)}")
    i, j = wrap_dims(dim, A.ndim)
    if i == j:
        raise RuntimeError(f"linalg.{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return i, j


@function(ns=NS, out="same")
@also_named(input="A", axis="dim", keepdims="keepdim")
def matrix_norm(
    A: Any, ord: object = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: dtype | None = None
) -> Tensor:
    """A norm of matrices.  ord: "fro", "nuc", inf, -inf, 1, -1, 2 or -2; dim: where the matrices lie."""
    from rushlight.ops.reduce.norms import check_floating

    if not isinstance(A, Tensor) or A.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    A = check_floating("linalg.matrix_norm", A, dtype)
    i, j = _two_dims("matrix_norm", A, tuple(dim))
    if ord in ("fro", "nuc"):
        if ord == "fro":
            return base_norm(A, 2, (i, j), keepdim)
        return _keep(_singular(A, i, j).sum(-1), i, j, keepdim)
    if ord not in (2, -2, 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    largest = ord > 0
    if abs(ord) == 2:
        S = _singular(A, i, j)
        return _keep(_extreme(S, -1, largest).squeeze(-1), i, j, keepdim)
    along, over = (j, i) if math.isinf(ord) else (i, j)
    sums = base_norm(A, 1, (along,), True)
    result = _extreme(sums, over, largest)
    return result if keepdim else result.squeeze((i, j))


def base_norm(A: Tensor, ord: int, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The vector norm."""
    from rushlight.ops.reduce.norms import vector_norm

    return vector_norm(A, ord, dim, keepdim)


def _extreme(x: Tensor, dim: int, largest: bool) -> Tensor:
    """The largest or the least along a dimension, which is kept.  The largest of no norms is 0, their sum."""
    if not largest:
        return x.amin(dim, True)
    return x.amax(dim, True) if x.shape[dim] else x.sum(dim, True)


def _singular(A: Tensor, i: int, j: int) -> Tensor:
    return base.svdvals(A.movedim((i, j), (-2, -1)))


def _keep(x: Tensor, i: int, j: int, keepdim: bool) -> Tensor:
    if not keepdim:
        return x
    for d in sorted((i, j)):
        x = x.unsqueeze(d)
    return x


@function(ns=NS, out="same")
@also_named(input="A", axis="dim", keepdims="keepdim")
def norm(
    A: Tensor,
    ord: complex | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    axis: int | Sequence[int] | None = None,
) -> Tensor:
    """A vector norm (ord a number, or None: of all elements) or, over two dimensions, a matrix norm."""
    from rushlight.ops.reduce.norms import vector_norm

    dim = dim if axis is None else axis
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is not None and not 1 <= len(dims) <= 2:
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is not None and dims is None and not 1 <= A.ndim <= 2:
        words = "If dim is not specified but ord is, the input must be 1D or 2D"
        raise RuntimeError(f"linalg.norm: {words}. Got {A.ndim}D.")
    if isinstance(ord, str) or (
        ord is not None and ((dims is None and A.ndim == 2) or (dims is not None and len(dims) == 2))
    ):
        return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)


@function(ns=NS, out=True, autocast="float32")
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number.  A: (*, M, N); p: None (2), "fro", "nuc", inf, -inf, 1, -1, 2 or -2."""
    if A.ndim < 2:
        raise RuntimeError(f"linalg.cond: The input tensor A must have at least 2 dimensions, got {A.ndim}.")
    if p in (None, 2, -2):
        S = base.svdvals(A)
        if S.shape[-1] == 0:
            return S.sum(-1)
        return S[..., 0] / S[..., -1] if p != -2 else S[..., -1] / S[..., 0]
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    base.matrix("cond", A, 0 not in A.shape)
    if 0 in A.shape:
        return base.real_part(A).sum((-2, -1))
    if p == "nuc":
        S = base.svdvals(A)
        return named.where((S == 0).any(-1), math.inf, S.sum(-1) * (1 / S).sum(-1))
    found = matrix_norm(A, p) * matrix_norm(inverse(A), p)
    return named.where(base.singular_op(A.detach()) > 0, math.inf, found)


# Pseudo-inverse, rank, least squares -----------------------------------------------------------------


def threshold(S: Array, shape: tuple[int, ...], atol: Any, rtol: Tensor | float | None) -> Any:
    """Below what singular values count as zero.  S: (*, K) -> (*)"""
    eps = float(np.finfo(S.dtype).eps) * max(shape[-2:])
    zero = atol is None or (isinstance(atol, (int, float)) and atol == 0)
    relative = (eps if zero else 0.0) if rtol is None else values_of(rtol)
    least = 0.0 if atol is None else values_of(atol)
    return np.maximum(least, relative * S.max(-1, initial=0))


def values_of(tolerance: Tensor | float) -> Any:
    """The array of a tensor, which refuses where samples have values of their own; a number as it is."""
    return np.asarray(tolerance._array) if isinstance(tolerance, Tensor) else tolerance


@op(autocast="float32", shown="linalg_pinv", batch=families.leading)
def pinv_op(A: Array, atol: object, rtol: float | None, hermitian: bool) -> Array:
    """The pseudo-inverse.  (*, M, N) -> (*, N, M)"""
    U, S, Vh = _factors(A, hermitian)
    size = np.abs(S)
    keep = size > threshold(size, A.shape, atol, rtol)[..., None]
    inverted = np.where(keep, 1 / np.where(keep, S, 1), 0)
    return np.asarray(
        (np.conj(np.swapaxes(Vh, -1, -2)) * inverted[..., None, :]) @ np.conj(np.swapaxes(U, -1, -2)), A.dtype
    )


def _factors(A: Array, hermitian: bool) -> object:
    if not hermitian:
        return base.svd_of(A, False)
    L, V = eigh_of(A, "L")
    return V, L, np.conj(np.swapaxes(V, -1, -2))


@pinv_op.grad("A")
def _(g: Array | Tensor, A: Array | Tensor, out: Array | Tensor) -> Array | Tensor:
    # From dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P (Golub and Pereyra 1973).
    P, Ph, gh = out, mH(out), mH(g)
    first = Ph @ g @ Ph
    second = gh @ P @ Ph
    third = Ph @ P @ gh
    return second - A @ (P @ second) + third - (third @ P) @ A - first


@function(ns=NS, out=True)
@also_named(input="A")
def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose inverse.  A: (*, M, N) -> (*, N, M); singular values below max(atol, rtol * largest) count as 0."""
    base.matrix("pinv", A, hermitian and 0 not in A.shape)
    rtol = rcond if rtol is None else rtol
    check_real("pinv", atol=atol, rtol=rtol)
    if 0 in A.shape:
        return mT(A).new_zeros(mT(A).shape) + mT(A) * 0
    return pinv_op(A, atol, rtol, hermitian)


@function(method=True, autocast="float32")
def pinverse(input: Tensor, rcond: float | Tensor | None = 1e-15) -> Tensor:
    """The Moore-Penrose inverse."""
    return pinv(input, rcond)


@function(ns=NS, out=True, autocast="float32")
@per_sample
@also_named(input="A")
def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """The number of singular values that do not count as zero.  A: (*, M, N) -> (*) int64"""
    base.matrix("matrix_rank", A, hermitian and 0 not in A.shape)
    if tol is not None:
        atol, rtol = tol, 0.0
    check_real("matrix_rank", atol=atol, rtol=rtol)
    a = A._array
    if A._meta:
        return shape_alone(a.shape[:-2], np.int64)
    if 0 in a.shape[-2:]:
        return wrap(np.zeros(a.shape[:-2], np.int64))
    try:
        S = np.abs(np.linalg.eigvalsh(a)) if hermitian else np.linalg.svd(a, compute_uv=False)
    except np.linalg.LinAlgError:
        raise base.LinAlgError(base.NOT_FINITE) from None
    least = np.asarray(threshold(S, a.shape, *_fitting(S.shape[:-1], atol, rtol)))
    return wrap(np.asarray((S > least[..., None]).sum(-1)))


def check_real(name: str, **tolerances: Tensor | float | None) -> None:
    """Raise RuntimeError for tolerances that are complex tensors."""
    for each, value in tolerances.items():
        if isinstance(value, Tensor) and is_complex(value):
            raise RuntimeError(
                f"torch.linalg.{name}: {each} tensor of complex type is not supported. Got {older(value.dtype)}"
            )


def _fitting(batch: tuple[int, ...], *tolerances: object) -> tuple[Any, ...]:
    """The tolerances, one number or some, for a batch of matrices.  Raises RuntimeError if they do not fit it."""
    broadcast_shapes(batch, *[t.shape for t in tolerances if isinstance(t, Tensor)])
    return tolerances


# Powers and functions --------------------------------------------------------------------------------


@function(ns=NS, out="same")
@also_named(input="A")
def matrix_power(A: Tensor, n: int) -> Any:
    """A multiplied n times with itself; of negative n, the inverse.  A: (*, N, N)"""
    if not isinstance(A, Tensor) or A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        given = f"they are {A.shape[-2]} by {A.shape[-1]} matrices" if len(A.shape) > 1 else f"got {list(A.shape)}"
        words = "be batches of square matrices" if len(A.shape) > 1 else "have at least 2 dimensions"
        raise RuntimeError(f"linalg.matrix_power: A must {words}, but {given}")
    if n == 0:
        return A.masked_fill(wrap(np.ones((), np.bool_)), 0) + like(np.eye(A.shape[-1]), A)
    if n < 0:
        A, n = base.inv(A), -n
    result = None
    while True:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        if not n:
            return result.clone() if result is A else result
        A = A @ A


function(name="matrix_power", method=True, out=True)(matrix_power)

PADE_13 = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
           10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0)  # fmt: skip


def exponential(A: Any) -> tuple[Any, Any]:
    """Numerator and denominator of the Pade approximant of exp(A), where A is small."""
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A4 @ A2
    eye, b = like(np.eye(A.shape[-1]), A), PADE_13
    U = A @ (A6 @ (A6 * b[13] + A4 * b[11] + A2 * b[9]) + A6 * b[7] + A4 * b[5] + A2 * b[3] + eye * b[1])
    V = A6 @ (A6 * b[12] + A4 * b[10] + A2 * b[8]) + A6 * b[6] + A4 * b[4] + A2 * b[2] + eye * b[0]
    return V + U, V - U


def derivative(A: Any, E: Any) -> tuple[Any, Any]:
    """How both change with A in the direction E (Al-Mohy and Higham, 2009, algorithm 6.4)."""
    A2, M2, b = A @ A, A @ E + E @ A, PADE_13
    A4, M4 = A2 @ A2, A2 @ M2 + M2 @ A2
    A6, M6 = A4 @ A2, A4 @ M2 + M4 @ A2
    W1 = A6 * b[13] + A4 * b[11] + A2 * b[9]
    W = A6 @ W1 + A6 * b[7] + A4 * b[5] + A2 * b[3] + like(np.eye(A.shape[-1]), A) * b[1]
    L = A6 @ (M6 * b[13] + M4 * b[11] + M2 * b[9]) + M6 @ W1 + M6 * b[7] + M4 * b[5] + M2 * b[3]
    U = A @ L + E @ W
    V = A6 @ (M6 * b[12] + M4 * b[10] + M2 * b[8]) + M6 @ (A6 * b[12] + A4 * b[10] + A2 * b[8])
    V = V + M6 * b[6] + M4 * b[4] + M2 * b[2]
    return V + U, V - U


@op(
    autocast="off",
    name="linalg_matrix_exp",
    batch=families.leading,
    grads={"A": lambda g, A: exp_slope(mH(A), g)},
)
def exp_op(A: Array) -> Array:
    """The exponential.  (*, N, N) -> (*, N, N)"""
    squarings = _squarings(A)
    above, below = exponential(A / A.dtype.type(1 << squarings))
    R = base.guarded_solve(below, above)
    for _ in range(squarings):
        R = R @ R
    return R


@exp_op.tangent
def _(t_A: Tensor, A: Tensor) -> Any:
    return exp_slope(A, t_A)


def exp_slope(A: Array | Tensor, E: Array | Tensor) -> Any:
    """The derivative of the exponential at A in the direction E.  (*, N, N), (*, N, N) -> (*, N, N)"""
    squarings = 0 if isinstance(A, Tensor) and A._meta else _squarings_of(A)
    A, E = A / (1 << squarings), E / (1 << squarings)
    (above, below), (above_slope, below_slope) = exponential(A), derivative(A, E)
    R = base.solve_op(below, above)
    L = base.solve_op(below, above_slope - below_slope @ R)
    for _ in range(squarings):
        R, L = R @ R, R @ L + L @ R
    return L


@function(ns=NS, autocast="off")
@also_named(input="A")
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of matrices, by scaling and squaring with a Pade approximant (Higham 2005).  A: (*, N, N)

    Backward keeps A alone: the derivative is computed from it (Al-Mohy and Higham 2009).
    """
    if isinstance(A, Tensor) and A._array.dtype in dtypes.HALVES:
        return matrix_exp(A.float()).to(A.dtype)
    base.matrix("matrix_exp", A, True)
    return exp_op(A) if 0 not in A.shape else A.clone()


function(name="matrix_exp", method=True)(matrix_exp)


def _squarings_of(A: Array | Tensor) -> int:
    """As `_squarings`, of what may be samples, or known to its class alone."""
    if isinstance(A, Tensor) and getattr(raw(A), "unread", False):
        sizes = A.abs().sum(-2).amax(-1)
        return _squarings_for(float(sizes.where(sizes.isfinite(), 0.0).amax())) if sizes.numel() else 0
    return _squarings(everything(raw(A)))


def _squarings(A: Array) -> int:
    """How often the exponentials are squared, after as many halvings of the largest matrix of finite numbers."""
    sizes = np.abs(A).sum(-2).max(-1)
    return _squarings_for(sizes[np.isfinite(sizes)].max(initial=0))


def _squarings_for(size: float) -> int:
    """How many halvings bring a size below what the approximant is made for."""
    return max(0, math.ceil(math.log2(size / 4.25))) if size > 4.25 else 0


@function(ns=NS, out=True, autocast="float32")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of tensordot with A over its last dimensions."""
    if ind <= 0:
        raise RuntimeError(f"linalg.tensorinv: Expected a strictly positive integer for 'ind', but got {ind}")
    front, back = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if math.prod(front) != math.prod(back):
        raise RuntimeError(f"linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           f"prod(self.shape[:ind]), but got {math.prod(back)} != {math.prod(front)}")  # fmt: skip
    return reshape_op(base.inv(reshape_op(A, (math.prod(front), math.prod(back)))), (*back, *front))


@function(ns=NS, out=True, autocast="float32")
def tensorsolve(input: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with tensordot(input, X) = other.  dims: those of `input` that are moved to its end before."""
    A, B = input, other
    if dims is not None:
        dims = wrap_dims(listed(dims, "linalg.tensorsolve", "dims"), A.ndim)
        keep = [d for d in range(A.ndim) if d not in {d % A.ndim for d in dims}]
        A = permute(A, (*keep, *(d % A.ndim for d in dims)))
    rest = tuple(A.shape[B.ndim :])
    n = math.prod(rest)
    if n != math.prod(A.shape[: B.ndim]) or n != math.prod(B.shape):
        raise RuntimeError(f"linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {n} != {math.prod(B.shape)}")  # fmt: skip
    x = base.solve(reshape_op(A.contiguous(), (n, n)), reshape_op(B.contiguous(), (n,)))
    return reshape_op(x, rest)


def permute(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The dimensions in another order."""
    return permute_op(x, dims)


@function(ns=NS, autocast="lower")
@numpy_names
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of conj(x) * y over `dim`, broadcast."""
    if x.dtype != y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but got {x.dtype} and {y.dtype}")
    if x.dtype.category < dtypes.FLOAT:
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype}")
    if x.ndim == y.ndim == 1 and x.shape != y.shape:
        raise RuntimeError(f"linalg.vecdot: inconsistent tensor size, got {x.shape[0]} and {y.shape[0]} elements")
    a, b = widened(x, y)  # products of 16 bits are not rounded before they are added up
    result = (conj(a) * b).sum(dim)
    result = result if a is x else result.to(x.dtype)
    return result if out is None else write_out("linalg.vecdot", out, result, same=True)


@function(ns=NS)
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 of each element.  x: (*, M) -> (*, M, N)"""
    x = x.unsqueeze(0) if x.ndim == 0 else x
    n = x.shape[-1] if N is None else as_int(N, "linalg.vander", "N")
    if n <= 1:
        raise RuntimeError("linalg.vander: N must be greater than 1.")
    if x.dtype in (dtypes.bool, dtypes.float16, dtypes.bfloat16):
        words = "linalg.vander supports floating point, complex, and integer tensors"
        raise RuntimeError(f"{words}, but got {older(x.dtype)}")
    ones = ops.ones_like(x).unsqueeze(-1)
    powers = x.unsqueeze(-1).expand(*x.shape, n - 1).cumprod(-1)
    return ops.cat([ones, powers], -1)


@function(name="vander")
def vander_of_vector(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of each element, the highest first unless `increasing`.  x: (M,) -> (M, N), N = M unless given

    Raises RuntimeError unless x has one dimension and N is not negative.

    >>> import rushlight as torch
    >>> torch.vander(torch.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    check_tensor("vander", "x", x, 1)
    if x.ndim != 1:
        raise RuntimeError(f"vander: x must be a one-dimensional tensor, got {x.ndim} dimensions")
    n = len(x) if N is None else as_int(N, "vander", "N")
    if n < 0:
        raise RuntimeError(f"vander: N must be non-negative, got {n}")
    x = x.long() if x.dtype is dtypes.bool else x
    factors = [ops.ones_like(x).unsqueeze(-1)] * min(n, 1) + [x.unsqueeze(-1).expand(len(x), max(n - 1, 0))]
    powers = ops.cat(factors, -1).cumprod(-1)
    return powers if increasing else powers.flip(-1)


@function(ns=NS)
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


def _unfit_reflections(A: Tensor, tau: Tensor) -> str | None:
    """Why vectors (*, M, N) and factors (*, K) are no reflections, if they are none."""
    if A.ndim < 2:
        return "input must have at least 2 dimensions"
    if A.shape[-2] < A.shape[-1]:
        return "input.shape[-2] must be greater than or equal to input.shape[-1]"
    if tau.ndim and tau.shape[-1] > A.shape[-1]:
        return "input.shape[-1] must be greater than or equal to tau.shape[-1]"
    if A.ndim != tau.ndim + 1:
        words = f"but got tau.ndim equal to {tau.ndim} and input.ndim is equal to {A.ndim}"
        return f"Expected tau to have one dimension less than input, {words}"
    if tuple(A.shape[:-2]) != tuple(tau.shape[:-1]):
        return f"Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
    same = A.dtype == tau.dtype
    return None if same else f"tau dtype {older(tau.dtype)} does not match input dtype {older(A.dtype)}"


@function(ns=NS, out=True, autocast="float32")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first N columns of the product of Householder reflections.  A: (*, M, N), tau: (*, K) -> (*, M, N)

    Source: Schreiber and Van Loan, A storage-efficient WY representation for products of Householder transformations (1989).
    """
    words = _unfit_reflections(A, tau)
    if words:
        raise RuntimeError(f"torch.linalg.householder_product: {words}: input {list(A.shape)}, tau {list(tau.shape)}")
    k, n = tau.shape[-1], A.shape[-1]
    eye = like(np.eye(*A.shape[-2:]), A)
    V = base.lower(A[..., :k], -1) + eye[..., :k]
    weighted = base.upper(mH(V) @ V, 1) * tau[..., None]  # T = (1 + D W)^-1 D of the compact form 1 - V T V^H
    T = triangular_op(weighted + eye[..., :k, :k], base.as_diagonal(tau), True)
    return eye - V @ (T @ mH(V[..., :n, :]))


@function(method=True, out=True, autocast="float32")
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product` by its older name.  input: (*, M, N), input2, the factors tau: (*, K) -> (*, M, N)"""
    return householder_product(input, input2)
