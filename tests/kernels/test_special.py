"""Special functions: against mpmath's numbers, native against NumPy, the values at poles and infinities, layouts, 16 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels import special
from rushlight.kernels.native import loader

Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan
NAMES = [name for name in special.__all__ if hasattr(getattr(K, name), "reference")]
EDGES = (
    nan,
    inf,
    -inf,
    0.0,
    -0.0,
    1e-300,
    -1e-300,
    1e30,
    -1e30,
    0.5,
    -0.5,
    1.0,
    -1.0,
    2.0,
    -2.0,
    8.0,
    -8.0,
    10.0,
    -10.5,
)
ABSOLUTE = (
    "digamma",
    "i1e_first_slope",
    "lgamma",
    "sinc_first_slope",
)  # that are 0 somewhere, where the error stays that of their terms


def points(rng: np.random.Generator, name: str, count: int) -> Array:
    """Numbers from all regions of a function, the large ones such that float32 holds them."""
    if name in ("erfinv", "ndtri"):
        tails = np.exp(-rng.uniform(0, 80, count))
        inner = rng.uniform(0, 1, count)
        return np.concatenate([inner, tails] if name == "ndtri" else [2 * inner - 1, 1 - tails, tails - 1])
    spread = np.exp(rng.uniform(-20, 20, count))
    return np.concatenate([rng.uniform(-30, 30, count), rng.standard_normal(count), spread[spread < 1e6]])


def judge(name: str) -> Callable[[Any], Any]:
    """A function by mpmath, in 60 digits."""
    mp = pytest.importorskip("mpmath").mp.clone()
    mp.dps = 60

    def half(x: Any) -> Any:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    def erfcx(x: Any) -> Any:
        with mp.workdps(900 if abs(x) > 3 else 60):
            return mp.exp(x * x) * mp.erfc(x)

    def erfcx_slope(x: Any) -> Any:
        with mp.workdps(900 if abs(x) > 3 else 60):
            return 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi)

    def bessel(order: int, x: Any) -> Any:
        return mp.besseli(order, x)

    return {
        "digamma": mp.digamma, "erfc": mp.erfc, "erfcx": erfcx, "erfinv": mp.erfinv, "ndtr": half,
        "erfcx_first_slope": erfcx_slope, "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
        "i0": lambda x: bessel(0, x), "i0e": lambda x: mp.exp(-abs(x)) * bessel(0, x), "i1": lambda x: bessel(1, x),
        "i1e": lambda x: mp.exp(-abs(x)) * bessel(1, x), "i1_first_slope": lambda x: (bessel(0, x) + bessel(2, x)) / 2,
        "i1e_first_slope": lambda x: mp.exp(-abs(x)) * ((bessel(0, x) + bessel(2, x)) / 2 - mp.sign(x) * bessel(1, x)),
        "log_ndtr": lambda x: mp.log1p(-half(-x)) if x > 0 else mp.log(half(x)),
        "ndtri": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), "trigamma": lambda x: mp.psi(1, x),
        "sinc_first_slope": lambda x: (mp.cos(mp.pi * x) - mp.sin(mp.pi * x) / (mp.pi * x)) / x,
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_digits(path: str, rng: np.random.Generator, name: str) -> None:
    x = points(rng, name, 40)
    x = x[np.abs(x) < 26] if name.startswith(("erf", "ndtr", "log_ndtr")) else x
    mp = pytest.importorskip("mpmath").mp.clone()
    mp.dps = 60
    of = judge(name)
    x = x[np.isfinite(getattr(K, name)(x))]
    want = [of(mp.mpf(float(number))) for number in x]
    found = getattr(K, name)(x)
    amplified = 1 + (x * x if "ndtr" in name else 0 * x)  # x / sqrt 2 is rounded before it is squared
    for number, mine, right, factor in zip(x, found, want, amplified, strict=True):
        near = 16 * np.finfo(float).eps * factor * (abs(right) + (1 if name in ABSOLUTE else 0)) + 1e-300
        assert abs(float(mine) - right) <= near, (float(number), float(mine), float(right))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", NAMES)
def test_native_agrees_with_numpy(rng: np.random.Generator, name: str, dtype: str) -> None:
    if not loader.tables():
        pytest.skip("no native kernels here")
    x = points(rng, name, 3000)
    x = x[np.abs(x) < 1e3].astype(dtype)
    found = getattr(K, name)(x)
    with np.errstate(over="ignore"):
        wide = getattr(K, name).reference(x.astype("f8"))
        want = wide.astype(dtype)
    few = 4e-14 if dtype == "f8" else 1.2e-7
    np.testing.assert_allclose(found, want, rtol=few, atol=few if name in ABSOLUTE else np.finfo(dtype).tiny)
    if dtype == "f4":  # one rounding, of nearly the right number
        assert np.count_nonzero(found != want) < 3e-3 * x.size


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", NAMES)
def test_values_at_edges(path: str, name: str, dtype: str) -> None:
    """Of NumPy's form too, at all places in a vector."""
    edges = [e for e in EDGES if dtype == "f8" or abs(e) != 1e-300]
    edges = [e for e in edges if not (name == "sinc_first_slope" and abs(e) == 1e30)]
    x = np.resize(np.array(edges, dtype), 997)
    with np.errstate(all="ignore"):
        want = getattr(K, name).reference(x)
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(getattr(K, name)(x), want, rtol=1e-6 if dtype == "f4" else 1e-13, atol=tiny)


