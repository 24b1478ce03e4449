"""``torch.distributed._tensor``: an older place of ``torch.distributed.tensor``."""

from rushlight.absent import walls
from rushlight.distributed.tensor import *  # noqa: F403
from rushlight.distributed.tensor import __all__ as __all__

__path__: list[str] = []  # `experimental` is imported from below it


__getattr__ = walls.lacking(__name__)
