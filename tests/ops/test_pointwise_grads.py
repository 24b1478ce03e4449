"""First and second derivatives of elementwise operators against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

DRAW = np.random.default_rng(7)
REAL = DRAW.uniform(-2, 2, (2, 3))
POSITIVE = DRAW.uniform(0.3, 3, (2, 3))
UNIT = DRAW.uniform(-0.9, 0.9, (2, 3))
COMPLEX = DRAW.uniform(-1, 1, (2, 2)) + 1j * DRAW.uniform(0.2, 1, (2, 2))

PAIRS: dict[str, Any] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "add alpha": lambda a, b: torch.add(a, b, alpha=2.5), "sub alpha": lambda a, b: torch.sub(a, b, alpha=3),
    "rsub": torch.rsub, "pow": lambda a, b: torch.pow(a * a + 0.5, b), "rpow": lambda a, b: 2.5**a + (-1.5) * b,
}  # fmt: skip
REAL_PAIRS: dict[str, Any] = {
    "atan2": torch.atan2, "hypot": torch.hypot, "logaddexp": torch.logaddexp, "logaddexp2": torch.logaddexp2,
    "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin,
    "copysign": torch.copysign, "remainder": torch.remainder, "fmod": torch.fmod,
    "xlogy": lambda a, b: torch.xlogy(a, b * b + 0.5), "xlog1py": lambda a, b: torch.special.xlog1py(a, b * b),
    "where": lambda a, b: torch.where(a > b, a * a, b), "clamp": lambda a, b: torch.clamp(a, b - 1, b + 0.5),
    "clamp_min": torch.clamp_min, "complex": torch.complex, "polar": torch.polar,
}  # fmt: skip
SECOND = DRAW.uniform(0.4, 2, (3,))


@pytest.mark.parametrize("name", [*PAIRS, *REAL_PAIRS])
def test_of_two_variables_that_broadcast(name: str) -> None:
    check_gradients((PAIRS | REAL_PAIRS)[name], REAL, SECOND, tol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_of_two_complex_variables(name: str) -> None:
    check_gradients(PAIRS[name], COMPLEX, COMPLEX[0] * (0.5 - 1j) + 1.5, tol=1e-5)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "rsub"])
def test_of_a_real_and_a_complex_variable(name: str) -> None:
    check_gradients(PAIRS[name], REAL[:, :2], COMPLEX, tol=1e-5)
    check_gradients(PAIRS[name], COMPLEX, REAL[:, :2], tol=1e-5)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, True])
def test_powers_with_numbers(exponent: Any) -> None:
    check_gradients(lambda a: a**exponent, POSITIVE, tol=1e-5)


NUMBERS: dict[str, Any] = {
    "1 - x": lambda a: 1 - a, "2 / x": lambda a: 2 / a, "x / 3": lambda a: a / 3, "x % 0.7": lambda a: a % 0.7,
    "-x": lambda a: -a, "3 * x + 1": lambda a: 3 * a + 1, "0.5 ** x": lambda a: 0.5**a, "2.0 % x": lambda a: 2.0 % a,
    "clamp": lambda a: a.clamp(0.5, 2), "clamp_max": lambda a: a.clamp_max(1), "nan_to_num": torch.nan_to_num,
    "logit": lambda a: torch.logit(a / 4, eps=0.1), "lerp": lambda a: torch.lerp(a, a * a, 0.7),
    "polygamma": lambda a: torch.polygamma(2, a), "mvlgamma": lambda a: torch.mvlgamma(a + 1, 3),
    "ldexp": lambda a: torch.ldexp(a, torch.tensor([1, -2, 3])), "frexp": lambda a: torch.frexp(a).mantissa,
    "igamma": lambda a: torch.igamma(torch.tensor([0.7, 2.0, 3.5], dtype=torch.float64), a),
    "igammac": lambda a: torch.igammac(torch.tensor(1.5, dtype=torch.float64), a),
    "zeta": lambda a: torch.special.zeta(torch.tensor([1.5, 2.0, 7.0], dtype=torch.float64), a),
    "xlogy": lambda a: torch.xlogy(2.0, a), "xlogy of a number": lambda a: torch.xlogy(a, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_with_numbers(name: str) -> None:
    check_gradients(NUMBERS[name], POSITIVE, tol=1e-5)


@pytest.mark.parametrize("dtype", ["real", "complex"])
def test_of_three_variables(dtype: str) -> None:
    a, b, c = (REAL, POSITIVE, UNIT) if dtype == "real" else (COMPLEX, COMPLEX + 0.5, COMPLEX * 1j)
    check_gradients(lambda x, y, z: torch.addcmul(x, y, z, value=2), a, b, c, tol=1e-5)
    check_gradients(lambda x, y, z: torch.addcdiv(x, z, y, value=-0.5), a, b, c, tol=1e-5)
    check_gradients(lambda x, y, z: torch.lerp(x, y, z), a, b, c, tol=1e-5)


def test_of_views_of_complex_numbers() -> None:
    pairs = DRAW.standard_normal((3, 2))
    check_gradients(lambda a: torch.view_as_complex(a) ** 2, pairs)

    def written(a: Any) -> Any:
        b = a * 1
        b.real.mul_(3)
        b.imag = b.real * 2
        return b * b

    check_gradients(written, COMPLEX)


def test_second_gradient_of_recomputed_masks() -> None:
    check_gradients(lambda a: torch.clamp(a, -1, 1) ** 3, REAL)
    check_gradients(lambda a: torch.maximum(a, a * a) ** 2, REAL)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign"])
def test_steps_have_zero_gradients(name: str) -> None:
    x = torch.tensor([0.3, -1.7], requires_grad=True)
    y = getattr(torch, name)(x)
    assert y.grad_fn is not None
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_rounded_quotients_have_zero_gradients(mode: str) -> None:
    x, y = torch.tensor([3.3], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    torch.div(x, y, rounding_mode=mode).backward()
    assert x.grad.item() == y.grad.item() == 0


def test_the_slope_of_the_first_power_depends_on_its_input_with_slope_0():
    x = torch.tensor([2.0, -3.0], requires_grad=True)
    (g,) = torch.autograd.grad((x**1).sum(), x, create_graph=True)
    assert g.tolist() == [1.0, 1.0] and torch.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("fn", [torch.round, torch.floor, torch.sign, lambda x: x**0])
def test_zeros_that_are_a_gradient_have_no_graph(fn):
    x = torch.tensor([1.4, -2.6], requires_grad=True)
    (g,) = torch.autograd.grad((fn(x) * x.detach()).sin().sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 0.0] and not g.requires_grad


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "greater"])
def test_what_a_comparison_overwrote_has_no_gradient(name):
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([2.0, 2.0], requires_grad=True)
    c = x * 3
    getattr(c, f"{name}_")(y)
    for grad in torch.autograd.grad(c.sum(), [x, y]):
        assert grad.tolist() == [0, 0]
    d = torch.zeros(2)
    assert getattr(d, f"{name}_")(x).requires_grad
