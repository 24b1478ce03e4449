"""Elements read and added at indices along a dimension: native against NumPy, layouts, indices outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import kernels as K
from rushlight.kernels.native import loader

CASES = [
    ((70,), 0, 90),
    ((5, 33), 1, 40),
    ((33, 5), 0, 17),
    ((3, 7, 65), 1, 9),
    ((2, 3, 400), 2, 500),
    ((6, 700), 0, 90),
]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c8"])
@pytest.mark.parametrize(("shape", "dim", "count"), CASES)
def test_gather(path: str, rng: np.random.Generator, shape: Any, dim: int, count: int, dtype: str) -> None:
    x = rng.integers(-99, 99, shape).astype(dtype)
    index = rng.integers(0, shape[dim], (*shape[:dim], count, *shape[dim + 1 :]))
    want = np.take_along_axis(x, index, dim)
    for i in (index, index.astype(np.int32), index.copy(order="F")):
        np.testing.assert_array_equal(K.gather_along(x, i, dim), want)
        np.testing.assert_array_equal(K.gather_along(x.copy(order="F"), i, dim), want)
    short = tuple([slice(None) if d == dim else slice(1) for d in range(len(shape))])
    np.testing.assert_array_equal(K.gather_along(x, index[short], dim), want[short])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize(("shape", "dim", "count"), CASES)
def test_add(path: str, rng: np.random.Generator, shape: Any, dim: int, count: int, dtype: str) -> None:
    x = rng.integers(-99, 99, shape).astype(dtype)
    index = rng.integers(0, shape[dim], (*shape[:dim], count, *shape[dim + 1 :]))
    values = rng.integers(-9, 9, index.shape).astype(dtype)
    want = x.copy()
    np.add.at(want, K.along(index, dim), values)
    for i, v in ((index, values), (index.astype(np.int32), values), (index, values.copy(order="F"))):
        found = x.copy()
        K.add_along(found, i, dim, v)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("how", ["prod", "amax", "amin"])
@pytest.mark.parametrize(("shape", "dim", "count"), CASES)
def test_join(path: str, rng: np.random.Generator, shape: Any, dim: int, count: int, how: str, dtype: str) -> None:
    x = rng.integers(-3, 4, shape).astype(dtype)
    index = rng.integers(0, shape[dim], (*shape[:dim], count, *shape[dim + 1 :]))
    values = rng.integers(-2, 3, index.shape).astype(dtype)
    if dtype != "i8":
        values.flat[[0, -1]], x.flat[3] = np.nan, np.nan
    want = x.copy()
    with np.errstate(invalid="ignore"):
        {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[how].at(want, K.along(index, dim), values)
    for i, v in ((index, values), (index.astype(np.int32), values), (index, values.copy(order="F"))):
        for found in (x.copy(), x.copy(order="F")):
            with np.errstate(invalid="ignore"):
                K.join_along(found, i, dim, v, how)
            np.testing.assert_array_equal(found, want)


@pytest.mark.skipif(not loader.tables(), reason="NumPy has rules of its own")
@pytest.mark.parametrize("bad", [-1, 33, 1 << 40, -(1 << 63)])
def test_native_code_refuses_indices_outside(bad: int) -> None:
    x, index = np.ones((5, 33), np.float32), np.zeros((5, 40), np.int64)
    index[4, 39] = bad
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        K.gather_along(x, index, 1)
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        K.add_along(x, index, 1, np.ones((5, 40), np.float32))
    assert (x == 1).all()


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include", [True, False])
def test_numbers_without_dimensions(how: str, include: bool) -> None:
    x, value, at = torch.tensor(2.0), torch.tensor(3.0), torch.tensor(0)
    want = {"sum": 5.0, "prod": 6.0, "mean": 2.5, "amax": 3.0, "amin": 2.0}[how] if include else 3.0
    assert x.scatter_reduce(0, at, value, how, include_self=include).item() == want
    assert x.gather(0, at).item() == 2.0 and x.scatter(0, at, value).item() == 3.0
    assert x.scatter_add(0, at, value).item() == 5.0
