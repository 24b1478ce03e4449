"""``torch.distributed._composable``: an older place of ``fully_shard``."""

from typing import Any

from rushlight.absent import walls
from rushlight.distributed.fsdp import FSDPModule, fully_shard

__all__ = ["FSDPModule", "fully_shard"]


def __getattr__(name: str) -> Any:
    """Of what is not here there are names."""
    return walls.missing(__name__, name)
