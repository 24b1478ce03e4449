"""Optimizers that run while the backward pass does."""

from __future__ import annotations

from rushlight.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)

__all__ = ["_apply_optimizer_in_backward", "_get_in_backward_optimizers"]
