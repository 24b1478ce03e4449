"""Elements by a mask or on one side of a diagonal: the native twins of np.where and np.tril, over layouts, widths and repeated masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.kernels import choose, triangle
from rushlight.kernels.native import loader

DTYPES = ["bool", "int8", "float16", "float32", "int64", "complex64", "complex128"]
SHAPES = [((5000,), (5000,)), ((70, 50), (70, 50)), ((3, 40, 50), (40, 50)), ((3, 40, 50), (3, 1, 50)), ((3, 40, 50), (1,)), ((2, 3), (2, 3))]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "mask_shape"), SHAPES, ids=str)
@pytest.mark.parametrize("there", [True, False], ids=["native", "numpy"])
def test_elements_are_those_of_where(
    dtype: str, shape: tuple[int, ...], mask_shape: tuple[int, ...], there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not there:
        monkeypatch.setattr(loader, "tables", dict)
    generator = np.random.default_rng(0)
    a, b = ((3 * generator.standard_normal(shape)).astype(dtype) for _ in range(2))
    mask = generator.random(mask_shape) < 0.5
    one, turned = a[(0,) * a.ndim], np.asfortranarray(a)
    for x, y in ((a, b), (np.asarray(one), b), (a, np.asarray(one)), (np.asarray(one), np.asarray(b.flat[0])), (turned, b), (a[:1], b)):  # fmt: skip
        np.testing.assert_array_equal(choose(mask, x, y), np.where(mask, x, y))
    for out in (b.copy(), np.asfortranarray(b)):
        assert choose(mask, a, out, out=out) is out
        np.testing.assert_array_equal(out, np.where(mask, a, b))


def test_not_a_number_keeps_its_bits() -> None:
    odd = np.full(4096, 0x7FA00001, np.uint32).view(
        np.float32
    )  # a signalling one, which arithmetic would make a quiet one
    mask = np.arange(4096) % 2 == 0
    found = choose(mask, odd, np.zeros((), np.float32))
    assert (found.view(np.uint32) == np.where(mask, np.uint32(0x7FA00001), np.uint32(0))).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(70, 50), (3, 40, 50), (1, 4000), (4000, 1), (2, 3), (0, 5000), (5000, 0)], ids=str)
@pytest.mark.parametrize("there", [True, False], ids=["native", "numpy"])
def test_triangles_are_those_of_tril_and_triu(
    dtype: str, shape: tuple[int, ...], there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not there:
        monkeypatch.setattr(loader, "tables", dict)
    a = (3 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    for x in (a, np.asfortranarray(a), a[..., ::-1]):
        for diagonal in (0, 1, -1, 7, -7, 49, -69, 10**12, -(10**12)):
            np.testing.assert_array_equal(triangle(x, diagonal, False), np.tril(x, diagonal))
            np.testing.assert_array_equal(triangle(x, diagonal, True), np.triu(x, diagonal))


@pytest.mark.parametrize("program", [
    lambda x, m: torch.where(m, x, -x), lambda x, m: torch.where(m, x, 0.5), lambda x, m: x.masked_fill(m, 2.0),
    lambda x, m: (x * 1).masked_fill_(m[0], 2.0), lambda x, m: torch.where(m[:, :1], x, x[:1]),
])  # fmt: skip
def test_gradients_of_large_tensors_are_those_of_their_parts(program: Any) -> None:
    torch.manual_seed(0)
    x, m = torch.randn(64, 64, requires_grad=True), torch.rand(64, 64) < 0.5
    (found,) = torch.autograd.grad((program(x, m) * torch.arange(64.0)).sum(), x)
    parts = x.detach().double().requires_grad_()
    (wanted,) = torch.autograd.grad((program(parts, m) * torch.arange(64.0)).sum(), parts)
    assert torch.allclose(found.double(), wanted)
