"""Sines and cosines of float64, and logarithms and hyperbolic tangents beside those of the C library."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import kernels
from rushlight.kernels import elementwise

RNG = np.random.default_rng(5)
RANGES = {
    "small": RNG.uniform(-1e-3, 1e-3, 5000),
    "a few turns": RNG.uniform(-20, 20, 5000),
    "many turns": RNG.uniform(-1.6e6, 1.6e6, 5000),
    "too many turns": RNG.uniform(-1e15, 1e15, 5000),
    "quarters": np.arange(-2500, 2500) * (np.pi / 2),
    "mixed": RNG.uniform(-1, 1, 5000) * 10.0 ** RNG.integers(-300, 300, 5000),
}


def in_units(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference in units of the last place."""
    return float(np.max(np.abs(found - expected) / np.spacing(np.abs(expected))))


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("values", RANGES)
def test_values_are_those_of_the_c_library(name: str, values: str) -> None:
    x = RANGES[values]
    assert in_units(getattr(kernels, name)(x), getattr(np, name)(x)) <= 2


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_special_values(name: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e308] * 8)
    with np.errstate(invalid="ignore"):
        found, expected = getattr(kernels, name)(x), getattr(np, name)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert np.array_equal(np.signbit(found)[:2], np.signbit(expected)[:2])


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("threads", [1, 3])
def test_layouts_and_results_in_place(name: str, threads: int) -> None:
    kernel, plain, former = getattr(kernels, name), getattr(np, name), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = RNG.uniform(-9, 9, (30, 40, 50))
        for y in (x, x.T, x.transpose(1, 0, 2), x[:, ::2], x[::-1], x[:0], np.float64(3.0) * np.ones(())):
            np.testing.assert_allclose(kernel(y), plain(y), rtol=1e-14, atol=1e-16)
        assert kernel(x.transpose(1, 0, 2)).strides == x.transpose(1, 0, 2).strides
        same, strided = x.copy(), np.zeros((30, 40, 100))[..., ::2]
        assert kernel(same, out=same) is same and kernel(x, out=strided) is strided
        np.testing.assert_allclose(same, plain(x), rtol=1e-14, atol=1e-16)
        np.testing.assert_allclose(strided, plain(x), rtol=1e-14, atol=1e-16)
    finally:
        torch.set_num_threads(former)


def test_other_dtypes_are_numpys() -> None:
    for dtype in (np.float32, np.complex128, np.float16):
        x = RNG.uniform(-3, 3, 5000).astype(dtype)
        np.testing.assert_array_equal(kernels.sin(x), np.sin(x))


@pytest.mark.parametrize("shift", [-300, 0, 300])
def test_logarithms_of_float64(shift: int) -> None:
    x = np.concatenate([RNG.uniform(0.5, 2, 5000), 1 + RNG.uniform(-1e-7, 1e-7, 5000)]) * 10.0**shift
    assert in_units(elementwise.log(x), np.log(x)) <= 2
    tiny = np.array([5e-324, 1e-310, 2.2250738585072014e-308, np.inf, 0.0, -1.0, np.nan])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(elementwise.log(tiny), np.log(tiny), rtol=1e-15)


def test_hyperbolic_tangents_of_float64() -> None:
    x = np.concatenate([RNG.uniform(-25, 25, 5000), RNG.uniform(-1e-3, 1e-3, 5000), [1e-310, 1e300, np.inf, -np.inf]])
    assert in_units(elementwise.tanh(x), np.tanh(x)) <= 3
    edge = elementwise.tanh(np.array([0.0, -0.0, np.nan]))
    assert list(np.signbit(edge[:2])) == [False, True] and np.isnan(edge[2])
