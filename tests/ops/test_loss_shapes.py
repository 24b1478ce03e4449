"""Losses of tensors that do not go together: refused with PyTorch's error classes and sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.basics.dtype_words import older

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size", "ignore:.*_loss", "ignore:reduction")
REDUCTIONS = ["none", "mean", "sum"]
X, T, WIDE = torch.ones(8, 1), torch.ones(7, 1), torch.ones(8, 3)

PAIRS: dict[str, Callable[..., Any]] = {
    "mse": F.mse_loss, "l1": F.l1_loss, "l1 of integers": lambda x, t, **kw: F.l1_loss(x.long(), t.long(), **kw),
    "smooth l1": F.smooth_l1_loss, "smooth l1 of 0": lambda x, t, **kw: F.smooth_l1_loss(x, t, beta=0, **kw),
    "huber": F.huber_loss, "soft margin": F.soft_margin_loss,
    "gaussian": lambda x, t, **kw: F.gaussian_nll_loss(x, t, x, **kw),
}  # fmt: skip
TARGET_FIRST: dict[str, Callable[..., Any]] = {
    "kl": F.kl_div, "kl of logarithms": lambda x, t, **kw: F.kl_div(x, t, log_target=True, **kw),
    "multilabel": F.multilabel_soft_margin_loss, "poisson": F.poisson_nll_loss, "hinge": F.hinge_embedding_loss,
}  # fmt: skip


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", list(PAIRS))
def test_sizes_that_differ(name: str, reduction: str) -> None:
    message = r"The size of tensor a \(8\) must match the size of tensor b \(7\) at non-singleton dimension 0"
    for x in (X, X.double(), X.clone().requires_grad_(name != "l1 of integers")):
        with pytest.raises(RuntimeError, match=message):
            PAIRS[name](x, T.to(x.dtype), reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", list(TARGET_FIRST))
def test_sizes_that_differ_where_the_target_is_the_first_operand(name: str, reduction: str) -> None:
    message = r"The size of tensor a \(7\) must match the size of tensor b \(8\) at non-singleton dimension 0"
    with pytest.raises(RuntimeError, match=message):
        TARGET_FIRST[name](X, T, reduction=reduction)


def test_sizes_that_differ_of_different_ranks_and_dtypes() -> None:
    message = r"tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 2"
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        with pytest.raises(RuntimeError, match=message):
            F.mse_loss(torch.ones(2, 3), torch.ones(4, 1, 2, dtype=dtype))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_of_logits_that_do_not_fit(reduction: str) -> None:
    def loss(x: Any, **weights: Any) -> Any:
        return F.binary_cross_entropy_with_logits(x, torch.ones(x.shape), reduction=reduction, **weights)

    match = r"must match the size of tensor b \([23]\) at non-singleton dimension 1"
    for weights in ({"pos_weight": torch.ones(2)}, {"weight": torch.ones(2)},
                    {"weight": torch.ones(3), "pos_weight": torch.ones(2)}):  # fmt: skip
        with pytest.raises(RuntimeError, match=match):
            loss(WIDE, **weights)
    for name in ("weight", "pos_weight"):
        with pytest.raises(
            RuntimeError, match=r"output with shape \[8, 1\] doesn't match the broadcast shape \[8, 2\]"
        ):
            loss(X, **{name: torch.ones(8, 2)})


def test_a_weight_of_probabilities_that_does_not_fit() -> None:
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(8\) must match the size of tensor b \(3\)"):
        F.binary_cross_entropy(X, X, weight=torch.ones(3, 2))


def test_weights_that_fit_are_broadcast() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0])
    got = F.binary_cross_entropy_with_logits(WIDE, WIDE, weight, reduction="none", pos_weight=weight)
    plain = F.binary_cross_entropy_with_logits(WIDE, WIDE, reduction="none")
    assert torch.allclose(got, plain * weight * weight)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_logits_want_a_target_of_floating_point(dtype: Any) -> None:
    with pytest.raises(RuntimeError, match=f"can't be cast to the desired output type {older(dtype)}"):
        F.binary_cross_entropy_with_logits(X, X.to(dtype))
    F.multilabel_soft_margin_loss(X, X.long())  # whose targets may be integers


@pytest.mark.parametrize("turned", [False, True])
def test_classes_of_a_multilabel_loss_are_broadcast(turned: bool) -> None:
    x, t, w = torch.rand(3, 1).requires_grad_(), torch.rand(3, 4).requires_grad_(), torch.rand(4)
    x, t = (t, x) if turned else (x, t)
    found = torch.autograd.grad(F.multilabel_soft_margin_loss(x, t, weight=w), (x, t))
    whole = F.multilabel_soft_margin_loss(x.expand(3, 4), t.expand(3, 4), weight=w) * (
        4 / x.shape[1]
    )  # of the input's classes
    for a, b in zip(found, torch.autograd.grad(whole, (x, t)), strict=True):
        torch.testing.assert_close(a, b)


def test_kl_div_wants_floating_point() -> None:
    for x, t in ((X.long(), X), (X, X.long()), (X, X.bool())):
        with pytest.raises(RuntimeError, match="kl_div: Integral inputs not supported"):
            F.kl_div(x, t)


def test_ctc_loss_wants_a_row_of_labels_for_each_sample() -> None:
    scores = torch.zeros(5, 2, 3)
    for rows in (1, 3):
        with pytest.raises(RuntimeError, match=f"Expected targets to have size 2 at dimension 0, but got size {rows}"):
            F.ctc_loss(scores, torch.ones(rows, 2, dtype=torch.int64), (5, 5), (2, 2))


def test_cosine_similarity_names_the_sizes_that_differ() -> None:
    message = r"The size of tensor a \(8\) must match the size of tensor b \(7\) at non-singleton dimension 0"
    for fn in (F.cosine_similarity, torch.broadcast_tensors):
        with pytest.raises(RuntimeError, match=message):
            fn(WIDE, torch.ones(7, 3))


def test_losses_of_logits_are_of_the_wider_dtype() -> None:
    x, y = torch.tensor([0.3, -1.2], dtype=torch.float64, requires_grad=True), torch.tensor([1.0, 0.0])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(x, y)
    assert (
        loss.dtype is torch.float64
        and loss.item() == torch.nn.functional.binary_cross_entropy_with_logits(x, y.double()).item()
    )
    loss.backward()
    assert x.grad.dtype is torch.float64


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
def test_the_class_of_one_row_may_lie_in_a_list(loss: Callable[..., torch.Tensor]) -> None:
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    for reduction in REDUCTIONS:
        one, bare = (loss(x, torch.tensor(target), reduction=reduction) for target in ([1], 1))
        assert one.shape == bare.shape == () and one.item() == bare.item()
    (given,) = torch.autograd.grad(loss(x, torch.tensor([1])), x)
    (wanted,) = torch.autograd.grad(loss(x, torch.tensor(1)), x)
    assert given.tolist() == wanted.tolist()
    for several in ([1, 2], []):
        with pytest.raises(ValueError, match=f"1D target must have size 1, but got target size: {len(several)}"):
            loss(x, torch.tensor(several, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="0D or 1D target tensor expected"):
        loss(x, torch.tensor([[1]]))
