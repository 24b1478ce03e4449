"""Gradients of powers of real numbers by complex exponents."""

import cmath

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

EXPONENTS = [1 + 2j, 0.5j, 2 + 0j]


@pytest.mark.parametrize("base", [-2.0, -2, -2 + 0j])
def test_the_logarithm_of_a_negative_base_is_complex(base):
    z = torch.tensor(EXPONENTS, dtype=torch.complex128, requires_grad=True)
    torch.pow(base, z).sum().backward(torch.tensor(1 + 0j, dtype=torch.complex128))
    want = [(cmath.log(-2) * cmath.exp(e * cmath.log(-2))).conjugate() for e in EXPONENTS]
    assert np.allclose(z.grad.numpy(), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_tensor_of_negative_numbers_as_base(dtype):
    z = torch.tensor(EXPONENTS, dtype=torch.complex128, requires_grad=True)
    torch.pow(torch.tensor([-2, 3, -1]).to(dtype), z).sum().backward(torch.tensor(1 + 0j, dtype=torch.complex128))
    logs = [cmath.log(-2), cmath.log(3), cmath.log(-1)]
    want = [(log * cmath.exp(e * log)).conjugate() for e, log in zip(EXPONENTS, logs, strict=True)]
    assert np.allclose(z.grad.numpy(), want)


def test_second_derivatives():
    base = torch.tensor([-2.0, 3.0], dtype=torch.float64)
    check_gradients(
        lambda z: torch.view_as_real(torch.pow(base, torch.view_as_complex(z))), np.array([[1.0, 0.2], [0.5, -1.0]])
    )


def test_an_infinity_to_a_power_below_zero_is_zero():
    x, y = torch.tensor([complex("inf"), 2 + 0j, complex("-inf")]), torch.tensor([-1 + 0j, -1 + 0j, -2 + 1j])
    assert (x**y).tolist() == [0, 0.5, 0]
    assert torch.pow(float("inf"), y).tolist()[0] == 0
