"""Checkpoints of several processes: each writes its part, and any number of processes reads them."""

from typing import Any

from rushlight.absent import walls
from rushlight.distributed.checkpoint.api import Stateful, async_save, load, save
from rushlight.distributed.checkpoint.files import (
    CheckpointException,
    FileSystemReader,
    FileSystemWriter,
    StorageReader,
    StorageWriter,
)

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "Stateful", "StorageReader", "StorageWriter", "async_save", "load",
           "save"]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Submodules are imported when they are first asked for; of what is not here there are names."""
    import importlib

    if name in ("format_utils", "state_dict", "stateful"):
        return importlib.import_module(f"{__name__}.{name}")
    return walls.missing(__name__, name)
