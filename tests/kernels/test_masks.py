"""Elements where a mask is set, their places, and slices at indices: what NumPy gives, of every width, natively and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import kernels as K

DTYPES = ["bool", "int16", "float16", "float32", "int64", "complex64", "complex128"]
SHAPES = [(20_000,), (16_384,), (170, 190), (3, 5, 2000), (30_000, 1), (9000, 3), (2, 3), (0, 5), (20, 30, 40)]
SHARES = [0.0, 0.01, 0.5, 1.0]


def _array(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return (3 * rng.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elements_of_a_mask_are_those_of_numpy(
    dtype: str, shape: tuple[int, ...], path: str, rng: np.random.Generator
) -> None:
    a = _array(shape, dtype, rng)
    for share in SHARES:
        mask = rng.random(shape) < share
        for x, m in ((a, mask), (np.asfortranarray(a), mask), (a, np.asfortranarray(mask))):
            out = -x if dtype != "bool" else ~x
            wanted = out.copy()
            wanted[m] = x[m][::-1]
            K.mask_write(out, m, x[m][::-1])
            np.testing.assert_array_equal(out, wanted)
            np.testing.assert_array_equal(K.mask_take(x, m), x[m])
            wanted = np.zeros(shape, dtype)
            wanted[m] = x[m]
            np.testing.assert_array_equal(K.mask_put(x[m], m), wanted)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places_of_a_mask_are_those_of_numpy(shape: tuple[int, ...], path: str, rng: np.random.Generator) -> None:
    for share in SHARES:
        mask = rng.random(shape) < share
        for m in (mask, np.asfortranarray(mask), mask[::-1]):
            found = K.mask_places(m)
            np.testing.assert_array_equal(found, np.argwhere(m))
            assert found.dtype == np.int64
            assert found.T.flags.c_contiguous


def test_values_that_are_too_few_or_too_many_are_refused(path: str) -> None:
    mask = np.arange(20_000) % 2 == 0
    for count in (9_999, 10_001):
        with pytest.raises(ValueError, match="10000"):
            K.mask_put(np.ones(count), mask)
        with pytest.raises(ValueError, match="10000"):
            K.mask_write(np.ones(20_000), mask, np.ones(count))
    assert K.mask_put(np.ones(1), mask).sum() == 10_000


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim", "index"), [
    ((300, 200), 0, (500,)), ((300, 200), 1, (500,)), ((40, 30, 50), 1, (7, 9)), ((40_000,), 0, (70_000,)), ((9, 7), 0, (3, 4)),
    ((5, 0, 3), 2, (4,)), ((300, 200), 0, (0,)), ((40, 30, 50), 2, ()),
])  # fmt: skip
def test_slices_are_those_of_take(
    dtype: str, shape: Any, dim: int, index: Any, path: str, rng: np.random.Generator
) -> None:
    a = _array(shape, dtype, rng)
    for low, kind in ((0, np.int64), (-shape[dim], np.int64), (0, np.int32)):
        where = rng.integers(low, shape[dim], index).astype(kind)
        for x in (a, np.asfortranarray(a), a[::-1]):
            found = K.take_slices(x, where, dim)
            np.testing.assert_array_equal(found, x.take(where, dim))
            assert found.dtype == a.dtype


@pytest.mark.parametrize("outside", [300, -301])
def test_slices_outside_are_refused(outside: int, path: str) -> None:
    with pytest.raises(IndexError):
        K.take_slices(np.ones((300, 200)), np.array([0, outside] * 200), 0)


@pytest.mark.parametrize("program", [
    lambda x, m: x[m], lambda x, m: x.masked_select(m), lambda x, m: x.t()[m], lambda x, m: x.index_select(1, m.int().sum(0)),
    lambda x, m: x[m[0]], lambda x, m: torch.nn.functional.embedding(m.long(), x), lambda x, m: x.repeat_interleave(3, 1),
    lambda x, m: x.repeat(2, 3), lambda x, m: x[..., None].repeat(1, 1, 5), lambda x, m: x.repeat_interleave(2, 0),
])  # fmt: skip
def test_gradients_of_large_tensors_are_those_in_double(program: Any, path: str) -> None:
    torch.manual_seed(0)
    x, m = torch.randn(150, 150), torch.rand(150, 150) < 0.5
    slopes = []
    for dtype in (torch.float32, torch.float64):
        leaf = x.to(dtype).requires_grad_()
        y = program(leaf, m)
        (slope,) = torch.autograd.grad((y * torch.linspace(0, 1, y.numel(), dtype=dtype).reshape(y.shape)).sum(), leaf)
        slopes.append(slope.double())
    assert torch.allclose(*slopes, rtol=1e-4, atol=1e-4)


def test_zeros_in_memory_that_was_in_use_are_zeros() -> None:
    for size in (1 << 18, (1 << 20) + 3, 3_000_001):
        used = torch.full((size,), 7.0)
        del used
        assert not torch.zeros(size).any()
