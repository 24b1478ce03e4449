"""Squares of the distances from the mean, against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

import rushlight as torch
from rushlight.kernels.sums import joined

rng = np.random.default_rng(0)


def exact(x: np.ndarray) -> float:
    numbers = [Fraction(float(v)) for v in x]
    mean = sum(numbers) / len(numbers)
    return float(sum((v - mean) ** 2 for v in numbers))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 16, 63, 1000, 5000])
@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (1e4, 1), (1e6, 0.01), (-3, 1e-6)])
def test_they_are_exact_far_from_zero(dtype, n, shift, scale) -> None:
    x = (rng.standard_normal(n) * scale + shift).astype(dtype)
    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    assert torch.tensor(x).var(correction=0).item() * n == pytest.approx(exact(x), rel=tolerance, abs=1e-300)


@pytest.mark.parametrize("shape", [(5, 9), (300, 17), (3000, 4), (2, 70000), (1, 200000), (4, 30, 50)])
@pytest.mark.parametrize("dim", [None, (0,), (1,), (-1,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_over_any_dimension(shape, dim, dtype) -> None:
    x = rng.standard_normal(shape).astype(dtype) + dtype(3)
    want = np.var(x.astype(np.float64), dim)
    got = torch.tensor(x).var(dim, correction=0)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5 if dtype is np.float32 else 1e-12)
    found = joined("squared_deviations", x, dim, True)
    if found is not None:
        np.testing.assert_allclose(found, want.reshape(found.shape) * (x.size / want.size), rtol=1e-5)


@pytest.mark.parametrize("value", [0.1, 1e-20, 3.3e7, -7.7])
@pytest.mark.parametrize("shape", [(1000,), (3, 77), (77, 300), (1, 70000)])
def test_a_constant_has_none(value, shape) -> None:
    x = torch.full(shape, value)
    assert x.var().item() == 0 and x.std().item() == 0
    assert torch.equal(x.var(-1), torch.zeros(shape[:-1]))
    if len(shape) > 1 and shape[0] > 1:
        assert torch.equal(x.var(0), torch.zeros(shape[1:]))


def test_what_is_not_finite() -> None:
    for odd in (math.inf, math.nan):
        x = torch.ones(4, 9)
        x[1, 3] = odd
        assert torch.equal(x.var(1).isnan(), torch.tensor([False, True, False, False]))
        assert torch.equal(x.var(0).isnan(), torch.arange(9) == 3)
