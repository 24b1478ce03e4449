"""Convolutions: native kernels against the reference, adjoints of each other, alike on any number of threads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels, memory
from rushlight.kernels.convolution import working_bytes
from rushlight.kernels.native import loader
from rushlight.kernels.reference import windows as reference

# x, w, stride, padding, dilation, groups
CONVOLUTIONS: dict[str, tuple[Any, ...]] = {
    "3x3": ((3, 5, 9, 11), (7, 5, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "wide rows": ((1, 4, 20, 70), (9, 4, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "strided": ((2, 3, 17, 18), (10, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    "pointwise": ((2, 20, 6, 7), (33, 20, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "pointwise strided": ((2, 20, 7, 7), (33, 20, 1, 1), (2, 2), (0, 0), (1, 1), 1),
    "dilated": ((2, 4, 16, 15), (6, 4, 3, 2), (1, 2), (2, 0), (2, 3), 1),
    "groups": ((2, 12, 8, 8), (18, 4, 3, 3), (1, 1), (1, 1), (1, 1), 3),
    "depthwise": ((2, 6, 9, 20), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), 6),
    "depthwise strided, two each": ((2, 5, 9, 21), (10, 1, 5, 3), (2, 3), (2, 1), (1, 2), 5),
    "patches": ((2, 3, 32, 32), (50, 3, 16, 16), (16, 16), (0, 0), (1, 1), 1),
    "small images": ((9, 40, 2, 2), (70, 40, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "deep": ((2, 160, 4, 4), (24, 160, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "many outputs": ((2, 3, 5, 5), (1000, 3, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "one dimension": ((2, 4, 300), (5, 4, 7), (3,), (2,), (2,), 1),
    "three dimensions": ((2, 3, 5, 6, 7), (4, 3, 2, 3, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), 1),
    "padding only": ((1, 2, 1, 1), (3, 2, 3, 3), (1, 1), (4, 4), (1, 1), 1),
    "one output": ((700, 2, 3, 3), (3, 2, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "by points": ((3, 20, 17, 18), (21, 20, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "by points, deep": ((2, 300, 16, 16), (70, 300, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "by points, groups": ((2, 48, 14, 15), (36, 24, 3, 3), (1, 1), (2, 0), (1, 1), 2),
    "by points, outputs in blocks": ((4, 64, 14, 14), (250, 64, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "by points, much padding": ((1, 16, 13, 40), (16, 16, 3, 3), (1, 1), (5, 4), (1, 1), 1),
    "many places": ((3, 5, 4001), (30, 5, 3), (1,), (2,), (2,), 1),
    "many places, groups": ((3, 6, 90, 91), (60, 3, 1, 1), (1, 1), (0, 0), (1, 1), 2),
    "many places, in fewer parts": ((32, 8, 14, 14), (12, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "many places, few outputs": ((2, 70, 100, 101), (3, 70, 2, 2), (1, 1), (0, 0), (1, 1), 1),
    "filled rows": ((2, 5, 9, 32), (11, 5, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "filled rows, long": ((2, 8, 20000), (12, 8, 5), (1,), (2,), (1,), 1),
    "filled rows, groups": ((2, 12, 7, 190), (18, 6, 3, 4), (2, 3), (1, 0), (1, 2), 2),
    "filled rows, three dimensions": ((2, 20, 9, 15, 31), (9, 20, 3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 1),
    "rows that overlap": ((1, 6, 11, 41), (5, 6, 3, 3), (1, 1), (1, 0), (1, 1), 1),
    "strided, even": ((2, 16, 24, 25), (20, 16, 4, 4), (2, 2), (1, 1), (1, 1), 1),
    "strided by two and three": ((2, 12, 31, 33), (10, 12, 5, 3), (3, 2), (2, 1), (1, 1), 1),
    "strided, behind the last place": ((2, 12, 301), (10, 12, 3), (2,), (1,), (1,), 1),
    "strided, by points": ((2, 32, 40, 40), (24, 32, 5, 5), (2, 2), (2, 2), (1, 1), 1),
    "no images": ((0, 2, 3, 3), (3, 2, 3, 3), (1, 1), (0, 0), (1, 1), 1),
}


def operands(name: str, dtype: Any, rng: np.random.Generator) -> tuple[Any, Any, Any, tuple[Any, ...]]:
    """x, w and a gradient g of their convolution; the remaining arguments."""
    shape, kernel, *rest = CONVOLUTIONS[name]
    x, w = rng.standard_normal(shape).astype(dtype), rng.standard_normal(kernel).astype(dtype)
    out = reference.out_sizes(shape[2:], (kernel[2:], *rest[:3]))
    return x, w, rng.standard_normal((shape[0], kernel[0], *out)).astype(dtype), tuple(rest)


def close(a: Any, b: Any) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype and a.flags.c_contiguous
    size = float(np.abs(b).max()) if b.size else 1.0
    np.testing.assert_allclose(a, b, rtol=0, atol=size * (1e-5 if a.dtype == np.float32 else 1e-13))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_agrees_with_the_reference(name: str, dtype: Any, path: str, rng: np.random.Generator) -> None:
    x, w, g, rest = operands(name, dtype, rng)
    close(kernels.conv(x, w, *rest), reference.conv(x, w, *rest))
    close(kernels.conv_input(g, w, x.shape, *rest), reference.conv_input(g, w, x.shape, *rest))
    close(kernels.conv_weight(g, x, w.shape, *rest), reference.conv_weight(g, x, w.shape, *rest))


POINTS = [name for name in CONVOLUTIONS if name.startswith("by points")]


@pytest.mark.parametrize("name", POINTS)
def test_points_round_little(name: str, rng: np.random.Generator) -> None:
    """Twice to five times a direct sum's error (kernels/native/winograd.cpp)."""
    x, w, g, rest = operands(name, np.float32, rng)
    wide = [a.astype(np.float64) for a in (x, w, g)]
    results = [kernels.conv(x, w, *rest), kernels.conv_weight(g, x, w.shape, *rest)]
    exact = [reference.conv(*wide[:2], *rest), reference.conv_weight(wide[2], wide[0], w.shape, *rest)]
    for result, right in zip(results, exact, strict=True):
        assert np.sqrt(np.mean((result - right) ** 2) / np.mean(right**2)) < 2e-6


