"""``torch.distributed._tensor``: an older place of ``torch.distributed.tensor``."""

from typing import Any

from rushlight.absent import walls
from rushlight.distributed.tensor import *  # noqa: F403
from rushlight.distributed.tensor import __all__ as __all__

__path__: list[str] = []  # `experimental` is imported from below it


def __getattr__(name: str) -> Any:
    """Of what is not here there are names."""
    return walls.missing(__name__, name)
