"""Reading the format of PyTorch before 1.6: pickles one after the other, and then the storages."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from rushlight.serialization.machine import Machine
from rushlight.serialization.rebuild import Stored, WithoutMemory, stored

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


class _Storages:
    """The storages that a pickle names; they follow it in the file."""

    def __init__(self, place: Callable[..., Any]):
        self.place, self.made = place, dict[str, tuple[Stored, Any]]()

    def __call__(self, identity: Any) -> Any:
        from rushlight.serialization.load import check_identity

        if isinstance(identity, tuple) and identity and identity[0] in ("module", b"module"):
            return identity[1]  # a class, whose source some versions kept beside it
        length = len(identity) if isinstance(identity, tuple) and len(identity) in (5, 6) else 6
        _, kind, key, location, numel, *view = check_identity(identity, length)
        if view and view[0] is not None:
            raise pickle.UnpicklingError(
                "the file has views of storages, as PyTorch before 0.4 wrote them: not supported"
            )
        if key not in self.made:
            dtype = np.dtype(np.uint8) if kind.dtype is None else kind.dtype.numpy
            self.made[key] = stored(self.place(np.zeros(numel, dtype), location)), kind
        return self.made[key][0]


def load(file: IO[bytes], name: str, place: Callable[..., Any], read: Callable[..., Any]) -> Any:
    """The object in a file of the old format."""
    try:
        magic = Machine(file, _no_storage, "utf-8").load()  # calls nothing, whoever wrote the file
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError) as error:
        raise pickle.UnpicklingError(f"{name} is no file that torch.save wrote, or it is damaged ({error})") from error
    if magic != MAGIC:
        raise RuntimeError(f"{name} is a pickle, but no file that torch.save wrote")
    if read(file, _no_storage) != PROTOCOL:
        raise RuntimeError(f"{name} is of an unknown version of PyTorch's old format")
    info = read(file, _no_storage)
    order = "<" if not isinstance(info, dict) or info.get("little_endian", True) else ">"
    storages = _Storages(place)
    result = read(file, storages)
    for key in read(file, _no_storage):
        _fill(file, storages, key, order, name)
    return result


def _no_storage(identity: object) -> object:
    raise pickle.UnpicklingError(f"a storage is named where none can be: {identity!r}")


def _fill(file: IO[bytes], storages: _Storages, key: str, order: str, name: str) -> None:
    """Read one storage into the array that the tensors have already."""
    key = key.decode() if isinstance(key, bytes) else key
    if key not in storages.made:
        raise RuntimeError(f"{name} is damaged: it holds a storage {key!r} that nothing uses")
    array = storages.made[key][0].array
    header = file.read(8)
    if len(header) < 8 or struct.unpack(order + "q", header)[0] not in (array.size, array.nbytes):
        raise RuntimeError(f"{name} is damaged: storage {key!r} is not of the size that the pickle says")
    if isinstance(storages.made[key][0], WithoutMemory):
        file.seek(array.nbytes, os.SEEK_CUR)
        return
    view, at = memoryview(array.reshape(-1).view(np.uint8)), 0
    while at < len(view):
        data = file.read(min(len(view) - at, 1 << 22))
        if not data:
            raise RuntimeError(f"{name} is damaged: it ends within storage {key!r}")
        view[at : at + len(data)] = data
        at += len(data)
    if order == ">":
        array.byteswap(inplace=True)
