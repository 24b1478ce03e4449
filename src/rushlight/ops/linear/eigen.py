"""Eigenvalues and eigenvectors, with their gradients.

Legend: * batch dimensions, N rows and columns. Source of the gradients: Giles, An extended collection of matrix derivative
results (2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends import lapack
from rushlight.dispatch import families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import also_named
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.linear import large
from rushlight.ops.linear.decompositions import (
    NS,
    LinAlgError,
    as_diagonal,
    diagonal,
    followed,
    inverse_gaps,
    like,
    matrix,
    mH,
    multiplied,
    pack,
    real_part,
    refuse_phases,
    skew,
    solve_op,
)
from rushlight.tensor import Tensor

# Of Hermitian matrices -------------------------------------------------------------------------------


@op(autocast="float32", shown="linalg_eigvalsh", batch=families.leading)
def eigenvalues(A: Array, UPLO: str) -> Array:
    """The eigenvalues alone of Hermitian matrices.  (*, N, N) -> (*, N)"""
    return eigh_of(A, UPLO, False)[0]


def eigh_of(A: Array, UPLO: str, vectors: bool = True) -> tuple[Array, ...]:
    """Eigenvalues and eigenvectors, or (L,) without vectors.  Raises LinAlgError where none are found."""
    if large.by_itself(A):
        found = large.one_by_one(lambda a: lapack.eigenvectors(a, UPLO == "U", vectors), A)
        if found is not None:
            return found
    values_of: Any = np.linalg.eigvalsh
    both_of: Any = np.linalg.eigh
    try:
        return tuple(both_of(A, UPLO)) if vectors else (values_of(A, UPLO),)
    except np.linalg.LinAlgError:
        raise LinAlgError("linalg.eigh: The algorithm failed to converge because the input matrix is not finite, is "
                          "ill-conditioned or has too many repeated eigenvalues.") from None  # fmt: skip


@op(
    saved_as={"eigenvalues": "L", "eigenvectors": "V"},
    aten=("_linalg_eigh(A, UPLO='L')",),
    autocast="float32",
    shown="linalg_eigh",
    outputs=("L", "V"),
    batch=families.leading,
)
def eigh_op(A: Array, UPLO: str) -> tuple[Array, ...]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices.  (*, N, N) -> (*, N), (*, N, N)"""
    return eigh_of(A, UPLO)


def _eigh_gradient(gs: Any, L: Any, V: Any) -> Any:
    g_L, g_V = gs
    if g_V is None:  # no gap between two is divided by: equal eigenvalues have a gradient too
        return (V * g_L[..., None, :]) @ mH(V)
    VhgV = mH(V) @ g_V
    refuse_phases("linalg_eigh", "eigenvectors", diagonal(VhgV))
    inside = multiplied(
        skew(VhgV), inverse_gaps(L) * 0.5
    )  # A is Hermitian, so of the gradient the Hermitian part counts
    del VhgV
    return V @ (inside if g_L is None else inside + as_diagonal(g_L)) @ mH(V)


def _eigh_bytes(gs: Any, V: Array, make: Making) -> Array:
    """Two matrices beside the gradient where vectors have gradients, else one."""
    made = make.gradient(0)
    make.work(V.nbytes * (1 if gs[1] is None else 2))
    return made


eigh_op.grad("A", raw=_eigh_gradient, shapes=_eigh_bytes)(_eigh_gradient)


@eigh_op.tangent
def _(t_A: Tensor, L: Tensor, V: Tensor) -> tuple[Tensor, ...]:
    turned = mH(V) @ t_A @ V
    return real_part(diagonal(turned)), V @ (turned * inverse_gaps(L))


@function(ns=NS, out="same", autocast="float32")
def eigh(A: Tensor, UPLO: str = "L") -> tuple[Tensor, ...]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is looked at."""
    matrix("eigh", A, True)
    check_uplo("eigh", UPLO)
    L, V = eigh_op(A, UPLO.upper())
    return pack("linalg_eigh", ("eigenvalues", "eigenvectors"), (L, V))


def check_uplo(name: str, UPLO: str) -> None:
    """Raise RuntimeError unless UPLO names a triangle."""
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"linalg.{name}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")


@function(ns=NS, out="same", autocast="float32")
@also_named(input="A")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending.  A: (*, N, N) -> (*, N)"""
    if not isinstance(A, Tensor) or followed(A):
        return eigh(A, UPLO)[0]
    matrix("eigh", A, True)
    check_uplo("eigh", UPLO)
    return eigenvalues(A, UPLO.upper())


# Of all ----------------------------------------------------------------------------------------------


@op(
    saved_as={"eigenvalues": "L", "eigenvectors": "V"},
    autocast="float32",
    shown="linalg_eig",
    outputs=("L", "V"),
    batch=families.leading,
)
def eig_op(A: Array) -> tuple[Array, ...]:
    """Complex eigenvalues and eigenvectors.  (*, N, N) -> (*, N), (*, N, N)"""
    L, V = np.linalg.eig(A)
    kind = np.complex64 if A.dtype.itemsize in (4,) or A.dtype == np.complex64 else np.complex128
    return L.astype(kind), V.astype(kind)


@eig_op.grad("A")
def _(gs: object, L: Array | Tensor, V: Array | Tensor) -> Array | Tensor:
    g_L, g_V = gs
    if g_V is None:
        return solve_op(mH(V), g_L[..., :, None] * mH(V))
    eye = np.eye(L.shape[-1])
    E = conj(L[..., None, :] - L[..., :, None]) + like(eye, L)
    VhgV = mH(V) @ g_V
    refuse_phases("linalg_eig", "eigenvectors", diagonal(VhgV))
    centred = VhgV - (mH(V) @ V) * real_part(diagonal(VhgV))[..., None, :]
    inside = centred * (like(1 - eye, E) / E)
    return solve_op(mH(V), (inside if g_L is None else inside + as_diagonal(g_L)) @ mH(V))


@function(ns=NS, out=True, autocast="float32")
def eig(A: Tensor) -> tuple[Tensor, ...]:
    """Complex eigenvalues and eigenvectors.  A: (*, N, N) -> (*, N), (*, N, N)"""
    matrix("eig", A, True)
    if not A._meta and not np.isfinite(everything(A._array)).all():
        raise RuntimeError("linalg.eig: input tensor should not contain infs or NaNs.")
    L, V = eig_op(A)
    return pack("linalg_eig", ("eigenvalues", "eigenvectors"), (L, V))


@function(ns=NS, out=True, autocast="float32")
def eigvals(A: Tensor) -> Tensor:
    """The complex eigenvalues.  A: (*, N, N) -> (*, N)"""
    return eig(A)[0]
