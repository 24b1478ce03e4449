"""Optimizers that run while the backward pass does."""

from __future__ import annotations

from rushlight import absent
from rushlight.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)

__all__ = ["_apply_optimizer_in_backward", "_get_in_backward_optimizers"]

_WHY = "rushlight trains in one process, where the optimizer inside of it does what is needed; rushlight.memory.budget pages its state"
absent.names(
    globals(), _WHY, "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer", "as_functional_optim"
)
