"""Sums of the errors of pairs, and logarithms of sums of exponentials: kernels against NumPy in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight.kernels.native import loader
from rushlight.kernels.pointwise.errors import total_error
from rushlight.kernels.sums import joined

KINDS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
ERRORS = {
    "squared_errors": lambda d: d * d,
    "absolute_errors": np.abs,
    "huber_errors": lambda d: np.where(np.abs(d) < 0.5, d * d / 2, 0.5 * (np.abs(d) - 0.25)),
}
native = pytest.mark.skipif(not loader.tables(), reason="the native kernels cannot be built here")


@native
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("errors", ERRORS)
@pytest.mark.parametrize("size", [10_000, 70_001])
def test_sums_of_errors(rng: np.random.Generator, errors: str, kind: Any, size: int) -> None:
    x, target = (rng.standard_normal(size).astype(kind) for _ in range(2))
    want = ERRORS[errors](x.astype(np.float64) - target.astype(np.float64)).sum()
    found = total_error(errors, x, target, 0.5)
    assert found is not None
    np.testing.assert_allclose(found, want, rtol=1e-12 if kind is np.float64 else 1e-6)
    x[-1] = np.nan
    found = total_error(errors, x, target, 0.5)
    assert found is not None and np.isnan(found)


def test_sums_of_errors_of_what_lies_otherwise(rng: np.random.Generator) -> None:
    x = rng.standard_normal((100, 200))
    for other in (x.T.copy().T, x.astype(np.float32), x[:1]):
        assert total_error("squared_errors", x, other) is None
    assert total_error("squared_errors", x[:2], x[:2]) is None


@native
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(30, 700), (3, 9_001), (2, 5_000, 300)])
def test_logarithms_of_sums(rng: np.random.Generator, kind: Any, shape: tuple[int, ...]) -> None:
    x = (3 * rng.standard_normal(shape)).astype(kind)
    x[0, 0], x[1, 1], x[:, 2], x[0, :] = np.inf, -np.inf, -np.inf, -np.inf
    x[1, 5], x[-1, 9, ...] = np.nan, 90
    wide = x.astype(np.float64)
    for axis in (0, 1, len(shape) - 1):
        found = joined("log_sum", x, (axis,), True)
        assert found is not None and found.dtype == x.dtype
        top = wide.max(axis, keepdims=True)
        top[~np.isfinite(top)] = 0
        with np.errstate(all="ignore"):
            want = np.log(np.exp(wide - top).sum(axis, keepdims=True)) + top
            want = want.astype(kind).astype(np.float64)
        rtol = {8: 1e-12, 4: 2e-6}.get(x.itemsize, 1e-2)
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=rtol, atol=rtol)
