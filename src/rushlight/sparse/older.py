"""Products that give sparse results, under their older names: smm, hspmm, sspaddmm and what says the same; `native_norm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics.dtypes import dtype as dtype_of
from rushlight.dispatch.named import named as torch
from rushlight.sparse.product import product
from rushlight.sparse.tensor import Sparse, made
from rushlight.tensor import Tensor

__all__ = ["dsmm", "hsmm", "hspmm", "native_norm", "saddmm", "smm", "sspaddmm"]


def _rows_of(name: str, mat1: Any, mat2: Any) -> tuple[Any, Any]:
    """The rows of mat1 that have elements, and these rows of mat1 @ mat2.

    Raises TypeError unless mat1 is a sparse COO matrix, RuntimeError for shapes that do not meet.
    """
    if not isinstance(mat1, Sparse) or mat1.is_sparse_csr or mat1.dim() != 2 or mat1.dense_dim():
        what = "CSR matrix" if isinstance(mat1, Sparse) and mat1.is_sparse_csr else type(mat1).__name__
        raise TypeError(f"{name}(): argument 'mat1' must be a sparse COO matrix, not {what}: to_sparse() makes one")
    if mat2.dim() != 2 or mat2.shape[0] != mat1.shape[1]:
        raise RuntimeError(
            f"{name}(): mat2 must have {mat1.shape[1]} rows, as mat1 of shape {list(mat1.shape)} has columns; got shape {list(mat2.shape)}"
        )
    row, column = mat1._indices_of
    rows, place = torch.unique(row, return_inverse=True)
    return rows, product(torch.stack([place, column]), mat1._values_of, mat2, len(rows))


def hspmm(mat1: Any, mat2: Any) -> Any:
    """mat1 @ mat2 as a sparse tensor whose elements are dense rows.  mat1: sparse (N, K), mat2: (K, M) -> (N, M)"""
    rows, found = _rows_of("hspmm", mat1, mat2)
    return made(rows[None], found, (mat1.shape[0], mat2.shape[1]), False, False)


def smm(input: Any, mat: Any) -> Any:
    """input @ mat as a sparse matrix, which has the rows that `input` has.  input: sparse (N, K), mat: (K, M) -> (N, M)"""
    rows, found = _rows_of("smm", input, mat)
    columns = mat.shape[1]
    indices = torch.stack([rows.repeat_interleave(columns), torch.arange(columns).repeat(len(rows))])
    return made(indices, found.reshape(-1), (input.shape[0], columns), False, False)


def sspaddmm(input: Any, mat1: object, mat2: object, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2) as a sparse matrix, not coalesced.

    input: sparse (N, M), mat1: sparse (N, K), mat2: (K, M) -> (N, M)
    """
    added = smm(mat1, mat2)
    if not isinstance(input, Sparse) or tuple(input.shape) != tuple(added.shape):
        got = list(input.shape) if isinstance(input, Sparse) else type(input).__name__
        raise RuntimeError(
            f"sspaddmm(): argument 'input' must be a sparse matrix of shape {list(added.shape)}, got {got}"
        )
    indices = torch.cat([input._indices_of, added._indices_of], 1)
    values = torch.cat([beta * input._values_of, alpha * added._values_of])
    return made(indices, values, tuple(added.shape), False, False)


def dsmm(input: object, mat2: object) -> Any:
    """As `torch.mm` of a sparse and a dense matrix.  (N, K), (K, M) -> (N, M)"""
    return torch.mm(input, mat2)


def _check_whole(dim: Sequence[int], dims: int) -> None:
    """Raise RuntimeError unless `dim` has none or all of the dimensions."""
    if len(dim) and sorted(d % dims for d in dim) != list(range(dims)):
        what = f"dim must be empty or contain all dimensions, got {list(dim)} for {dims} of them"
        raise RuntimeError(f"norm_sparse currently only supports full reductions: {what}")


def native_norm(input: Tensor, p: float = 2, dim: Sequence[int] = (), keepdim: bool = False,
                dtype: dtype_of | None = None) -> Tensor:  # fmt: skip
    """A norm of all elements of a sparse tensor, a number.

    dim: none or all of them.  Raises NotImplementedError for a tensor that is not sparse, RuntimeError for some of the dimensions,
    keepdim or a dtype.
    """
    if not isinstance(input, Sparse):
        raise NotImplementedError(
            f"native_norm: expected a sparse tensor, got {type(input).__name__}: torch.norm takes others"
        )
    _check_whole(dim, input.dim())
    if keepdim or dtype is not None:
        raise RuntimeError(f"norm_sparse currently does not support {'keepdim=True' if keepdim else 'a dtype'}")
    return input.norm(p)


hsmm, saddmm = hspmm, sspaddmm
