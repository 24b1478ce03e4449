"""Solving with triangular matrices: by halves, by rows where singular, and what the other triangle holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

DRAW = np.random.default_rng(0)


@pytest.mark.parametrize("n, m, batch", [(7, 3, ()), (150, 200, ()), (100, 5, (2,))])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_the_other_triangle_is_not_looked_at(
    n: int, m: int, batch: tuple[int, ...], upper: bool, left: bool, unit: bool
) -> None:
    a = DRAW.standard_normal((*batch, n, n)) / n + 2 * np.eye(n)
    b = DRAW.standard_normal((*batch, *((n, m) if left else (m, n))))
    whole = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    whole = whole + np.eye(n) * unit
    hidden = np.where(whole == 0, np.nan, a)
    x = torch.linalg.solve_triangular(
        torch.from_numpy(hidden), torch.from_numpy(b), upper=upper, left=left, unitriangular=unit
    )
    np.testing.assert_allclose(whole @ x.numpy() if left else x.numpy() @ whole, b, atol=1e-12)


def test_of_a_singular_matrix_what_is_divided_by_zero_is_infinite() -> None:
    a = torch.tensor([[1.0, 0, 0], [1, 0, 0], [1, 1, 1]])
    x = torch.linalg.solve_triangular(a, torch.ones(3, 1) * 2, upper=False)
    assert x[0] == 2 and x[1].isnan()  # 0 / 0
    x = torch.linalg.solve_triangular(a, torch.tensor([[2.0], [3.0], [1.0]]), upper=False)
    assert x.flatten().tolist() == [2, float("inf"), -float("inf")]


@pytest.mark.parametrize("columns", [1, 5])
def test_nothing_is_taken_for_a_pivot_but_the_diagonal(columns: int) -> None:
    a, b = torch.tensor([[1e-30, 0.0], [1e20, 1.0]]), torch.tensor([[1e-30], [1e20]]).expand(2, columns)
    assert torch.linalg.solve_triangular(a, b, upper=False).tolist() == [[1.0] * columns, [0.0] * columns]
    a = torch.tensor([[1.0, 0, 0], [1, math.nan, 0], [0, 0, 2]])
    assert torch.linalg.solve_triangular(a, torch.ones(3, columns), upper=False)[0].tolist() == [1.0] * columns


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_derivatives(upper: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    A, B = torch.randn(4, 4, dtype=dtype, requires_grad=True), torch.randn(4, 2, dtype=dtype, requires_grad=True)
    shift = 3 * torch.eye(4, dtype=dtype)

    def solved(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(A + shift, B, upper=upper)

    def factor(A: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(A @ A.mH + shift, upper=upper)

    assert gradcheck(solved, (A, B), check_forward_ad=True, check_batched_grad=True) and gradgradcheck(solved, (A, B))
    assert gradcheck(factor, (A,), check_forward_ad=True) and gradgradcheck(factor, (A,))
