"""Losses under torch's own name, where the reduction is a number: 0 none (as in PyTorch the default), 1 mean, 2 sum."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.registry import function
from rushlight.ops.loss import loss, margins
from rushlight.ops.loss.loss import REDUCTIONS


@function()
def kl_div(input: Any, target: Any, reduction: int = 0, *, log_target: bool = False) -> Any:
    """As torch.nn.functional.kl_div."""
    return loss.divergence(input, target, REDUCTIONS[reduction], log_target)


@function()
def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    """As torch.nn.functional.poisson_nll_loss."""
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=REDUCTIONS[reduction])


@function()
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = 0) -> Any:
    """As torch.nn.functional.hinge_embedding_loss."""
    return margins.hinge_embedding_loss(input, target, margin, reduction=REDUCTIONS[reduction])


@function()
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0) -> Any:
    """As torch.nn.functional.margin_ranking_loss."""
    return margins.margin_ranking_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


@function()
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0) -> Any:
    """As torch.nn.functional.cosine_embedding_loss."""
    return margins.cosine_embedding_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


@function()
def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
                        swap: bool = False, reduction: int = 0) -> Any:  # fmt: skip
    """As torch.nn.functional.triplet_margin_loss."""
    kind = REDUCTIONS[reduction]
    return margins.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=kind)
