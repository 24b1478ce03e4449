"""Rectifiers at their kinks, at infinity and NaN, and in 16 bits."""

import math

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional
inf, nan = math.inf, math.nan
HALF = [torch.float16, torch.bfloat16]


def slope(fn, values, dtype=torch.float32, twice=False):
    x = torch.tensor(values, dtype=dtype, requires_grad=True)
    (g,) = torch.autograd.grad(fn(x), x, torch.ones(len(values), dtype=dtype), create_graph=twice)
    return g.detach().float().tolist()


@pytest.mark.parametrize("twice", [False, True])
def test_slopes_of_hardswish_at_its_ends(twice):
    assert slope(F.hardswish, [3.0, -3.0, inf, -inf, nan, 0.0], twice=twice) == [1, 0, 1, 0, 1, 0.5]


@pytest.mark.parametrize("twice", [False, True])
def test_slopes_at_nan(twice):
    assert slope(F.hardsigmoid, [nan, 3.0, -3.0], twice=twice) == [0, 0, 0]
    for fn in (F.elu, F.celu, lambda x: F.elu(x, 2.0), lambda x: F.elu(x, -2.0)):
        assert slope(fn, [nan, inf, -inf], twice=twice) == [1, 1, 0]


def test_hardshrink_with_an_infinite_limit():
    assert F.hardshrink(torch.tensor([1.0, inf, -inf]), inf).tolist() == [0, 0, 0]
    assert F.hardshrink(torch.tensor([1.0, inf, nan]), 0.5).tolist()[:2] == [1, inf]


@pytest.mark.parametrize("limit", [inf, nan, -1.0])
def test_softshrink_refuses_a_limit_that_is_no_number_of_the_dtype(limit):
    with pytest.raises(RuntimeError, match="lambda must be"):
        F.softshrink(torch.ones(2), limit)
    with pytest.raises(RuntimeError, match="in range"):
        F.softshrink(torch.ones(2, dtype=torch.float16), 1e5)


@pytest.mark.parametrize("dtype", HALF)
def test_limits_are_rounded_to_16_bits(dtype):
    x = [0.3, -0.3, 0.1, 0.5]
    assert F.hardshrink(torch.tensor(x, dtype=dtype), 0.3).tolist() == [0, 0, 0, 0.5]
    assert slope(lambda t: F.hardshrink(t, 0.3), x, dtype) == [0, 0, 0, 1]
    for limit in (0.1, 0.3, 0.7, 1e-8, 2049.0):
        assert slope(lambda t, limit=limit: F.hardtanh(t, -limit, limit), [5000.0, -5000.0], dtype) == [0, 0]


def test_infinity_passes_a_rectifier_with_slope_zero():
    assert F.leaky_relu(torch.tensor([inf, 2.0, -2.0]), 0.0).tolist() == [inf, 2, 0]
    assert slope(lambda x: F.leaky_relu(x, 0.0), [inf, 2.0, -2.0]) == [1, 1, 0]
    assert F.prelu(torch.tensor([1.0, inf]), torch.tensor([inf])).tolist() == [1, inf]


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize(("fn", "alpha", "scale", "inner"), [
    (F.elu, 1, 1, 1), (lambda x: F.elu(x, 0.3), 0.3, 1, 1), (lambda x: F.celu(x, 0.1), 0.1, 1, 10),
    (F.selu, 1.6732632423543772, 1.0507009873554805, 1),
])  # fmt: skip
def test_slopes_of_elu_in_16_bits_are_rounded_once(fn, alpha, scale, inner, dtype):
    x = torch.tensor(np.linspace(-20, 2, 89), dtype=dtype)
    at = x.double().numpy()
    exact = np.where(at > 0, scale, alpha * scale * inner * np.exp(np.minimum(at, 0) * inner))
    found = np.array(slope(fn, x.tolist(), dtype))
    limits = torch.finfo(dtype)
    assert (np.abs(found - exact) <= np.maximum(exact * limits.eps * 0.55, limits.smallest_normal * limits.eps)).all()


def test_slopes_have_a_gradient_where_a_large_input_has_none() -> None:
    slope = torch.tensor([0.5], requires_grad=True)
    F.prelu(torch.full((30, 10, 10), -1.0), slope).sum().backward()
    assert slope.grad.tolist() == [-3000]
