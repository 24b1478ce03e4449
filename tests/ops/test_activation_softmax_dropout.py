"""Softmax, dropout, embeddings and distances: values, derivatives, what they keep, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.memory import peak_bytes, saved_bytes
from tests.ops.numeric import check_gradients

import rushlight as torch
import rushlight.nn.functional as F

DRAW = np.random.default_rng(41)
X = DRAW.standard_normal((3, 4))


# Softmax ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim: int) -> None:
    e = np.exp(X)
    want = e / e.sum(dim, keepdims=True)
    x = torch.tensor(X)
    for got in (
        torch.softmax(x, dim),
        x.softmax(dim),
        F.softmax(x, dim),
        F.softmin(-x, dim),
        torch.special.softmax(x, dim),
    ):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(torch.log_softmax(x, dim).numpy(), np.log(want), rtol=1e-12)
    check_gradients(lambda x: torch.softmax(x, dim), X)
    check_gradients(lambda x: F.log_softmax(x, dim), X)


def test_softmax_dtype_dims_and_refusals() -> None:
    assert torch.softmax(torch.tensor([1, 2]), 0, dtype=torch.float64).dtype == torch.float64
    assert torch.softmax(torch.tensor(3.0), 0).item() == 1
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(torch.zeros(2), 1)
    with pytest.raises(NotImplementedError, match=r"softmax.*floating-point.*int64"):
        torch.softmax(torch.tensor([1, 2]), 0)
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        F.softmax(torch.zeros(2, 2))
    x = torch.zeros(4, 8, requires_grad=True)
    assert saved_bytes(lambda x: torch.softmax(x, 1), x) == x.nbytes  # the result alone


def test_gumbel_softmax() -> None:
    torch.manual_seed(1)
    logits = torch.zeros(500, 3, requires_grad=True)
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(np.unique(hard.detach().numpy().round(6))) <= {0.0, 1.0}
    assert (hard.detach().mean(0) - 1 / 3).abs().max().item() < 0.1
    (hard * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().max().item() > 0


# Dropout ----------------------------------------------------------------------------------------------------


def test_dropout_values_gradient_and_mask() -> None:
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(3)
    y = F.dropout(x, 0.2)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert set(np.unique(y.detach().numpy())) == {0.0, np.float32(1.25)}
    assert 150 < int((y == 0).sum()) < 250
    torch.manual_seed(3)
    assert torch.equal(F.dropout(x, 0.2), y)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x
    assert not F.dropout(x, 1.0).detach().numpy().any()
    assert saved_bytes(lambda x: F.dropout(x, 0.2), x) == 125  # a bit an element


@pytest.mark.parametrize("fn", [F.dropout, F.dropout2d, F.alpha_dropout, F.feature_alpha_dropout])
def test_dropout_derivatives(fn: Any) -> None:
    def run(x: Any) -> Any:
        torch.manual_seed(2)
        return fn(x, 0.4, True)

    check_gradients(run, DRAW.standard_normal((2, 3, 2, 2)))


def test_dropout_in_place_and_by_channel() -> None:
    x = torch.ones(1 << 20)
    assert peak_bytes(lambda: F.dropout(x, 0.1, inplace=True)) < 0.05 * x.nbytes
    torch.manual_seed(0)
    y = F.dropout2d(torch.ones(8, 16, 3, 3), 0.5).numpy()
    assert set(np.unique(y.reshape(8, 16, 9).std(2))) == {0.0} and 0 < (y[:, :, 0, 0] == 0).mean() < 1
    assert F.dropout3d(torch.ones(4, 2, 2, 2), 0.5).shape == (4, 2, 2, 2)
    with pytest.raises(ValueError, match=r"between 0 and 1, but got 1.5"):
        F.dropout(x, 1.5)
    with pytest.raises(RuntimeError, match="Expected 2D or 3D input, but received a 4D"):
        F.dropout1d(torch.ones(1, 1, 1, 1))


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    torch.manual_seed(0)
    y = F.alpha_dropout(torch.randn(200_000), 0.3, True)
    assert abs(y.mean().item()) < 0.02 and abs(y.std().item() - 1) < 0.02


def test_native_dropout() -> None:
    x = torch.ones(64, requires_grad=True)
    y, mask = torch.native_dropout(x, 0.5, True)
    assert mask.dtype == torch.bool and torch.equal(y.detach(), mask * 2.0)
    assert torch.equal(torch.native_dropout_backward(torch.ones(64), mask, 2.0), y.detach())


# Embeddings -------------------------------------------------------------------------------------------------


INDEX = np.array([[1, 3, 3], [0, 1, 4]])
TABLE = DRAW.standard_normal((5, 3))


@pytest.mark.parametrize("options", [{}, {"padding_idx": 3}, {"padding_idx": -2, "scale_grad_by_freq": True}])
def test_embedding(options: dict[str, Any]) -> None:
    index = torch.tensor(INDEX)
    w, g = torch.tensor(TABLE, requires_grad=True), DRAW.standard_normal((2, 3, 3))
    out = F.embedding(index, w, **options)
    np.testing.assert_array_equal(out.detach().numpy(), TABLE[INDEX])
    out.backward(torch.tensor(g))
    want, counts = np.zeros((5, 3)), np.bincount(INDEX.reshape(-1), minlength=5)
    for i, row in zip(INDEX.reshape(-1), g.reshape(-1, 3), strict=True):
        if i != (options.get("padding_idx", 9) % 5 if "padding_idx" in options else None):
            want[i] += row / (counts[i] if options.get("scale_grad_by_freq") else 1)
    np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-12)
    if not options:
        check_gradients(lambda w: F.embedding(index, w) ** 2, TABLE)


def test_embedding_keeps_indices_and_renorms_in_place() -> None:
    w = torch.tensor(TABLE, requires_grad=True)
    assert saved_bytes(lambda i, w: F.embedding(i, w), torch.tensor(INDEX), w) == 0
    table = torch.tensor(TABLE * 10)
    version = table._version
    F.embedding(torch.tensor([1, 3]), table, max_norm=1.0)
    norms = np.linalg.norm(table.numpy(), axis=1)
    np.testing.assert_allclose(norms[[1, 3]], 1, rtol=1e-5)
    assert (norms[[0, 2, 4]] > 1).all() and table._version == version + 1


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 3])
def test_embedding_bag(mode: str, padding: Any) -> None:
    index, offsets = np.array([1, 3, 3, 0, 4, 2]), np.array([0, 2, 2, 5])
    bags = [[1, 3], [], [3, 0, 4], [2]]
    how = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    kept = [[i for i in bag if i != padding] for bag in bags]
    want = np.array([how(TABLE[bag], 0) if bag else np.zeros(3) for bag in kept])

    def fn(w: Any) -> Any:
        return F.embedding_bag(torch.tensor(index), w, torch.tensor(offsets), mode=mode, padding_idx=padding)

    np.testing.assert_allclose(fn(torch.tensor(TABLE)).numpy(), want, rtol=1e-12)
    check_gradients(fn, TABLE)
    last = F.embedding_bag(torch.tensor(index), torch.tensor(TABLE), torch.tensor([*offsets, 6]), mode=mode,
                           padding_idx=padding, include_last_offset=True)  # fmt: skip
    np.testing.assert_allclose(last.numpy(), want, rtol=1e-12)


def test_embedding_bag_per_sample_weights() -> None:
    index, scale = torch.tensor(INDEX), DRAW.standard_normal((2, 3))
    want = (TABLE[INDEX] * scale[..., None]).sum(1)

    def fn(w: Any, s: Any) -> Any:
        return F.embedding_bag(index, w, mode="sum", per_sample_weights=s)

    np.testing.assert_allclose(fn(torch.tensor(TABLE), torch.tensor(scale)).numpy(), want, rtol=1e-12)
    check_gradients(fn, TABLE, scale)


def test_embedding_refusals() -> None:
    w = torch.tensor(TABLE)
    with pytest.raises(IndexError, match=r"index out of range in self: got index 7, expected indices in \[0, 5\)"):
        F.embedding(torch.tensor([7]), w)
    with pytest.raises(
        RuntimeError, match=r"'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor"
    ):
        F.embedding(torch.tensor([1.0]), w)
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings, -5 through 4, but got 5"):
        F.embedding(torch.tensor([1]), w, padding_idx=5)
    with pytest.raises(ValueError, match="offsets has to be a 1D Tensor but got None"):
        F.embedding_bag(torch.tensor([1]), w)
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0.*got 1"):
        F.embedding_bag(torch.tensor([1]), w, torch.tensor([1]))
    with pytest.raises(NotImplementedError, match="only supported for mode='sum'"):
        F.embedding_bag(torch.tensor([[1]]), w, mode="mean", per_sample_weights=w[:1, :1])


def test_one_hot() -> None:
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(torch.tensor(1), 4).tolist() == [0, 1, 0, 0]
    with pytest.raises(RuntimeError, match="smaller than num_classes: got 2 and 2"):
        F.one_hot(torch.tensor([2]), 2)
    with pytest.raises(RuntimeError, match="non-negative, got -1"):
        F.one_hot(torch.tensor([-1]))


# Distances and bilinear forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_pdist(p: float) -> None:
    x = DRAW.standard_normal((4, 3))
    want = [np.linalg.norm(x[i] - x[j], p) for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose(torch.pdist(torch.tensor(x), p).numpy(), want, rtol=1e-12)
    check_gradients(lambda x: torch.pdist(x, p), x, tol=1e-5)
    assert torch.pdist(torch.zeros(3, 2, requires_grad=True), p).requires_grad
    (g,) = torch.autograd.grad(torch.pdist(x0 := torch.zeros(3, 2, requires_grad=True), p).sum(), x0)
    assert not g.numpy().any()


def test_similarities() -> None:
    a, b = DRAW.standard_normal((3, 4)), DRAW.standard_normal((3, 4))
    want = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(F.cosine_similarity(torch.tensor(a), torch.tensor(b)).numpy(), want, rtol=1e-12)
    check_gradients(F.cosine_similarity, a, b)
    check_gradients(lambda x, y: F.cosine_similarity(x, y, dim=0), a[0], b[1])
    check_gradients(F.pairwise_distance, a, b)
    x, y = torch.zeros(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    F.cosine_similarity(x, y).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert saved_bytes(F.cosine_similarity, x, y) == 0


def test_bilinear() -> None:
    a, b, w, c = (DRAW.standard_normal(s) for s in ((2, 3, 4), (2, 3, 5), (6, 4, 5), (6,)))
    want = np.einsum("nmi,oij,nmj->nmo", a, w, b) + c
    np.testing.assert_allclose(F.bilinear(*(torch.tensor(x) for x in (a, b, w, c))).numpy(), want, rtol=1e-10)
    check_gradients(F.bilinear, a[0], b[0], w, c, second=False)
    check_gradients(F.bilinear, a[0, :1], b[0, :1], w[:2], tol=1e-5)
    with pytest.raises(RuntimeError, match=r"expected weight \(out, 4, 5\)"):
        F.bilinear(torch.tensor(a), torch.tensor(b), torch.zeros(6, 5, 4))
