"""Factors that are triangular matrices, and solving with them, against products of what they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import kernels

SIZES = (1, 2, 7, 8, 12, 13, 24, 25, 47, 48, 49, 97, 200)
DTYPES = ("float32", "float64")


def normal(*shape: int, dtype: str) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def positive(*shape: int, dtype: str) -> Any:
    x = normal(*shape, shape[-1], dtype=dtype)
    return x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1], dtype=dtype)


def near(found: Any, expected: Any, dtype: str) -> None:
    """Within a few units of the last place of numbers about 1, for each element that is added up."""
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=4 * np.finfo(dtype).eps * max(found.shape[-2:]) ** 0.5 * np.abs(expected).max()
    )


def exchanged(A: Any, pivots: Any) -> Any:
    A = A.copy()
    for i in np.ndindex(*pivots.shape[:-1]):
        for k, p in enumerate(pivots[i] - 1):
            A[i][[k, p]] = A[i][[p, k]]
    return A


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_a_cholesky_factor_times_itself(n: int, dtype: str) -> None:
    for batch in ((), (3,)):
        A = positive(*batch, n, dtype=dtype)
        L = A + np.triu(np.full((n, n), np.nan, dtype), 1)  # what is above the diagonal is not read
        assert not kernels.cholesky_factor(L).any()
        assert not np.triu(L, 1).any()
        near(L @ L.swapaxes(-1, -2), A, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_minor_that_is_not_positive_is_found(dtype: str) -> None:
    for n in SIZES:
        for bad in {0, n // 2, n - 1}:
            for value in (-1, 0, np.nan):
                A = np.stack([positive(n, dtype=dtype)] * 2)
                A[1] = np.eye(n)
                A[1, bad, bad] = value
                assert kernels.cholesky_factor(A).tolist() == [0, bad + 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(n, n) for n in SIZES] + [(3, 5), (5, 3), (96, 50), (50, 96), (13, 200), (200, 13), (3, 30, 31)]
)
def test_products_of_lu_factors(shape: tuple[int, ...], dtype: str) -> None:
    A = normal(*shape, dtype=dtype)
    LU = A.copy()
    pivots, zero = kernels.lu_factor(LU)
    m, n = shape[-2:]
    L, U = np.tril(LU[..., : min(m, n)], -1) + np.eye(m, min(m, n), dtype=dtype), np.triu(LU[..., : min(m, n), :])
    assert not zero.any() and np.abs(L).max() <= 1 + 1e-6
    near(L @ U, exchanged(A, pivots), dtype)


def test_exchanges_are_those_of_partial_pivoting() -> None:
    for shape in ((5, 5), (60, 60), (70, 130), (130, 70)):
        A = normal(*shape, dtype="float64")
        LU, expected, wanted = A.copy(), A.copy(), np.empty(min(shape), np.int32)
        pivots, _ = kernels.lu_factor(LU)
        kernels.linear.triangles.reference.lu_factor(expected, wanted)
        np.testing.assert_array_equal(pivots, wanted)
        np.testing.assert_allclose(LU, expected, atol=1e-11)


def test_pivots_that_are_zero_or_nan() -> None:
    for n in (4, 12, 13, 60, 100):
        for bad in {0, 1, n // 2, n - 1}:
            A = np.eye(n)
            A[bad, bad] = 0
            assert kernels.lu_factor(A)[1] == bad + 1
            A = np.eye(n) + 0.01
            A[bad, bad] = np.nan
            kernels.lu_factor(A)
            assert np.isnan(A[-1, -1]) and not np.isnan(A[:bad, :bad]).any()
    A = np.zeros((50, 20))
    pivots, zero = kernels.lu_factor(A)
    assert zero == 1 and pivots.tolist() == list(range(1, 21)) and not A.any()


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_substitution(unit: bool, upper: bool, turned: bool, dtype: str) -> None:
    for n in SIZES:
        for columns in (1, 2, 16, 17, 33, 48, 100):
            full = normal(2, n, n, dtype=dtype) / n + 2 * np.eye(n, dtype=dtype)
            A = np.triu(full) if upper else np.tril(full)
            if unit:
                A[..., range(n), range(n)] = 1
            seen = np.where(A == 0, np.nan, A).astype(dtype)  # what is not to be read
            if unit:
                seen[..., range(n), range(n)] = np.nan
            if turned:
                seen = np.ascontiguousarray(seen.swapaxes(-1, -2)).swapaxes(-1, -2)
            B = normal(2, n, columns, dtype=dtype)
            x = B.copy()
            kernels.substitute(seen, x, upper, unit)
            near(A @ x, B, dtype)


def test_what_is_divided_by_zero_becomes_infinite() -> None:
    for n in (3, 60):
        A, x = np.eye(n), np.ones((n, 5))
        A[1, 1] = 0
        kernels.substitute(A, x, False)
        assert np.isinf(x[1]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions(dtype: str) -> None:
    for n in SIZES:
        for columns in (1, 5, 60):
            A, B = (
                normal(3, n, n, dtype=dtype) + 3 * n**0.5 * np.eye(n, dtype=dtype),
                normal(3, n, columns, dtype=dtype),
            )
            x = B.copy()
            assert not kernels.solve_by_lu(A.copy(), x).any()
            near(A @ x, B, dtype)
    A, x = np.stack([np.eye(20), np.zeros((20, 20))]), np.ones((2, 20, 3))
    assert kernels.solve_by_lu(A, x).tolist() == [0, 1] and (x[0] == 1).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads: int) -> None:
    A, B, S = normal(500, 500, dtype="float32"), normal(500, 200, dtype="float32"), positive(500, dtype="float32")
    former, found = torch.get_num_threads(), []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            LU, x, L = A.copy(), B.copy(), S.copy()
            pivots, _ = kernels.lu_factor(LU)
            kernels.solve_by_lu(A.copy(), x)
            kernels.cholesky_factor(L)
            found.append((LU, pivots, x, L))
    finally:
        torch.set_num_threads(former)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_matrices_without_elements() -> None:
    for shape in ((0, 0), (3, 0, 0), (0, 4, 4)):
        A = np.empty(shape)
        assert kernels.cholesky_factor(A).shape == shape[:-2]
        assert kernels.lu_factor(A)[0].shape == shape[:-1]
        assert kernels.solve_by_lu(A, np.empty((*shape[:-1], 2))).shape == shape[:-2]


def test_of_matrices_that_are_nearly_singular_errors_and_infos_are_those_of_the_factors() -> None:
    """Another library may round otherwise, and find no minor or pivot that is not positive or zero, or one that is not here."""
    draws = np.random.default_rng(5)
    refused = 0
    for n in (2, 3, 7, 17, 33, 49) * 40:
        half = draws.standard_normal((n, max(n - 1, 1)))
        A = torch.tensor(half @ half.T)
        L, info = torch.linalg.cholesky_ex(A)
        assert bool(L.isnan().any()) == bool(info > 0)
        if info > 0:
            refused += 1
            with pytest.raises(torch.linalg.LinAlgError, match=f"minor of order {int(info)} "):
                torch.linalg.cholesky(A)
        B = draws.standard_normal((n, n))
        B[:, -1] = B[:, 0]
        inverse, info = torch.linalg.inv_ex(torch.tensor(B))
        assert bool(inverse.isinf().all()) == bool(info > 0)
        assert int(info) == int(torch.linalg.lu_factor_ex(torch.tensor(B)).info)
        if info > 0:
            refused += 1
            with pytest.raises(torch.linalg.LinAlgError):
                torch.linalg.inv(torch.tensor(B))
            with pytest.raises(torch.linalg.LinAlgError):
                torch.linalg.solve(torch.tensor(B), torch.ones(n, dtype=torch.float64))
    assert refused > 40


def test_a_complex_matrix_with_a_nan_is_not_positive_definite() -> None:
    for n in (3, 100):
        A = torch.eye(n, dtype=torch.complex128).repeat(2, 1, 1)
        A[1, -1, 0] = torch.nan
        L, info = torch.linalg.cholesky_ex(A)
        assert info.tolist() == [0, n]
        assert L[0].isfinite().all()
        assert L[1].isnan().all()
        with pytest.raises(torch.linalg.LinAlgError, match="Batch element 1"):
            torch.linalg.cholesky(A)


def test_many_matrices_and_no_column() -> None:
    A = torch.eye(193).repeat(2, 1, 1)
    assert torch.linalg.solve(A, torch.ones(2, 193, 0)).shape == (2, 193, 0)


def test_determinants_whose_parts_are_out_of_range() -> None:
    for parts, det in (([1e200, 1e200, 1e-200, 1e-200], 1.0), ([-1e-200, 1e-200, 1e200, 1e200], -1.0),
                       ([1e200, 1e200, 0.0], 0.0), ([1e200, 1e200], np.inf), ([1e-200, 1e-200], 0.0)):  # fmt: skip
        for n in (len(parts), 150):
            A = torch.diag(torch.tensor(parts + [1.0] * (n - len(parts)), dtype=torch.float64))
            np.testing.assert_allclose(torch.linalg.det(A), det, rtol=1e-12)


def test_which_of_a_batch_is_singular_is_said() -> None:
    A = torch.eye(3).repeat(4, 1, 1)
    A[2] = 0
    for run in (torch.linalg.lu_factor, torch.linalg.inv, torch.func.vmap(torch.linalg.inv)):
        with pytest.raises(RuntimeError, match="Batch element 2"):
            run(A)
    with pytest.raises(RuntimeError, match=r"lu_factor: U\[1,1\]"):
        torch.linalg.lu_factor(A[2])
