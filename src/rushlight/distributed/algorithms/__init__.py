"""Ways to train together: communication hooks, and processes with different numbers of batches."""

import importlib
from typing import Any

from rushlight.absent import walls
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]


def __getattr__(name: str) -> Any:
    """Submodules are imported when they are first asked for; of what is not here there are names."""
    if name in ("_checkpoint", "ddp_comm_hooks", "join"):
        return importlib.import_module(f"{__name__}.{name}")
    return walls.missing(__name__, name)
