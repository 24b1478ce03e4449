"""``torch.distributed.checkpoint.stateful``."""

from rushlight.distributed.checkpoint.api import Stateful

__all__ = ["Stateful"]