@pytest.mark.skipif(not loader.tables(), reason="the native kernels, which alone go by points, cannot be built here")
@pytest.mark.parametrize("name", POINTS)
def test_what_has_tiles_enough_goes_by_points(name: str, rng: np.random.Generator) -> None:
    x, w, _, rest = operands(name, np.float32, rng)
    directly = kernels.conv(x[:1, :, :3], w, rest[0], (0, rest[1][1]), *rest[2:])[0, :, 0]
    by_points = kernels.conv(x, w, rest[0], (0, rest[1][1]), *rest[2:])[0, :, 0]
    assert not np.array_equal(directly, by_points)


@pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")
@pytest.mark.parametrize(
    "name",
    [*POINTS, *(name for name in CONVOLUTIONS if name.startswith(("filled", "strided"))), "deep", "3x3", "pointwise"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_working_memory_is_said(name: str, dtype: Any, rng: np.random.Generator) -> None:
    x, w, g, rest = operands(name, np.float32, rng)
    x, w, g = (a.astype(dtype) for a in (x, w, g))
    for adjoint, run in (
        ("", lambda: kernels.conv(x, w, *rest)),
        ("input", lambda: kernels.conv_input(g, w, x.shape, *rest)),
        ("weight", lambda: kernels.conv_weight(g, x, w.shape, *rest)),
    ):
        said = working_bytes(adjoint, x.shape, w.shape, g.shape[2:], g.dtype, *rest)
        memory.reset_peak()
        before = memory.current()
        result = run()
        assert memory.peak() - before - result.nbytes == pytest.approx(said, abs=256)


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("name", POINTS)
def test_what_is_not_finite_stays_where_it_belongs(
    name: str, wrong: float, path: str, rng: np.random.Generator
) -> None:
    x, w, g, rest = operands(name, np.float32, rng)
    x[-1, 3, 4, 5] = g[0, 2, 6, 1] = wrong
    with np.errstate(over="ignore", invalid="ignore"):
        pairs = [
            (kernels.conv(x, w, *rest), reference.conv(x, w, *rest)),
            (kernels.conv_input(g, w, x.shape, *rest), reference.conv_input(g, w, x.shape, *rest)),
            (kernels.conv_weight(g, x, w.shape, *rest), reference.conv_weight(g, x, w.shape, *rest)),
        ]
    for result, right in pairs:
        near = np.isfinite(result) & np.isfinite(right) & (np.abs(right) < 1e30)
        assert np.isfinite(result[np.abs(right) < 1e30]).all() and np.isfinite(right[np.abs(result) < 1e30]).all()
        np.testing.assert_allclose(result[near], right[near], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_adjoint(name: str, path: str, rng: np.random.Generator) -> None:
    """<conv(x, w), g> = <x, conv_input(g, w)> = <w, conv_weight(g, x)>"""
    x, w, g, rest = operands(name, np.float64, rng)
    product = (kernels.conv(x, w, *rest) * g).sum()
    np.testing.assert_allclose((x * kernels.conv_input(g, w, x.shape, *rest)).sum(), product, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((w * kernels.conv_weight(g, x, w.shape, *rest)).sum(), product, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_threads_change_nothing(name: str, rng: np.random.Generator) -> None:
    x, w, g, rest = operands(name, np.float32, rng)
    seen = []
    for threads in (1, 2, 5):
        kernels.set_num_threads(threads)
        seen.append((kernels.conv(x, w, *rest), kernels.conv_input(g, w, x.shape, *rest),
                     kernels.conv_weight(g, x, w.shape, *rest)))  # fmt: skip
    for each in seen[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(seen[0], each, strict=True))


def test_operands_of_any_layout(path: str, rng: np.random.Generator) -> None:
    x, w, g, rest = operands("3x3", np.float32, rng)
    turned = [np.asfortranarray(a) for a in (x, w, g)]
    close(kernels.conv(turned[0], turned[1], *rest), reference.conv(x, w, *rest))
    close(kernels.conv_input(turned[2], turned[1], x.shape, *rest), reference.conv_input(g, w, x.shape, *rest))
    close(kernels.conv_weight(turned[2], turned[0], w.shape, *rest), reference.conv_weight(g, x, w.shape, *rest))


# Pools and columns -----------------------------------------------------------------------------------

# x, geometry (kernel, stride, padding, dilation), outputs
POOLS: dict[str, tuple[Any, ...]] = {
    "2x2": ((2, 3, 8, 10), ((2, 2), (2, 2), (0, 0), (1, 1)), (4, 5)),
    "padded": ((2, 3, 9, 40), ((3, 3), (2, 2), (1, 1), (1, 1)), (5, 20)),
    "overlapping": ((2, 3, 9, 40), ((3, 3), (1, 1), (1, 1), (1, 1)), (9, 40)),
    "ceil mode": ((1, 2, 7, 8), ((3, 2), (3, 3), (0, 0), (1, 1)), (3, 3)),
    "dilated": ((1, 2, 11, 12), ((3, 2), (2, 3), (1, 1), (2, 2)), (5, 4)),
    "one dimension": ((2, 3, 50), ((4,), (3,), (2,), (1,)), (17,)),
    "three dimensions": ((2, 5, 6, 7), ((2, 3, 2), (1, 2, 3), (1, 1, 0), (1, 1, 2)), (6, 3, 2)),
    "large window": ((1, 2, 40, 40), ((20, 20), (20, 20), (0, 0), (1, 1)), (2, 2)),
}


def same(a: Any, b: Any) -> None:
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", POOLS)
def test_pools_agree_with_the_reference(name: str, dtype: Any, path: str, rng: np.random.Generator) -> None:
    shape, geometry, out = POOLS[name]
    x = rng.integers(-4, 4, shape).astype(dtype)  # ties, and sums that are exact in any order
    best, which = kernels.max_pool(x, geometry, out, -np.inf)
    wanted = reference.max_pool(x, geometry, out, -np.inf)
    same(best, wanted[0])
    same(which, wanted[1])
    g = rng.integers(-9, 9, best.shape).astype(dtype)
    same(kernels.pool_scatter(g, which, shape, geometry), reference.pool_scatter(g, which, shape, geometry))
    same(kernels.pool_gather(x, which, geometry), reference.pool_gather(x, which, geometry))
    same(kernels.window_sum(x, geometry, out), reference.window_sum(x, geometry, out))
    same(kernels.window_spread(g, shape, geometry), reference.window_spread(g, shape, geometry))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_max_pool_of_special_values(dtype: Any, path: str) -> None:
    """NaN wins and stays; where all is -inf, the first element that is inside counts."""
    nan, inf = np.nan, np.inf
    x = np.array([[[-inf, -inf, 1.0, nan, 5.0, -inf, nan, nan]]], dtype)
    best, which = kernels.max_pool(x, ((3,), (2,), (1,), (1,)), (4,), -inf)
    np.testing.assert_array_equal(best, np.array([[[-inf, nan, nan, nan]]], dtype))
    np.testing.assert_array_equal(which, [[[1, 2, 0, 2]]])
    back = kernels.pool_scatter(np.ones_like(best), which, x.shape, ((3,), (2,), (1,), (1,)))
    np.testing.assert_array_equal(back, np.array([[[1, 0, 0, 2, 0, 0, 0, 1]]], dtype))


def test_a_rim_that_no_window_reaches() -> None:
    g, w, x = np.ones((1, 2, 3)), np.ones((2, 1, 1)), np.arange(4.0).reshape(1, 1, 4)
    geometry = ((1,), (0,), (2,), 1)
    assert reference.conv_input(g, w, (1, 1, 4), *geometry).tolist() == [[[2, 2, 2, 0]]]
    assert reference.conv_weight(g, x, (2, 1, 1), *geometry).tolist() == [[[3]], [[3]]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_columns_agree_with_the_reference(name: str, dtype: Any, path: str, rng: np.random.Generator) -> None:
    shape, kernel, *geometry = CONVOLUTIONS[name][:5]
    x = rng.integers(-9, 9, shape).astype(dtype)
    y = kernels.im2col(x, (kernel[2:], *geometry))
    same(y, reference.im2col(x, (kernel[2:], *geometry)))
    same(kernels.col2im(y, shape, (kernel[2:], *geometry)), reference.col2im(y, shape, (kernel[2:], *geometry)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [((1, 1), (1, 1), (1, 1)), ((2, 2), (1, 1), (1, 1)), ((1, 1), (0, 0), (1, 2)),
                                                             ((2, 1), (3, 2), (2, 1)), ((3, 3), (2, 0), (1, 2)), ((1, 1), (4, 4), (1, 1))])  # fmt: skip
@pytest.mark.parametrize(
    ("size", "kernel", "each"),
    [((9, 11), (3, 3), 1), ((64, 17), (5, 2), 2), ((7, 33), (1, 1), 1), ((13, 13), (7, 7), 2)],
)
def test_convolution_by_channel(
    path: str,
    rng: np.random.Generator,
    size: Any,
    kernel: Any,
    each: int,
    stride: Any,
    padding: Any,
    dilation: Any,
    dtype: str,
) -> None:
    x = rng.integers(-9, 10, (2, 3, *size)).astype(dtype)
    w = rng.integers(-9, 10, (3 * each, 1, *kernel)).astype(dtype)
    want = reference.conv(x, w, stride, padding, dilation, 3)
    np.testing.assert_array_equal(kernels.conv(x, w, stride, padding, dilation, 3), want)
    g = rng.integers(-9, 10, want.shape).astype(dtype)
    found = kernels.conv_input(g, w, x.shape, stride, padding, dilation, 3)
    np.testing.assert_array_equal(found, reference.conv_input(g, w, x.shape, stride, padding, dilation, 3))
    found = kernels.conv_weight(g, x, w.shape, stride, padding, dilation, 3)
    np.testing.assert_array_equal(found, reference.conv_weight(g, x, w.shape, stride, padding, dilation, 3))


def test_what_no_window_covers_is_no_part_of_a_gradient(path: str) -> None:
    x = np.ones((1, 2, 4, 4), np.float32)
    x[..., 3:] = np.nan  # with stride 2 and a kernel of 1, the last column is in no window
    g, w = np.ones((1, 2, 2, 2), np.float32), np.ones((2, 1, 1, 1), np.float32)
    assert (kernels.conv(x, w, (2, 2), (0, 0), (1, 1), 2) == 1).all()
    assert (kernels.conv_weight(g, x, w.shape, (2, 2), (0, 0), (1, 1), 2) == 4).all()


def test_windows_that_reach_far_into_the_padding(path: str) -> None:
    x, w = np.ones((1, 1, 3), np.float32), np.full((1, 1, 1), 2, np.float32)
    far = 1 << 20
    found = kernels.conv(x, w, (far,), (far,), (1,), 1)
    np.testing.assert_array_equal(found, [[[0, 2, 0]]])
    np.testing.assert_array_equal(
        kernels.conv_weight(np.ones_like(found), x, w.shape, (far,), (far,), (1,), 1), [[[1]]]
    )
