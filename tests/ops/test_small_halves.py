"""Small tensors of 16 bits, beside Python's numbers too: the short way gives what the general one gives, which large tensors take."""

import math

import pytest

import rushlight as torch

NUMBERS = [0.0, -0.0, 0, 1, -3, 1.5, 0.1, 1e-9, 70000, 1e39, 255, 257, 2049, math.inf, -math.inf, math.nan, 1 << 70]
X = [1.0, -2.0, 0.0, -0.0, 0.3, 100.0, math.inf, -math.inf, math.nan]
OPERATORS = {
    "add": lambda x, n: x + n, "radd": lambda x, n: n + x, "sub": lambda x, n: x - n, "rsub": lambda x, n: n - x, "mul": lambda x, n: x * n,
    "div": lambda x, n: x / n, "rdiv": lambda x, n: n / x, "eq": lambda x, n: x == n, "lt": lambda x, n: x < n, "fmod": torch.fmod,
    "pow": lambda x, n: x**n, "trunc": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
}  # fmt: skip


def bits(x: torch.Tensor) -> list:
    """Numbers with the signs of zeros, NaN as one."""
    return [("nan" if v != v else (v, math.copysign(1, v))) for v in x.tolist()]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", OPERATORS)
def test_small_tensors_are_as_large_ones(name, dtype):
    x = torch.tensor(X).to(dtype)
    large = x.repeat(4096)
    for number in NUMBERS if name != "pow" else NUMBERS[:8]:  # larger exponents are refused
        assert bits(OPERATORS[name](x, number)) == bits(OPERATORS[name](large, number)[: len(X)]), number


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_in_place_it_is_the_same(name, dtype):
    for number in NUMBERS:
        x, leaf = torch.tensor(X).to(dtype), torch.tensor(X).to(dtype).requires_grad_()
        want = bits(getattr(torch, name[:-1])(x, number))
        assert bits(getattr(x, name)(number)) == want
        assert bits(getattr(leaf * 1, name)(number).detach()) == want


def test_zeros_of_both_signs_are_not_taken_for_each_other():
    x = torch.ones(3, dtype=torch.bfloat16)
    assert [math.copysign(1, v) for n in (0.0, -0.0, 0.0, 0) for v in (x * n).tolist()[:1]] == [1, -1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "exp", "erf", "sqrt", "abs", "neg", "expm1", "sin", "round", "reciprocal"])  # fmt: skip
def test_functions_of_one_small_tensor_are_as_those_of_large_ones(name, dtype):
    x = torch.tensor(X).to(dtype)
    assert bits(getattr(torch, name)(x)) == bits(getattr(torch, name)(x.repeat(8192))[: len(X)])
