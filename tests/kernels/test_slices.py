"""Elements put and slices added at indices of any dimension: the native kernels beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import kernels
from rushlight.kernels.native import loader

SHAPES = [((50, 60), 1), ((50, 60), 0), ((4, 300, 5), 1), ((3000,), 0), ((2, 3, 40), 2)]


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int32", "int64", "complex64"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
def test_elements_are_put_and_read_along_a_dimension(dtype: str, shape: tuple[int, ...], dim: int) -> None:
    generator = np.random.default_rng(0)
    x, values = ((5 * generator.standard_normal(shape)).astype(dtype) for _ in range(2))
    index = generator.integers(0, shape[dim], shape)
    wanted = x.copy()
    np.put_along_axis(wanted, index, values, dim)
    found = x.copy()
    kernels.put_along(found, index, dim, values)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(kernels.gather_along(x, index, dim), np.take_along_axis(x, index, dim))


@pytest.mark.skipif(not loader.tables(), reason="NumPy counts from the end")
def test_indices_outside_are_refused() -> None:
    with pytest.raises(IndexError, match="index 100 is out of bounds for dimension of size 100"):
        kernels.put_along(np.zeros(100, np.float32), np.full(100, 100), 0, np.ones(100, np.float32))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
def test_slices_are_added_in_the_order_of_their_indices(dtype: str, shape: tuple[int, ...], dim: int) -> None:
    generator = np.random.default_rng(0)
    out = (3 * generator.standard_normal(shape)).astype(dtype)
    index = generator.integers(0, shape[dim], 37)
    source = (3 * generator.standard_normal((*shape[:dim], 37, *shape[dim + 1 :]))).astype(dtype)
    wanted = np.moveaxis(out.astype(np.float64), dim, 0).copy()
    np.add.at(wanted, index, np.moveaxis(source.astype(np.float64), dim, 0))
    found: Any = torch.from_numpy(out.copy()).index_add(dim, torch.from_numpy(index), torch.from_numpy(source))
    near = {"float16": 0.05, "float32": 1e-4}.get(dtype, 1e-12)
    np.testing.assert_allclose(found.double().numpy(), np.moveaxis(wanted, 0, dim), atol=near, rtol=near)


@pytest.mark.parametrize("value", [2.0, torch.tensor(3.0)])
def test_a_number_goes_where_a_mask_is_true(value: Any) -> None:
    torch.manual_seed(0)
    x, mask = torch.randn(80, 90), torch.rand(80, 90) < 0.5
    wanted = torch.where(mask, torch.as_tensor(value), x)
    for target in (x.clone(), x.t().clone().t()):
        version = target._version
        target[mask] = value
        assert torch.equal(target, wanted) and target._version == version + 1
    leaf = x.clone().requires_grad_()
    changed = leaf * 1
    changed[mask] = value
    changed.sum().backward()
    assert torch.equal(leaf.grad, (~mask).float())


def test_products_of_householder_reflections() -> None:
    torch.manual_seed(0)
    for dtype in (torch.float64, torch.complex128):
        A, tau = torch.randn(2, 6, 4, dtype=dtype), torch.randn(2, 3, dtype=dtype)
        tau[0, 1] = 0  # which leaves all as it is
        Q = torch.eye(6, dtype=dtype).repeat(2, 1, 1)
        for i in range(3):
            v = A[..., i].clone()
            v[:, :i] = 0
            v[:, i] = 1
            Q = Q - tau[:, i, None, None] * (Q @ v[..., None]) @ v[..., None].mH
        assert torch.allclose(torch.linalg.householder_product(A, tau), Q[..., :4])
