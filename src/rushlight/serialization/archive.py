"""The zip archives of PyTorch's format: stored entries in one folder, storages aligned to 64 bytes."""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rushlight.serialization import options

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array

_CHUNK = 1 << 22
_LARGE = 2_000_000_000  # bytes from which an entry needs the fields of Zip64
_LOCAL_HEADER = 30


class ArchiveWriter:
    """Writes an archive whose folder is called `folder`."""

    def __init__(self, file: IO[bytes], folder: str):
        self.zip, self.folder = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED), folder

    def write(self, name: str, data: Any) -> None:
        """Add an entry.  data: bytes, or a memoryview of them."""
        size = len(data)
        info = zipfile.ZipInfo(f"{self.folder}/{name}", (1980, 1, 1, 0, 0, 0))
        info.file_size = size
        header = _LOCAL_HEADER + len(info.filename) + (20 if size > _LARGE else 0) + 4
        padding = -(self.zip.start_dir + header) % options.SAVING["storage_alignment"]
        info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        with self.zip.open(info, "w", force_zip64=size > _LARGE) as entry:
            for start in range(0, size, _CHUNK):
                entry.write(data[start : start + _CHUNK])

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Write the directory; after an error nothing more."""
        try:
            if error is None:
                self.zip.close()
        finally:
            self.zip.fp = None  # else it tries again, on a file that may be closed, when it is collected


class _Seekable:
    """A file that can be sought in and does not say so, which `zipfile` asks for."""

    def __init__(self, file: IO[bytes]):
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def seekable(self) -> bool:
        return True


class ArchiveReader:
    """Reads an archive.  Raises RuntimeError for one that is damaged.

    mapped: the storages are mapped into memory, copied on write, and read when they are touched.
    """

    def __init__(self, file: IO[bytes], name: str, mapped: bool = False):
        self.file, self.name = file, name
        start = file.tell()
        try:
            self.zip = zipfile.ZipFile(file if hasattr(file, "seekable") else _Seekable(file))
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
            raise self.damaged("it has no directory, as when writing it was cut off") from error
        found = [n for n in self.zip.namelist() if n.endswith("/data.pkl") and n.count("/") == 1]
        if not found:
            raise RuntimeError(f"{name} is a zip archive, but holds no data.pkl: torch.save did not write it")
        first = min(entry.header_offset for entry in self.zip.infolist())
        if (
            first != start
        ):  # a directory is looked for from the end: of several archives in a file, that is the last one's
            raise RuntimeError(
                f"{name} holds several archives: the one that can be read begins at byte {first}, and the file stands at {start}; "
                "seek() there, or save each object to a file of its own"
            )
        self.folder = found[0][: -len("/data.pkl")]
        if self.has("constants.pkl") or self.has("code"):
            raise RuntimeError(
                f"{name} is a TorchScript archive, a program: load it with PyTorch and save the state_dict"
            )
        shared = options.get_default_mmap_options() == options.MAP_SHARED
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        self.mapping: Any = mmap.mmap(file.fileno(), 0, access=access) if mapped else None
        if self.has("byteorder"):
            self.swapped = self.read("byteorder").strip() == b"big"
        else:
            self.swapped = options.get_default_load_endianness() is options.LoadEndianness.BIG

    def damaged(self, why: str) -> RuntimeError:
        """The error for a damaged archive."""
        return RuntimeError(f"{self.name} is damaged: {why}. Nothing was loaded")

    def has(self, name: str) -> bool:
        """Whether there is an entry, or a folder, of this name."""
        full = f"{self.folder}/{name}"
        return any(n == full or n.startswith(full + "/") for n in self.zip.namelist())

    def info(self, name: str) -> zipfile.ZipInfo:
        """An entry."""
        try:
            return self.zip.getinfo(f"{self.folder}/{name}")
        except KeyError:
            raise self.damaged(f"the entry {name!r} is missing") from None

    def read(self, name: str) -> bytes:
        """The bytes of an entry."""
        try:
            return self.zip.read(self.info(name))
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
            raise self.damaged(f"the entry {name!r} cannot be read ({error})") from error

    def storage(self, key: str, dtype: np.dtype[Any], numel: int) -> Array:
        """The elements of a storage.  numel: how many there must be."""
        info = self.info(f"data/{key}")
        if info.file_size != numel * dtype.itemsize:
            raise self.damaged(f"storage {key} has {info.file_size} bytes instead of {numel * dtype.itemsize}")
        if self.mapping is not None and numel and info.compress_type == zipfile.ZIP_STORED and not self.swapped:
            start = self._start(info)
            if start % dtype.itemsize == 0 and start + info.file_size <= len(self.mapping):
                return np.frombuffer(self.mapping, dtype, numel, start)
        array = np.empty(numel, dtype)
        if options.skipping():
            return array
        self._read_into(info, array.view(np.uint8))
        return array.byteswap(inplace=True) if self.swapped else array

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Where the bytes of an entry begin."""
        header = self.mapping[info.header_offset : info.header_offset + _LOCAL_HEADER]
        if header[:4] != b"PK\x03\x04":
            raise self.damaged(f"{info.filename} has no header")
        name, extra = struct.unpack("<HH", header[26:30])
        return int(info.header_offset + _LOCAL_HEADER + name + extra)

    def _read_into(self, info: zipfile.ZipInfo, target: Any) -> None:
        """Fill an array of bytes, checking the sum of the entry."""
        view, at = memoryview(target), 0
        try:
            with self.zip.open(info) as entry:
                while at < len(view):
                    count = entry.readinto(view[at : at + _CHUNK])  # type: ignore[attr-defined]
                    if not count:
                        raise EOFError("it ends early")
                    at += count
                entry.read(1)  # the end: now the sum is checked
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
            raise self.damaged(f"{info.filename} cannot be read ({error})") from error


def folder_name(path: Any) -> str:
    """The folder that an archive written to `path` has: the file's stem, where it can be spelled in ASCII."""
    if not isinstance(path, (str, os.PathLike)):
        return "archive"
    stem = os.path.splitext(os.path.basename(os.fsdecode(path)))[0]
    return stem if stem.isascii() and stem and "/" not in stem else "archive"
