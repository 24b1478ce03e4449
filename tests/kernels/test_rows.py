"""A row added to every row, and sums of rows."""

from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c16"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 7), (700, 129), (3, 70_000)])
def test_rows(path: str, rng: np.random.Generator, shape: Any, dtype: str) -> None:
    x, row = (rng.integers(-9, 9, s).astype(dtype) for s in (shape, shape[1:]))
    np.testing.assert_array_equal(K.sum_rows(x), x.sum(0))
    turned = x.copy(order="F")
    np.testing.assert_array_equal(K.sum_rows(turned), x.sum(0))
    want = x + row
    assert K.add_row(x, row) is x
    np.testing.assert_array_equal(x, want)
    np.testing.assert_array_equal(K.add_row(turned, row), want)
