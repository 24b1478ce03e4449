"""What is done to each of several arrays in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K

Array = np.ndarray[Any, Any]


def arrays(dtype: str) -> list[Array]:
    """Of several sizes and layouts: with gaps, turned, of another dtype, without elements."""
    r = np.random.default_rng(0)
    made = [r.standard_normal(shape) for shape in ((), (5,), (33, 65), (0, 3), (200_001,), (40, 60))]
    return [a.astype(dtype) for a in made] + [
        made[2].astype(dtype).T,
        made[5].astype(dtype)[:, ::2],
        made[5].astype("f4" if dtype == "f8" else "f8"),
        made[1].astype(dtype),
    ]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_squares(path: str, dtype: str) -> None:
    want = [np.sum(np.square(a, dtype="f8")) for a in arrays(dtype)]
    np.testing.assert_allclose(K.squares_of_each(arrays(dtype)), want, rtol=4 * np.finfo("f4").eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_and_bounds(path: str, dtype: str) -> None:
    made, kept = arrays(dtype), arrays(dtype)
    K.multiply_each(made, 0.3)
    for got, a in zip(made, kept, strict=True):
        np.testing.assert_array_equal(got, a * a.dtype.type(0.3))
    made = arrays(dtype)
    made[1][0] = np.nan
    K.clamp_each(made, -0.25, 0.5)
    assert np.isnan(made[1][0]) and made[1].dtype == dtype
    for got, a in list(zip(made, kept, strict=True))[2:]:
        np.testing.assert_array_equal(got, np.clip(a, a.dtype.type(-0.25), a.dtype.type(0.5)))


def test_an_array_that_comes_twice_changes_twice(path: str) -> None:
    x = np.ones(50_000, "f4")
    K.multiply_each([x, x], 0.5)
    assert (x == 0.25).all()


def test_what_must_not_be_written_is_not(path: str) -> None:
    x = np.ones(3, "f4")
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        K.multiply_each([x], 0.5)
