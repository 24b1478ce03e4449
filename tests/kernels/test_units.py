"""Exponential linear units, slopes by channel, weights by element, logit's gradient: against exact formulas and PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from rushlight import kernels as K

Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan
NUMBERS = [(1.0, 1.0, 1.0), (1.7580993, 1.0507009, 1.0), (2.0, 1.0, 0.5), (-2.0, 1.0, -0.5), (0.0, 1.0, 1.0)]


def samples(rng: np.random.Generator, dtype: str) -> Array:
    """Of all sizes, near 0 above all, and what is no number."""
    small = np.exp(rng.uniform(-30, 5, 20_000)) * rng.choice([-1, 1], 20_000)
    return np.concatenate([small, [nan, inf, -inf, 0.0, -0.0, -88.7, -104.0, -745.0, 88.8, 709.7]]).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_elu_is_exact_near_0_and_far_from_it(path: str, rng: np.random.Generator, numbers: Any, dtype: str) -> None:
    x = samples(rng, dtype)
    low, scale, inner = numbers
    with np.errstate(all="ignore"):
        wide = x.astype("g")
        want = np.where(
            wide > 0, wide * scale, np.expm1(wide * inner) * low if low else np.where(np.isnan(wide), nan, 0)
        ).astype(dtype)
    with np.errstate(over="ignore"):
        found = K.elu(x, *numbers)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want))
    np.testing.assert_allclose(found, want, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).smallest_subnormal * 4)
    own = x.copy()
    with np.errstate(over="ignore"):
        assert K.elu(own, *numbers, out=own) is own
    np.testing.assert_array_equal(own, found)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_gradients_of_elu(path: str, rng: np.random.Generator, numbers: Any, dtype: str) -> None:
    x = samples(rng, dtype)
    g = rng.standard_normal(x.shape).astype(dtype)
    low, scale, inner = numbers
    with np.errstate(all="ignore"):
        want = (g * np.where(x <= 0, np.exp(np.minimum(x, 0).astype("g") * inner) * low * inner, scale)).astype(dtype)
        found = K.elu_backward_of_input(g, x, *numbers)
    np.testing.assert_allclose(found, want, rtol=8 * np.finfo(dtype).eps, atol=1e-40)
    if low > 0 < inner:
        y = K.elu(x, *numbers)
        np.testing.assert_allclose(K.elu_backward(g, y, *numbers), want, rtol=1e-5, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "kernel", ["elu", "elu_backward", "elu_backward_of_input", "logit_backward", "reciprocal_root"]
)
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_sixteen_bits_are_rounded_once(path: str, rng: np.random.Generator, kernel: str, half: str) -> None:
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, half, None) or half)
    arrays = [rng.uniform(0.05, 0.95, 5000).astype(dtype) for _ in range(1 + ("backward" in kernel))]
    want = getattr(K, kernel).reference(*(a.astype("f4") for a in arrays)).astype(dtype)
    found = getattr(K, kernel)(*arrays)
    assert found.dtype == dtype
    apart = abs(found.view("i2").astype(int) - want.view("i2"))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01


def test_logit_has_no_slope_beyond_its_bounds(path: str, rng: np.random.Generator) -> None:
    x = np.concatenate([rng.uniform(-0.5, 1.5, 5000), [0.0, 1.0, nan, inf, -inf]]).astype("f8")
    g = rng.standard_normal(x.shape)
    within = (x >= 0) & (x <= 1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(K.logit_backward(g, x), np.where(within, g / (x * (1 - x)), nan), rtol=1e-14)
        kept = (x >= 0.1) & (x <= 0.9)
        np.testing.assert_allclose(
            K.logit_backward(g, x, 0.1, 0.9, 0.0), np.where(kept, g / (x * (1 - x)), 0), rtol=1e-14
        )


@pytest.mark.parametrize("shape", [(5000,), (60, 70), (6, 7, 80)])
def test_weights_of_elements(path: str, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    x, end = rng.standard_normal((2, *shape)).astype("f4")
    weight = rng.uniform(-0.5, 1.5, shape).astype("f4")
    weight.reshape(-1)[:3] = 0, 1, 0.5
    found = K.lerp_each(x, end, weight)
    np.testing.assert_allclose(found, x + weight * (end.astype("f8") - x), rtol=1e-5, atol=1e-6)
    assert found.reshape(-1)[0] == x.reshape(-1)[0] and found.reshape(-1)[1] == end.reshape(-1)[1]
    np.testing.assert_allclose(K.lerp_each(x.T, end.T, weight.T), found.T, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        K.lerp_each(x, end, weight[..., :1]), x + weight[..., :1] * (end - x), rtol=1e-5, atol=1e-6
    )


SLOPES = [((50, 60), (60,)), ((300, 33), (1, 33)), ((4, 5, 300), (5, 1)), ((3, 31, 17, 5), (1, 31, 1, 1)), ((5000,), (1,)),
          ((4, 9, 90), (1, 1, 1)), ((3, 4, 5), (4, 1)), ((30, 40, 5), (30, 40, 5)), ((30, 40), (30, 1))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("shape", "slopes"), SLOPES)
def test_slopes_of_channels(
    path: str, rng: np.random.Generator, shape: Any, slopes: Any, last: bool, dtype: str
) -> None:
    x, g = rng.standard_normal((2, *shape)).astype(dtype)
    x.reshape(-1)[:4] = 0, -0.0, nan, inf
    weight = rng.uniform(-1, 1, slopes).astype(dtype)
    if last and len(shape) > 2:  # as images lie whose channels come last
        x, g = (np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1) for a in (x, g))
    with np.errstate(invalid="ignore"):
        want, steep = np.where(x > 0, x, x * weight), np.where(x > 0, 0, x * g)
        np.testing.assert_array_equal(K.prelu(x, weight), want)
        to_input, to_slopes = K.prelu_backward(g, x, weight, True, True)
    np.testing.assert_array_equal(to_input, np.where(x > 0, g, g * weight))
    over = tuple(d for d, n in enumerate((1,) * (len(shape) - len(slopes)) + slopes) if n == 1)
    total = np.sum(steep, over, keepdims=True)
    if to_slopes.shape == shape:  # the engine adds it up
        to_slopes = np.sum(to_slopes, over, keepdims=True)
    np.testing.assert_allclose(to_slopes.reshape(total.shape), total, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-4)
    assert (
        K.prelu_backward(g, x, weight, True, False)[1] is None
        and K.prelu_backward(g, x, weight, False, True)[0] is None
    )


@pytest.mark.parametrize("kind", [np.float16, bfloat16])
@pytest.mark.parametrize(("shape", "slopes"), SLOPES)
def test_slopes_of_16_bits(path: str, rng: np.random.Generator, shape: Any, slopes: Any, kind: Any) -> None:
    x, g = rng.standard_normal((2, *shape)).astype(kind)
    weight = rng.uniform(-1, 1, slopes).astype(kind)
    wide = [a.astype("f4") for a in (x, g, weight)]
    np.testing.assert_array_equal(K.prelu(x, weight), K.prelu(wide[0], wide[2]).astype(kind))
    over = tuple(d for d, n in enumerate((1,) * (len(shape) - len(slopes)) + slopes) if n == 1)
    for given in (g, g[..., :1] + np.zeros_like(g), np.broadcast_to(g.reshape(-1)[0], shape)):
        to_input, to_slopes = K.prelu_backward(given, x, weight, True, True)
        want, steep = K.prelu_backward(given.astype("f4"), wide[0], wide[2], True, True)
        np.testing.assert_array_equal(to_input, want.astype(kind))
        assert to_input.dtype == to_slopes.dtype == kind
        found, steep = (
            (np.sum(a.astype("f4"), over, keepdims=True) if a.shape == shape else a) for a in (to_slopes, steep)
        )
        np.testing.assert_allclose(found.astype("f4").reshape(steep.shape), steep, rtol=2e-2, atol=0.1)


def _alike(shape: tuple[int, ...], kind: type, rng: np.random.Generator) -> list[np.ndarray]:
    x, a, b = (rng.standard_normal(shape).astype("f4").astype(kind) for _ in range(3))
    x.reshape(-1)[:3], a.reshape(-1)[2:5], b.reshape(-1)[4:7] = (
        (0.0, -0.0, np.inf),
        (np.nan, 0.0, -0.0),
        (0.0, -np.inf, 1e-7),
    )
    return [x, a, b]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, bfloat16])
@pytest.mark.parametrize("shape", [(7,), (600,), (60, 70), (3, 300, 701)])
def test_products_and_quotients_are_added_step_by_step(
    path: str, rng: np.random.Generator, shape: tuple[int, ...], kind: type
) -> None:
    x, a, b = _alike(shape, kind, rng)
    own = np.dtype(np.float32 if x.itemsize == 2 else kind)
    wide = [v.astype(own) for v in (x, a, b)]
    with np.errstate(all="ignore"):
        for kernel, join in ((K.add_product, np.multiply), (K.add_quotient, np.true_divide)):
            for factor in (None, own.type(0.3)):
                made = join(wide[1], wide[2])
                want = (wide[0] + (made if factor is None else made * factor)).astype(kind)
                np.testing.assert_array_equal(kernel(x, a, b, factor).astype("f8"), want.astype("f8"))
                np.testing.assert_array_equal(kernel(x.T, a.T, b.T, factor).T.astype("f8"), want.astype("f8"))
            some = kernel(x, a[..., :1], b[..., ::1], None)
            np.testing.assert_array_equal(some[..., 0].astype("f8"), kernel(x, a, b, None)[..., 0].astype("f8"))


@pytest.mark.parametrize("kind", [np.float16, bfloat16])
def test_weights_of_16_bits_are_those_of_float32_rounded_once(path: str, rng: np.random.Generator, kind: type) -> None:
    x, end, weight = _alike((60, 701), kind, rng)
    with np.errstate(all="ignore"):
        want = K.lerp_each(*(v.astype("f4") for v in (x, end, weight))).astype(kind)
        np.testing.assert_array_equal(K.lerp_each(x, end, weight).astype("f8"), want.astype("f8"))
