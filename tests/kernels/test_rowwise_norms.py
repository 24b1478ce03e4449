"""Softmax and normalisation: against PyTorch, native against NumPy, special rows, layouts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight
from rushlight import kernels as K

Array = np.ndarray[Any, Any]
DTYPES = ["f4", "f8"]


def close(got: Any, want: Any, dtype: Any, factor: float = 60) -> None:
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=factor * eps, atol=factor * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((4, 1000), 1), ((300, 7), 0), ((5, 33, 300), 1), ((5, 33, 9), -1), ((7,), 0), ((), 0), ((64, 2000), 1)],
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(path: str, rng: np.random.Generator, name: str, shape: tuple[int, ...], axis: int, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.asarray(rng.standard_normal(shape) * 5, dtype)
    g = np.asarray(rng.standard_normal(shape), dtype)
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    want = getattr(leaf, name)(axis)
    want.backward(torch.from_numpy(g))
    got = getattr(K, name)(x, axis)
    assert got.shape == shape and got.dtype == x.dtype
    close(got, want, dtype)
    summed = shape[axis] if shape else 1  # gradients of a row, whose sum is rounded by as much as it is long
    close(getattr(K, f"{name}_backward")(g, got, axis), leaf.grad, dtype, 60 * max(1, summed**0.5 / 10))
    if len(shape) == 3:
        view = x.transpose(2, 0, 1)
        np.testing.assert_allclose(
            getattr(K, name)(view, 2), np.moveaxis(getattr(K, name)(x, 1), 2, 0), rtol=1e-5, atol=4e-6
        )


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_special_rows(path: str, name: str, axis: int) -> None:
    torch = pytest.importorskip("torch")
    inf, nan = np.inf, np.nan
    rows = np.array(
        [
            [1, nan, 2],
            [inf, 1, 2],
            [-inf, 1, 2],
            [-inf] * 3,
            [inf, inf, 1],
            [nan] * 3,
            [nan, -inf, -inf],
            [1e4, -1e4, 0],
        ]
    )
    x = np.tile(rows, (1, 30)).astype("f4") if axis else np.tile(rows, (1, 30)).astype("f4").T.copy()
    want = getattr(torch.from_numpy(x), name)(axis).numpy()
    np.testing.assert_allclose(getattr(K, name)(x, axis), want, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_softmax_empty(path: str, shape: tuple[int, int]) -> None:
    for axis in (0, 1):
        assert K.softmax(np.zeros(shape, "f4"), axis).shape == shape
        assert K.log_softmax_backward(np.zeros(shape, "f4"), np.zeros(shape, "f4"), axis).shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(("rows", "features"), [(300, 384), (1, 5), (4000, 16), (3, 1)])
def test_layer_norm(path: str, rng: np.random.Generator, rows: int, features: int, affine: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = (rng.standard_normal((rows, features)) * 2 + 3).astype(dtype)
    w, b = (rng.standard_normal(features).astype(dtype) if affine else None for _ in "wb")
    g = rng.standard_normal(x.shape).astype(dtype)
    leaves = [None if a is None else torch.from_numpy(a.copy()).requires_grad_() for a in (x, w, b)]
    want = torch.nn.functional.layer_norm(leaves[0], (features,), leaves[1], leaves[2], 1e-5)
    want.backward(torch.from_numpy(g))
    out, mean, rstd = K.layer_norm(x, w, b, 1e-5)
    close(out, want, dtype, 100)
    grads = K.layer_norm_backward(g, x, mean, rstd, w, (True, affine, affine))
    scale = 100 * max(1, rows**0.5)
    for got, leaf in zip(grads, leaves, strict=True):
        assert (got is None) == (leaf is None)
        if leaf is not None and features > 1:
            close(got, leaf.grad, dtype, scale)


@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm(path: str, rng: np.random.Generator, affine: bool) -> None:
    torch = pytest.importorskip("torch")
    x, g = (rng.standard_normal((70, 130)) for _ in "xg")
    w = rng.standard_normal(130) if affine else None
    leaf, weight = (None if a is None else torch.from_numpy(a.copy()).requires_grad_() for a in (x, w))
    want = torch.nn.functional.rms_norm(leaf, (130,), weight, 1e-6)
    want.backward(torch.from_numpy(g))
    out, rstd = K.rms_norm(x, w, 1e-6)
    close(out, want, "f8", 100)
    gx, gw = K.rms_norm_backward(g, x, rstd, w, (True, affine))
    close(gx, leaf.grad, "f8", 300)
    if affine:
        close(gw, weight.grad, "f8", 1000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(6, 8, 30, 31), (4, 8), (2, 8, 1)])
def test_group_norm(path: str, rng: np.random.Generator, shape: tuple[int, ...], affine: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x, g = ((rng.standard_normal(shape) + 1).astype(dtype) for _ in "xg")
    w, b = (rng.standard_normal(8).astype(dtype) if affine else None for _ in "wb")
    leaves = [None if a is None else torch.from_numpy(a.copy()).requires_grad_() for a in (x, w, b)]
    want = torch.nn.functional.group_norm(leaves[0], 2, leaves[1], leaves[2], 1e-5)
    want.backward(torch.from_numpy(g))
    out, mean, rstd = K.group_norm(x, 2, w, b, 1e-5)
    close(out, want, dtype, 200)
    grads = K.group_norm_backward(g, x, mean, rstd, w, (True, affine, affine))
    for got, leaf in zip(grads, leaves, strict=True):
        if leaf is not None:
            close(got, leaf.grad, dtype, 4000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(6, 70, 30, 31), (300, 70), (5, 3, 2), (2, 70, 1)])
def test_batch_norm(
    path: str, rng: np.random.Generator, shape: tuple[int, ...], training: bool, affine: bool, dtype: str
) -> None:
    torch = pytest.importorskip("torch")
    c = shape[1]
    x, g = ((rng.standard_normal(shape) + 1).astype(dtype) for _ in "xg")
    w, b = (rng.standard_normal(c).astype(dtype) if affine else None for _ in "wb")
    leaves = [None if a is None else torch.from_numpy(a.copy()).requires_grad_() for a in (x, w, b)]
    running = [torch.full((c,), 0.5, dtype=leaves[0].dtype), torch.full((c,), 2.0, dtype=leaves[0].dtype)]
    want = torch.nn.functional.batch_norm(leaves[0], *running, leaves[1], leaves[2], training, 1.0, 1e-5)
    want.backward(torch.from_numpy(g))
    if training:
        out, mean, rstd = K.batch_norm_train(x, w, b, 1e-5)
        count = x.size // c
        close(K.batch_stats(x)[1] * dtype_of(dtype, count / (count - 1)), running[1], dtype, 1000)
    else:
        mean, rstd = np.full(c, 0.5, dtype), np.full(c, (2 + 1e-5) ** -0.5, dtype)
        out = K.batch_apply(x, mean, rstd, w, b)
    close(out, want, dtype, 200)
    grads = K.batch_norm_backward(g, x, mean, rstd, w, (True, affine, affine), training)
    for got, leaf in zip(grads, leaves, strict=True):
        assert (got is None) == (leaf is None)
        if leaf is not None and count_of(x, c) > 2:
            close(got, leaf.grad, dtype, 4000 if dtype == "f4" else 1e6)  # PyTorch's own float64 error is 3e-11


def dtype_of(dtype: str, number: float) -> Any:
    return np.dtype(dtype).type(number)


def count_of(x: Array, c: int) -> int:
    return x.size // c


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_norms_keep_float32_statistics(path: str, rng: np.random.Generator, dtype: Any) -> None:
    x = rng.standard_normal((20, 8)).astype(dtype)
    w = np.ones(8, dtype)
    out, mean, rstd = K.layer_norm(x, w, None, 1e-5)
    assert out.dtype == dtype and mean.dtype == rstd.dtype == np.float32
    gx, gw, gb = K.layer_norm_backward(out, x, mean, rstd, w)
    assert gx is not None and gw is not None and gb is not None
    assert gx.dtype == gw.dtype == dtype
    out, mean, rstd = K.batch_norm_train(x, w, w, 1e-5)
    assert out.dtype == dtype and mean.dtype == np.float32
    gx, gw, gb = K.batch_norm_backward(out, x, mean, rstd, w)
    assert gx is not None and gx.dtype == dtype
    assert K.softmax(x, 1).dtype == dtype


def test_results_do_not_depend_on_the_number_of_threads(rng: np.random.Generator) -> None:
    x, g = (rng.standard_normal((3000, 200)).astype("f4") for _ in "xg")
    w = np.ones(200, "f4")
    results = []
    for threads in (1, 2, 5):
        K.set_num_threads(threads)
        out, mean, rstd = K.layer_norm(x, w, w, 1e-5)
        results.append([out, *K.layer_norm_backward(g, x, mean, rstd, w), K.softmax(x, 0), K.gelu(x)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("shape", [(4, 7, 33), (9, 16), (2, 3, 5, 7), (8, 64, 40, 40)])
def test_what_is_below_zero_becomes_zero_in_the_same_pass(dtype, shape):
    rng, c = np.random.default_rng(0), shape[1]
    wide = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    x, w, b = (rng.standard_normal(s).astype(dtype) for s in (shape, c, c))
    mean, rstd = rng.standard_normal(c).astype(wide), rng.random(c).astype(wide)
    w[0], b[0], x.flat[3] = 0, 0, np.nan  # zeros of either sign
    want = np.maximum(K.batch_apply(x, mean, rstd, w, b), np.array(0, dtype))
    found = K.batch_apply(x, mean, rstd, w, b, True)
    np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), want.view(f"u{found.itemsize}"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_is_normalized_to_zero(path: str, dtype: str) -> None:
    F = rushlight.nn.functional
    rows = rushlight.from_numpy(np.repeat(np.linspace(-9, 9, 6).astype(dtype)[:, None], 1003, 1))
    columns = rows.reshape(1, 6, 1003).expand(4, 6, 1003)
    found = {"layer_norm": F.layer_norm(rows, (1003,)), "instance_norm": F.instance_norm(columns),
             "group_norm": F.group_norm(columns, 6), "batch_norm": F.batch_norm(columns, None, None, training=True)}  # fmt: skip
    for name, out in found.items():
        assert not out.abs().max(), name
