"""Optimizers that run while the backward pass does."""

from rushlight import absent
from rushlight.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)
from rushlight.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from rushlight.distributed.optim.utils import as_functional_optim
from rushlight.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = [
    "PostLocalSGDOptimizer",
    "ZeroRedundancyOptimizer",
    "_apply_optimizer_in_backward",
    "_get_in_backward_optimizers",
    "as_functional_optim",
]

_WHY = "ZeroRedundancyOptimizer and fsdp.fully_shard deal optimizer state to processes"
absent.names(globals(), _WHY, "DistributedOptimizer")
