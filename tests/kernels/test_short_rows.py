"""Rows of a few elements, which go together: arithmetic that is broadcast, softmax, extremes, sums, masks, copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels.pointwise.copies import move
from rushlight.kernels.rows import across
from rushlight.kernels.sums import counted, joined

PAIRS = [  # shapes of two arrays: a row, a column, outer sums, both, one for all
    ((9000, 3), (3,)),
    ((9000, 3), (9000, 1)),
    ((9000, 3), (1, 1)),
    ((150, 1, 3), (1, 151, 3)),
    ((150, 151, 1), (150, 1, 4)),
    ((7, 1300, 2), (7, 1, 2)),
    ((7, 1300, 2), (1300, 1)),
    ((1200, 16), (16,)),
    ((11, 500, 5), (11, 1, 1)),
]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shapes", PAIRS)
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.true_divide])
def test_arithmetic(path: str, rng: np.random.Generator, ufunc: np.ufunc, shapes: Any, dtype: str) -> None:
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    run = across(ufunc)
    for a, b in ((x, y), (y, x), (np.repeat(x, 2, 0)[::2], y), (np.repeat(x, 2, -1)[..., : x.shape[-1]], y)):
        np.testing.assert_array_equal(run(a, b), ufunc(a, b))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 32), (5, 3), (129, 3), (4001, 10), (300, 31), (40, 7, 20), (2, 33)])
def test_softmax_and_its_sums(path: str, rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> None:
    x = (rng.standard_normal(shape) * 5).astype(dtype)
    x[0, ..., 0] = -np.inf if x.shape[-1] > 1 else 2
    rtol = 1e-5 if dtype == "f4" else 1e-12
    wide = x.astype("f8")
    wanted = np.exp(wide - wide.max(-1, keepdims=True))
    total = wanted.sum(-1, keepdims=True)
    wanted /= total
    with np.errstate(divide="ignore"):
        logs = np.log(wanted)
    g = rng.standard_normal(shape).astype(dtype)
    soft, log = K.softmax(x, -1), K.log_softmax(x, -1)
    np.testing.assert_allclose(soft, wanted, rtol, rtol)
    np.testing.assert_allclose(log, logs, rtol, rtol)
    np.testing.assert_allclose(
        K.softmax_backward(g, soft, -1), wanted * (g - (g * wanted).sum(-1, keepdims=True)), 0, 20 * rtol
    )
    np.testing.assert_allclose(K.log_softmax_backward(g, log, -1), g - wanted * g.sum(-1, keepdims=True), 0, 20 * rtol)


@pytest.mark.parametrize("rows", [3, 15, 16, 17, 127, 128, 300])
def test_a_row_is_the_same_among_others(path: str, rng: np.random.Generator, rows: int) -> None:
    x = (rng.standard_normal((rows, 10)) * 3).astype("f4")
    for fn in (K.softmax, K.log_softmax):
        together = fn(x, -1)
        np.testing.assert_array_equal(together, np.concatenate([fn(x[i : i + 1], -1) for i in range(rows)]))


@pytest.mark.parametrize("shape", [(3000, 3), (300, 33), (200, 64), (100, 65), (17, 9), (2, 5, 40)])
@pytest.mark.parametrize("least", [False, True])
def test_extremes(path: str, rng: np.random.Generator, shape: tuple[int, ...], least: bool) -> None:
    x = rng.integers(-4, 5, shape).astype("f4")
    x[rng.random(shape) < 0.05] = np.nan
    values, index = K.first_extreme(x, len(shape) - 1, least)
    wanted = (np.argmin if least else np.argmax)(x, -1, keepdims=True)
    np.testing.assert_array_equal(index, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, -1))


@pytest.mark.parametrize("axes", [(1,), (0,), (-1,), (0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(50, 7, 40), (700, 3, 1), (3, 700, 2), (1, 2, 5000), (300, 300, 1)])
def test_masks_are_counted(path: str, rng: np.random.Generator, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    for chance in (0.0, 0.5, 1.0):
        mask = rng.random(shape) < chance
        for keep in (False, True):
            found = counted(mask, axes, keep)
            assert (found is None) == (path == "reference"), "is not counted"
            if found is not None:
                np.testing.assert_array_equal(found, mask.sum(axes, keepdims=keep))


@pytest.mark.parametrize("axes", [(0, 2), (0, 2, 3), (0, 3), (1, 3), (-1, 0)])
@pytest.mark.parametrize(
    ("kernel", "ufunc"),
    [("sum", np.add), ("maximum_over", np.maximum), ("minimum_over", np.minimum), ("product_over", np.multiply)],
)
def test_dimensions_apart(path: str, rng: np.random.Generator, kernel: str, ufunc: Any, axes: tuple[int, ...]) -> None:
    whole = (rng.random((12, 13, 9, 11)) * 0.02 + 0.99).astype("f4")
    for order in [(0, 1, 2, 3), (0, 3, 1, 2), (2, 0, 3, 1), (3, 2, 1, 0)]:
        x = whole.transpose(order)
        for keep in (False, True):
            found = joined(kernel, x, axes, keep)
            assert (found is None) == (path == "reference"), "is joined"
            if found is not None:
                np.testing.assert_allclose(found, ufunc.reduce(x.astype("f8"), axes, keepdims=keep), 1e-5)
                assert found.flags.c_contiguous, "lies as others do"
        found = joined(kernel, x, None)
        assert found is None or np.allclose(found, ufunc.reduce(x.astype("f8"), None), 1e-5), "over all"


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(900, 33), (4000, 7), (60, 30, 20), (70, 3, 500), (2, 90000), (5000, 1)])
def test_copies(path: str, rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> None:
    x = rng.integers(0, 200, shape).astype(dtype)
    room = np.zeros((*shape[:-1], 2 * shape[-1] + 3), dtype)
    move(x, room[..., 1 : shape[-1] + 1])
    np.testing.assert_array_equal(room[..., 1 : shape[-1] + 1], x)
    assert not room[..., 0].any() and not room[..., shape[-1] + 1 :].any(), "beside it"
    np.testing.assert_array_equal(move(room[..., 1 : shape[-1] + 1], np.empty_like(x)), x)
