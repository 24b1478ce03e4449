"""Fourier transforms: native against float64 by NumPy, lengths of small and of large factors, NaN, threads, layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels.reference import fourier as reference

LENGTHS = [*range(2, 34), 37, 45, 64, 81, 96, 100, 121, 128, 343, 480, 961, 1024, 1155, 4095, 4096, 4097]


@pytest.fixture
def threads() -> Iterator[Any]:
    before = K.get_num_threads()
    yield K.set_num_threads
    K.set_num_threads(before)


def close(found: Any, want: Any, dtype: Any) -> None:
    """Whether the root mean square of the differences is a few rounding errors."""
    assert found.shape == want.shape
    assert found.dtype == (dtype if found.dtype.kind == "f" else reference.complex_of(np.dtype(dtype)))
    apart = np.sqrt((abs(found - want) ** 2).mean() / (abs(want) ** 2).mean())
    assert apart < 8 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_lines(path: str, rng: np.random.Generator, n: int, dtype: Any) -> None:
    for shape, dim in (((max(5, 600 // n), n), 1), ((2, n, max(3, 300 // n)), 1), ((n, max(9, 600 // n)), 0)):
        x, y = rng.standard_normal((2, *shape)).astype(dtype)
        c = (x + 1j * y).astype(reference.complex_of(x.dtype))
        half = np.moveaxis(np.moveaxis(c, dim, 0)[: n // 2 + 1], 0, dim)
        wide, dims = c.astype(complex), (dim,)
        close(K.fourier(c, dims, True, 0.5), np.fft.fft(wide, axis=dim) * 0.5, dtype)
        close(K.fourier(c, dims, False, 1.0), np.fft.ifft(wide, axis=dim, norm="forward"), dtype)
        close(K.fourier_half(x, dims, 2.0), 2 * np.fft.rfft(x.astype(float), axis=dim), dtype)
        close(K.fourier_whole(half, dims, 1.0, n), np.fft.irfft(half.astype(complex), n, dim, norm="forward"), dtype)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (1, 2), (2, 0), (0, 1, 2)])
def test_several_dimensions_leave_the_input_alone(path: str, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    x, y = rng.standard_normal((2, 12, 10, 9))
    c = x + 1j * y
    kept = x.copy(), c.copy()
    close(K.fourier(c, dims, True, 3.0), 3 * np.fft.fftn(c, axes=dims), np.float64)
    close(K.fourier_half(x, dims, 3.0), 3 * np.fft.rfftn(x, axes=dims), np.float64)
    n = 2 * c.shape[dims[-1]] - 2
    want = np.fft.irfftn(c, [*(c.shape[d] for d in dims[:-1]), n], dims, norm="forward")
    close(K.fourier_whole(c, dims, 1.0, n), want, np.float64)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(c, kept[1])


def test_what_is_not_finite_stays_in_its_line(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((40, 24)).astype(np.float32)
    clean = K.fourier_half(x, (1,), 1.0)
    x[3, 5], x[17, 0] = np.nan, np.inf
    found = K.fourier_half(x, (1,), 1.0)
    others = [i for i in range(40) if i not in (3, 17)]
    np.testing.assert_array_equal(found[others], clean[others])
    assert np.isnan(found[3]).all()
    assert not np.isfinite(found[17]).any()
    assert not np.isfinite(K.fourier_whole(found, (1,), 1.0, 24)[[3, 17]]).any()


def test_imaginary_parts_of_real_sums_do_not_count(path: str, rng: np.random.Generator) -> None:
    c = rng.standard_normal((50, 9)) + 1j * rng.standard_normal((50, 9))
    for n in (16, 17):
        other = c.copy()
        other[:, 0].imag = np.nan
        if n == 16:
            other[:, 8].imag = np.nan
        np.testing.assert_array_equal(K.fourier_whole(other, (1,), 1.0, n), K.fourier_whole(c, (1,), 1.0, n))


@pytest.mark.parametrize("n", [16, 60, 1000])
def test_the_same_bits_on_any_threads_and_wherever_a_line_lies(threads: Any, rng: np.random.Generator, n: int) -> None:
    c = (rng.standard_normal((301, n)) + 1j * rng.standard_normal((301, n))).astype(np.complex64)
    threads(1)
    want = K.fourier(c, (1,), True, 1.0)
    for count in (2, 3, 7):
        threads(count)
        np.testing.assert_array_equal(K.fourier(c, (1,), True, 1.0), want)
    across = np.ascontiguousarray(c.T)
    np.testing.assert_array_equal(K.fourier(across, (0,), True, 1.0).T, want)
    np.testing.assert_array_equal(K.fourier(c[5:64], (1,), True, 1.0), want[5:64])
    np.testing.assert_array_equal(K.fourier(across.T, (1,), True, 1.0), want)
