"""From a checkpoint of several processes to an ordinary file and back."""

from __future__ import annotations

import os

from rushlight.absent import walls
from rushlight.distributed.checkpoint.api import save, whole
from rushlight.distributed.checkpoint.files import FileSystemReader
from rushlight.serialization.load import load as load_file
from rushlight.serialization.save import save as save_file

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write a checkpoint of several processes as one ordinary file, which `torch.load` reads; by one process."""
    save_file(whole(FileSystemReader(dcp_checkpoint_dir)), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write an ordinary file of a state dict as a checkpoint that several processes can read; by one process."""
    save(load_file(torch_save_path), checkpoint_id=dcp_checkpoint_dir, no_dist=True)


__getattr__ = walls.lacking(__name__)
