"""LU, LDL and QR by reflections; low-rank approximations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch

SHAPES = [(3, 3), (2, 4, 4), (5, 3), (3, 5), (2, 0, 0), (0, 3, 3), (1, 1)]
DTYPES = ["float64", "complex128"]


def draw(shape: Any, dtype: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return torch.from_numpy(x + 1j * rng.standard_normal(shape) if dtype == "complex128" else x)


def near(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu_factors_multiply_to_the_matrix(shape: Any, dtype: str) -> None:
    A = draw(shape, dtype)
    P, L, U = torch.linalg.lu(A)
    near(P @ L @ U, A)
    LU, pivots, info = torch.linalg.lu_factor_ex(A)
    assert pivots.dtype == info.dtype == torch.int32
    assert not info.any()
    for got, want in zip(torch.lu_unpack(LU, pivots), (P, L, U), strict=True):
        near(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(left: bool, adjoint: bool, dtype: str) -> None:
    A, B = draw((2, 3, 3), dtype), draw((2, 3, 4) if left else (2, 4, 3), dtype, 1)
    X = torch.linalg.lu_solve(*torch.linalg.lu_factor(A), B, left=left, adjoint=adjoint)
    matrix = A.mH if adjoint else A
    near(matrix @ X if left else X @ matrix, B)
    near(
        torch.lu_solve(draw((3, 2), dtype, 2), *torch.linalg.lu_factor(A[0])),
        torch.linalg.solve(A[0], draw((3, 2), dtype, 2)),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (5, 3), (3, 5)])
def test_derivatives_of_lu(shape: Any, dtype: str) -> None:
    A = draw(shape, dtype).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: torch.linalg.lu(a)[1:], A, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(
        lambda a: torch.linalg.lu_factor(a).LU, A, check_fwd_over_rev=True, fast_mode=True
    )


def test_singular_matrices_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"U\[1,1\] is zero"):
        torch.linalg.lu_factor(torch.zeros(3, 3))
    assert torch.linalg.lu_factor_ex(torch.zeros(3, 3)).info.item() == 1
    with pytest.raises(RuntimeError, match="without pivoting"):
        torch.linalg.lu(torch.eye(2), pivot=False)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ldl_solves(dtype: str, hermitian: bool) -> None:
    for n in range(1, 7):
        A = draw((4, n, n), dtype, n)
        A = A + (A.mH if hermitian else A.mT)
        B = draw((4, n, 2), dtype, 9)
        near(A @ torch.linalg.ldl_solve(*torch.linalg.ldl_factor(A, hermitian=hermitian), B, hermitian=hermitian), B)


@pytest.mark.parity
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ldl_is_that_of_lapack(dtype: str, hermitian: bool) -> None:
    pt = pytest.importorskip("torch")
    for n in range(1, 9):
        A = draw((n, n), dtype, n).numpy()
        A[np.arange(0, n, 2), np.arange(0, n, 2)] = 0  # so that blocks of two are chosen
        A = A + (A.conj().T if hermitian else A.T)
        want = pt.linalg.ldl_factor_ex(pt.from_numpy(A), hermitian=hermitian)
        got = torch.linalg.ldl_factor_ex(torch.from_numpy(A), hermitian=hermitian)
        np.testing.assert_allclose(got.LD.numpy(), want.LD.numpy(), atol=1e-12)
        assert got.pivots.tolist() == want.pivots.tolist()
        assert got.info.item() == want.info.item()


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections(dtype: str) -> None:
    A = draw((2, 5, 3), dtype)
    a, tau = torch.geqrf(A)
    Q = torch.linalg.householder_product(a, tau)
    near(Q @ a[..., :3, :].triu(), A)
    C = draw((2, 5, 4), dtype, 1)
    whole = torch.ormqr(a, tau, torch.eye(5, dtype=A.dtype).expand(2, 5, 5))
    near(torch.ormqr(a, tau, C), whole @ C)
    near(torch.ormqr(a, tau, C, transpose=True), whole.mH @ C)
    near(torch.ormqr(a, tau, C.mT, left=False), C.mT @ whole)
    near(torch.ormqr(a, tau, C.mT, left=False, transpose=True), C.mT @ whole.mH)


def test_low_rank() -> None:
    A = draw((7, 2), "float64") @ draw((2, 5), "float64", 1)
    for matrix in (A, A.mT):
        U, S, V = torch.svd_lowrank(matrix, q=2)
        near((U * S) @ V.mT, matrix)
        near(S, torch.linalg.svdvals(matrix)[:2])
    U, S, V = torch.pca_lowrank(A, q=2)
    near((U * S) @ V.mT, A - A.mean(0))
    with pytest.raises(ValueError, match="not greater than min"):
        torch.pca_lowrank(A, q=6)


EQUAL = {"equal": torch.eye(3, dtype=torch.float64), "zero": torch.zeros(3, 3, dtype=torch.float64),
         "two equal": torch.diag(torch.tensor([2.0, 2.0, 5.0], dtype=torch.float64))}  # fmt: skip


@pytest.mark.parametrize("matrix", EQUAL)
def test_equal_eigenvalues_and_singular_values_have_gradients(matrix: str) -> None:
    """Of the values alone nothing is divided by the gaps between them, which are zero here."""
    for values, full in ((torch.linalg.eigvalsh, True), (lambda A: torch.linalg.eigvals(A).real, True),
                         (torch.linalg.svdvals, True), (lambda A: torch.linalg.svd(A, full_matrices=True).S, True),
                         (lambda A: torch.linalg.svd(torch.cat([A, A * 0]), full_matrices=True).S, matrix != "zero"),
                         (lambda A: torch.linalg.matrix_norm(A, "nuc"), True)):  # fmt: skip
        A = EQUAL[matrix].clone().requires_grad_()
        (g,) = torch.autograd.grad(values(A).sum(), A, create_graph=True)
        if full:
            torch.testing.assert_close(g, torch.eye(3, dtype=torch.float64), check_device=False)
        assert torch.isfinite(g).all()


def test_gradients_of_eigenvectors_alone() -> None:
    A = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 5.0]], dtype=torch.float64, requires_grad=True)
    M = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda A: torch.linalg.eigh((A + A.mT) / 2)[1].abs(), (A,))
    assert torch.autograd.gradcheck(lambda A: torch.linalg.eig(A)[1].abs(), (A,))
    for part in (0, 1, 2):
        assert torch.autograd.gradcheck(lambda M, k=part: torch.linalg.svd(M, full_matrices=False)[k].abs(), (M,))
        assert torch.autograd.gradgradcheck(lambda M, k=part: torch.linalg.svd(M, full_matrices=False)[k].abs(), (M,))


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_ldl_solve_has_the_gradient_of_its_right_side_and_refuses_that_of_the_factor(
    dtype: str, hermitian: bool
) -> None:
    """Both were lost in silence."""
    torch.manual_seed(0)
    A = torch.randn(2, 4, 4, dtype=getattr(torch, dtype))
    A = A + (A.mH if hermitian else A.mT)
    LD, pivots = torch.linalg.ldl_factor(A, hermitian=hermitian)
    B = torch.randn(4, 2, dtype=A.dtype, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda b: torch.linalg.ldl_solve(LD, pivots, b.expand(2, 4, 2), hermitian=hermitian), B
    )
    x = torch.linalg.ldl_solve(LD.requires_grad_(), pivots, B.detach().expand(2, 4, 2), hermitian=hermitian)
    with pytest.raises(NotImplementedError, match="linalg_ldl_solve: LD"):
        x.abs().sum().backward()


def test_factors_without_a_derivative_are_given_and_refuse_backward() -> None:
    """As in PyTorch: a program that never asks for their gradient runs."""
    A = torch.eye(3, dtype=torch.float64, requires_grad=True)
    for found in (torch.geqrf(A)[0], torch.linalg.ldl_factor(A)[0], torch.linalg.ldl_factor_ex(A)[0]):
        assert found.requires_grad
        with pytest.raises(NotImplementedError, match="the derivative for"):
            found.sum().backward()


def test_the_older_lu_writes_into_out() -> None:
    A, out = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (torch.empty(0), torch.empty(0, dtype=torch.int32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LU, _ = torch.lu(A, out=out)
        with pytest.raises(TypeError, match="tuple of 2"):
            torch.lu(A, out=out[:1])
    assert LU is out[0] and out[1].tolist() == [2, 2]
    torch.testing.assert_close(torch.linalg.lu_solve(*out, A), torch.eye(2))
