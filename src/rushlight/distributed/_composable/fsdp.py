"""``torch.distributed._composable.fsdp``: an older place of ``torch.distributed.fsdp``."""

from rushlight.distributed.fsdp import *  # noqa: F403
from rushlight.distributed.fsdp import __all__ as __all__
