"""Distances of rows: the native kernels beside their reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rushlight.kernels.pointwise import distances as kernels
from rushlight.kernels.reference import distances as reference

NORMS = (1.0, 2.0, math.inf, 0.0, 3.0)
SIZES = [((), 3, 5, 2), ((), 300, 70, 20), ((2, 3), 9, 140, 5), ((), 2, 1100, 150), ((2,), 270, 1, 1), ((), 4, 3, 0)]
NEAR = {"float32": {"rtol": 2e-4, "atol": 2e-4}, "float64": {"rtol": 1e-11, "atol": 1e-11}}


def drawn(seed: int, dtype: str, *shape: int) -> Any:
    """Numbers of which many are alike."""
    return np.round(np.random.default_rng(seed).standard_normal(shape) * 2).astype(dtype) / 2


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize(("batch", "rows", "others", "width"), SIZES, ids=str)
def test_all_pairs_are_those_of_the_reference(
    dtype: str, p: float, batch: tuple[int, ...], rows: int, others: int, width: int
) -> None:
    x1, x2 = drawn(0, dtype, *batch, rows, width), drawn(1, dtype, *batch, others, width)
    wanted = reference.distances(x1, x2, p)
    np.testing.assert_allclose(kernels.distances(x1, x2, p), wanted, **NEAR[dtype])
    g = drawn(2, dtype, *wanted.shape)
    found = kernels.distances_backward(g, x1, x2, wanted, p)
    for a, b in zip(found, reference.distances_backward(g, x1, x2, wanted, p), strict=True):
        np.testing.assert_allclose(a, b, **NEAR[dtype])


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize(("rows", "width"), [(0, 3), (1, 3), (2, 1), (70, 7), (300, 40), (1100, 3)])
def test_pairs_of_one_matrix_are_those_of_the_reference(dtype: str, p: float, rows: int, width: int) -> None:
    x = drawn(0, dtype, rows, width)
    wanted = reference.own_distances(x, p)
    np.testing.assert_allclose(kernels.own_distances(x, p), wanted, **NEAR[dtype])
    g = drawn(2, dtype, *wanted.shape)
    found = kernels.own_distances_backward(g, x, wanted, p)
    np.testing.assert_allclose(found, reference.own_distances_backward(g, x, wanted, p), **NEAR[dtype])


@pytest.mark.parametrize("p", NORMS)
def test_what_is_not_finite_stays_in_its_rows(p: float) -> None:
    x = drawn(0, "float32", 90, 6)
    x[5, 2], x[70, 1], x[71, 0] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        wanted, own = reference.distances(x, x, p), reference.own_distances(x, p)
        np.testing.assert_allclose(kernels.distances(x, x, p), wanted, rtol=1e-5)
        np.testing.assert_allclose(kernels.own_distances(x, p), own, rtol=1e-5)
        g, of_own = drawn(3, "float32", *wanted.shape), drawn(4, "float32", *own.shape)
        found = (*kernels.distances_backward(g, x, x, wanted, p), kernels.own_distances_backward(of_own, x, own, p))
        other = (*reference.distances_backward(g, x, x, wanted, p), reference.own_distances_backward(of_own, x, own, p))
        for a, b in zip(found, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
