"""Parameters, gradients and optimizer state of modules dealt to processes."""

from typing import Any

from rushlight.absent import walls
from rushlight.distributed.fsdp.fully_shard import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from rushlight.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
           "register_fsdp_forward_method"]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Of what is not here there are names."""
    return walls.missing(__name__, name)
