"""What has loops of its own over 16-bit floats: kinds of numbers, places of extremes, short sums, cross entropy, dropout, angles."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight.kernels import dispatch, gather
from rushlight.kernels.rows import sum_rows
from rushlight.kernels.sums import add_up
from rushlight.tensor import wrap

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
pytestmark = pytest.mark.parametrize("half", HALVES, ids=str)


def every(half: Any) -> Any:
    return np.arange(1 << 16, dtype=np.uint16).view(half)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit", "logical_not"])
def test_kinds_of_every_number(half: Any, name: str) -> None:
    x = every(half)
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x.astype(np.float32))
    for given, wanted in (
        (x, want),
        (x[::3], want[::3]),
        (x[::-1], want[::-1]),
        (x[:1], want[:1]),
        (x[5:39], want[5:39]),
    ):
        with np.errstate(invalid="ignore"):  # which NumPy's own loops raise
            found = getattr(np, name)(given)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(1,), (300,), (1000,), (70, 13), (13, 129), (3, 40, 257), (2, 100000)], ids=str)
def test_places_of_extremes(rng: np.random.Generator, half: Any, name: str, shape: tuple[int, ...]) -> None:
    drawn = rng.standard_normal(shape)
    for x in (
        drawn,
        drawn.round(),
        np.where(drawn > 1, np.nan, drawn),
        np.where(drawn > 0, 0.0, -0.0),
        np.sign(drawn) * np.inf,
    ):
        x = x.astype(half)
        for lying in (x, x.T, x[..., ::-1]):
            wide = lying.astype(np.float32)
            for dim in (None, *range(lying.ndim)):
                want = getattr(np, name)(wide, axis=dim, keepdims=True)
                found = dispatch.place_of_extreme(name, lying, dim, True)
                assert found.dtype == np.int64
                np.testing.assert_array_equal(found, want)
                np.testing.assert_array_equal(dispatch.place_of_extreme(name, lying, dim, False), want.reshape(-1).reshape(
                    () if dim is None else [n for i, n in enumerate(lying.shape) if i != dim]))  # fmt: skip


def test_extremes_along_a_dimension(rng: np.random.Generator, half: Any) -> None:
    for shape in ((5, 7), (300, 40)):
        x = rng.standard_normal(shape).astype(half)
        x[0, 3], x[1, 2:5], x[2] = np.nan, -0.0, 0
        for dim in (0, 1):
            for name in ("max", "min"):
                values, index = getattr(torch, name)(wrap(x), dim)
                want = getattr(np, "arg" + name)(x.astype(np.float32), axis=dim)
                np.testing.assert_array_equal(index.numpy(), want)
                np.testing.assert_array_equal(values.float().numpy(), np.take_along_axis(
                    x.astype(np.float32), np.expand_dims(want, dim), dim).squeeze(dim))  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 15, 16, 17, 33])
def test_sums_of_short_rows(rng: np.random.Generator, half: Any, count: int) -> None:
    x = rng.standard_normal((20001 // count * 3 + 5, count)).astype(half)
    wide = x.astype(float)
    found = add_up(x, (1,), dtype=np.float32)
    assert (abs(found - wide.sum(1)) <= 2.0**-22 * abs(wide).sum(1)).all()
    if dispatch.rows_of(half) is not None:  # else NumPy adds bfloat16 up in bfloat16
        np.testing.assert_array_equal(add_up(x, (1,)), found.astype(half))
    assert not np.signbit(add_up(np.full_like(x, -0.0), (1,)).astype(float)).any() or count == 0


def alike(a: Any, b: Any) -> None:
    assert a.dtype == b.dtype
    with np.errstate(invalid="ignore"):
        a, b = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (700, 10), (40, 1000), (2, 70000)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_is_that_of_float32_rounded(
    rng: np.random.Generator, half: Any, sizes: tuple[int, int], weighted: bool
) -> None:
    rows, classes = sizes
    x, target = (3 * rng.standard_normal(sizes)).astype(half), rng.integers(0, classes, rows)
    target[::3] = -100
    wide, weight = x.astype(np.float32), rng.random(classes).astype(half) if weighted else None
    heavy = None if weight is None else weight.astype(np.float32)
    for smoothing in (0.0, 0.1):
        loss, denominator, sums = gather.cross_entropy(x, target, weight, -100, smoothing)
        wanted = gather.cross_entropy(wide, target, heavy, -100, smoothing)
        alike(loss, wanted[0].astype(half))
        alike(denominator, wanted[1])
        np.testing.assert_allclose(sums, wanted[2], rtol=1e-6)
        for g in (rng.standard_normal(rows).astype(half), np.ones(1, half)):
            found = gather.cross_entropy_backward(g, x, denominator, target, weight, -100, smoothing)
            want = gather.cross_entropy_backward(g.astype(np.float32), wide, wanted[1], target, heavy, -100, smoothing)
            alike(found, want.astype(half))
            into = x.copy()
            assert gather.cross_entropy_backward(g, into, denominator, target, weight, -100, smoothing, into) is into
            alike(into, found)


@pytest.mark.parametrize("count", [1, 7, 8, 511, 513, 40003])
def test_dropout_is_that_of_float32_rounded(rng: np.random.Generator, half: Any, count: int) -> None:
    x, mask = rng.standard_normal(count).astype(half), rng.integers(0, 256, (count + 7) // 8).astype(np.uint8)
    x[0] = np.inf
    with np.errstate(invalid="ignore"):
        found = gather.dropout_backward(x, mask, 0.3)
        alike(found, gather.dropout_backward(x.astype(np.float32), mask, 0.3).astype(half))
    assert gather.dropout_backward(x, mask, 0.3, None, x) is x
    alike(x, found)


@pytest.mark.parametrize("name", ["frac", "deg2rad", "rad2deg"])
def test_fractions_and_angles_are_rounded_once(half: Any, name: str) -> None:
    for x in (every(half), every(half)[:300], every(half)[::7]):
        found = getattr(torch, name)(wrap(x))._array
        with np.errstate(all="ignore"):
            alike(found, getattr(torch, name)(wrap(x.astype(np.float32)))._array.astype(half))


def test_numbers_that_are_not_zero_are_counted(half: Any) -> None:
    x = every(half)
    assert int(torch.count_nonzero(wrap(x))) == (1 << 16) - 2 == int(torch.count_nonzero(wrap(x), 0))


def test_parts_of_numbers_and_infinities(half: Any) -> None:
    x = every(half)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32)
        known = np.isfinite(wide)
        mantissa, exponent = torch.frexp(wrap(x))
        wanted = np.frexp(wide)
        alike(mantissa._array, wanted[0].astype(half))
        np.testing.assert_array_equal(exponent._array[known], wanted[1][known])
        values = torch.full((x.size,), 0.5).to(mantissa.dtype)
        step = np.where(np.isnan(wide), 0, np.heaviside(wide, np.float32(0.5))).astype(half)
        found = torch.heaviside(wrap(x), values)._array
    alike(found, step)
    for name, sign in (("isposinf", 1), ("isneginf", -1)):
        for given, numbers in ((x, wide), (x[::3], wide[::3]), (x[::-1], wide[::-1])):
            np.testing.assert_array_equal(getattr(torch, name)(wrap(given))._array, numbers == sign * np.inf)


def test_cross_products_and_rows_of_limited_norm(rng: np.random.Generator, half: Any) -> None:
    for shape, dim in (((2000, 3), 1), ((2000, 3), -1), ((3, 700), 0), ((300, 3, 40), 1), ((4, 3), 1)):
        x, y = (rng.standard_normal(shape).astype(half) for _ in range(2))
        found = torch.linalg.cross(wrap(x), wrap(y), dim=dim)._array.astype(float)
        want = np.cross(x.astype(float), y.astype(float), axis=dim)
        size = np.cross(abs(x.astype(float)), -abs(y.astype(float)), axis=dim)
        assert (abs(found - want) <= (0.02 if half == HALVES[1] else 0.004) * (1 + abs(size) + abs(want)) * 2).all()
    rows = rng.standard_normal((60, 80)).astype(half)
    found = torch.renorm(wrap(rows), 2, 0, 1.0)._array.astype(float)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=2e-2)


@pytest.mark.parametrize("shape", [(300, 5), (300, 311), (2, 70000)], ids=str)
def test_sums_of_rows_are_rounded_once(path: str, half: Any, shape: tuple[int, ...]) -> None:
    row = np.full((1, shape[1]), 3, half)
    for x in (np.repeat(row, shape[0], 0), np.broadcast_to(row, shape), np.asfortranarray(np.repeat(row, shape[0], 0))):
        np.testing.assert_array_equal(sum_rows(x), np.full(shape[1], 3 * shape[0], np.float32).astype(half))
