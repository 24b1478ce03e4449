"""Checkpoints of several processes: each writes its part, and any number of processes reads them."""

from rushlight.absent import walls
from rushlight.distributed.checkpoint.api import Stateful, async_save, load, save
from rushlight.distributed.checkpoint.files import *

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "Stateful", "StorageReader",
           "StorageWriter", "async_save", "load", "save"]  # fmt: skip


__getattr__ = walls.lacking(__name__, "format_utils", "state_dict", "stateful")
