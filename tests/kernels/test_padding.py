"""A number around the elements of dimensions, or some of them cut away: what NumPy's slices give, of every width."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels
from rushlight.kernels.images import padding


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays take the kernel, too."""
    monkeypatch.setattr(padding, "LARGE", 0)


def sliced(x: Any, pads: Any, number: Any) -> Any:
    """Dimension by dimension."""
    for d, (before, after) in enumerate(pads):
        kept = x[(slice(None),) * d + (slice(max(-before, 0), x.shape[d] - max(-after, 0)),)]
        sides = [np.full([*x.shape[:d], max(n, 0), *x.shape[d + 1 :]], number, x.dtype) for n in (before, after)]
        x = np.concatenate([sides[0], kept, sides[1]], d)
    return x


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "f4", "i8", "c8", "c16", ml_dtypes.bfloat16])
def test_pad(path: str, rng: np.random.Generator, dtype: Any) -> None:
    for _ in range(120):
        shape = rng.integers(1, 12, rng.integers(1, 6))
        x = rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
        if rng.random() < 0.3:
            x = x.T
        pads = []
        for n in x.shape:
            before = int(rng.integers(-n, 5))
            pads.append((before, int(rng.integers(-(n + min(before, 0)), 5))) if rng.random() < 0.7 else (0, 0))
        number = np.array(1, dtype)
        found = kernels.pad(x, tuple(pads), number)
        assert found.dtype == x.dtype and found.flags.c_contiguous
        np.testing.assert_array_equal(found, sliced(x, pads, number))


def test_large_arrays_and_bits_of_nan(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((40, 3, 70, 50)).astype("f4")
    number = np.array(0x7FC12345, np.uint32).view("f4")
    for pads in (
        ((0, 0), (0, 0), (1, 2), (3, 0)),
        ((2, 1), (0, 0), (0, 0), (0, 0)),
        ((0, 0), (1, -1), (-3, 5), (0, 0)),
    ):
        found = kernels.pad(x, pads, number)
        np.testing.assert_array_equal(found.view("u4"), sliced(x.view("u4"), pads, number.view("u4")))


def test_empty_arrays(path: str) -> None:
    for shape, pads in (
        ((0, 3), ((1, 1), (0, 2))),
        ((2, 3), ((-1, -1), (0, 0))),
        ((), ()),
        ((2, 0, 3), ((0, 0), (0, 0), (1, 0))),
    ):
        x = np.ones(shape, np.float32)
        np.testing.assert_array_equal(kernels.pad(x, pads, np.zeros((), np.float32)), sliced(x, pads, 0))
