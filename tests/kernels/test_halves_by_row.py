"""Rows of 16 bits: normalisation, softmax and sums give what float32 gives, rounded once; statistics are float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from tests.ops.memory import peak_bytes

import rushlight.kernels as k
from rushlight.kernels.native import loader
from rushlight.kernels.sums import joined

pytestmark = pytest.mark.parametrize("kind", [bfloat16, np.float16])
SHAPES = ((1, 1), (3, 5), (7, 65), (33, 2049), (2, 5001))
PLANES = ((2, 4, 1), (3, 6, 7, 5), (5, 70), (2, 4, 50, 43), (1, 8, 1))


def numbers(seed: int, shape: tuple[int, ...], kind: Any, special: bool = False) -> Any:
    found = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 2 + 0.5
    if special:
        found.flat[:: max(found.size // 3, 1)] = [np.nan, np.inf, -np.inf, 1, 1, 1][: len(found.flat[:: max(found.size // 3, 1)])]  # fmt: skip
    return found.astype(kind)


def wide(*arrays: Any) -> list[Any]:
    return [a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype.itemsize == 2 else a for a in arrays]


def same(found: Any, want: Any, kind: Any) -> None:
    """Statistics as in float32, all else as that rounded; the last bit may differ where sums are taken in other pieces."""
    found, want = (x if isinstance(x, tuple) else (x,) for x in (found, want))
    for a, b in zip(found, want, strict=True):
        if a is None or b is None:
            assert a is b
            continue
        exact = a.dtype == np.float32
        assert a.shape == b.shape and (exact or a.dtype == kind)
        step = 1e-5 if exact else 2 * float(np.finfo(np.float16).eps if kind is np.float16 else 2**-7)
        np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=step, atol=step / 4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("affine", [True, False])
def test_norms_of_rows(kind: Any, shape: tuple[int, int], affine: bool) -> None:
    x, g = numbers(0, shape, kind), numbers(1, shape, kind)
    w, b = (numbers(n, shape[1:], kind) if affine else None for n in (2, 3))
    found = k.layer_norm(x, w, b, 1e-5)
    same(found, k.layer_norm(*wide(x, w, b), 1e-5), kind)
    needs = (True, affine, affine)
    same(k.layer_norm_backward(g, x, *found[1:], w, needs), k.layer_norm_backward(*wide(g, x), *found[1:], *wide(w), needs), kind)  # fmt: skip
    made, rstd = k.rms_norm(x, w, 1e-5)
    same((made, rstd), k.rms_norm(*wide(x, w), 1e-5), kind)
    same(k.rms_norm_backward(g, x, rstd, w, needs[:2]), k.rms_norm_backward(*wide(g, x), rstd, *wide(w), needs[:2]), kind)  # fmt: skip


@pytest.mark.parametrize("shape", PLANES)
@pytest.mark.parametrize("affine", [True, False])
def test_norms_of_channels(kind: Any, shape: tuple[int, ...], affine: bool) -> None:
    x, g = numbers(0, shape, kind), numbers(1, shape, kind)
    w, b = (numbers(n, shape[1:2], kind) if affine else None for n in (2, 3))
    needs = (True, affine, affine)
    found = k.group_norm(x, 2, w, b, 1e-3)
    same(found, k.group_norm(wide(x)[0], 2, *wide(w, b), 1e-3), kind)
    same(k.group_norm_backward(g, x, *found[1:], w, needs), k.group_norm_backward(*wide(g, x), *found[1:], *wide(w), needs), kind)  # fmt: skip
    found = k.batch_norm_train(x, w, b, 1e-3)
    same(found, k.batch_norm_train(*wide(x, w, b), 1e-3), kind)
    for training in (True, False):
        same(k.batch_norm_backward(g, x, *found[1:], w, needs, training), k.batch_norm_backward(*wide(g, x), *found[1:], *wide(w), needs, training), kind)  # fmt: skip
    same(k.batch_apply(x, *found[1:], w, b, True), k.batch_apply(wide(x)[0], *found[1:], *wide(w, b), True), kind)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((3, 5), 1), ((4, 2049), 1), ((70, 300), 0), ((2, 9, 130), 1), ((600, 3), 0)])  # fmt: skip
def test_softmax(kind: Any, shape: tuple[int, ...], axis: int, special: bool) -> None:
    x, g = numbers(0, shape, kind, special), numbers(1, shape, kind)
    with np.errstate(all="ignore"):
        for name in ("softmax", "log_softmax"):
            made = getattr(k, name)(x, axis)
            same(made, getattr(k, name)(wide(x)[0], axis), kind)
            back = getattr(k, f"{name}_backward")
            same(back(g, made, axis), back(*wide(g, made), axis), kind)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("shape", "axes"), [((9001,), None), ((90, 103), (1,)), ((90, 103), (0,)), ((3, 70, 60), (1,)), ((200_003,), (0,)), ((1100, 300), (0,))])  # fmt: skip
def test_sums(kind: Any, shape: tuple[int, ...], axes: Any, special: bool) -> None:
    x = numbers(0, shape, kind, special)
    for kernel in ("sum", "sum_of_squares", "sum_of_sizes", "sum_of_known"):
        with np.errstate(over="ignore"):
            found = joined(kernel, x, axes)
        exact = joined(kernel, x, axes, False, np.dtype(np.float32))
        if found is None:
            assert not loader.tables() or x.size <= 1 << 13
            continue
        want = joined(kernel, wide(x)[0], axes)
        assert exact is not None and want is not None
        np.testing.assert_allclose(exact, want, rtol=1e-5, atol=1e-3)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(found.view(np.uint16), exact.astype(kind).view(np.uint16))


def test_products_and_extrema(kind: Any) -> None:
    x = (np.random.default_rng(0).random((700, 120)) + 0.5).astype(kind)
    x[0, 5], x[1, 7], x[2, 3] = np.nan, np.inf, 0
    for kernel, ufunc in (("product_over", np.multiply), ("maximum_over", np.maximum), ("minimum_over", np.minimum)):
        for axes in ((0,), (1,)):
            found = joined(kernel, x, axes)
            if found is not None:
                same(found, ufunc.reduce(wide(x)[0], axes), kind)


def test_rows_apart_in_memory(kind: Any) -> None:
    x = numbers(0, (40, 600), kind)[:, ::2]
    same(k.softmax(x, 1), k.softmax(x.copy(), 1), kind)
    same(k.layer_norm(x, None, None, 1e-5), k.layer_norm(x.copy(), None, None, 1e-5), kind)
    same(k.batch_stats(x), k.batch_stats(x.copy()), kind)
    same(k.add_up(x, (1,), dtype=np.float32), k.add_up(x.copy(), (1,), dtype=np.float32), kind)


@pytest.mark.skipif(not loader.tables(), reason="no native kernels here")
def test_nothing_as_large_is_made_beside_the_result(kind: Any) -> None:
    x = numbers(0, (512, 1024), kind)
    w = numbers(1, (1024,), kind)
    small = x.nbytes // 8
    assert peak_bytes(lambda: k.layer_norm(x, w, w, 1e-5)) < x.nbytes + small
    assert peak_bytes(lambda: k.softmax(x, 1)) < x.nbytes + small
    assert peak_bytes(lambda: k.log_softmax(x, 0)) < x.nbytes + small
    assert peak_bytes(lambda: k.leaky_relu(x, 0.5)) < x.nbytes + small
    assert peak_bytes(lambda: k.add_up(x, (1,))) < small
    planes = x.reshape(4, 8, 128, 128)
    assert peak_bytes(lambda: k.group_norm(planes, 2, w[:8], w[:8], 1e-5)) < x.nbytes + small
    assert peak_bytes(lambda: k.batch_norm_train(planes, w[:8], w[:8], 1e-5)) < x.nbytes + small
