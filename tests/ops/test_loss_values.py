"""Losses: values, derivatives, what they keep and allocate, what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.memory import peak_bytes, saved_bytes
from tests.ops.numeric import check_gradients

import rushlight as torch
import rushlight.nn.functional as F

DRAW = np.random.default_rng(23)
X, T = DRAW.standard_normal((4, 5)), DRAW.standard_normal((4, 5))
P, Q = DRAW.uniform(0.1, 0.9, (4, 5)), DRAW.uniform(0.1, 0.9, (4, 5))
SIGNS = DRAW.choice([-1.0, 1.0], (4, 5))
CLASSES = np.array([0, 4, -100, 2])
REDUCTIONS = ["none", "mean", "sum"]
W5 = DRAW.uniform(0.5, 2, 5)

PAIRS: dict[str, Any] = {
    "mse": (F.mse_loss, X, T, lambda x, t: (x - t) ** 2),
    "l1": (F.l1_loss, X, T, lambda x, t: np.abs(x - t)),
    "smooth_l1": (lambda x, t, reduction: F.smooth_l1_loss(x, t, reduction=reduction, beta=0.7), X, T,
                  lambda x, t: np.where(np.abs(x - t) < 0.7, (x - t) ** 2 / 1.4, np.abs(x - t) - 0.35)),
    "smooth_l1 of 0": (lambda x, t, reduction: F.smooth_l1_loss(x, t, reduction=reduction, beta=0), X, T,
                       lambda x, t: np.abs(x - t)),
    "huber": (lambda x, t, reduction: F.huber_loss(x, t, reduction, 0.7), X, T,
              lambda x, t: np.where(np.abs(x - t) < 0.7, (x - t) ** 2 / 2, 0.7 * (np.abs(x - t) - 0.35))),
    "bce": (F.binary_cross_entropy, P, Q, lambda x, t: -(t * np.log(x) + (1 - t) * np.log(1 - x))),
    "logits": (F.binary_cross_entropy_with_logits, X, Q, lambda x, t: np.log1p(np.exp(x)) - x * t),
    "kl": (F.kl_div, np.log(P), Q, lambda x, t: t * (np.log(t) - x)),
    "kl log": (lambda x, t, reduction: F.kl_div(x, t, reduction=reduction, log_target=True), np.log(P), np.log(Q),
               lambda x, t: np.exp(t) * (t - x)),
    "poisson": (F.poisson_nll_loss, X, Q, lambda x, t: np.exp(x) - t * x),
    "soft_margin": (F.soft_margin_loss, X, SIGNS, lambda x, t: np.log1p(np.exp(-t * x))),
    "hinge": (F.hinge_embedding_loss, X, SIGNS, lambda x, t: np.where(t == 1, x, np.maximum(0, 1 - x))),
}  # fmt: skip


def reduced(values: Any, reduction: str) -> Any:
    return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", list(PAIRS))
def test_pairs(name: str, reduction: str) -> None:
    fn, x, t, formula = PAIRS[name]
    got = fn(torch.tensor(x), torch.tensor(t), reduction=reduction)
    np.testing.assert_allclose(got.numpy(), reduced(formula(x, t), reduction), rtol=1e-12, atol=1e-12)
    if "hinge" in name or name == "soft_margin":
        check_gradients(lambda x: fn(x, torch.tensor(t), reduction=reduction), x)
    else:
        check_gradients(lambda x, t: fn(x, t, reduction=reduction), x, t)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_blocks_of_large_arrays_give_what_one_gives(reduction: str) -> None:
    x, t = DRAW.standard_normal((300, 500)).astype(np.float32), DRAW.uniform(0, 1, (300, 500)).astype(np.float32)
    for fn in (F.mse_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits):
        got = fn(torch.tensor(x), torch.tensor(t), reduction=reduction)
        strided = fn(torch.tensor(x.T).t(), torch.tensor(t), reduction=reduction)
        np.testing.assert_allclose(got.numpy(), strided.numpy(), rtol=2e-6)
        assert got.dtype == torch.float32


def test_weights() -> None:
    x, t, w = torch.tensor(X), torch.tensor(T), torch.tensor(P)
    np.testing.assert_allclose(F.mse_loss(x, t, weight=w).item(), ((X - T) ** 2 * P).sum() / P.sum())
    np.testing.assert_allclose(F.l1_loss(x, t, weight=w).item(), (np.abs(X - T) * P).sum() / P.sum())
    np.testing.assert_allclose(F.huber_loss(x, t, weight=w).item(), (F.huber_loss(x, t, "none").numpy() * P).mean())
    pos = torch.tensor(W5)
    want = -(W5 * Q * np.log(1 / (1 + np.exp(-X))) + (1 - Q) * np.log(1 / (1 + np.exp(X)))) * P
    got = F.binary_cross_entropy_with_logits(x, torch.tensor(Q), w, pos_weight=pos, reduction="none")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    check_gradients(lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p), X, Q, P, W5, tol=1e-5)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def cross_entropy(x: Any, t: Any, w: Any, smoothing: float, reduction: str) -> Any:
    logs, keep = log_softmax(x), t != -100
    safe = np.where(keep, t, 0)
    direct = -np.take_along_axis(logs, safe[:, None], 1)[:, 0] * w[safe]
    spread = -(logs * w.reshape(-1, *(1,) * (x.ndim - 2))).sum(1) / x.shape[1]
    rows = ((1 - smoothing) * direct + smoothing * spread) * keep
    return rows.sum() / (w[safe] * keep).sum() if reduction == "mean" else reduced(rows, reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("spatial", [False, True])
def test_cross_entropy(reduction: str, weighted: bool, smoothing: float, spatial: bool) -> None:
    x, t = (DRAW.standard_normal((2, 5, 3)), DRAW.integers(0, 5, (2, 3))) if spatial else (X, CLASSES)
    w = W5 if weighted else np.ones(5)
    weight = torch.tensor(w) if weighted else None

    def fn(x: Any) -> Any:
        return F.cross_entropy(x, torch.tensor(t), weight, reduction=reduction, label_smoothing=smoothing)

    np.testing.assert_allclose(fn(torch.tensor(x)).numpy(), cross_entropy(x, t, w, smoothing, reduction), rtol=1e-12)
    check_gradients(fn, x)


def test_cross_entropy_of_probabilities_one_row_and_nothing() -> None:
    want = -(log_softmax(X) * (0.8 * Q + 0.2 / 5) * W5).sum() / 4
    got = F.cross_entropy(torch.tensor(X), torch.tensor(Q), torch.tensor(W5), label_smoothing=0.2)
    np.testing.assert_allclose(got.item(), want, rtol=1e-12)
    check_gradients(lambda x, t: F.cross_entropy(x, t), X, Q)
    one = F.cross_entropy(torch.tensor(X[0]), torch.tensor(3))
    np.testing.assert_allclose(one.item(), -log_softmax(X[:1])[0, 3])
    assert math.isnan(F.cross_entropy(torch.tensor(X), torch.full((4,), -100)).item())
    assert F.cross_entropy(torch.tensor(X), torch.full((4,), -100), reduction="sum").item() == 0


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll(reduction: str) -> None:
    def fn(x: Any) -> Any:
        return F.nll_loss(x, torch.tensor(CLASSES), torch.tensor(W5), reduction=reduction)

    keep, safe = CLASSES != -100, np.where(CLASSES == -100, 0, CLASSES)
    rows = -X[np.arange(4), safe] * W5[safe] * keep
    want = rows.sum() / (W5[safe] * keep).sum() if reduction == "mean" else reduced(rows, reduction)
    np.testing.assert_allclose(fn(torch.tensor(X)).numpy(), want, rtol=1e-12)
    check_gradients(fn, X)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_linear_cross_entropy_is_that_of_the_layer(reduction: str) -> None:
    w, b, t = DRAW.standard_normal((7, 5)), DRAW.standard_normal(7), torch.tensor([0, 6, -100, 2])

    def fused(x: Any, w: Any, b: Any) -> Any:
        options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=3)
        return F.linear_cross_entropy(x, w, t, linear_bias=b, reduction=reduction, label_smoothing=0.1, options=options)

    given = [torch.tensor(a) for a in (X, w, b)]
    want = F.cross_entropy(F.linear(*given), t, reduction=reduction, label_smoothing=0.1)
    np.testing.assert_allclose(fused(*given).numpy(), want.numpy(), rtol=1e-12)
    check_gradients(fused, X, w, b)


def test_margins() -> None:
    x, y = torch.tensor(X), torch.tensor([0, 4, 1, 2])
    rows = np.arange(4)
    hinge = np.maximum(0, 1 - X[rows, y.numpy()][:, None] + X)
    hinge[rows, y.numpy()] = 0
    np.testing.assert_allclose(F.multi_margin_loss(x, y).item(), hinge.sum(1).mean() / 5)
    np.testing.assert_allclose(F.multi_margin_loss(x, y, p=2, reduction="sum").item(), (hinge**2).sum() / 5)
    labels = np.array([3, 0, -1, 1, 2])
    want = sum(max(0, 1 - X[0, j] + X[0, i]) for j in (3, 0) for i in (1, 2, 4)) / 5
    np.testing.assert_allclose(F.multilabel_margin_loss(x[0], torch.tensor(labels)).item(), want)
    for fn in (lambda x: F.multi_margin_loss(x, y, p=2), lambda x: F.multilabel_soft_margin_loss(x, torch.tensor(Q)),
               lambda x: F.multilabel_margin_loss(x[0], torch.tensor(labels))):  # fmt: skip
        check_gradients(fn, X)


def test_rankings_and_triplets() -> None:
    signs = torch.tensor(SIGNS[:, 0])
    check_gradients(lambda a, b: F.margin_ranking_loss(a, b, signs, 0.3), X[:, 0], T[:, 0])
    check_gradients(lambda a, b: F.cosine_embedding_loss(a, b, signs, 0.1), X, T)
    check_gradients(lambda a, p, n: F.triplet_margin_loss(a, p, n, 2.0, swap=True), X, T, P)
    cos = (X * T).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(T, axis=1)
    want = np.where(SIGNS[:, 0] == 1, 1 - cos, np.maximum(0, cos - 0.1)).mean()
    got = F.cosine_embedding_loss(torch.tensor(X), torch.tensor(T), signs, 0.1)
    np.testing.assert_allclose(got.item(), want, rtol=1e-9)
    distances = [np.linalg.norm(X - other + 1e-6, axis=1) for other in (T, P)]
    got = F.triplet_margin_loss(*(torch.tensor(a) for a in (X, T, P)), margin=2.0)
    np.testing.assert_allclose(got.item(), np.maximum(0, 2 + distances[0] - distances[1]).mean())


def test_gaussian_and_poisson() -> None:
    x, t, v = (torch.tensor(a) for a in (X, T, P))
    want = 0.5 * (np.log(P) + (X - T) ** 2 / P + np.log(2 * np.pi))
    np.testing.assert_allclose(F.gaussian_nll_loss(x, t, v, full=True, reduction="none").numpy(), want, rtol=1e-12)
    check_gradients(lambda x, t, v: F.gaussian_nll_loss(x, t, v), X, T, P)
    counts = np.array([0.0, 1.0, 4.0])
    stirling = np.where(counts > 1, 4 * np.log(4) - 4 + 0.5 * np.log(8 * np.pi), 0)
    got = F.poisson_nll_loss(torch.zeros(3).double(), torch.tensor(counts), full=True, reduction="none")
    np.testing.assert_allclose(got.numpy(), 1 + stirling, rtol=1e-12)


def brute_force(logs: Any, labels: list[int]) -> float:
    """Minus the logarithm of the probability of all alignments, one by one."""
    total, (steps, classes) = 0.0, logs.shape
    for path in np.ndindex(*(classes,) * steps):
        merged = [c for i, c in enumerate(path) if c and (i == 0 or c != path[i - 1])]
        if merged == labels:
            total += math.exp(sum(logs[i, c] for i, c in enumerate(path)))
    return -math.log(total) if total else math.inf


def test_ctc_against_every_alignment() -> None:
    x = DRAW.standard_normal((4, 3, 3))
    logs = np.moveaxis(log_softmax(np.moveaxis(x, 2, 1)), 1, 2)
    labels, steps = [[1, 1], [2], [1, 2]], [4, 3, 4]
    want = [brute_force(logs[:n, i], own) for i, (own, n) in enumerate(zip(labels, steps, strict=True))]
    flat = torch.tensor([c for own in labels for c in own])

    def fn(x: Any) -> Any:
        return F.ctc_loss(F.log_softmax(x, 2), flat, tuple(steps), torch.tensor([2, 1, 2]), reduction="none")

    np.testing.assert_allclose(fn(torch.tensor(x)).numpy(), want, rtol=1e-10)
    check_gradients(fn, x, second=False)
    padded = torch.tensor([[1, 1], [2, 0], [1, 2]])
    again = F.ctc_loss(torch.tensor(logs), padded, torch.tensor(steps), torch.tensor([2, 1, 2]))
    np.testing.assert_allclose(again.item(), np.mean(np.array(want) / [2, 1, 2]), rtol=1e-10)


def test_ctc_that_cannot_be() -> None:
    logs = torch.zeros(1, 1, 3).log_softmax(2).requires_grad_()
    assert F.ctc_loss(logs, torch.tensor([[1, 1]]), (1,), (2,)).item() == math.inf
    loss = F.ctc_loss(logs, torch.tensor([[1, 1]]), (1,), (2,), zero_infinity=True)
    loss.backward()
    assert loss.item() == 0 and not logs.grad.any()
    x = torch.zeros(2, 1, 3, requires_grad=True)
    (g,) = torch.autograd.grad(F.ctc_loss(x, torch.tensor([[1]]), (2,), (1,)), x, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivative"):
        g.sum().backward()


def test_what_is_saved() -> None:
    x, t = torch.ones(64, 1000, requires_grad=True), torch.zeros(64, dtype=torch.int64)
    assert (
        saved_bytes(F.cross_entropy, x, t) <= 64 * 2 * 4 + 64
    )  # of each row its greatest logit and the sum beside that
    assert saved_bytes(F.nll_loss, x, t) == 0
    y = torch.zeros(64, 1000)
    for fn in (F.mse_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits, F.soft_margin_loss):
        assert saved_bytes(fn, x, y) == 0


def test_what_is_allocated() -> None:
    x, t = torch.zeros(512, 1024), torch.zeros(512, 1024)
    for fn in (F.mse_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits):
        assert peak_bytes(lambda fn=fn: fn(x, t)) < 0.75 * x.nbytes
    classes = torch.zeros(512, dtype=torch.int64)
    assert peak_bytes(lambda: F.cross_entropy(x, classes)) < 0.1 * x.nbytes
    leaf = torch.zeros(512, 1024, requires_grad=True)
    assert peak_bytes(lambda: torch.autograd.grad(F.cross_entropy(leaf, classes), leaf)) < 1.1 * x.nbytes


@pytest.mark.parametrize("rows", [64, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_linear_cross_entropy_never_holds_the_logits(dtype: Any, rows: int | None) -> None:
    x, w = (torch.zeros(n, 16, dtype=dtype, requires_grad=True) for n in (4096, 16384))
    t = torch.zeros(4096, dtype=torch.int64)
    options = None if rows is None else torch.nn.LinearCrossEntropyOptions(batch_chunk_size=rows)
    logits = 4096 * 16384 * 4

    def run() -> Any:
        return torch.autograd.grad(F.linear_cross_entropy(x, w, t, options=options), [x, w])

    assert peak_bytes(run) < (0.05 if rows else 0.2) * logits


def test_refusals() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(ValueError, match="all is not a valid value for reduction: expected 'none', 'mean' or 'sum'"):
        F.mse_loss(x, x, reduction="all")
    with pytest.raises(IndexError, match=r"Target 5 is out of bounds"):
        F.cross_entropy(x, torch.tensor([0, 5]))
    with pytest.raises(IndexError, match=r"Target -1 is out of bounds: expected \[0, 3\) or ignore_index=-100"):
        F.nll_loss(x, torch.tensor([0, -1]))
    with pytest.raises(
        ValueError, match=r"cross_entropy: Expected input batch_size \(2\) to match target batch_size \(1\)"
    ):
        F.cross_entropy(x, torch.tensor([0]))
    with pytest.raises(RuntimeError, match=r"cross_entropy: expected target dtype to be Long or Byte, but got Float"):
        F.cross_entropy(x, torch.zeros(2))
    with pytest.raises(RuntimeError, match=r"label_smoothing must be between 0.0 and 1.0. Got: 2"):
        F.cross_entropy(x, torch.tensor([0, 1]), label_smoothing=2)
    with pytest.raises(ValueError, match="binary_cross_entropy_with_logits: Target size"):
        F.binary_cross_entropy_with_logits(x, torch.zeros(3))
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(x + 2, x)
    with pytest.raises(RuntimeError, match="beta, got -1"):
        F.smooth_l1_loss(x, x, beta=-1)
    with pytest.raises(RuntimeError, match="blank must be in label range: got 3 for 3 classes"):
        F.ctc_loss(torch.zeros(2, 1, 3), torch.tensor([[1]]), (2,), (1,), blank=3)
    with pytest.warns(UserWarning, match=r"size that is different|target size"):
        F.mse_loss(x, torch.zeros(1, 2, 3))
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.mse_loss(x, x + 1, size_average=False).item() == 6


@pytest.mark.parametrize("loss", [torch.nn.functional.huber_loss, torch.nn.functional.smooth_l1_loss])
def test_the_slope_of_a_smooth_loss_is_constant_from_its_kink_on(loss):
    x = torch.tensor([-2.0, -1.0, 0.5, 1.0], requires_grad=True)
    (g,) = torch.autograd.grad(loss(x, torch.zeros(4), reduction="sum"), x, create_graph=True)
    assert g.tolist() == [-1, -1, 0.5, 1]
    (unknown,) = torch.autograd.grad(loss(x * math.nan, torch.zeros(4)), x, create_graph=True)
    assert unknown.isnan().all()
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss])
def test_second_derivatives_beside_a_mask(loss):
    x = torch.tensor([1.0, 0.5], requires_grad=True)
    (g,) = torch.autograd.grad(loss(x, torch.tensor([True, False]), reduction="sum"), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == pytest.approx([2, 2] if loss is F.mse_loss else [1, 1])


@pytest.mark.filterwarnings("ignore:.*Using a target size")
@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss])
def test_neither_operand_of_a_loss_counts_as_a_number(loss):
    one, many = torch.tensor(2.0, dtype=torch.float64), torch.ones(2, dtype=torch.float16)
    assert loss(one, many).dtype == loss(many, one).dtype == torch.float64


def test_forward_mode_of_ctc_loss_is_refused_by_name():
    ad, x = torch.autograd.forward_ad, torch.randn(5, 1, 4).log_softmax(2)
    with (
        ad.dual_level(),
        pytest.raises(NotImplementedError, match="Trying to use forward AD with ctc_loss that does not"),
    ):
        torch.nn.functional.ctc_loss(ad.make_dual(x, x), torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2]))


CONSTANTS = {
    "nll_loss": lambda w: F.nll_loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0]), w),
    "cross_entropy": lambda w: F.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0]), w, label_smoothing=0.1),
    "linear_cross_entropy": lambda w: F.linear_cross_entropy(torch.ones(4, 2), torch.ones(3, 2), torch.tensor([0, 1, 2, 0]), weight=w),
    "binary_cross_entropy": lambda w: F.binary_cross_entropy(torch.full((4, 3), 0.5), torch.ones(4, 3), w),
    "batch_norm": lambda w: F.batch_norm(torch.ones(4, 3), w, torch.ones(3)),
    "batch_norm of variances": lambda w: F.batch_norm(torch.ones(4, 3), torch.ones(3), w),
    "instance_norm": lambda w: F.instance_norm(torch.ones(4, 3, 2), w * 1, torch.ones(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANTS)
def test_an_argument_without_a_gradient_may_not_require_one(name: str) -> None:
    """As in PyTorch; its gradient was lost in silence."""
    w = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="is not differentiable with respect to argument"):
        CONSTANTS[name](w)
    with torch.no_grad():
        CONSTANTS[name](w)
    assert not CONSTANTS[name](w.detach()).requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("loss", [
    lambda x, t: F.nll_loss(x, t), lambda x, t: F.cross_entropy(x, t), lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
    lambda x, t: F.linear_cross_entropy(x, torch.ones(4, 3, dtype=torch.float64), t),
])  # fmt: skip
def test_a_mean_of_nothing_but_ignored_classes_is_no_number_and_has_gradients_of_zero(
    loss: Any, create_graph: bool
) -> None:
    """As in PyTorch: a batch of padding leaves weights as they are; they became NaN by nll_loss, and with create_graph."""
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    value = loss(x, torch.tensor([-100, -100]))
    (g,) = torch.autograd.grad(value, x, create_graph=create_graph)
    assert value.isnan().item() and g.tolist() == [[0.0] * 3] * 2


def test_a_mean_of_weights_of_zero_has_a_gradient_where_a_class_counts_alone() -> None:
    x, w = torch.ones(2, 3, dtype=torch.float64, requires_grad=True), torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64)
    for loss in (F.nll_loss, F.cross_entropy):
        for create_graph in (False, True):
            (g,) = torch.autograd.grad(loss(x, torch.tensor([0, -100]), w), x, create_graph=create_graph)
            assert g[0, 0].isnan().item() and g[1].tolist() == [0.0] * 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_smoothing_over_many_classes_is_added_up_in_more_than_16_bits(dtype: torch.dtype) -> None:
    logits = torch.from_numpy(np.random.default_rng(0).standard_normal((8, 5000))).to(dtype).requires_grad_()
    weight = torch.from_numpy(np.random.default_rng(1).standard_normal((5000, 3)) / 50).to(dtype)
    hidden = torch.from_numpy(np.random.default_rng(2).standard_normal((8, 3))).to(dtype).requires_grad_()
    classes = torch.arange(8)
    for loss, x in (
        (lambda: F.cross_entropy(logits, classes, label_smoothing=0.5, reduction="sum"), logits),
        (lambda: F.linear_cross_entropy(hidden, weight, classes, label_smoothing=0.5, reduction="sum"), hidden),
    ):
        (plain,) = torch.autograd.grad(loss(), x)
        (recorded,) = torch.autograd.grad(loss(), x, create_graph=True)  # by the formula that has a gradient itself
        assert (plain - recorded).abs().max() <= 0.01 * plain.abs().max()


@pytest.mark.parametrize("dim", [1, 2, 0])
def test_gradients_of_cosine_similarity_are_made_of_some_rows_at_a_time(dim: int) -> None:
    torch.manual_seed(0)
    x, y = (torch.randn(200, 50, 90, requires_grad=True) for _ in "xy")
    similarity = F.cosine_similarity(x, y, dim)
    g = torch.randn(*similarity.shape)
    found = torch.autograd.grad(similarity, (x, y), g, retain_graph=True)
    by_tensors = torch.autograd.grad(similarity, (x, y), g, create_graph=True)  # of all at once
    assert all(torch.allclose(a, b, rtol=1e-6, atol=1e-7) for a, b in zip(found, by_tensors, strict=True))
    if dim:
        assert peak_bytes(lambda: torch.autograd.grad(similarity, (x, y), g, retain_graph=True)) < 2.6 * x.nbytes
