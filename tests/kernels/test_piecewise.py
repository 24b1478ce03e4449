"""Functions of straight pieces: native against NumPy, special values, in place, 16 bits; PyTorch's where it is installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K

Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan
SPECIAL = (nan, inf, -inf, 0.0, -0.0, 1e-40, 1.0, -1.0, 3.0, -3.0, 0.5, 6.0)
NUMBERS: dict[str, tuple[tuple[float, ...], ...]] = {
    "sign": ((),),
    "hardswish": ((),),
    "clamp": ((-1.0, 1.0), (-inf, 0.5), (0.5, inf), (1.0, -1.0)),
    "leaky_relu": ((0.1,), (0.0,), (-2.0,), (3.0,)),
    "between_backward": ((-1.0, 1.0), (0.0, 6.0)),
    "leaky_relu_backward": ((0.1,), (-2.0,)),
    "hardswish_backward": ((),),
    "huber": ((1.0, 1.0), (0.5, 2.0)),
    "huber_slope": ((1.0, 1.0), (0.5, 2.0)),
    "lerp": ((0.0,), (0.3,), (0.5,), (1.0,), (-2.0,)),
    "hardshrink": ((0.5,), (0.0,), (-1.0,)),
    "finite": ((0.0, 9.0, -8.0), (nan, inf, inf)),
    "angle_of_real": ((),),
    "not_0_backward": ((),),
    "hardsigmoid": ((),),
    "softshrink": ((0.5,), (0.0,)),
    "softsign": ((),),
}
ONE = (
    "sign",
    "hardswish",
    "clamp",
    "leaky_relu",
    "hardshrink",
    "finite",
    "angle_of_real",
    "hardsigmoid",
    "softshrink",
    "softsign",
)
CASES = [(name, numbers) for name, all_numbers in NUMBERS.items() for numbers in all_numbers]


def operands(rng: np.random.Generator, name: str, dtype: Any, special: bool = True) -> list[Array]:
    first = np.repeat(SPECIAL, len(SPECIAL)) if special else rng.standard_normal(144) * 3
    second = np.tile(SPECIAL, len(SPECIAL)) if special else rng.standard_normal(144) * 3
    more = rng.standard_normal((2, 3000)) * 3
    both = [np.concatenate(pair).astype(dtype) for pair in zip((first, second), more, strict=True)]
    return both[:1] if name in ONE else both


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("name", "numbers"), CASES)
def test_native_agrees_with_numpy(
    path: str, rng: np.random.Generator, name: str, numbers: tuple[float, ...], dtype: str
) -> None:
    arrays = operands(rng, name, dtype)
    want = getattr(K, name).reference(*arrays, *numbers)
    fn: Callable[..., Array] = getattr(K, name)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(fn(*arrays, *numbers), want, rtol=8 * eps, atol=32 * eps)
    turned = [x.reshape(4, -1).T for x in arrays]
    np.testing.assert_allclose(fn(*turned, *numbers), want.reshape(4, -1).T, rtol=8 * eps, atol=32 * eps)
    own = arrays[0].copy()
    assert fn(own, *arrays[1:], *numbers, out=own) is own
    np.testing.assert_allclose(own, want, rtol=8 * eps, atol=32 * eps)


@pytest.mark.parametrize(("name", "numbers"), CASES)
def test_sixteen_bits(path: str, rng: np.random.Generator, name: str, numbers: tuple[float, ...]) -> None:
    arrays = operands(rng, name, "f2", special=False)
    want = getattr(K, name).reference(*(x.astype("f4") for x in arrays), *numbers)
    found = getattr(K, name)(*arrays, *numbers)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, want.astype("f2"), rtol=1e-3, atol=1e-7)  # one unit in the last place


def torch_function(name: str) -> Callable[..., Any]:
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    table: dict[str, Callable[..., Any]] = {
        "sign": torch.sign, "hardswish": F.hardswish, "leaky_relu": F.leaky_relu, "lerp": torch.lerp,
        "hardshrink": F.hardshrink, "hardsigmoid": F.hardsigmoid, "softshrink": F.softshrink, "softsign": F.softsign,
        "finite": torch.nan_to_num, "angle_of_real": torch.angle,
        "not_0_backward": lambda g, y: torch.where(y == 0, torch.zeros(()), g),
        "clamp": lambda x, low, high: torch.clamp(x, low, high),
        "huber": lambda x, y, delta, scale: F.huber_loss(x, y, reduction="none", delta=delta) * scale,
        "between_backward": torch.ops.aten.hardtanh_backward,
        "leaky_relu_backward": lambda g, x, slope: torch.ops.aten.leaky_relu_backward(g, x, slope, False),
        "hardswish_backward": torch.ops.aten.hardswish_backward,
    }  # fmt: skip
    return table[name]


@pytest.mark.parametrize(("name", "numbers"), [case for case in CASES if case[0] != "huber_slope"])
def test_agrees_with_torch(path: str, rng: np.random.Generator, name: str, numbers: tuple[float, ...]) -> None:
    fn = torch_function(name)
    torch = pytest.importorskip("torch")
    arrays = operands(rng, name, "f4", special=name != "huber")  # infinite distances are NaN in one of the two forms
    if name.endswith("backward"):
        arrays[1][np.isnan(arrays[1])] = 0.25  # there PyTorch's SIMD code differs from its other
    want = fn(*(torch.from_numpy(x) for x in arrays), *numbers).numpy()
    np.testing.assert_allclose(getattr(K, name)(*arrays, *numbers), want, rtol=1e-5, atol=1e-6)
