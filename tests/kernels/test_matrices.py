"""Products of matrices: where the native kernel computes them, and what does not depend on how."""

from __future__ import annotations

import numpy as np
import pytest
from tools import sweep_cases

import rushlight as torch
from rushlight.kernels import matrices
from rushlight.kernels.native import loader

DRAW = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return DRAW.standard_normal(shape, dtype=np.float32)


def used() -> bool:
    return matrices._natively(drawn(200, 200), drawn(200, 200), None) is not None


pytestmark = pytest.mark.skipif(not loader.tables() or not used(), reason="no AVX-512 here, or no native kernels")


@pytest.mark.parametrize("rows, steps, columns", [(700, 300, 1000), (60, 3000, 50), (20, 700, 1500)])
def test_the_bits_are_those_of_any_number_of_threads(rows: int, steps: int, columns: int) -> None:
    a, b, turned = drawn(rows, steps), drawn(steps, columns), drawn(columns, steps).T
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            found.append([matrices.matmul(a, b), matrices.matmul(a, turned)])
    finally:
        torch.set_num_threads(before)
    for more in found[1:]:
        for x, y in zip(found[0], more, strict=True):
            np.testing.assert_array_equal(x, y)


def test_what_the_kernel_is_not_for_is_left_to_numpy() -> None:
    a, b = drawn(200, 200), drawn(200, 200)
    assert matrices._natively(a, b, None) is not None
    assert matrices._natively(a[:, ::2], drawn(100, 400), None) is None  # gaps in both directions
    assert matrices._natively(a[:7], drawn(200, 4000), None) is None  # few rows
    assert matrices._natively(a[:30], b[:, :30], None) is None  # small
    assert matrices._natively(a.astype(complex), b.astype(complex), None) is None
    assert matrices._natively(a, b.astype("f8"), None) is None
    np.testing.assert_allclose(
        matrices.matmul(a[:, ::2], b[::2]), a[:, ::2].copy() @ b[::2].copy(), rtol=1e-4, atol=1e-4
    )
    with pytest.raises(ValueError, match="mismatch"):
        matrices.matmul(a, drawn(100, 200))


def test_a_row_that_broadcasts_is_added() -> None:
    a, b = drawn(200, 200), drawn(200, 200)
    for row in (drawn(200), drawn(1), np.float32(2) * np.ones(()), drawn(400)[::2], drawn(200).astype("f8")):
        np.testing.assert_allclose(matrices.matmul(a, b, None, row), a @ b + row, rtol=1e-4, atol=1e-4)


def test_nan_and_infinity_stay_in_their_rows_and_columns() -> None:
    a, b = drawn(100, 101), drawn(101, 103)
    a[3, 4], b[5, 6] = np.nan, np.inf
    found = matrices.matmul(a, b)
    assert np.isnan(found[3]).all() and not np.isnan(np.delete(found, 3, 0)).any()
    assert np.isinf(np.delete(found[:, 6], 3)).all() and np.isfinite(np.delete(np.delete(found, 3, 0), 6, 1)).all()


def test_the_sweep_reaches_the_kernel() -> None:
    for m, k, n in sweep_cases.PRODUCTS:
        assert matrices._natively(drawn(m, k), drawn(k, n), None) is not None, (m, k, n)


@pytest.mark.parametrize("columns", [48, 50, 112, 250, 1008, 1200])
@pytest.mark.parametrize("rows, steps", [(8, 4100), (37, 900), (16, 2100), (96, 180), (97, 180)])
def test_few_rows_by_a_right_factor_that_is_not_packed(rows: int, steps: int, columns: int) -> None:
    a, wide, row = drawn(rows, steps), drawn(steps, columns + 3), drawn(columns)
    b = wide[:, 2:-1]  # rows that begin anywhere
    found = matrices._natively(a, b, row)
    assert found is not None
    np.testing.assert_allclose(found, a.astype("f8") @ b.astype("f8") + row, rtol=1e-4, atol=1e-3)
    tall = matrices._natively(np.concatenate([a] * 20), b, row)
    np.testing.assert_array_equal(found, tall[:rows])  # of which the right factor is packed: the same sums


def test_small_products_are_taken_where_memory_runs_along_the_sum() -> None:
    a = drawn(32, 128)
    assert matrices._natively(a, drawn(128, 128).T, None) is not None
    assert matrices._natively(a, drawn(128, 120), None) is None
    assert matrices._natively(a, drawn(10, 128).T, None) is None  # few columns
