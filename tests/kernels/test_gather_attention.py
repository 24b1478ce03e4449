"""Attention, cross entropy, indexed rows, dropout."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels import attention as attention_module
from rushlight.kernels.coins import coins
from rushlight.kernels.native import loader
from rushlight.kernels.twister import Twister

Array = np.ndarray[Any, Any]


def close(got: Any, want: Any, dtype: Any, factor: float = 200) -> None:
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=factor * eps, atol=factor * eps)


def attention_case(rng: np.random.Generator, dtype: str, mask: str, length: int, width: int) -> list[Any]:
    q = rng.standard_normal((2, 3, length, 16)).astype(dtype)
    k = rng.standard_normal((2, 3, width, 16)).astype(dtype)
    v = rng.standard_normal((2, 3, width, 8)).astype(dtype)
    kinds = {
        "none": None,
        "bool": rng.random((length, width)) < 0.7,
        "bool_heads": rng.random((2, 1, length, width)) < 0.7,
        "keys": rng.random((2, 1, 1, width)) < 0.7,
        "added": rng.standard_normal((3, length, width)).astype(dtype),
    }
    return [q, k, v, kinds[mask]]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("small_blocks", [False, True])
@pytest.mark.parametrize(("length", "width"), [(33, 33), (7, 50), (130, 90)])
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "bool_heads", "keys", "added"])
def test_attention(
    path: str,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    mask: str,
    length: int,
    width: int,
    small_blocks: bool,
    dtype: str,
) -> None:
    torch = pytest.importorskip("torch")
    if small_blocks:
        monkeypatch.setattr(attention_module, "_BLOCK", 20 * width)
    causal = mask == "causal"
    q, k, v, m = attention_case(rng, dtype, "none" if causal else mask, length, width)
    leaves = [torch.from_numpy(a.copy()).requires_grad_() for a in (q, k, v)]
    bias = None if m is None else torch.from_numpy(m.copy())
    if mask == "added":
        bias.requires_grad_()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        want = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=bias, is_causal=causal)
    g = rng.standard_normal(want.shape).astype(dtype)
    want.backward(torch.from_numpy(g))
    out, lse = K.sdpa(q, k, v, m, causal)
    close(out, want, dtype)
    assert lse.shape == q.shape[:3]
    grads = K.sdpa_backward(g, q, k, v, lse, m, causal, mask_grad=mask == "added")
    for got, leaf in zip(grads, [*leaves, bias], strict=False):
        close(got, leaf.grad, dtype)


def test_rows_that_see_nothing_are_zero(path: str, rng: np.random.Generator) -> None:
    q, k, v, _ = attention_case(rng, "f4", "none", 5, 6)
    mask = np.ones((5, 6), bool)
    mask[2] = False
    out, lse = K.sdpa(q, k, v, mask)
    assert (out[:, :, 2] == 0).all() and (lse[:, :, 2] == -np.inf).all()
    grads = K.sdpa_backward(np.ones_like(out), q, k, v, lse, mask)
    assert all(np.isfinite(a).all() for a in grads if a is not None)
    assert grads[0] is not None and (grads[0][:, :, 2] == 0).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("drop", [None, (0.0, Twister(1).ahead(0))])  # of whole heads at once, and block by block
def test_attention_to_one_place_alone_has_no_gradient_to_the_bit(
    path: str, rng: np.random.Generator, dtype: str, drop: Any
) -> None:
    q, k, v, _ = attention_case(rng, dtype, "none", 6, 48)
    q *= 1e7
    g = 1e7 * rng.standard_normal((*v.shape[:2], 6, v.shape[-1])).astype(dtype)
    _, lse = K.sdpa(q, k, v, drop=drop)
    gq, gk, gv, *_ = K.sdpa_backward(g, q, k, v, lse, drop=drop)
    assert gq is not None and not gq.any()
    assert gk is not None and not gk.any()
    assert gv is not None and gv.any()


def test_gradients_of_attention_do_not_depend_on_the_rounding_of_large_sums(path: str) -> None:
    q, k = np.full((1, 1, 2, 1), 1e7), np.array([1e6, 1e6, 1e6, -1e6]).reshape(1, 1, 4, 1)
    v, g = np.array([1e9, 1e9 + 1, 1e9 + 2, 0]).reshape(1, 1, 4, 1), np.ones((1, 1, 2, 1))
    _, lse = K.sdpa(q, k, v, scale=1.0)
    gk = K.sdpa_backward(g, q, k, v, lse, scale=1.0)[1]
    assert gk is not None
    np.testing.assert_allclose(gk.ravel(), 2e7 / 3 * np.array([-1, 0, 1, 0]), rtol=2e-2, atol=1e4)


@pytest.mark.parametrize("low", [None, -1e9, -2e5])
@pytest.mark.parametrize(("drop", "mask_grad"), [(None, False), (None, True), ((0.0, Twister(1).ahead(0)), False)])
def test_rows_that_a_mask_of_the_least_number_hides_weigh_all_alike_in_backward_too(
    path: str, rng: np.random.Generator, low: float | None, drop: Any, mask_grad: bool
) -> None:
    """As the added masks of padded sequences do: beside them the logarithm of the sum is lost in rounding."""
    q, k, v, _ = attention_case(rng, "f4", "none", 9, 9)
    mask = np.triu(np.full((9, 9), np.finfo("f4").min if low is None else low, "f4"), 1)
    mask[:3] = mask[0, -1]
    out, lse = K.sdpa(q, k, v, mask, drop=drop)
    g = rng.standard_normal(out.shape).astype("f4")
    gq, gk, gv, *rest = K.sdpa_backward(g, q, k, v, lse, mask, mask_grad=mask_grad, drop=drop)
    scores = q @ k.swapaxes(-1, -2) * np.float32(0.25) + mask
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    d = p * (g @ v.swapaxes(-1, -2) - (g * (p @ v)).sum(-1, keepdims=True))
    close_to = {"rtol": 1e-4, "atol": 1e-4} if low is None or low < -1e8 else {"rtol": 0.05, "atol": 0.05}
    np.testing.assert_allclose(out, p @ v, **close_to)
    for got, want in zip(
        (gq, gk, gv), (d @ k * 0.25, d.swapaxes(-1, -2) @ q * 0.25, p.swapaxes(-1, -2) @ g), strict=True
    ):
        np.testing.assert_allclose(got, want, **close_to)
    if mask_grad:
        np.testing.assert_allclose(rest[0], d.sum((0, 1)), **close_to)


def test_attention_takes_strided_and_shared_heads(path: str, rng: np.random.Generator) -> None:
    q = rng.standard_normal((2, 9, 4, 16)).astype("f4").transpose(0, 2, 1, 3)
    k, v = (np.broadcast_to(rng.standard_normal((2, 1, 9, 16)).astype("f4"), q.shape) for _ in "kv")
    out, lse = K.sdpa(q, k, v, None, True)
    plain, plain_lse = K.sdpa(q.copy(), k.copy(), v.copy(), None, True)
    np.testing.assert_allclose(out, plain, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(lse, plain_lse, rtol=1e-5)
    assert out.transpose(0, 2, 1, 3).flags.c_contiguous


def test_attention_nan_stays_in_its_row(path: str, rng: np.random.Generator) -> None:
    q, k, v, _ = attention_case(rng, "f4", "none", 40, 40)
    q[0, 1, 3, 2] = np.nan
    out, _ = K.sdpa(q, k, v)
    assert np.isnan(out[0, 1, 3]).all()
    assert np.isnan(out).sum() == out.shape[-1]


def test_attention_keeps_few_scores_at_once(path: str) -> None:
    q = np.ones((4, 8, 512, 16), "f4")  # all scores: 33 MB
    K.sdpa(q, q, q)
    tracemalloc.start()
    out, lse = K.sdpa(q, q, q, None, True)
    K.sdpa_backward(out, q, q, q, lse, None, True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * q.nbytes + 4 * 2**20


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 2, 0, 4)])
def test_attention_of_nothing(path: str, shape: tuple[int, ...]) -> None:
    q = np.zeros(shape, "f4")
    out, lse = K.sdpa(q, q, q)
    assert out.shape == shape
    assert [a.shape for a in K.sdpa_backward(out, q, q, q, lse) if a is not None] == [shape] * 3


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(
    path: str, rng: np.random.Generator, dtype: str, weighted: bool, smoothing: float, reduction: str
) -> None:
    torch = pytest.importorskip("torch")
    x = (rng.standard_normal((60, 501)) * 3).astype(dtype)
    target = rng.integers(0, 501, 60)
    target[::7] = -100
    weight = rng.random(501).astype(dtype) if weighted else None
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    w = None if weight is None else torch.from_numpy(weight)
    want = torch.nn.functional.cross_entropy(
        leaf, torch.from_numpy(target), w, reduction=reduction, label_smoothing=smoothing
    )
    want.sum().backward()
    loss, denominator, sums = K.cross_entropy(x, target, weight, -100, smoothing)
    divisor = sums[1] if reduction == "mean" else 1.0
    np.testing.assert_allclose(sums[0], loss.sum(dtype="f8"), rtol=1e-5)
    close(loss if reduction == "none" else loss.sum() / x.dtype.type(divisor), want, dtype, 400)
    g = np.full(60, 1 / divisor, dtype)
    close(K.cross_entropy_backward(g, x, denominator, target, weight, -100, smoothing), leaf.grad, dtype, 400)
    close(K.cross_entropy_backward(g[:1], x, denominator, target, weight, -100, smoothing), leaf.grad, dtype, 400)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize(
    ("shape", "smoothing"), [((2, 5, 300), 0.0), ((3, 7, 9), 0.2), ((0, 3, 4), 0.0), ((4, 6, 1), 0.1)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_down_columns(
    path: str, rng: np.random.Generator, dtype: str, shape: tuple[int, ...], smoothing: float, weighted: bool
) -> None:
    eps = np.finfo(dtype).eps
    x = (rng.standard_normal(shape) * 3).astype(dtype)
    classes, count = shape[1], shape[0] * shape[2]
    target = rng.integers(0, classes, count)
    target[::7] = -100
    x.swapaxes(1, 2).reshape(-1, classes)[::7] = np.inf
    weight = rng.random(classes).astype(dtype) if weighted else None
    rows = np.ascontiguousarray(x.swapaxes(1, 2)).reshape(-1, classes)
    loss, denominator, sums = K.cross_entropy(x, target, weight, -100, smoothing)
    for a, b in zip((loss, denominator, sums), K.cross_entropy(rows, target, weight, -100, smoothing), strict=True):
        np.testing.assert_allclose(a, b, 40 * eps, 40 * eps)
    for g in (np.ones(1, dtype), rng.random(count).astype(dtype)):
        want = K.cross_entropy_backward(g, rows, denominator, target, weight, -100, smoothing)
        over = x.copy()
        found = K.cross_entropy_backward(g, over, denominator, target, weight, -100, smoothing, over)
        assert found is over
        want = want.reshape(shape[0], shape[2], classes).swapaxes(1, 2)
        np.testing.assert_allclose(found.astype("f8"), want.astype("f8"), 40 * eps, 40 * eps)
    if count:
        target[1] = classes
        with pytest.raises(IndexError, match="out of bounds"):
            K.cross_entropy(x, target, weight, -100, smoothing)


def test_cross_entropy_refuses_classes_outside(path: str) -> None:
    x = np.zeros((3, 4), "f4")
    for bad in (4, -1):
        with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
            K.cross_entropy(x, np.array([0, bad, 1]))
    loss, *_ = K.cross_entropy(x, np.array([0, -1, 1]), ignore_index=-1)
    assert loss[1] == 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_losses(path: str, rng: np.random.Generator, dtype: Any) -> None:
    x = rng.standard_normal((5, 7)).astype(dtype)
    target = rng.integers(0, 7, 5)
    loss, denominator, _ = K.cross_entropy(x, target)
    assert loss.dtype == dtype and denominator.dtype == np.float32
    assert K.cross_entropy_backward(loss, x, denominator, target).dtype == dtype
    q = x.reshape(1, 1, 5, 7)
    out, lse = K.sdpa(q, q, q)
    assert out.dtype == dtype
    assert all(a is not None and a.dtype == dtype for a in K.sdpa_backward(out, q, q, q, lse))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c8", "f2"])
@pytest.mark.parametrize(("rows", "count", "width"), [(10, 500, 33), (1000, 20, 64), (3, 0, 5), (5, 4, 0), (1, 9, 1)])
def test_index_add_rows(path: str, rng: np.random.Generator, rows: int, count: int, width: int, dtype: str) -> None:
    idx = rng.integers(0, rows, count)
    src = rng.integers(-9, 9, (count, width)).astype(dtype)
    dst = rng.integers(-9, 9, (rows, width)).astype(dtype)
    want = dst.copy()
    np.add.at(want, idx, src)
    assert K.index_add_rows(dst, idx, src) is dst
    np.testing.assert_allclose(dst, want, rtol=2e-3 if dtype == "f2" else 0)


def test_index_add_rows_refuses_rows_outside(path: str) -> None:
    with pytest.raises(IndexError, match=r"\[0, 3\)"):
        K.index_add_rows(np.zeros((3, 2), "f4"), np.array([3]), np.ones((1, 2), "f4"))


def test_indexing_nothing_is_refused(path: str) -> None:
    with pytest.raises(IndexError, match="got 0"):
        K.index_add_rows(np.zeros((0, 2), "f4"), np.array([0]), np.ones((1, 2), "f4"))


def test_sizes_that_do_not_fit_are_refused(path: str) -> None:
    x = np.zeros((3, 4), "f4")
    with pytest.raises(ValueError, match="one target a row"):
        K.cross_entropy(x, np.zeros(2, int))
    with pytest.raises(ValueError, match="expected a source"):
        K.index_add_rows(x, np.zeros(2, int), np.zeros((2, 3), "f4"))
    with pytest.raises(ValueError):
        K.layer_norm(x, np.ones(3, "f4"), None, 1e-5)
    with pytest.raises(ValueError):
        K.gelu_backward(np.zeros((2, 4), "f4"), x)


def test_embedding_backward(path: str, rng: np.random.Generator) -> None:
    g, idx = rng.standard_normal((4, 5, 3)), rng.integers(0, 6, (4, 5))
    want = np.zeros((6, 3))
    np.add.at(want, idx, g)
    np.testing.assert_allclose(K.embedding_backward(g, idx, 6), want, rtol=1e-12)
    want[2] = 0
    np.testing.assert_allclose(K.embedding_backward(g, idx, 6, 2), want, rtol=1e-12)


def state(seed: int) -> np.ndarray:
    """Of a generator with this seed."""
    return Twister(seed).ahead(0)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout(path: str, p: float) -> None:
    x = np.ones((301, 333), "f4")
    begin = state(7)
    out, bits = K.dropout(x, p, begin)
    np.testing.assert_array_equal(begin, state(7))
    assert bits.nbytes == (x.size + 7) // 8
    assert abs((out == 0).mean() - p) < 0.01
    if p < 1:
        np.testing.assert_allclose(out[out != 0], 1 / (1 - p), rtol=1e-6)
    np.testing.assert_array_equal(K.dropout_backward(x, bits, p), out)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("count", [3, 8, 17, 100_003])
def test_dropout_is_the_same_natively_and_without(rng: np.random.Generator, dtype: str, count: int) -> None:
    if not loader.tables():
        pytest.skip("no native kernels here")
    x = rng.standard_normal(count).astype(dtype)
    native = K.dropout(x, 0.2, state(3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "_tables", {})
        plain = K.dropout(x, 0.2, state(3))
    np.testing.assert_array_equal(native[0], plain[0])
    np.testing.assert_array_equal(native[1], plain[1])


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (0, 2, 1)])
def test_dropout_in_the_order_of_memory(path: str, rng: np.random.Generator, order: tuple[int, ...]) -> None:
    lies = rng.standard_normal((5, 7, 11))
    x = lies.transpose(np.argsort(order))
    plain, bits = K.dropout(lies, 0.4, state(5))
    for into in (None, np.empty_like(x), x.copy(order="K")):
        out, same = K.dropout(x, 0.4, state(5), order, into)
        np.testing.assert_array_equal(out.transpose(order), plain)
        np.testing.assert_array_equal(bits, same)
        assert out.strides == x.strides
        assert into is None or np.shares_memory(out, into)
    np.testing.assert_array_equal(K.dropout_backward(np.ascontiguousarray(x), bits, 0.4, order), out)


@pytest.mark.parametrize(
    ("rows", "width", "columns"), [(3, 7, 7), (40, 1000, 1), (129, 33, 21), (2, 0, 0), (0, 5, 3), (1, 5000, 4999)]
)
def test_coins_are_the_numbers_of_the_generator(path: str, rows: int, width: int, columns: int) -> None:
    generator, going = Twister(11), state(11)
    for p in (0.3, 1.0, 0.0):
        kept = generator.random((rows, width))[:, :columns] < p
        np.testing.assert_array_equal(coins(going, p, rows, width, columns), np.packbits(kept, bitorder="little"))
        np.testing.assert_array_equal(going, generator.ahead(0))


@pytest.mark.parametrize("count", [0, 1, 623, 624, 625, 1248, 100_003])
def test_a_generator_goes_ahead_as_if_it_had_drawn(path: str, count: int) -> None:
    one, other = Twister(1), Twister(1)
    for _ in range(3):
        before = one.ahead(0)
        np.testing.assert_array_equal(one.ahead(count), before)
        other.words(count)
        np.testing.assert_array_equal(one.words(5), other.words(5))


def test_dropout_bits_are_independent() -> None:
    _, bits = K.dropout(np.ones(800_000, "f4"), 0.5, state(1))
    kept = np.unpackbits(bits, bitorder="little") * 2.0 - 1
    for lag in (1, 2, 3, 4, 8, 16):
        assert abs((kept[lag:] * kept[:-lag]).mean()) < 0.005
