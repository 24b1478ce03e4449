"""The first of each row in order: native against sorting, NaN, equal elements, dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K

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