def test_signs_of_poles(path: str) -> None:
    x = np.array([0.0, -0.0, -1.0, -2.0, inf, -inf])
    np.testing.assert_array_equal(K.digamma(x), [-inf, inf, nan, nan, inf, nan])
    np.testing.assert_array_equal(K.lgamma(x), [inf] * 6)
    np.testing.assert_array_equal(K.trigamma(x), [inf, inf, inf, inf, 0, inf])
    np.testing.assert_array_equal(K.erfinv(np.array([1.0, -1.0, 1.5, -2.0])), [inf, -inf, nan, nan])
    np.testing.assert_array_equal(np.signbit(K.i1e(np.array([-0.0, 0.0]))), [True, False])


@pytest.mark.parametrize("name", NAMES)
def test_regions_of_a_block(path: str, rng: np.random.Generator, name: str) -> None:
    """A number has the same value whichever others are in the block with it."""
    x = rng.permutation(points(rng, name, 700))
    together = getattr(K, name)(x)
    np.testing.assert_array_equal(getattr(K, name)(np.repeat(x[:40], 30))[::30], together[:40])
    turned = x[: x.size // 4 * 4].reshape(4, -1)
    np.testing.assert_array_equal(getattr(K, name)(turned.T), together[: turned.size].reshape(4, -1).T)
    own = x.copy()
    assert getattr(K, name)(own, out=own) is own
    np.testing.assert_array_equal(own, together)


@pytest.mark.parametrize("name", NAMES)
def test_sixteen_bits(path: str, rng: np.random.Generator, name: str) -> None:
    x = rng.uniform(0.1, 0.9, 3000).astype("f2")
    found = getattr(K, name)(x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, getattr(K, name).reference(x.astype("f8")), rtol=1e-3, atol=1e-4)


def test_orders_beyond_the_first(path: str, rng: np.random.Generator) -> None:
    x = rng.uniform(0.5, 3, 50)
    step = 1e-5
    for slope in (K.erfcx_slope, K.i1_slope, K.i1e_slope, K.sinc_slope, lambda x, n: K.polygamma(n, x)):
        for n in (1, 2):
            between = (slope(x + step, n) - slope(x - step, n)) / (2 * step)
            np.testing.assert_allclose(slope(x, n + 1), between, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(K.polygamma(0, x), K.digamma(x))
