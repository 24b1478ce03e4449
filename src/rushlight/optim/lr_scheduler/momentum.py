"""Momentum that moves against the rate: SGD's `momentum`, or Adam's first beta."""

from __future__ import annotations

from typing import Any

from rushlight.optim.optimizer import Optimizer
from rushlight.tensor import Tensor


def uses_beta1(optimizer: Optimizer) -> bool:
    """Whether the momentum is the first beta.  Raises ValueError when the optimizer has no momentum at all."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], value: Tensor | complex, beta1: bool) -> None:
    """Set the momentum of a group."""
    if beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value
