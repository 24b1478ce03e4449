"""Numbers of 16 bits that meet at an index: joined in float32 in the order of the indices, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from tests.kernels.test_along import CASES

from rushlight import kernels as K
from rushlight.kernels.native import loader

DTYPES = ["float16", bfloat16]
JOINS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}

# outer, rows, indices, columns: of few indices, long rows, short ones, single numbers, and enough for all threads
ROWS = [
    (1, 500, 20, 3),
    (3, 500, 20, 3),
    (1, 7, 40, 700),
    (2, 7, 40, 530),
    (1, 60, 200, 20),
    (3, 60, 200, 5),
    (1, 90, 300, 1),
    (4, 90, 300, 1),
    (1, 300, 2000, 33),
    (1, 5, 0, 3),
    (1, 5, 3, 0),
]
# shape, dimension, indices along it: rows by themselves, columns, and few indices of many places
ALONG = [
    *CASES,
    ((3, 4000), 1, 1),
    ((2, 900, 70), 1, 3),
    ((5000, 20), 0, 400),
    ((300, 300), 1, 300),
]


def numbers(rng: np.random.Generator, shape: Any, how: str, dtype: Any) -> Any:
    """Numbers of which all that meet give float32 what any order gives."""
    if how == "prod":
        return rng.choice(np.array([1, 1, 1, 1, 1, -1, 2, 0.5, 1.125]), shape).astype(dtype)
    found = (rng.integers(-99, 100, shape) / 8).astype(dtype)
    if how != "sum" and found.size:
        found.flat[found.size // 2] = np.nan
    return found


def same(found: Any, want: Any) -> None:
    """Bit by bit, but for the signs of NaN."""
    at = ~np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), ~at)
    np.testing.assert_array_equal(found[at].view(np.uint16), want[at].view(np.uint16))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", list(JOINS))
@pytest.mark.parametrize("sizes", ROWS, ids=str)
def test_rows(path: str, rng: np.random.Generator, sizes: tuple[int, ...], how: str, dtype: Any) -> None:
    outer, rows, count, width = sizes
    dst, src = (numbers(rng, (outer, n, width), how, dtype) for n in (rows, count))
    for index in (rng.integers(0, rows, count), np.sort(rng.integers(0, rows, count))):
        want, found = dst.astype(np.float32), dst.copy()
        with np.errstate(invalid="ignore"):
            JOINS[how].at(want, (slice(None), index), src.astype(np.float32))
            if how == "sum":
                K.index_add_slices(found, index, src)
            else:
                K.index_join_slices(found, index, src, how)
        same(found, want.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", list(JOINS))
@pytest.mark.parametrize(("shape", "dim", "count"), ALONG, ids=str)
def test_along(path: str, rng: np.random.Generator, shape: Any, dim: int, count: int, how: str, dtype: Any) -> None:
    index = rng.integers(0, shape[dim], (*shape[:dim], count, *shape[dim + 1 :]))
    x, values = numbers(rng, shape, how, dtype), numbers(rng, index.shape, how, dtype)
    for found in (x.copy(), x.copy(order="F")):
        want = x.astype(np.float32)
        with np.errstate(invalid="ignore"):
            JOINS[how].at(want, K.along(index, dim), values.astype(np.float32))
            if how == "sum":
                K.add_along(found, index, dim, values)
            else:
                K.join_along(found, index, dim, values, how)
        same(found, want.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("table", "places", "count", "width"), [(50, 30, 200, 33), (50, 900, 40, 600), (9, 7, 3000, 8)]
)
def test_rows_of_a_table(
    rng: np.random.Generator, table: int, places: int, count: int, width: int, scaled: bool, dtype: Any
) -> None:
    if not K.adds_rows_of(np.dtype(dtype)):
        assert not loader.tables()
        return
    given, dst = numbers(rng, (table, width), "sum", dtype), numbers(rng, (places, width), "sum", dtype)
    scale = rng.choice(np.array([1, 2, 0.5]), count).astype(dtype) if scaled else None
    of, to = rng.integers(0, table, count), rng.integers(0, places, count)
    for at in (to, np.sort(to)):
        want, found = dst.astype(np.float32), dst.copy()
        rows = given.astype(np.float32)[of]
        np.add.at(want, at, rows if scale is None else rows * scale.astype(np.float32)[:, None])
        assert K.add_rows_of(found, at, given, of, scale)
        same(found, want.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_nothing_is_added_to_stays(path: str, dtype: Any) -> None:
    for rows, width in ((100, 3), (4, 600), (200, 1)):
        x = np.full((rows, width), -0.0, dtype)
        K.index_add_rows(x, np.full(70, 2), np.ones((70, width), dtype))
        assert (x[2] == 70).all() and np.signbit(x.astype(np.float32)).sum() == (rows - 1) * width
    x = np.full((5, 90), -0.0, dtype)
    K.add_along(x, np.zeros((5, 70), np.int64), 1, np.ones((5, 70), dtype))
    assert (x[:, 0] == 70).all() and np.signbit(x.astype(np.float32)).sum() == 5 * 89


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "float16", bfloat16, "float32", "int64", "complex64", "complex128"]
)
def test_slices_are_put(path: str, rng: np.random.Generator, dtype: Any) -> None:
    for outer, rows, count, width in ((1, 60, 40, 30), (5, 30, 70, 1), (3, 20, 9, 7)):
        dst, src = ((9 * rng.standard_normal((outer, n, width))).astype(dtype) for n in (rows, count))
        index = rng.integers(0, rows, count)
        want = dst.copy()
        for i, row in enumerate(index):
            want[:, row] = src[:, i]
        K.index_join_slices(dst, index, src, "last")
        np.testing.assert_array_equal(dst, want)
