"""``torch.distributed._composable``: an older place of ``fully_shard``."""

from rushlight.absent import walls
from rushlight.distributed.fsdp import FSDPModule, fully_shard

__all__ = ["FSDPModule", "fully_shard"]


__getattr__ = walls.lacking(__name__)
