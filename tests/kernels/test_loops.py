"""NumPy's ufuncs over bfloat16 numbers: what float32 gives, rounded once, whatever the layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from rushlight.kernels.native import loader, ufuncs

SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, 1, -1], np.float32)


def numbers(seed: int, shape: tuple[int, ...]) -> Any:
    found = (np.random.default_rng(seed).standard_normal(shape) * 3).astype(np.float32)
    found.flat[: len(SPECIAL)] = np.roll(SPECIAL, seed)
    return found.astype(bfloat16)


def bits(x: Any) -> Any:
    """Numbers as they lie, every NaN as one."""
    if x.dtype == np.bool_:
        return x
    return np.where(np.isnan(x.astype(np.float32)), np.uint16(0x7FC0), np.ascontiguousarray(x).view(np.uint16))


def wanted(name: str, *arrays: Any) -> Any:
    found = getattr(np, name)(*[a.astype(np.float32) for a in arrays])
    return found if found.dtype == np.bool_ else found.astype(bfloat16)


@pytest.mark.parametrize("name", [*ufuncs.PAIRS, *ufuncs.TRUTHS])
def test_pairs(name: str) -> None:
    loader.tables()
    x, y = numbers(0, (70, 700)), numbers(1, (70, 700))
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (x, y[3, 7]), (x[2, 9], y), (x, y[0]), (x, y[:, :1]), (x[:, ::2], y[:, ::2]), (x.T, y.T), (x[:1, :5], y[:1, :5])):  # fmt: skip
            np.testing.assert_array_equal(bits(getattr(np, name)(a, b)), bits(wanted(name, a, b)))


@pytest.mark.parametrize("name", ufuncs.SINGLES)
def test_singles(name: str) -> None:
    loader.tables()
    x = numbers(2, (70, 700))
    with np.errstate(all="ignore"):
        for a in (x, x[:, ::3], x.T, x[0, :3], x[0, 5]):
            np.testing.assert_array_equal(bits(np.asarray(getattr(np, name)(a))), bits(np.asarray(wanted(name, a))))


def test_what_depends_on_what_was_written_is_done_in_order() -> None:
    loader.tables()
    ones = np.ones(200, bfloat16)
    np.testing.assert_array_equal(np.add.accumulate(ones).astype(int), np.arange(1, 201))
    assert np.add.reduce(ones) == 200
    x = ones.copy()
    np.add(x[:-1], x[1:], out=x[1:])  # NumPy makes a copy where the memory of both overlaps
    assert x[-1] == 2
    x += x
    assert x[-1] == 4 and x[0] == 2


@pytest.mark.skipif(not loader.tables(), reason="the loops of ml_dtypes warn")
def test_not_a_number_is_no_reason_to_warn() -> None:
    loader.tables()
    x = np.full(5000, np.nan, bfloat16)
    for name in (*ufuncs.TRUTHS, "maximum", "minimum", "add", "multiply"):
        for other in (np.ones(5000, bfloat16), bfloat16(1)):
            getattr(np, name)(x, other)  # warnings are errors here


def test_a_library_without_loops_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufuncs, "TAKEN", set())
    assert not ufuncs.install(object()) and not ufuncs.TAKEN
