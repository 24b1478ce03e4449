"""A row added to every row, and sums of rows."""

from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight import kernels as K
from rushlight.kernels import matrices


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


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("size", [5, 400_000])
def test_sums_of_large_arrays(path: str, rng: np.random.Generator, size: int, dtype: str) -> None:
    x, y = (rng.integers(-99, 99, (size, 2)).astype(dtype) for _ in range(2))
    np.testing.assert_array_equal(K.add_large(x, y), x + y)
    np.testing.assert_array_equal(K.add_large(x, y[:1]), x + y[:1])
    np.testing.assert_array_equal(K.add_large(x, 3), x + 3)
    np.testing.assert_array_equal(K.add_large(x[::2], y[::2]), (x + y)[::2])
    turned = x.copy(order="F"), y.copy(order="F")
    np.testing.assert_array_equal(K.add_large(*turned), x + y)
    np.testing.assert_array_equal(K.add_large(turned[0], y), x + y)
    want = x + y
    assert K.add_large(x, y, x) is x
    np.testing.assert_array_equal(x, want)


def test_large_tensors_add() -> None:
    a, b = rushlight.rand(600, 1000), rushlight.rand(600, 1000)
    np.testing.assert_array_equal((a + b).numpy(), a.numpy() + b.numpy())
    np.testing.assert_array_equal((a + b[0]).numpy(), a.numpy() + b[0].numpy())
    np.testing.assert_array_equal((a + 1.5).numpy(), a.numpy() + np.float32(1.5))
    with pytest.raises(RuntimeError, match="must match the size"):
        a + b.t()


def test_what_blas_takes_as_it_lies_is_not_copied() -> None:
    x = np.zeros((4, 6), np.float32)
    for lies in (x, x.T, x[1:], x[:, :3], x[:, 1:5].T, x[0]):
        assert matrices._ready(lies) is lies
    stack = np.zeros((2, 3, 4), np.float32)
    for apart in (x[:, ::2], x[::2, ::2].T, stack.T):
        assert matrices._ready(apart).flags.c_contiguous
