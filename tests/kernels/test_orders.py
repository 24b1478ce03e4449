"""Elementwise functions of arrays that lie in different orders, and numbers of 16 bits that go through registers."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

import rushlight as torch
from rushlight.kernels.dispatch import rounded, widened
from rushlight.kernels.pointwise.orders import by_rows

rng = np.random.default_rng(0)
DTYPES = [np.float32, np.float64, np.int64, np.int16, np.float16, bfloat16]


def numbers(shape: tuple[int, ...], dtype: object) -> np.ndarray:
    return (rng.integers(-50, 50, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(300, 301), (3, 170, 171), (1, 400, 333), (70000, 3), (2, 500, 600), (2, 3, 400, 500), (2, 200000)]
)
def test_what_lies_in_another_order_is_computed_by_rows(dtype, shape) -> None:
    x, turned = numbers(shape, dtype), numbers(shape[::-1], dtype).transpose()
    found = by_rows(np.multiply, (x, turned))
    assert found is not None and found.flags.c_contiguous
    assert np.array_equal(found, np.multiply(x, np.ascontiguousarray(turned)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_public_functions_go_by_it(dtype) -> None:
    x, y = numbers((400, 333), dtype), numbers((333, 400), dtype)
    a, b, laid = torch.tensor(x), torch.tensor(y).t(), np.ascontiguousarray(y.T)
    for name in ("add", "subtract", "greater", "less_equal", "not_equal", "maximum"):
        assert torch.equal(getattr(torch, name)(a, b), torch.tensor(getattr(np, name)(x, laid))), name
    assert torch.equal(torch.where(a > 0, a, b), torch.tensor(np.where(x > 0, x, laid)))


def test_what_numpy_does_as_well_is_left_to_it() -> None:
    x = numbers((400, 333), np.float32)
    repeated = np.broadcast_to(x[:, :1], x.shape), np.broadcast_to(np.float32(3), x.shape)
    for y in (x, x[:1], x[:, :1], x[0], 3.0, *repeated, x[:, ::-1][:, ::-1]):
        assert by_rows(np.add, (x, y)) is None
    assert by_rows(np.add, (x.T, x.T)) is None  # which lie alike
    assert by_rows(np.add, (x[:9, :9], x[:9, :9].T)) is None  # small
    assert by_rows(np.add, (x, numbers((333, 300), np.float32).T)) is None  # for which NumPy has an error


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
@pytest.mark.parametrize("n", [1, 15, 16, 31, 32, 33, 5000, 70001])
def test_results_of_16_bits_are_those_of_float32_rounded_once(dtype, n) -> None:
    bits = rng.integers(0, 1 << 16, (2, n)).astype(np.uint16)
    x, y = bits[0].view(dtype), bits[1].view(dtype)  # all there are: below the normal ones, infinite, none
    with np.errstate(all="ignore"):
        wide, other = widened(x), widened(y)
        for fn in (np.add, np.subtract, np.multiply, np.true_divide):
            want, got = np.asarray(fn(wide, other).astype(dtype)), fn(x, y)
            nan = np.isnan(want)
            assert np.array_equal(np.isnan(got), nan)
            assert np.array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan]), fn
            got, want = fn(x, y[:1]), fn(wide, other[:1]).astype(dtype)
            assert np.array_equal(got[~np.isnan(want)].view(np.uint16), want[~np.isnan(want)].view(np.uint16)), fn
        for fn in (np.negative, np.absolute, np.square):
            got, want = fn(x), fn(wide).astype(dtype)
            assert np.array_equal(got[~np.isnan(want)].view(np.uint16), want[~np.isnan(want)].view(np.uint16)), fn


def test_subnormal_numbers_of_bfloat16_are_not_taken_for_zero() -> None:
    x = (np.arange(1, 4000, dtype=np.uint32) * 9973).view(np.float32)  # below the normal ones, and a little above
    assert np.array_equal(rounded(x, np.dtype(bfloat16)).view(np.uint16), x.astype(bfloat16).view(np.uint16))
    places = (np.arange(4096) % 60).astype(np.uint16)
    halves = places.view(bfloat16)
    assert np.array_equal((halves + halves).view(np.uint16), 2 * places)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("shape", [(64, 64), (65, 130), (200, 333), (16, 5000)])
def test_matrices_of_any_width_are_turned(dtype, shape) -> None:
    x = rng.integers(0, 250, shape).astype(dtype)
    wide = np.tile(x, (8, 8))
    turned = torch.tensor(wide.view(np.int8 if dtype is np.uint8 else dtype)).t().contiguous().numpy()
    assert np.array_equal(turned.view(dtype), wide.T)
