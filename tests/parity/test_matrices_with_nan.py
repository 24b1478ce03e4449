"""Matrices with a NaN, and triangles that are not looked at: what depends on them is NaN or refused, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.parity.test_settings_of_calls import agree

pytest.importorskip("torch")
pytestmark = pytest.mark.parity
PLACES = [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)]


def matrices(t: Any, place: tuple[int, ...], dtype: str) -> Any:
    a = np.broadcast_to(np.eye(3) * 2, (2, 3, 3)).copy()
    a[place] = np.nan
    return t.tensor(a).to(getattr(t, dtype))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_inverses_and_solutions_are_nan(place: tuple[int, ...], dtype: str) -> None:
    def call(t: Any) -> list[Any]:
        a = matrices(t, place, dtype)
        found = [t.linalg.inv(a), t.linalg.solve(a, t.ones(3, 2, dtype=a.dtype)), t.linalg.matrix_power(a, 0)]
        return [t.isnan(x) for x in found] + [found[2]]

    agree(call)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["svdvals", "svd", "pinv", "matrix_rank", "cond", "cholesky"])
def test_what_cannot_be_decomposed_is_refused(place: tuple[int, ...], name: str) -> None:
    agree(lambda t: [t.isnan(t.as_tensor(getattr(t.linalg, name)(matrices(t, place, "float64"))))])


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("bad", [(0, 0), (1, 1), (2, 2), (0, 2), (2, 0)])
@pytest.mark.parametrize("value", [-5.0, 9.0, float("nan")])
def test_cholesky_looks_at_one_triangle(upper: bool, bad: tuple[int, int], value: float) -> None:
    def call(t: Any) -> list[Any]:
        a = t.eye(3, dtype=t.float64) * 2
        a[bad] = value
        return [t.linalg.cholesky_ex(a, upper=upper)[1], t.linalg.cholesky_ex(a, upper=upper, check_errors=True)[0]]

    agree(call)
    agree(lambda t: call(t)[:1])
    agree(lambda t: [t.linalg.cholesky_ex(matrices(t, (0, 1, 1), "float64"), upper=upper)[1]])
