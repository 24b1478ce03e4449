"""Random matrices of which something is known: their rank, their definiteness, their condition."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.testing.creation import make_tensor

REAL = torch.float64


def random_square_matrix_of_rank(
    l: int, rank: int, dtype: dtype | None = REAL, device: device | str | int | None = "cpu"
) -> Any:
    """A matrix (l, l) of that rank."""
    U, S, Vh = torch.linalg.svd(torch.randn(l, l, dtype=dtype, device=device), full_matrices=False)
    kept = torch.where(torch.arange(l) < rank, S.clamp(min=1.0), torch.zeros_like(S))
    return (U * kept.to(U.dtype)) @ Vh


def random_well_conditioned_matrix(
    *shape: int, dtype: dtype | None, device: device | str | int | None, mean: float = 1.0, sigma: float = 0.001
) -> Any:
    """Matrices (*shape) whose singular values lie around `mean`."""
    U, S, Vh = torch.linalg.svd(torch.randn(shape, dtype=dtype, device=device), full_matrices=False)
    return (
        U
        * (torch.randn(S.shape, dtype=S.dtype, device=device) * sigma + mean)
        .sort(descending=True)
        .values.to(U.dtype)
        .unsqueeze(-2)
    ) @ Vh


def _square(n: int, batch: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return torch.randn(*batch, n, n, dtype=dtype, device=device)


def random_symmetric_matrix(l: int, *batches: int, dtype: Any = REAL, device: Any = "cpu") -> Any:
    """Symmetric matrices (*batches, l, l)."""
    A = _square(l, batches, dtype, device)
    return (A + A.mT) / 2


def random_hermitian_matrix(l: int, *batches: int, dtype: Any = REAL, device: Any = "cpu") -> Any:
    """Hermitian matrices (*batches, l, l)."""
    A = _square(l, batches, dtype, device)
    return (A + A.mH) / 2


def random_symmetric_psd_matrix(l: int, *batches: int, dtype: Any = REAL, device: Any = "cpu") -> Any:
    """Symmetric positive semidefinite matrices (*batches, l, l)."""
    A = _square(l, batches, dtype, device)
    return A @ A.mT


def random_hermitian_psd_matrix(n: int, *batch_dims: int, dtype: Any = REAL, device: Any = "cpu") -> Any:
    """Hermitian positive semidefinite matrices (*batch_dims, n, n)."""
    A = _square(n, batch_dims, dtype, device)
    return A @ A.mH


def random_symmetric_pd_matrix(
    matrix_size: int, *batch_dims: int, dtype: dtype | None = REAL, device: device | str | int | None = "cpu"
) -> Any:
    """Symmetric positive definite matrices (*batch_dims, matrix_size, matrix_size)."""
    found = random_symmetric_psd_matrix(matrix_size, *batch_dims, dtype=dtype, device=device)
    return found + torch.eye(matrix_size, dtype=dtype, device=device) * 1e-5


def random_hermitian_pd_matrix(
    matrix_size: int, *batch_dims: int, dtype: dtype | None = REAL, device: device | str | int | None = "cpu"
) -> Any:
    """Hermitian positive definite matrices (*batch_dims, matrix_size, matrix_size)."""
    found = random_hermitian_psd_matrix(matrix_size, *batch_dims, dtype=dtype, device=device)
    return found + torch.eye(matrix_size, dtype=dtype, device=device)


def make_fullrank_matrices_with_distinct_singular_values(
    *shape: int, device: Any, dtype: Any, requires_grad: bool = False
) -> Any:
    """Matrices (*shape) whose singular values are 1 + 1 / n for n in 2, 3, ... ."""
    *_, m, n = shape
    U, _, Vh = torch.linalg.svd(make_tensor(shape, device=device, dtype=dtype), full_matrices=False)
    values = (1 / torch.arange(2, min(m, n) + 2, device=device) + 1).to(U.dtype)
    return ((U * values) @ Vh).detach().requires_grad_(requires_grad)


def random_matrix(
    rows: int,
    columns: int,
    *batch_dims: int,
    dtype: dtype | None,
    device: device | str | int | None,
    singular: bool = False,
) -> Any:
    """Matrices (*batch_dims, rows, columns) of small condition, or of which one singular value is 0."""
    U, S, Vh = torch.linalg.svd(
        torch.randn(*batch_dims, rows, columns, dtype=dtype, device=device), full_matrices=False
    )
    values = torch.linspace(1, 1 / max(S.shape[-1], 1), S.shape[-1], dtype=S.dtype, device=device)
    if singular and len(values):
        values[-1] = 0
    return (U * values.to(U.dtype)) @ Vh


def random_lowrank_matrix(
    rank: int, rows: int, columns: int, *batch_dims: int, dtype: dtype | None, device: device | str | int | None
) -> Any:
    """Matrices (*batch_dims, rows, columns) of that rank."""
    left = random_matrix(rows, rank, *batch_dims, dtype=dtype, device=device)
    return left @ random_matrix(rank, columns, *batch_dims, dtype=dtype, device=device)


def make_symmetric_matrices(*shape: int, device: Any, dtype: Any) -> Any:
    """Symmetric matrices (*shape)."""
    t = make_tensor(shape, device=device, dtype=dtype)
    return (t + t.mT) / 2


def make_symmetric_pd_matrices(*shape: int, device: Any, dtype: Any) -> Any:
    """Symmetric positive definite matrices (*shape)."""
    t = make_tensor(shape, device=device, dtype=dtype)
    return t @ t.mT + torch.eye(shape[-1], dtype=dtype, device=device) * 1e-5
