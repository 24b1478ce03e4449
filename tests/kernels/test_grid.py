"""Interpolation at points: the native kernel beside its reference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight.kernels.images import grid
from rushlight.kernels.native import loader
from rushlight.kernels.reference import gather as reference

SHAPES = [((2, 3, 7, 9), 20), ((2, 11, 5, 6), 700), ((1, 4, 3, 4, 5), 50), ((3, 9, 6, 7, 8), 600), ((1, 1, 1, 1), 1)]


def operands(dtype: str, shape: tuple[int, ...], points: int) -> tuple[Any, Any, Any]:
    """Images, positions of which some are outside, on borders and not finite, and a gradient."""
    generator, spatial = np.random.default_rng(0), np.array(shape[2:])
    x = generator.standard_normal(shape).astype(dtype)
    where = (generator.uniform(-0.5, 1.3, (len(spatial), shape[0], points)) * spatial[:, None, None]).astype(dtype)
    for place, value in zip((3, 5, 7, 9, 11), (np.nan, np.inf, -1, shape[2] - 1, 1e30), strict=True):
        if place < where.size:
            where.flat[place] = value
    return x, where, generator.standard_normal((*shape[:2], points)).astype(dtype)


HOWS = [("bilinear", "zeros", False), ("nearest", "zeros", False)] + [
    ("bicubic", padding, align) for padding in ("zeros", "border", "reflection") for align in (False, True)
]
CASES = [(*case, how) for case in SHAPES for how in HOWS if how[0] != "bicubic" or len(case[0]) == 4]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "points", "how"), CASES, ids=str)
def test_values_and_gradients_are_those_of_the_reference(
    dtype: str, shape: tuple[int, ...], points: int, how: tuple[str, str, bool]
) -> None:
    x, where, g = operands(dtype, shape, points)
    if how[1] == "reflection":
        where[where == where.dtype.type(1e30)] = 1000  # where rounding does not decide how often it is turned back
    near = {"rtol": 1e-3, "atol": 1e-3} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-10}
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(grid.grid_sample(x, where, how), reference.grid_sample(x, where, how), **near)
        for needs in ((True, True), (True, False), (False, True)):
            given = x if needs[1] else None
            found = grid.grid_sample_backward(g, given, where, shape, needs, how)
            wanted = reference.grid_sample_backward(g, given, where, shape, needs, how)
            for a, b, need in zip(found, wanted, needs, strict=True):
                if need:
                    np.testing.assert_allclose(a, b, **near)
                assert (a is None) == (b is None) == (not need)


@pytest.mark.parametrize("half", ["float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "how", [("bilinear", "zeros", False), ("bicubic", "reflection", True), ("nearest", "zeros", False)]
)
def test_images_of_16_bits_are_computed_in_float32_and_rounded_once(half: Any, how: tuple[str, str, bool]) -> None:
    x, where, g = operands("float32", (5, 3, 90, 91), 4000)
    x, g, where = x.astype(half), g.astype(half), np.nan_to_num(where, posinf=0)
    wide = x.astype(np.float32), g.astype(np.float32)
    found, wanted = grid.grid_sample(x, where, how), grid.grid_sample(wide[0], where, how).astype(half)
    assert found.dtype == half and np.array_equal(found, wanted)
    of_x, of_where = grid.grid_sample_backward(g, x, where, x.shape, (True, True), how)
    in_float32 = grid.grid_sample_backward(wide[1], wide[0], where, x.shape, (True, True), how)
    assert of_x.dtype == half and np.array_equal(of_x, in_float32[0].astype(half))
    assert of_where.dtype == np.float32 and np.array_equal(of_where, in_float32[1])


@pytest.mark.skipif(not loader.tables(), reason="NumPy's form makes arrays for each corner")
def test_images_of_16_bits_are_not_copied_whole() -> None:
    x = torch.rand(16, 16, 64, 64).bfloat16().requires_grad_()
    points = (torch.rand(16, 64, 64, 2) * 2 - 1).bfloat16()
    torch.memory.reset_peak()
    before = torch.memory.current()
    torch.nn.functional.grid_sample(x, points, align_corners=False).backward(x.detach())
    assert torch.memory.peak() - before < 4 * x.nbytes


@pytest.mark.skipif(not loader.tables(), reason="NumPy's form makes arrays for each corner")
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_a_step_takes_little_more_than_its_operands(mode: str, padding: str, align: bool) -> None:
    torch.manual_seed(0)
    x = torch.rand(2, 16, 64, 64, requires_grad=True)
    grid = (torch.rand(2, 64, 64, 2) * 2.2 - 1.1).requires_grad_()
    sample = torch.nn.functional.grid_sample
    before = torch.memory.current()
    torch.memory.reset_peak()
    found = sample(x, grid, mode, padding_mode=padding, align_corners=align)
    found.sum().backward()
    assert torch.memory.peak() - before < 5 * x.nbytes
    parts = x.detach().double().requires_grad_(), grid.detach().double().requires_grad_()
    sample(*parts, mode, padding_mode=padding, align_corners=align).sum().backward()
    assert torch.allclose(x.grad.double(), parts[0].grad, atol=1e-3)
    near = (
        grid.grad.double() - parts[1].grad
    ).abs() < 0.05  # but for points at a border between elements, where the slope jumps
    assert near.double().mean() > 0.999
