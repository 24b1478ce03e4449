"""State in 8 bits: the map by its definition, codes of the nearest number, steps against those with the state in full."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels import blockwise as B

Array = np.ndarray[Any, Any]
SIZES = [1, 255, 256, 257, 70_001]


def state(size: int) -> tuple[Array, Array]:
    return np.zeros(size, np.uint8), np.zeros(-(-size // B.BLOCK), np.float32)


def encoded(x: Array, signed: bool) -> tuple[Array, Array]:
    """The codes that a step gives to numbers: of the gradient itself, or, without a sign, of its square."""
    (codes, scales), (more, tops) = state(x.size), state(x.size)
    if signed:
        K.sgd_in_blocks(np.zeros_like(x), x, codes, scales, 0.0, 0.9, first=True)
        return codes, scales
    K.adam_in_blocks(np.zeros_like(x), np.sqrt(x), (codes, more), (scales, tops), 1, 0.0, 0.0, 0.0, 1e-8)
    return more, tops


def test_the_map_is_that_of_the_paper() -> None:
    signed, unsigned = B.dynamic_map(True), B.dynamic_map(False)
    for found, parts in ((signed, 1), (unsigned, 2)):
        assert found.shape == (256,) and (np.diff(found) > 0).all() and found[-1] == 1 and 0 in found
        for decade in range(7):  # of which each has twice the values of the one below
            low, high = 10.0 ** (decade - 7), 10.0 ** (decade - 6)
            inside = found[(found > low) & (found < high)].astype(np.float64)
            assert len(inside) == parts * 2**decade
            assert (
                inside.mean() == pytest.approx((low + high) / 2) and np.ptp(np.diff(inside)) < 1e-5 * high
                if len(inside) > 2
                else True
            )
    assert np.array_equal(signed[:127], -signed[128:255][::-1]) and unsigned[0] == 0


@pytest.mark.parametrize("signed", [True, False])
def test_codes_are_of_the_nearest_number(path: str, rng: np.random.Generator, signed: bool) -> None:
    x = np.concatenate([rng.uniform(0, 1, 25_600), 10 ** rng.uniform(-8, 0, 25_600)]).astype(np.float32)
    x *= np.where(rng.random(x.size) < 0.5, -1, 1) if signed else 1
    x[::256] = 1
    values = B.dynamic_map(signed)
    codes, scales = encoded(x, signed)
    assert (scales == 1).all()
    far = np.abs(values[codes] - x)
    best = np.abs(values[None, :] - x[::7, None]).min(axis=1)
    if not signed:  # which are above 0 if what they stand for is
        assert (codes[x > 0] > 0).all()
        best[x[::7] < values[1] / 2] = far[::7][x[::7] < values[1] / 2]
    np.testing.assert_allclose(far[::7], best, rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_the_map_has_comes_back(path: str, rng: np.random.Generator, size: int, dtype: str) -> None:
    """Codes of numbers that are in the map stand for these, whatever the scale."""
    for signed in (True, False):
        picked = rng.integers(0, 255, size)
        scale = np.repeat(10 ** rng.uniform(-3, 3, -(-size // B.BLOCK)), B.BLOCK)[:size]
        picked[:: B.BLOCK] = 255
        x = (B.dynamic_map(signed)[picked] * scale).astype(dtype)
        codes, scales = encoded(x, signed)
        assert (codes == picked).mean() > 0.999  # a square root squared may be another number
        np.testing.assert_allclose(B.decode(codes, scales, signed), x, rtol=1e-2)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", [(0.0, False, False), (0.1, True, True), (0.1, False, False)])
def test_adam_goes_where_adam_goes(path: str, rng: np.random.Generator, dtype: str, size: int, options: Any) -> None:
    x = rng.standard_normal(size).astype(dtype)
    p, q, m, v = x.copy(), x.copy(), np.zeros_like(x), np.zeros_like(x)
    codes, scales = zip(state(size), state(size))
    for step in range(1, 6):
        g = rng.standard_normal(size).astype(dtype)
        kept = g.copy()
        K.adam_in_blocks(p, g, codes, scales, step, 0.01, 0.9, 0.999, 1e-8, *options)
        K.adam(q, g, m, v, None, step, 0.01, 0.9, 0.999, 1e-8, *options)
        assert np.array_equal(g, kept)
    assert np.abs(p - q).mean() < 0.02 * np.abs(q - x).mean()
    assert np.abs(B.decode(codes[0], scales[0], True) - m).max() <= 0.03 * np.abs(m).max()


@pytest.mark.parametrize("size", SIZES)
def test_momentum_and_lion(path: str, rng: np.random.Generator, size: int) -> None:
    x = rng.standard_normal(size).astype("f4")
    p, q, buffer = x.copy(), x.copy(), np.zeros_like(x)
    r, s, mean = x.copy(), x.copy(), np.zeros_like(x)
    codes, scales = state(size)
    others, tops = state(size)
    for step in range(5):
        g = rng.standard_normal(size).astype("f4")
        K.sgd_in_blocks(p, g, codes, scales, 0.1, 0.9, 0.1, 0.01, step % 2 == 0, False, step == 0)
        K.sgd(q, g, buffer, 0.1, 0.9, 0.1, 0.01, step % 2 == 0, False, step == 0)
        K.lion_in_blocks(r, g, others, tops, 0.01, 0.9, 0.99, 0.1, True)
        K.lion(s, g, mean, 0.01, 0.9, 0.99, 0.1, True)
    assert np.abs(p - q).mean() <= 0.02 * np.abs(q - x).mean() and (np.abs(r - s) > 1e-3).mean() < 0.02


def test_lion_is_the_algorithm_of_its_paper(path: str, rng: np.random.Generator) -> None:
    p, m = rng.standard_normal((2, 40_001))
    want, mean = p.copy(), m.copy()
    for _ in range(3):
        g = rng.standard_normal(p.size)
        want = want - 0.01 * (np.sign(0.9 * mean + 0.1 * g) + 0.1 * want)
        mean = 0.99 * mean + 0.01 * g
        K.lion(p, g, m, 0.01, 0.9, 0.99, 0.1)
    np.testing.assert_allclose(p, want, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(m, mean, rtol=1e-12, atol=1e-15)


def test_both_ways_give_the_same_numbers(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight.kernels.native import loader

    if not loader.tables():
        pytest.skip(f"no native kernels here: {K.native_status()}")
    x, grads = rng.standard_normal(5001).astype("f4"), rng.standard_normal((4, 5001)).astype("f4")
    found = []
    for tables in (loader.tables(), {}):
        monkeypatch.setattr(loader, "_tables", tables)
        p, (codes, scales) = x.copy(), zip(state(x.size), state(x.size))
        for step, g in enumerate(grads, 1):
            K.adam_in_blocks(p, g, codes, scales, step, 0.01, 0.9, 0.999, 1e-8, 0.1)
        found.append((p, *codes, *scales))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    for a, b in zip(found[0][1:3], found[1][1:3]):
        assert (a != b).mean() < 0.002
    for a, b in zip(found[0][3:], found[1][3:]):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_any_layout_and_16_bits(path: str, rng: np.random.Generator) -> None:
    x, g = (rng.standard_normal((300, 400)).astype("f4") for _ in "xg")

    def stepped(p: Array, grad: Array, order: Any = "C") -> Array:
        codes = tuple(np.zeros(p.shape, np.uint8, order=order) for _ in "mv")
        scales = tuple(np.zeros(-(-p.size // B.BLOCK), np.float32) for _ in "mv")
        for step in (1, 2):
            K.adam_in_blocks(p, grad, codes, scales, step, 0.1, 0.9, 0.999, 1e-8)
        return p

    want = stepped(x.copy(), g)
    gaps = np.repeat(x, 2, axis=1)[:, ::2]
    for p, grad, order in ((np.asfortranarray(x), np.asfortranarray(g), "F"), (gaps, g, "C"), (np.asfortranarray(x), g, "C"),
                           (x.copy(), g[:1], "C"), (x.astype(ml_dtypes.bfloat16), g, "C"), (x.astype("f2"), g.astype("f2"), "F")):  # fmt: skip
        found = stepped(p, grad, order).astype("f4")
        target = want if grad.shape == g.shape else stepped(x.copy(), np.broadcast_to(grad, x.shape).copy())
        assert np.abs(found - target).mean() < 0.02 * np.abs(target - x).mean()  # blocks are others in another order
        assert p.dtype.itemsize == 2 or order == "F" or p.flags.f_contiguous or np.allclose(found, target, atol=1e-4)


def test_what_is_not_finite_spoils_its_own_element(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal(600).astype("f4")
    p, q, g = x.copy(), x.copy(), np.ones(600, "f4")
    bad = g.copy()
    bad[[3, 300]] = np.nan, np.inf
    for to, grad in ((p, bad), (q, g)):
        codes, scales = zip(state(600), state(600))
        for step in (1, 2):
            K.adam_in_blocks(to, grad, codes, scales, step, 0.1, 0.9, 0.999, 1e-8)
        assert all(np.isfinite(s).all() for s in scales)
    others = np.ones(600, bool)
    others[[3, 300]] = False
    assert np.isnan(p[3]) and not np.isfinite(p[300])
    np.testing.assert_allclose(p[others][:255], q[others][:255], rtol=1e-6)


def test_scales_of_another_parameter_are_refused(path: str) -> None:
    (codes, scales), p = state(600), np.ones(600, "f4")
    with pytest.raises(
        RuntimeError, match=r"sgd_in_blocks: expected 3 scales, one for each 256 of 600 codes, got shape \[2\]"
    ):
        K.sgd_in_blocks(p, p.copy(), codes, scales[:2], 0.1, 0.9)
