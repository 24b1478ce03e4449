"""Values, dtypes and special values of elementwise operators, against NumPy and Python's own functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.ops.declared import unary

import rushlight as torch
from rushlight import kernels

inf, nan = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e-30, inf, -inf, nan]
NUMPY = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "deg2rad": np.deg2rad, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "neg": np.negative, "rad2deg": np.rad2deg, "reciprocal": lambda x: 1 / x, "round": np.round,
    "sin": np.sin, "sinc": np.sinc, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "isposinf": np.isposinf, "isneginf": np.isneginf, "signbit": np.signbit, "logical_not": np.logical_not,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x), "frac": lambda x: x - np.trunc(x),
    "logit": lambda x: np.log(x / (1 - x)), "angle": np.angle,
}  # fmt: skip
NUMPY_PAIRS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floor_divide": np.floor_divide,
    "remainder": np.remainder, "fmod": np.fmod, "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot,
    "copysign": np.copysign, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
    "nextafter": np.nextafter, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NUMPY)
def test_one_variable(name: str, dtype: Any) -> None:
    x = np.array([SPECIAL, SPECIAL[::-1]], dtype)
    with np.errstate(all="ignore"):
        want = NUMPY[name](x)
        if name == "angle":
            want = np.where(np.isnan(x), nan, np.where(x < 0, np.pi, 0))  # 0 at -0.0 too
    for given in (torch.from_numpy(x), torch.from_numpy(x.T.copy()).T):
        got = getattr(torch, name)(given).numpy()
        assert got.dtype == want.astype(got.dtype).dtype
        np.testing.assert_allclose(got, want.astype(got.dtype), rtol=1e-5 if dtype is np.float32 else 1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NUMPY_PAIRS)
def test_two_variables(name: str, dtype: Any) -> None:
    x, y = np.array(SPECIAL, dtype)[:, None], np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        want = NUMPY_PAIRS[name](x, y)
    got = getattr(torch, name)(torch.from_numpy(x), torch.from_numpy(y))
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5 if dtype is np.float32 else 1e-14)


@pytest.mark.parametrize("name", [op.name for op in unary() if hasattr(kernels, op.name)])
def test_large_tensors_take_kernels_with_the_same_values(name: str) -> None:
    x = np.linspace(0.1, 3, 10_000).reshape(100, 100)
    whole = getattr(torch, name)(torch.from_numpy(x)).numpy()
    parts = np.concatenate([getattr(torch, name)(torch.from_numpy(row.copy())).numpy() for row in x])
    np.testing.assert_allclose(whole.ravel(), parts, rtol=1e-13)


# dtypes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_functions_of_the_reals_give_the_default_dtype(dtype: Any) -> None:
    x = torch.tensor([0, 1], dtype=dtype)
    for op in unary():
        assert op.promote != "float" or op.call(x).dtype is torch.float32, op
    assert torch.div(x, x).dtype is torch.float32
    assert torch.atan2(x, x).dtype is torch.float32


def test_numbers_do_not_raise_dtypes_of_their_kind() -> None:
    half, small = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.int8)
    assert (half + 1).dtype is (half * 2.5).dtype is (1 - half).dtype is torch.float16
    assert (small + 100).dtype is torch.int8
    assert (small + 1.5).dtype is torch.float32
    assert (half * 1j).dtype is torch.complex32
    assert (torch.tensor([True]) + 1).dtype is torch.int64
    assert (torch.ones(2) + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float32
    assert (torch.ones(2, dtype=torch.int64) + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float64
    assert torch.where(torch.tensor([True]), half[:1], 2.0).dtype is torch.float16
    assert torch.where(torch.tensor([True]), 1, 2.0).dtype is torch.float32
    assert torch.square(torch.tensor([True])).dtype is torch.int64
    assert torch.clamp(small, 0.5, 2).dtype is torch.float32


def test_numpys_python_numbers_are_python_numbers() -> None:
    assert (torch.tensor([1, 2]) * np.float64(2)).dtype is (np.float64(2) * torch.tensor([1, 2])).dtype is torch.float32
    assert (torch.ones(2, dtype=torch.float16) * np.float64(2)).dtype is torch.float16


def test_result_type() -> None:
    assert torch.result_type(torch.tensor([1]), 1.0) is torch.float32
    assert torch.can_cast(torch.float32, torch.float64)
    assert not torch.can_cast(torch.float32, torch.int64)


def test_integers_wrap_around() -> None:
    assert (torch.tensor([127], dtype=torch.int8) + 1).item() == -128
    assert (torch.tensor([3], dtype=torch.uint8) - 5).item() == 254
    assert (-torch.tensor([1], dtype=torch.uint8)).item() == 255


def test_integer_division() -> None:
    a, b = torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -2])
    assert torch.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert torch.div(a, b, rounding_mode="floor").tolist() == (a // b).tolist() == [3, -4, -4, 3]
    assert (a % b).tolist() == [1, 1, -1, -1]
    assert torch.fmod(a, b).tolist() == [1, -1, 1, -1]


def test_integer_powers() -> None:
    base = torch.tensor([2, -1, 1, 0, -3])
    assert torch.pow(base, 3).tolist() == [8, -1, 1, 0, -27]
    assert torch.pow(base, torch.tensor([-1, -3, -2, -1, 2])).tolist() == [0, -1, 1, 0, 9]
    assert (2 ** torch.tensor([0, 3])).tolist() == [1, 8]


def test_bits() -> None:
    a, b = torch.tensor([6, -3, 255]), torch.tensor([3, 5, 1])
    assert (a & b).tolist() == [2, 5, 1]
    assert (a | b).tolist() == [7, -3, 255]
    assert (a ^ b).tolist() == [5, -8, 254]
    assert (~a).tolist() == [-7, 2, -256]
    assert (a << 2).tolist() == [24, -12, 1020]
    assert (a >> 1).tolist() == [3, -2, 127]
    assert (a << 64).tolist() == [0, 0, 0]
    assert (a >> 64).tolist() == [0, -1, 0]
    assert torch.gcd(a, b).tolist() == [3, 1, 1]
    assert torch.lcm(a, b).tolist() == [6, 15, 255]


# Choices -----------------------------------------------------------------------------------------------------


def test_where() -> None:
    mask, x = torch.tensor([[True], [False]]), torch.tensor([1.0, 2.0])
    assert torch.where(mask, x, -x).tolist() == [[1, 2], [-1, -2]]
    assert torch.where(mask, x, 0).tolist() == [[1, 2], [0, 0]]
    assert torch.where(mask, 1, x).tolist() == [[1, 1], [1, 2]]
    assert x.where(x > 1, 9.0).tolist() == [9, 2]
    assert [t.tolist() for t in torch.where(torch.tensor([0, 3, 0, 1]))] == [[1, 3]]


def test_clamp() -> None:
    x = torch.tensor([-3.0, 0.5, 7.0, nan])
    assert x.clamp(-1, 1).tolist()[:3] == [-1, 0.5, 1]
    assert math.isnan(x.clamp(-1, 1)[3])
    assert torch.clamp(x, min=0)[:3].tolist() == [0, 0.5, 7]
    assert torch.clip(x, max=torch.tensor([0.0, 1.0, 2.0, 3.0]))[:3].tolist() == [-3, 0.5, 2]
    assert x.clamp(3, 1)[:3].tolist() == [1, 1, 1]
    assert torch.clamp_min(x, 0.0)[:2].tolist() == [0, 0.5]
    assert torch.tensor([1, 5]).clamp(2, 3).tolist() == [2, 3]
    low, high = (
        torch.zeros(2, requires_grad=True),
        torch.tensor([[1.0, 1.0], [0.5, 3.0]]),
    )  # the upper bound alone has rows
    limited = torch.tensor([2.0, -1.0]).clamp(low, high)
    limited.sum().backward()
    assert limited.tolist() == [[1, 0], [0.5, 0]] and low.grad.tolist() == [0, 2]


def test_nan_to_num() -> None:
    x = torch.tensor([nan, inf, -inf, 1.0])
    big = torch.finfo(torch.float32).max
    assert x.nan_to_num().tolist() == [0, big, -big, 1]
    assert x.nan_to_num(1, 2, 3).tolist() == [1, 2, 3, 1]
    assert torch.tensor([complex(nan, inf)]).nan_to_num(posinf=5).tolist() == [5j]


def test_signs() -> None:
    assert torch.sign(torch.tensor([-2.0, 0.0, nan, 3.0])).tolist() == [-1, 0, 0, 1]
    assert torch.sgn(torch.tensor([3 + 4j, 0])).tolist() == [pytest.approx(0.6 + 0.8j), 0]
    assert torch.sign(torch.tensor([True, False])).tolist() == [True, False]
    assert torch.heaviside(torch.tensor([-1.0, 0, 2]), torch.tensor([0.5])).tolist() == [0, 0.5, 1]


def test_round_to_decimals() -> None:
    assert torch.round(torch.tensor([0.5, 1.5, -0.5, 2.5])).tolist() == [0, 2, 0, 2]
    assert torch.round(torch.tensor([1.2345], dtype=torch.float64), decimals=2).item() == 1.23
    assert torch.round(torch.tensor([1250.0]), decimals=-2).item() == 1200


def test_frexp_and_ldexp() -> None:
    x = torch.tensor([3.0, -0.25, 0.0])
    mantissa, exponent = torch.frexp(x)
    assert mantissa.tolist() == [0.75, -0.5, 0]
    assert exponent.dtype is torch.int32
    assert torch.frexp(x).exponent.tolist() == [2, -1, 0]
    assert torch.ldexp(mantissa, exponent).tolist() == x.tolist()


def test_lerp_is_exact_at_its_ends() -> None:
    a, b = torch.tensor([0.1, 1e8]), torch.tensor([0.7, 1.0])
    assert torch.lerp(a, b, 0.0).tolist() == a.tolist()
    assert torch.lerp(a, b, 1.0).tolist() == b.tolist()
    assert torch.lerp(a, b, torch.tensor([1.0, 0.0])).tolist() == [b[0].item(), a[1].item()]


@pytest.mark.parametrize("weight", [0.1, 0.9])
@pytest.mark.parametrize(
    "taken", [torch.clone, lambda x: torch.cat([x, x])[:4000], lambda x: torch.from_numpy(x.numpy().copy()[:])]
)
def test_lerp_in_place_is_lerp_to_the_last_bit(weight: float, taken: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x, end = torch.randn(4000, generator=torch.Generator()), torch.linspace(-1, 2, 4000)
    assert torch.equal(taken(x).lerp_(end, weight), x.lerp(end, weight))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["lerp", "addcmul", "addcdiv"])
def test_operators_of_three_16_bit_tensors_are_rounded_once(name: str, dtype: torch.dtype) -> None:
    for shape in ((5,), (70, 90)):
        x, a, b = (torch.randn(shape, generator=torch.Generator()).to(dtype) for _ in range(3))
        want = getattr(torch, name)(x.float(), a.float(), b.float()).to(dtype)
        assert torch.equal(getattr(torch, name)(x, a, b), want)
        assert torch.equal(getattr(x.clone(), name + "_")(a, b), want)
        assert torch.equal(getattr(torch, name)(x, a[:1], b), getattr(torch, name)(x, a[:1].expand(shape), b))


def test_closeness() -> None:
    a = torch.tensor([1.0, inf, nan, 1e-9])
    assert torch.isclose(a, torch.tensor([1.000001, inf, nan, 0.0])).tolist() == [True, True, False, True]
    assert torch.isclose(a, a, equal_nan=True).all()
    assert not torch.allclose(a, a)
    assert torch.allclose(a, a, equal_nan=True)
    assert torch.isclose(torch.tensor([100]), torch.tensor([101]), atol=1).item()
    assert torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    assert not torch.equal(torch.tensor([1, 2]), torch.tensor([[1, 2]]))


# Complex numbers ---------------------------------------------------------------------------------------------


def test_parts_of_complex_tensors_are_views() -> None:
    z = torch.tensor([1 + 2j, 3 - 4j])
    z.real += 10
    z.imag = 0.5
    assert z.tolist() == [11 + 0.5j, 13 + 0.5j]
    torch.view_as_real(z)[:, 1] = 7
    assert z.tolist() == [11 + 7j, 13 + 7j]
    pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    torch.view_as_complex(pairs).mul_(1j)
    assert pairs.tolist() == [[-2, 1], [-4, 3]]
    x = torch.tensor([1.0])
    assert x.real is x
    assert torch.real(x) is x
    assert torch.conj(x) is x


def test_view_as_real_follows_strides() -> None:
    z = torch.from_numpy((np.arange(6) + 1j).reshape(2, 3)).T
    assert torch.view_as_real(z).tolist() == [[[v.real, v.imag] for v in row] for row in z.tolist()]
    assert torch.view_as_complex(torch.view_as_real(z)).tolist() == z.tolist()


def test_making_complex_numbers() -> None:
    z = torch.complex(torch.tensor([1.0, 2.0]), torch.tensor(3.0))
    assert z.dtype is torch.complex64
    assert z.tolist() == [1 + 3j, 2 + 3j]
    p = torch.polar(torch.tensor([2.0], dtype=torch.float64), torch.tensor([math.pi / 2], dtype=torch.float64))
    assert p.item() == pytest.approx(2j)
    assert torch.angle(p).item() == pytest.approx(math.pi / 2)
    assert torch.angle(torch.tensor([-1.0, 1.0])).tolist() == [pytest.approx(math.pi), 0]
    assert torch.isreal(torch.tensor([1j, 1])).tolist() == [False, True]


def test_complex_functions_are_numpys() -> None:
    z = np.array([0.3 + 0.4j, -1 - 2j, 2j])
    for name in ("exp", "log", "sin", "tanh", "sqrt", "log1p", "expm1", "tan", "acos", "asinh", "atanh"):
        twin = {"acos": "arccos", "asinh": "arcsinh", "atanh": "arctanh"}.get(name, name)
        np.testing.assert_allclose(getattr(torch, name)(torch.from_numpy(z)).numpy(), getattr(np, twin)(z), rtol=1e-13)
    np.testing.assert_allclose(torch.from_numpy(z).sigmoid().numpy(), 1 / (1 + np.exp(-z)))
    np.testing.assert_allclose(torch.logaddexp(torch.from_numpy(z), torch.from_numpy(z)).numpy(), z + math.log(2))


def test_python_functions_on_elements() -> None:
    x = torch.tensor([1.0, 2.0])
    assert x.apply_(lambda v: v * 10).tolist() == [10, 20]
    assert x.map_(torch.tensor([1.0, 2.0]), lambda a, b: a + b).tolist() == [11, 22]
    assert x.map2_(torch.ones(2), torch.ones(2), lambda a, b, c: a - b - c).tolist() == [9, 20]
