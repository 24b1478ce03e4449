"""Tensors made inside of a function that is transformed, and written into: their derivatives are not lost."""

import pytest

import rushlight as torch

EYE = torch.eye(2, dtype=torch.float64)


def point() -> torch.Tensor:
    return torch.tensor([1.0, 2.0], dtype=torch.float64)


def copied(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x).copy_(x**2)


def added(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros(2, dtype=x.dtype)
    made += x**2
    return made


def by_parts(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros(2, dtype=x.dtype)
    made[0] = x[0] ** 2
    return made


@pytest.mark.parametrize("f", [copied, added])
def test_a_vjp_inside_vmap_of_a_function_that_fills_a_tensor(f) -> None:
    pulled = torch.func.vmap(lambda v: torch.func.vjp(f, point())[1](v)[0])(EYE)
    assert pulled.tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("f", [copied, added])
def test_hessian_of_a_function_that_fills_a_tensor(f) -> None:
    assert torch.func.hessian(lambda x: f(x).sum())(point()).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_a_vjp_inside_vmap_of_a_function_that_fills_a_tensor_by_parts() -> None:
    pulled = torch.func.vmap(lambda v: torch.func.vjp(by_parts, point())[1](v)[0])(EYE)
    assert pulled.tolist() == torch.func.jacrev(by_parts)(point()).tolist() == [[2.0, 0.0], [0.0, 0.0]]
