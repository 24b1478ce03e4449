"""The files of a checkpoint: each process writes one with its parts, and one more says where everything lies.

That one, `.metadata`, is JSON and is written last, under another name first: a folder has the checkpoint before or the one after,
whole, whenever a process is killed.  Numbers lie in the parts as they do in memory.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.serialization.atomic import replacing
from rushlight.tensor import Tensor

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "StorageReader", "StorageWriter"]

METADATA, FORMAT = ".metadata", "rushlight.distributed.checkpoint 1"
DTYPES = {d.name: d.numpy for d in (*dtypes.ALL, *dtypes.EIGHTS)}


class CheckpointException(RuntimeError):
    """A checkpoint could not be written or read; `failures` says why, by rank."""

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__("\n".join([msg, *(f"rank {rank}: {error}" for rank, error in failures.items())]))
        self.failures = failures


class StorageWriter:
    """Where a checkpoint is written: a `FileSystemWriter`."""


class StorageReader:
    """Where a checkpoint is read from: a `FileSystemReader`."""


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint into a folder, which is made.

    Each process writes one file, and waits until it is on the disk; further options of PyTorch's are accepted.  overwrite: whether
    a checkpoint that is there is replaced; else that is an error.
    """

    def __init__(self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True,
                 thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
                 overwrite: bool = True, **options: object) -> None:  # fmt: skip
        self.path, self.overwrite = Path(path), overwrite

    def token(self) -> str:
        """What tells the files of one checkpoint from those of another in the same folder; makes the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / METADATA).exists():
            raise FileExistsError(f"{self.path} has a checkpoint, and overwrite=False")
        return secrets.token_hex(4)

    def write(self, rank: int, token: str, items: list[tuple[dict[str, Any], Any]]) -> list[dict[str, Any]]:
        """Write a process's file; each item's description, with where it lies.  items: pairs of description and bytes or array"""
        name, found = f"__{rank}_0.{token}.distcp", []
        if not items:
            return []
        with replacing(self.path / name) as file:
            for described, value in items:
                at = file.tell()
                data: Any = (
                    value if isinstance(value, bytes) else np.ascontiguousarray(value).reshape(-1).view(np.uint8)
                )
                file.write(data)
                found.append({**described, "file": name, "at": at, "bytes": file.tell() - at})
            file.flush()
        return found

    def finish(self, entries: list[dict[str, Any]]) -> None:
        """Say where everything lies; what no checkpoint needs any more is removed."""
        with replacing(self.path / METADATA) as file:
            file.write(json.dumps({"format": FORMAT, "entries": entries}).encode())
        kept = {entry["file"] for entry in entries}
        for path in self.path.glob("__*.distcp"):
            if path.name not in kept:
                path.unlink(missing_ok=True)


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a folder."""

    def __init__(self, path: str | os.PathLike[str], _extension_registry: object = None) -> None:
        self.path = Path(path)

    def read_metadata(self) -> list[dict[str, Any]]:
        """The descriptions of everything.  Raises FileNotFoundError without a whole checkpoint, ValueError for another's."""
        try:
            data = (self.path / METADATA).read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.path} has no checkpoint: there is no file {METADATA}, which is written last"
            ) from None
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(f"{self.path / METADATA} is not of a checkpoint of this package: convert PyTorch's with its "
                             "format_utils.dcp_to_torch_save, and read that with torch.load")  # fmt: skip
        return found["entries"]  # type: ignore[no-any-return]

    def read(self, entry: dict[str, Any]) -> Any:
        """What an entry describes: the bytes of an object; an array on the file's memory of a part of a tensor."""
        name = entry["file"]
        if os.path.basename(name) != name:
            raise ValueError(f"{self.path / METADATA} names the file {name!r}, which is not in its folder")
        if "dtype" not in entry:
            with open(self.path / name, "rb") as file:
                file.seek(entry["at"])
                return file.read(entry["bytes"])
        dtype, shape = DTYPES[entry["dtype"]], tuple(b - a for a, b in entry["box"])
        if entry["bytes"] != math.prod(shape) * dtype.itemsize:
            raise ValueError(
                f"{entry['key']} in {name}: expected {math.prod(shape) * dtype.itemsize} bytes, got {entry['bytes']}"
            )
        if not entry["bytes"]:
            return np.empty(shape, dtype)
        data = np.memmap(self.path / name, np.uint8, "r", entry["at"], (entry["bytes"],))
        return np.asarray(data).view(dtype).reshape(shape)


def filled(target: Tensor, box: list[tuple[int, int]], entry: dict[str, Any], reader: FileSystemReader) -> int:
    """Copy what a file has of a part of a tensor.  target: array of the part `box`; elements copied"""
    common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, entry["box"], strict=True)]
    if any(a >= b for a, b in common):
        return 0
    source = reader.read(entry)
    inside = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(common, entry["box"], strict=True))
    place = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(common, box, strict=True))
    target[place] = source[inside]
    return math.prod(b - a for a, b in common)
