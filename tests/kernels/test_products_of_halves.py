"""Products of 16-bit matrices of every shape: few rows, few columns, short and long sums, factors that are turned, vectors."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight.kernels import dispatch
from rushlight.kernels.matrices import matmul
from rushlight.kernels.products import wide_product

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
EPS = {HALVES[0]: 2.0**-11, HALVES[1]: 2.0**-8}


def near(found: Any, a: Any, b: Any, row: Any = None) -> None:
    """Whether a product is what float64 gives, rounded once after sums in float32."""
    exact, size = (x @ y for x, y in ((a.astype(float), b.astype(float)), (abs(a.astype(float)), abs(b.astype(float)))))
    if row is not None:
        exact = exact + row.astype(float)
    steps = a.shape[-1]
    limit = abs(exact) * EPS[found.dtype] + size * 2.0**-23 * steps**0.5 + 1e-7
    np.testing.assert_array_less(abs(found.astype(float) - exact), limit + 1e-30)


def factor(rng: np.random.Generator, lead: tuple[int, ...], rows: int, columns: int, turned: bool, half: Any) -> Any:
    made = rng.standard_normal((*lead, columns, rows) if turned else (*lead, rows, columns)).astype(half)
    return made.swapaxes(-1, -2) if turned else made


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 8, 9, 17, 100])
@pytest.mark.parametrize("columns", [1, 4, 9, 16, 49, 260])
def test_shapes(rng: np.random.Generator, half: Any, rows: int, columns: int) -> None:
    for steps, lead, turns in itertools.product(
        (1, 3, 17, 300), ((), (3,)), itertools.product((False, True), repeat=2)
    ):
        a, b = factor(rng, lead, rows, steps, turns[0], half), factor(rng, lead, steps, columns, turns[1], half)
        near(matmul(a, b), a, b)
        if not lead:
            row = rng.standard_normal(columns).astype(half)
            near(matmul(a, b, None, row), a, b, row)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("sizes", [(64, 5000, 64), (3, 5000, 70), (97, 2100, 700), (200, 300, 1000)], ids=str)
def test_large_ones_on_any_number_of_threads(rng: np.random.Generator, half: Any, sizes: tuple[int, int, int]) -> None:
    rows, steps, columns = sizes
    before = torch.get_num_threads()
    try:
        for turned in (False, True):
            a, b = factor(rng, (), rows, steps, turned, half), factor(rng, (), steps, columns, not turned, half)
            found = []
            for threads in (1, 3):
                torch.set_num_threads(threads)
                found.append(matmul(a, b))
            near(found[0], a, b)
            if dispatch.native(np.dtype(np.float32)) is not None:
                assert found[0].tobytes() == found[1].tobytes()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_vectors(rng: np.random.Generator, half: Any) -> None:
    v, w = (rng.standard_normal(n).astype(half) for n in (33, 20))
    m, batch = rng.standard_normal((20, 33)).astype(half), rng.standard_normal((2, 3, 20, 33)).astype(half)
    for a, b in ((m, v), (w, m), (v, v), (batch, v), (w, batch), (m[:, ::-1], v[::-1])):
        found = matmul(a, b)
        assert found.shape == (a.astype(float) @ b.astype(float)).shape
        near(np.asarray(found), a, b)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("sizes", [(3, 40, 50), (50, 40, 3), (50, 40, 60), (60, 2, 60), (1, 20, 1)], ids=str)
def test_special_numbers(half: Any, sizes: tuple[int, int, int]) -> None:
    rows, steps, columns = sizes
    a, b = np.ones((rows, steps), half), np.ones((steps, columns), half)
    a[0, 0], b[-1, -1] = np.nan, np.inf
    found = matmul(a, b).astype(float)
    want = a.astype(float) @ b.astype(float)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    np.testing.assert_array_equal(found[~np.isnan(want)], want[~np.isnan(want)])


def test_what_float16_does_not_hold_is_infinite_and_what_is_small_is_kept() -> None:
    for rows in (2, 50):
        a, b = np.full((rows, 20), 300, np.float16), np.full((20, 50), 300, np.float16)
        assert np.isposinf(matmul(a, b)).all() and np.isneginf(matmul(-a, b)).all()
        small = np.full((rows, 1), 2.0**-24, np.float16)
        np.testing.assert_array_equal(matmul(small, np.ones((1, 50), np.float16)), np.full((rows, 50), 2.0**-24))


def test_sums_of_float16_products_and_what_is_added_are_rounded_once(rng: np.random.Generator) -> None:
    a, b, c = (torch.tensor(rng.standard_normal(shape)).half() for shape in ((64, 70), (70, 33), (64, 33)))
    found = torch.addmm(c, a, b, beta=0.75, alpha=1.25).double().numpy()
    exact = 0.75 * c.double().numpy() + 1.25 * (a.double().numpy() @ b.double().numpy())
    native = dispatch.native(np.dtype(np.float32)) is not None
    assert (abs(found - exact) <= abs(exact) * 2.0**-11 * (1 if native else 3) + 1e-2 * (not native) + 1e-4).all()


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 33, 5), (128, 300, 70), (0, 4, 3), (4, 0, 3)], ids=str)
def test_to_float32(rng: np.random.Generator, half: Any, sizes: tuple[int, int, int]) -> None:
    rows, steps, columns = sizes
    for turns in itertools.product((False, True), repeat=2):
        a, b = factor(rng, (), rows, steps, turns[0], half), factor(rng, (), steps, columns, turns[1], half)
        found = wide_product(a, b)
        assert found.dtype == np.float32
        exact, size = a.astype(float) @ b.astype(float), abs(a.astype(float)) @ abs(b.astype(float))
        np.testing.assert_array_less(abs(found - exact), size * 2.0**-21 + 1e-30)
