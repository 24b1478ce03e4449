"""Norms, determinants, powers and solvers of torch.linalg: values against NumPy, derivatives against differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

DRAW = np.random.default_rng(9)
SQUARE = DRAW.standard_normal((3, 3)) + 2 * np.eye(3)
TALL = DRAW.standard_normal((4, 3))
BATCH = DRAW.standard_normal((2, 3, 3)) + 2 * np.eye(3)
LONG = DRAW.standard_normal((2, 3, 4))
la = torch.linalg


def t(array: Any) -> Any:
    return torch.from_numpy(np.array(array))


# name: (on a tensor, the same in NumPy, the input)
CASES: dict[str, tuple[Any, Any, Any]] = {
    **{
        f"matrix_norm {p}": (lambda a, p=p: la.matrix_norm(a, p), lambda a, p=p: np.linalg.norm(a, p), TALL)
        for p in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf)
    },
    **{
        f"vector_norm {p}": (lambda a, p=p: la.vector_norm(a, p), lambda a, p=p: np.linalg.norm(a.ravel(), p), TALL)
        for p in (2, 1, 3, 0.5, math.inf, -math.inf)
    },
    "matrix_norm dims": (
        lambda a: la.matrix_norm(a, 1, (0, 2), keepdim=True),
        lambda a: np.linalg.norm(a, 1, (0, 2), keepdims=True),
        LONG,
    ),
    "norm": (lambda a: la.norm(a), lambda a: np.linalg.norm(a), TALL),
    "norm of rows": (lambda a: la.norm(a, dim=1), lambda a: np.linalg.norm(a, axis=1), TALL),
    "norm of dims": (lambda a: la.norm(a, dim=(0, 1)), lambda a: np.linalg.norm(a, axis=(0, 1)), LONG),
    "norm by name": (lambda a: la.norm(a, "nuc"), lambda a: np.linalg.norm(a, "nuc"), TALL),
    "norm of a vector": (lambda a: la.norm(a[0], 3), lambda a: np.linalg.norm(a[0], 3), TALL),
    "det": (lambda a: la.det(a), lambda a: np.linalg.det(a), BATCH),
    "torch.det": (lambda a: torch.det(a), lambda a: np.linalg.det(a), SQUARE),
    "slogdet": (lambda a: la.slogdet(a), lambda a: tuple(np.linalg.slogdet(a)), BATCH),
    "torch.slogdet": (lambda a: torch.slogdet(a), lambda a: tuple(np.linalg.slogdet(a)), SQUARE),
    "logdet": (lambda a: torch.logdet(a @ a.mT), lambda a: np.log(np.linalg.det(a @ a.T)), SQUARE),
    "cond": (lambda a: la.cond(a), lambda a: np.linalg.cond(a), SQUARE),
    "cond fro": (lambda a: la.cond(a, "fro"), lambda a: np.linalg.cond(a, "fro"), SQUARE),
    "cond -2": (lambda a: la.cond(a, -2), lambda a: np.linalg.cond(a, -2), SQUARE),
    "pinv": (lambda a: la.pinv(a), lambda a: np.linalg.pinv(a), TALL),
    "pinv of a wide one": (lambda a: la.pinv(a.mT), lambda a: np.linalg.pinv(a.T), TALL),
    "pinv hermitian": (
        lambda a: la.pinv(a @ a.mT + torch.eye(3, dtype=a.dtype), hermitian=True),
        lambda a: np.linalg.inv(a @ a.T + np.eye(3)),
        SQUARE,
    ),
    "pinverse": (lambda a: torch.pinverse(a), lambda a: np.linalg.pinv(a), TALL),
    "matrix_power": (lambda a: la.matrix_power(a, 5), lambda a: np.linalg.matrix_power(a, 5), BATCH),
    "matrix_power 0": (lambda a: la.matrix_power(a, 0) + 0 * a, lambda a: np.linalg.matrix_power(a, 0), BATCH),
    "matrix_power -2": (lambda a: la.matrix_power(a, -2), lambda a: np.linalg.matrix_power(a, -2), BATCH),
    "tensorinv": (
        lambda a: la.tensorinv(a.reshape(3, 3, 1), ind=1),
        lambda a: np.linalg.tensorinv(a.reshape(3, 3, 1), ind=1),
        SQUARE,
    ),
    "tensorsolve": (
        lambda a: la.tensorsolve(a.reshape(3, 3, 1), a[0]),
        lambda a: np.linalg.tensorsolve(a.reshape(3, 3, 1), a[0]),
        SQUARE,
    ),
    "tensorsolve dims": (
        lambda a: la.tensorsolve(a.reshape(3, 1, 3), a[0], dims=(1,)),
        lambda a: np.linalg.tensorsolve(a.reshape(3, 1, 3), a[0], axes=(1,)),
        SQUARE,
    ),
    "vecdot": (lambda a: la.vecdot(a, 2 * a[:1]), lambda a: (a * 2 * a[:1]).sum(-1), TALL),
    "vecdot dim": (lambda a: la.vecdot(a, a, dim=0), lambda a: (a * a).sum(0), TALL),
    "vander": (
        lambda a: la.vander(a, N=4),
        lambda a: np.stack([np.vander(row, 4, increasing=True) for row in a]),
        TALL,
    ),
    "vander square": (lambda a: la.vander(a[0]), lambda a: np.vander(a[0], increasing=True), TALL),
    "diagonal": (lambda a: la.diagonal(a, offset=1), lambda a: np.diagonal(a, 1, -2, -1), BATCH),
    "multi_dot": (lambda a: la.multi_dot((a, a.mT, a)), lambda a: a @ a.T @ a, TALL),
    "matrix_exp of a diagonal": (
        lambda a: torch.matrix_exp(torch.diag(a[0])),
        lambda a: np.diag(np.exp(a[0])),
        SQUARE,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    ours, numpys, array = CASES[name]
    found, wanted = ours(t(array)), numpys(array)
    if not isinstance(wanted, tuple):
        found, wanted = (found,), (wanted,)
    for f, w in zip(found, wanted, strict=True):
        assert f.numpy().shape == np.shape(w)
        np.testing.assert_allclose(f.numpy(), w, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    ours, _, array = CASES[name]
    check_gradients(ours, array, second=False, tol=1e-5)


def test_determinants_of_singular_matrices_have_derivatives() -> None:
    singular = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, -1.0, 1.0]])
    check_gradients(la.det, singular, second=False, tol=1e-5)
    assert torch.logdet(torch.tensor([[1.0, 0.0], [0.0, -1.0]])).isnan()
    assert torch.logdet(torch.zeros(2, 2)).item() == -math.inf


def test_rank() -> None:
    a = t(np.outer([1.0, 2, 3], [1, 0, 2]))
    assert la.matrix_rank(a).item() == 1
    assert la.matrix_rank(torch.eye(3), hermitian=True).item() == 3
    assert la.matrix_rank(torch.diag(torch.tensor([1.0, 0.1, 1e-3])), atol=0.01).item() == 2
    assert la.matrix_rank(torch.diag(torch.tensor([1.0, 0.1, 1e-3])), rtol=0.2).item() == 1


def test_least_squares() -> None:
    b = DRAW.standard_normal((4, 2))
    solution, residuals, rank, _ = la.lstsq(t(TALL), t(b), driver="gelsd")
    wanted, left, _, _ = np.linalg.lstsq(TALL, b, rcond=None)
    np.testing.assert_allclose(solution.numpy(), wanted, rtol=1e-9)
    np.testing.assert_allclose(residuals.numpy(), left, rtol=1e-9)
    assert rank.item() == 3


def test_householder_vectors_make_an_orthogonal_matrix() -> None:
    """The reflections of a QR factorisation in LAPACK's form, made here by hand for one column."""
    x = np.array([3.0, 1.0, 2.0])
    norm = np.linalg.norm(x)
    v = x.copy()
    v[0] += norm
    tau = 2 * v[0] ** 2 / (v @ v)
    a = (v / v[0])[:, None]
    q = la.householder_product(t(a), t([tau])).numpy()
    np.testing.assert_allclose(q[:, 0], -x / norm, rtol=1e-12)
    check_gradients(la.householder_product, a, np.array([tau]), second=False, tol=1e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: la.det(torch.ones(2, 3)), RuntimeError),
        (lambda: la.matrix_norm(torch.ones(3), "fro"), RuntimeError),
        (lambda: la.matrix_norm(torch.ones(3, 3), "best"), RuntimeError),
        (lambda: la.matrix_norm(torch.ones(3, 3), 2, (0, 0)), RuntimeError),
        (lambda: la.matrix_power(torch.ones(2, 3), 2), RuntimeError),
        (lambda: la.tensorinv(torch.ones(2, 3)), RuntimeError),
        (lambda: la.tensorinv(torch.ones(2, 3, 6), ind=0), RuntimeError),
        (lambda: la.vecdot(torch.ones(3), torch.ones(4)), RuntimeError),
        (lambda: la.householder_product(torch.ones(2, 3), torch.ones(2)), RuntimeError),
        (lambda: la.lstsq(torch.ones(4, 3), torch.ones(4, 1), driver="fast"), RuntimeError),
        (lambda: la.pinv(torch.ones(3)), RuntimeError),
    ],
)
def test_refusals(call: Any, error: Any) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("order", [1, 2, math.inf])
def test_the_largest_of_no_norms_is_zero(shape, order):
    x = torch.zeros(shape)
    assert torch.linalg.matrix_norm(x, order).shape == shape[:-2]
    found = torch.linalg.matrix_norm(x, order, keepdim=True)
    assert found.shape == (*shape[:-2], 1, 1)
    assert not found.any()
