"""Parameters, gradients and optimizer state of modules dealt to processes."""

import importlib
from typing import Any

from rushlight.absent import walls
from rushlight.distributed.fsdp.fully_shard import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from rushlight.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
           "register_fsdp_forward_method"]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The older way is imported when it is first asked for; of what is not here there are names."""
    if name in ("api", "fully_sharded_data_parallel", "wrap"):
        return importlib.import_module(f"{__name__}.{name}")
    older = importlib.import_module(f"{__name__}.fully_sharded_data_parallel")
    return getattr(older, name) if name in older.__all__ else walls.missing(__name__, name)
