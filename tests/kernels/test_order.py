"""The first of each row in order: native against sorting, NaN, equal elements, dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from rushlight import kernels as K
from rushlight.kernels.reference import order as reference

CASES = [
    ((300,), 0, 7),
    ((5, 133), 1, 10),
    ((133, 5), 0, 3),
    ((3, 65, 7), 1, 65),
    ((4, 1025), 1, 1),
    ((2, 3000), 1, 256),
]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "dim", "k"), CASES)
def test_top(path: str, rng: np.random.Generator, shape: Any, dim: int, k: int, largest: bool, dtype: str) -> None:
    for spread in (9, 10_000):
        x = rng.integers(-spread, spread, shape).astype(dtype)
        if dtype != "i8":
            x[rng.random(shape) < 0.02] = np.nan
            x[rng.random(shape) < 0.02] = np.inf
        order = np.sort(x, dim)  # NaN last
        want = np.take((np.flip(order, dim) if largest else order), np.arange(k), dim)
        for a in (x, x.copy(order="F")):
            values, index = K.top_k(a, k, dim, largest)
            np.testing.assert_array_equal(values, want)
            np.testing.assert_array_equal(np.take_along_axis(x, index, dim), want)
        repeats = np.sort(index, dim)
        assert (np.diff(repeats, axis=dim) > 0).all(), "an element is named twice"


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("shape", [(300, 70), (3, 70, 257), (5000, 2), (2, 5000), (1, 9000), (40, 3, 5, 17), (7, 3)])
def test_the_first_extreme_is_that_of_argmax(
    path: str, rng: np.random.Generator, shape: Any, least: bool, dtype: str
) -> None:
    few = rng.integers(-3, 3, shape).astype(dtype)
    odd = np.where(rng.random(shape) < 0.01, np.nan, few).astype(dtype) if dtype != "i8" else few
    for x in (
        few,
        odd,
        -0.0 * few.astype(odd.dtype),
        np.full(shape, np.inf if dtype != "i8" else 7).astype(dtype),
        np.asfortranarray(odd),
    ):
        for dim in range(len(shape)):
            values, index = K.first_extreme(x, dim, least)
            wanted = (np.argmin if least else np.argmax)(x, axis=dim, keepdims=True)
            np.testing.assert_array_equal(index, wanted)
            np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, dim))
            np.testing.assert_array_equal(np.signbit(values), np.signbit(np.take_along_axis(x, wanted, dim)))
            assert index.dtype == np.int64


@pytest.mark.parametrize("kind", [np.float16, bfloat16])
@pytest.mark.parametrize("shape", [(300, 70), (3, 70, 257), (5000, 2), (40, 3, 5, 17)])
def test_the_first_extreme_of_16_bits(path: str, rng: np.random.Generator, shape: Any, kind: Any) -> None:
    wide = np.where(rng.random(shape) < 0.01, np.nan, rng.integers(-3, 3, shape)).astype("f4")
    for x in (wide, -0.0 * wide, np.asfortranarray(wide), wide[::-1]):
        for dim in range(len(shape)):
            for least in (False, True):
                values, index = K.first_extreme(x.astype(kind), dim, least)
                wanted = K.first_extreme(x, dim, least)
                np.testing.assert_array_equal(index, wanted[1])
                np.testing.assert_array_equal(values.astype("f4"), wanted[0])
                assert values.dtype == kind


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    ("rows", "n", "count"), [(1, 1, 300), (1, 1000, 777), (7, 64, 129), (300, 3, 5), (2, 9, 1000), (40, 33, 1)]
)
def test_search(path: str, rng: np.random.Generator, rows: int, n: int, count: int, right: bool, dtype: str) -> None:
    """As NumPy's own search of each row, equal elements, NaN and infinities among them."""
    for spread in (5, 10_000):
        x, values = (rng.integers(-spread, spread, (rows, m)).astype(dtype) for m in (n, count))
        if dtype != "i8":
            for some in (x, values):
                some[rng.random(some.shape) < 0.05] = np.nan
                some[rng.random(some.shape) < 0.05] = -np.inf
                some[rng.random(some.shape) < 0.05] = -0.0
        x.sort(axis=1)
        want = np.stack(
            [np.searchsorted(row, v, "right" if right else "left") for row, v in zip(x, values, strict=True)]
        )
        found = K.search(x, values, right)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(K.search(x[0], np.asfortranarray(values), right)[0], want[0])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize(
    ("shape", "dim"), [((1,), 0), ((3, 24), 1), ((500, 25), 1), ((4, 1000), 1), ((70, 5, 3), 1), ((20001,), 0)]
)
def test_the_element_of_a_rank(path: str, rng: np.random.Generator, shape: Any, dim: int, dtype: str) -> None:
    for spread in (3, 100_000):
        x = rng.integers(-spread, spread, shape).astype(dtype)
        if dtype != "i8":
            x[rng.random(shape) < 0.02] = np.nan
            x[rng.random(shape) < 0.02] = np.inf
            x[rng.random(shape) < 0.02] = -0.0
        n = shape[dim]
        for k in {0, n // 3, n - 1}:
            for a in (x, np.asfortranarray(x)):
                values, index = K.of_rank(a, dim, k)
                assert values.squeeze(dim).flags.c_contiguous and index.squeeze(dim).flags.c_contiguous
                np.testing.assert_array_equal(values, np.take(np.sort(x, dim), [k], dim))
                np.testing.assert_array_equal(np.take_along_axis(x, index, dim), values)
        ranks = rng.integers(0, n, (*shape[:dim], 1, *shape[dim + 1 :]))
        values, index = K.of_rank(x, dim, ranks)
        np.testing.assert_array_equal(values, np.take_along_axis(np.sort(x, dim), ranks, dim))
        np.testing.assert_array_equal(np.take_along_axis(x, index, dim), values)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(1, 1), (3000, 3), (50, 7, 16)])
@pytest.mark.parametrize("descending", [False, True])
def test_short_rows_in_order(
    path: str, rng: np.random.Generator, shape: tuple[int, ...], descending: bool, dtype: str
) -> None:
    x = rng.integers(-3, 4, shape).astype(dtype)
    x[rng.random(shape) < 0.1] = np.nan
    x[rng.random(shape) < 0.1] = -0.0
    assert K.has_short_rows(x, len(shape) - 1) == (path == "native")
    values, index = K.short_rows_in_order(x, descending)
    wanted = reference.order_of(x, len(shape) - 1, descending)
    np.testing.assert_array_equal(index, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, -1))
    assert not K.has_short_rows(np.zeros((4, 17), dtype), 1) and not K.has_short_rows(x, 0), "long rows, columns"
