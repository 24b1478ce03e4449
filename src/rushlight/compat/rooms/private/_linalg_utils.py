"""``torch._linalg_utils``: products and bases that take a matrix or None, which is the identity."""

from __future__ import annotations

from typing import Any

from rushlight.basics import dtypes
from rushlight.dispatch.named import linalg
from rushlight.tensor import Tensor, sparse_coo

__all__ = ["basis", "bform", "get_floating_dtype", "is_sparse", "matmul", "qform", "symeig"]


def is_sparse(A: object) -> bool:
    """Whether a tensor is of places and values.  Raises TypeError for what is no tensor."""
    if isinstance(A, Tensor):
        return A.layout is sparse_coo
    raise TypeError(f"expected Tensor but got {type(A)}")


def get_floating_dtype(A: Tensor) -> dtypes.dtype:
    """The dtype of a tensor of floating-point numbers, float32 for others."""
    kinds = (dtypes.float16, dtypes.float32, dtypes.float64)
    return A.dtype if A.dtype in kinds else dtypes.float32


def matmul(A: Tensor | None, B: Tensor) -> Any:
    """The product of two matrices, the second where the first is None."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Any:
    """The form X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Any:
    """The form S^T A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Any:
    """An orthogonal basis of the columns of a matrix."""
    return linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a symmetric matrix; largest: the largest first."""
    values, vectors = linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
