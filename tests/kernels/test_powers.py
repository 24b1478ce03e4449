"""Powers whose exponents are whole numbers: natively and by NumPy the same bits, of negative bases too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import rushlight as torch
from rushlight import kernels as K

EXPONENTS = [2, 3, 4, 5, 8, 13, 64, -1, -2, -3, -7]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -3e38, 1e-45]


def _numbers(dtype: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return np.concatenate([rng.standard_normal(9000), SPECIAL]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_both_ways_give_the_same_bits(dtype: str, exponent: int, rng: np.random.Generator) -> None:
    x, g = _numbers(dtype, rng), rng.standard_normal(9010).astype(dtype)
    for kernel, arrays in ((K.whole_power, [x]), (K.whole_power_backward, [g, x])):
        with np.errstate(all="ignore"):
            wanted = kernel.reference(*arrays, exponent)
        np.testing.assert_array_equal(kernel(*arrays, exponent), wanted)
        np.testing.assert_array_equal(np.signbit(kernel(*arrays, exponent)[:-6]), np.signbit(wanted[:-6]))


@pytest.mark.parametrize("kind", [np.float16, bfloat16])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_of_16_bits_they_are_those_of_float32_rounded_once(kind: Any, exponent: int, path: str) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        x, g = _numbers("float32", rng).astype(kind), rng.standard_normal(9010).astype(kind)
        for kernel, arrays in ((K.whole_power, [x]), (K.whole_power_backward, [g, x])):
            for some in (arrays, [a[::2] for a in arrays]):
                wanted = kernel.reference(*[a.astype("f4") for a in some], exponent).astype(kind)
                np.testing.assert_array_equal(kernel(*some, exponent).astype("f4"), wanted.astype("f4"))
        found = (
            torch.from_numpy(x[:9000].astype("f4")).to(torch.bfloat16 if kind is bfloat16 else torch.float16)
            ** exponent
        ).float()
        wanted = (x[:9000].astype("f8") ** exponent).astype("f4").astype(kind).astype("f4")
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2**-7 if kind is bfloat16 else 2**-10)


@pytest.mark.parametrize("size", [5, 9000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [*EXPONENTS, 3.0, 4.0, 100, -101])
def test_powers_of_tensors_are_rounded_once(dtype: str, exponent: float, size: int, path: str) -> None:
    x = np.random.default_rng(0).uniform(-1.5, 1.5, size).astype(dtype)
    found = (torch.from_numpy(x) ** exponent).numpy()
    exact = x.astype(np.longdouble) ** int(exponent)
    near = np.abs(exact) > np.finfo(dtype).tiny
    limit = 0.51 if dtype == "float32" and abs(exponent) in range(4, 65) else 1.6
    with np.errstate(over="ignore"):
        units = np.abs(found - exact) / np.spacing(np.abs(exact).astype(dtype))
    assert found.dtype == dtype
    assert units[near & np.isfinite(found)].max() < limit


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 3.0, -1, -2, 70, 2.5])
def test_gradients_of_powers_are_those_in_double(exponent: float, path: str) -> None:
    x = torch.linspace(-1.5, 1.5, 4001) if exponent != 2.5 else torch.linspace(0.1, 2, 4001)
    x[2000] += 0.001
    slopes = []
    for dtype in (torch.float32, torch.float64):
        leaf = x.to(dtype).requires_grad_()
        (slope,) = torch.autograd.grad((leaf**exponent * torch.linspace(0, 1, 4001, dtype=dtype)).sum(), leaf)
        slopes.append(slope.double())
    assert torch.allclose(*slopes, rtol=1e-5, atol=1e-35)


def test_special_numbers_have_the_powers_that_numpy_gives_them() -> None:
    for dtype in (np.float32, np.float64):
        x = np.array(SPECIAL[:5], dtype)
        for exponent in (*EXPONENTS, 101, -101, 100):
            with np.errstate(all="ignore"):
                wanted = np.power(x, dtype(exponent))
            found = (torch.from_numpy(x) ** exponent).numpy()
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found[:4]), np.signbit(wanted[:4]))
