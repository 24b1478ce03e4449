"""Running sums, products and extremes; sums and products over dimensions: native against NumPy, layouts, long runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels.native import loader
from rushlight.kernels.sums import add_up, joined

SHAPES = [(0,), (1,), (7,), (1025,), (3, 0), (5, 700), (700, 5), (3, 40, 17), (9, 1, 300), (17, 3, 65)]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_running(path: str, rng: np.random.Generator, shape: Any, dtype: str) -> None:
    x = rng.integers(-3, 4, shape).astype(dtype)
    ones = np.sign(x.real).astype(dtype)
    for dim in range(x.ndim):
        np.testing.assert_array_equal(K.running(np.add, x, dim), x.cumsum(dim))
        np.testing.assert_array_equal(K.running(np.multiply, ones, dim), ones.cumprod(dim))
        back = np.flip(np.flip(x, dim).cumsum(dim), dim)
        np.testing.assert_array_equal(K.running(np.add, x, dim, True), back)
        np.testing.assert_array_equal(K.running(np.add, x.copy(order="F"), dim, True), back)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("least", [False, True])
def test_running_extremes(path: str, rng: np.random.Generator, least: bool, dtype: str) -> None:
    x = rng.integers(-5, 6, (13, 70, 9)).astype(dtype)
    x[rng.random(x.shape) < 0.01] = np.nan
    for dim in range(3):
        values, where = K.running_extreme(x, dim, least)
        np.testing.assert_array_equal(values, (np.minimum if least else np.maximum).accumulate(x, dim))
        np.testing.assert_array_equal(np.take_along_axis(x, where, dim), values)
        hit = (x == values) | np.isnan(x)  # the last of equals
        place = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(3)])
        np.testing.assert_array_equal(where, np.maximum.accumulate(np.where(hit, place, 0), dim))


def test_running_sums_keep_their_digits(path: str) -> None:
    x = np.full((3, 1 << 18), 0.1, np.float32)
    for a in (x, np.ascontiguousarray(x.T)):
        wide = a.astype(np.float64).cumsum(a.shape.index(1 << 18))
        np.testing.assert_allclose(K.running(np.add, a, a.shape.index(1 << 18)), wide, rtol=1e-7)


REDUCED = [((9000,), None), ((3, 4000), (1,)), ((3, 4000), (0,)), ((4000, 3), (0,)), ((400, 30), (0,)), ((20, 30, 40), (1,)),
           ((20, 30, 40), (1, 2)), ((20, 30, 40), (0, 1)), ((20, 30, 40), (0, 2)), ((2, 140_000), (1,)), ((20, 30, 40), (-1, -2))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c8"])
@pytest.mark.parametrize(("shape", "axes"), REDUCED)
def test_sums(path: str, rng: np.random.Generator, shape: Any, axes: Any, dtype: str) -> None:
    x = rng.integers(-9, 10, shape).astype(dtype)
    for keep in (False, True):
        want = x.sum(axes, keepdims=keep)
        for a in (x, x.copy(order="F"), np.repeat(x, 2, -1)[..., ::2]):
            found = add_up(a, axes, keep)
            assert found.dtype == x.dtype and found.shape == want.shape
            np.testing.assert_array_equal(found, want)


@pytest.mark.skipif(not loader.tables(), reason="the native kernels cannot be built here")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_reductions_of_a_kernel(rng: np.random.Generator, dtype: str) -> None:
    x = rng.integers(-9, 10, (30, 700)).astype(dtype)
    for axes in ((0,), (1,), None):
        for kernel, want in (("sum_of_squares", x * x), ("sum_of_sizes", np.abs(x))):
            for a in (x, x.T.copy().T):
                np.testing.assert_array_equal(joined(kernel, a, axes), want.sum(axes))
            some = np.where(x > 5, np.nan, x)
            np.testing.assert_array_equal(joined("sum_of_known", some, axes), np.nansum(some, axes))
    assert joined("sum", x[:2, :2], None) is None
    assert joined("sum", x, ()) is None


@pytest.mark.skipif(not loader.tables(), reason="the native kernels cannot be built here")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(30, 700), (3, 90_000), (5, 17, 300)])
def test_products_and_extrema_of_a_kernel(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> None:
    x = rng.standard_normal(shape).astype(dtype)
    x[0, 3], x[1, 5], x[2, 7], x[:, 11] = np.nan, np.inf, -np.inf, 0
    for axes in ((0,), (1,), (-1,), None):
        for a in (x, x.T.copy().T):
            for kernel, ufunc in (("maximum_over", np.maximum), ("minimum_over", np.minimum)):
                found = joined(kernel, a, axes, True)
                if found is not None:
                    np.testing.assert_array_equal(found, ufunc.reduce(x, axes, keepdims=True))
            signs = np.sign(a + 0.5)
            found = joined("product_over", signs, axes)
            if found is not None:
                np.testing.assert_array_equal(found, signs.prod(axes))
    assert joined("maximum_over", x, (0,)) is not None


def test_the_order_of_a_sum_does_not_depend_on_threads(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 500_000)).astype(np.float32)
    threads, found = K.get_num_threads(), []
    try:
        for count in (1, 2):
            K.set_num_threads(count)
            found.append([add_up(x, axes).tobytes() for axes in (None, (0,), (1,))])
    finally:
        K.set_num_threads(threads)
    assert found[0] == found[1]


@pytest.mark.skipif(not loader.tables(), reason="the native kernels cannot be built here")
@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 3, 1)])
def test_no_elements_are_refused_by_native_code(sizes: Any) -> None:
    table, x = loader.tables()[np.dtype("f4")], np.ones(sizes, np.float32)
    for run in (lambda: table.sum(x, np.empty((sizes[0], sizes[2]), "f4"), *sizes),
                lambda: table.running_sum(x, x.copy(), *sizes, 0),
                lambda: table.running_extreme(x, x.copy(), np.empty(sizes, np.int64), *sizes, 0)):  # fmt: skip
        with pytest.raises(RuntimeError, match="at least one element"):
            run()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("shape", [(300, 70), (9, 70, 33), (4000, 1), (3, 4000), (2, 2)])
def test_running_logarithms_of_sums(path: str, rng: np.random.Generator, shape: Any, back: bool, dtype: str) -> None:
    x = (30 * rng.standard_normal(shape)).astype(dtype)
    odd = np.where(rng.random(shape) < 0.01, rng.choice([np.inf, -np.inf, np.nan, -np.inf], shape), x).astype(dtype)
    ends = np.full(shape, -np.inf, dtype)
    ends[1:] = x[1:]
    for dim in range(len(shape)):
        for a in (x, odd, ends, np.full(shape, -np.inf, dtype)):
            lies = np.flip(a, dim) if back else a
            with np.errstate(all="ignore"):
                wanted = np.logaddexp.accumulate(lies.astype(np.longdouble), axis=dim)
            wanted = np.flip(wanted, dim) if back else wanted
            found = K.running(np.logaddexp, a, dim, back)
            assert found.dtype == a.dtype
            np.testing.assert_allclose(found, wanted.astype(dtype), rtol=2e-7 if dtype == "f4" else 2e-14, atol=1e-13)
