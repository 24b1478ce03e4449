"""Losses under torch's own name, where the reduction is a number: 0 none (as in PyTorch the default), 1 mean, 2 sum."""

from __future__ import annotations

from rushlight.dispatch.registry import function
from rushlight.ops.loss import loss, margins
from rushlight.ops.loss.loss import REDUCTIONS
from rushlight.tensor import Tensor


@function()
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """As torch.nn.functional.kl_div."""
    return loss.divergence(input, target, REDUCTIONS[reduction], log_target)


@function()
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """As torch.nn.functional.poisson_nll_loss."""
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=REDUCTIONS[reduction])


@function()
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """As torch.nn.functional.hinge_embedding_loss."""
    return margins.hinge_embedding_loss(input, target, margin, reduction=REDUCTIONS[reduction])


@function()
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """As torch.nn.functional.margin_ranking_loss."""
    return margins.margin_ranking_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


@function()
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """As torch.nn.functional.cosine_embedding_loss."""
    return margins.cosine_embedding_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


@function()
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
                        swap: bool = False, reduction: int = 0) -> Tensor:  # fmt: skip
    """As torch.nn.functional.triplet_margin_loss."""
    kind = REDUCTIONS[reduction]
    return margins.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=kind)
