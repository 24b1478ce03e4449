"""Optimizers that run while the backward pass does."""

from __future__ import annotations

from rushlight import absent
from rushlight.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)

__all__ = ["_apply_optimizer_in_backward", "_get_in_backward_optimizers"]

_WHY = "an optimizer here has all of its state in each process; rushlight.memory.budget pages it"
absent.names(
    globals(), _WHY, "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer", "as_functional_optim"
)
