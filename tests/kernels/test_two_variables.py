"""Functions of two variables: native to the last bit NumPy's where that is asked, else to rounding; by numbers; small, broadcast, in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from rushlight import kernels as K
from rushlight.kernels.pointwise import two_variables

Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan
EXACT = ("fmod", "remainder", "floor_divide", "copysign", "nextafter")
DIVISIONS = EXACT[:3]
LIMITS = {"f4": np.finfo("f4"), "f8": np.finfo("f8")}

pytestmark = pytest.mark.filterwarnings(
    "ignore:invalid value", "ignore:divide by zero", "ignore:overflow", "ignore:underflow"
)


def special(dtype: str) -> Array:
    info = LIMITS[dtype]
    ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    return np.array([nan, inf, 0.0, 1.0, 2.0, 3.0, 0.1, 0.5, 7.5, 1e7, 2.0**24 + 1, 1e15, 1e-30, *ends], dtype)


def operands(rng: np.random.Generator, dtype: str) -> tuple[Array, Array]:
    """All pairs of special numbers with both signs, whole numbers, tenths, quotients next to whole numbers, and all sizes."""
    few = np.concatenate([special(dtype), -special(dtype)])
    whole, tenth = rng.integers(-40, 40, (2, 3000)), rng.integers(-90, 90, (2, 3000)) * 0.1
    divisor = rng.standard_normal(6000)
    near = (divisor * rng.integers(1, 1 << 27, 6000)).astype(dtype)
    near = np.nextafter(near, rng.choice([-inf, inf], 6000).astype(dtype))
    info = LIMITS[dtype]
    sizes = np.exp2(rng.uniform(math.log2(float(info.tiny)), math.log2(float(info.max)), (2, 3000)))
    firsts = [np.repeat(few, few.size), whole[0], tenth[0], near, sizes[0]]
    seconds = [np.tile(few, few.size), whole[1], tenth[1], divisor, sizes[1] * rng.choice([-1, 1], 3000)]
    return np.concatenate(firsts).astype(dtype), np.concatenate(seconds).astype(dtype)


def same_bits(found: Array, want: Array) -> None:
    bits = "u4" if want.dtype.itemsize == 4 else "u8"
    assert found.dtype == want.dtype and found.shape == want.shape
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    number = ~np.isnan(want)
    np.testing.assert_array_equal(found[number].view(bits), want[number].view(bits))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", EXACT)
def test_to_the_last_bit(path: str, rng: np.random.Generator, name: str, dtype: str) -> None:
    x, y = operands(rng, dtype)
    want = getattr(np, name)(x, y)
    same_bits(getattr(K, name)(x, y), want)
    own = x.copy()
    assert getattr(K, name)(own, y, out=own) is own
    same_bits(own, want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("divisor", [2.0, -3.0, 0.1, 1.0, 0.0, -0.0, inf, -inf, nan, 1e-30, 3e38])
@pytest.mark.parametrize("name", DIVISIONS)
def test_divided_by_a_number(path: str, rng: np.random.Generator, name: str, divisor: float, dtype: str) -> None:
    x, _ = operands(rng, dtype)
    for y in (divisor, np.array(divisor, dtype)):
        same_bits(getattr(K, name)(x, y), getattr(np, name)(x, y))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "hypot"])
def test_to_rounding(path: str, rng: np.random.Generator, name: str, dtype: str) -> None:
    x, y = operands(rng, dtype)
    if name == "hypot":  # where the sum of squares is the largest number, one rounding decides whether it is infinite
        x, y = (np.where(abs(a) == LIMITS[dtype].max, dtype.startswith("f"), a).astype(dtype) for a in (x, y))
    found, want = getattr(K, name)(x, y), getattr(np, name)(x, y)
    eps = LIMITS[dtype].eps
    larger = np.maximum(abs(x), abs(y)) if name != "hypot" else 0  # sums near 0 are as exact as what cancels
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want))
    np.testing.assert_array_equal(found[~np.isfinite(found)], want[~np.isfinite(want)])
    number = np.isfinite(want)
    error = abs(found.astype("g") - want)[number]
    assert (
        error
        <= 4 * eps * (abs(want) + np.where(np.isfinite(larger), larger, 0))[number]
        + 3 * LIMITS[dtype].smallest_subnormal
    ).all()


@pytest.mark.parametrize("name", [name for name in two_variables.__all__ if hasattr(np, name)])
def test_what_is_not_alike_is_left_to_numpy(path: str, rng: np.random.Generator, name: str) -> None:
    plain, kernel = getattr(np, name), getattr(K, name)
    x, y = rng.standard_normal((2, 50, 60)).astype("f4")
    for a, b in ((x, y[0]), (x[:, :1], y), (x, y.astype("f8")), (x.T, y.T), (x.T, y.reshape(60, 50)), (x[::2], y[::2]), (x[0], y[0]),
                 (x[0, 0], 2.0), (x, 2), (x[:3, :3], 2.0), (2.0, x)):  # fmt: skip
        found, want = kernel(a, b), plain(a, b)
        assert found.dtype == want.dtype and found.shape == want.shape
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    wide = np.empty((60, 50), "f8")
    assert kernel(x.T, y.T, out=wide) is wide
    np.testing.assert_allclose(
        wide, plain(x.T, y.T, dtype="f8") if name in ("copysign", "hypot") else plain(x.T, y.T), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
@pytest.mark.parametrize("name", [*DIVISIONS, "copysign", "hypot", "logaddexp", "logaddexp2"])
def test_numbers_of_16_bits_are_computed_in_float32(path: str, rng: np.random.Generator, name: str, dtype: Any) -> None:
    x, y = ((rng.standard_normal(70000) * 4).astype(dtype) for _ in range(2))
    few = np.array([nan, inf, -inf, 0.0, -0.0, 1.0, -3.0, 0.1, 6e-8, 6e4], np.float32).astype(dtype)
    x[:100], y[:100] = np.repeat(few, 10), np.tile(few, 10)
    fn = getattr(K, name)
    for a, b in (
        (x, y),
        (x[::-1], y),
        (x[:3000:3], y[:1000]),
        (x[40:49], y[40:49]),
        (x.reshape(7, -1), y[:10000]),
        (x, y[200:201]),
    ):
        want = np.asarray(getattr(np, name)(a.astype("f4"), b.astype("f4"))).astype(dtype)
        found = fn(a, b)
        assert found.dtype == dtype
        same(found, want, 0 if name in EXACT else 1)
    if name in DIVISIONS:
        for number in (0.3, -3, np.array(0.3, "f4")):
            same(fn(x, number), getattr(np, name)(x.astype("f4"), np.float32(number)).astype(dtype), 0)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", bfloat16])
def test_truncated_quotients(path: str, rng: np.random.Generator, dtype: Any) -> None:
    wide = np.float64 if dtype == "f8" else np.float32
    x, y = (a.astype(dtype) for a in operands(rng, "f8" if dtype == "f8" else "f4"))
    for a, b in (
        (x, y),
        (x[::2], y[::2]),
        (x, y[:1]),
        (x[:3000].reshape(3, 1000), y[:1000]),
        (x[:9], y[:9]),
        (x, 3.0),
        (2.0, y),
    ):
        found = K.truncated_quotient(a, b)
        want = np.trunc(np.true_divide(*(c.astype(wide) if isinstance(c, np.ndarray) else wide(c) for c in (a, b))))
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found.astype(wide), want.astype(x.dtype).astype(wide))


def same(found: Array, want: Array, most: int) -> None:
    """At most so many numbers lie between both: where what float32 makes is near the middle of two."""
    np.testing.assert_array_equal(np.isnan(found.astype("f4")), np.isnan(want.astype("f4")))
    number = ~np.isnan(want.astype("f4"))
    apart = np.abs(found.view(np.int16)[number].astype(int) - want.view(np.int16)[number].astype(int))
    assert apart.max() <= most and (apart > 0).mean() < 0.001
