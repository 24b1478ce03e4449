"""Transforms of some lines at a time: the same bits as of all together, without copies of everything in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory
from rushlight.kernels.reference import fourier


def transforms(x: Any, c: Any, dims: tuple[int, ...]) -> list[Any]:
    last = dims[-1]
    found = [fourier.fourier(c, dims, True, 0.5), fourier.fourier(c, dims, False, 1.0)]
    return [
        *found,
        fourier.fourier_half(x, dims, 1.0),
        fourier.fourier_whole(c, dims, 2.0, 2 * c.shape[last] - 2),
        fourier.fourier_whole(c, dims, 1.0, 2 * c.shape[last] - 1),
    ]


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("dims", [(0,), (2,), (1,), (0, 1), (2, 0), (0, 1, 2), (-1,), (-3, -1)])
def test_blocks_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, dims: tuple[int, ...], double: bool) -> None:
    dims = tuple(d % 3 for d in dims)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 6, 10, 9)).astype(np.float64 if double else np.float32)
    kept = x.copy(), x + np.asarray(1j, np.complex128 if double else np.complex64) * y
    c = kept[1].copy()
    whole = transforms(x, c, dims)
    monkeypatch.setattr(fourier, "BLOCK", 40)
    for one, other in zip(transforms(x, c, dims), whole, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(c, kept[1])


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
@pytest.mark.parametrize("name", ["fft", "fft2", "rfft", "rfft2"])
@pytest.mark.parametrize("size", [256, 257])  # by native code, and by NumPy
def test_working_memory_is_that_of_a_block(name: str, size: int) -> None:
    x = torch.randn(8, size, size)
    x = x if name[0] == "r" else torch.complex(x, x)
    before = memory.current()
    memory.reset_peak()
    y = getattr(torch.fft, name)(x)
    assert memory.peak() - before < y.nbytes + 60 * fourier.BLOCK
