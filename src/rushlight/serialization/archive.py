"""The zip archives of PyTorch's format: stored entries in one folder, storages aligned to 64 bytes."""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO, Any, TypeVar

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.digests import crc32
from rushlight.serialization import options

R = TypeVar("R")
_CHUNK = 1 << 22
_LARGE = 2_000_000_000  # bytes from which an entry needs the fields of Zip64
_LOCAL_HEADER = 30
_NO_SUM = 0  # where PyTorch was asked to leave the checksum out
_ENCRYPTED, _UTF8 = 1, 1 << 11  # flags of an entry


def _parts(data: Any) -> Iterator[Any]:
    """Bytes, some at a time."""
    return (data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK))


def _checksum(data: object) -> int:
    found = 0
    for part in _parts(data):
        found = crc32(np.frombuffer(part, np.uint8), found)
    return found


class ArchiveWriter:
    """Writes an archive whose folder is called `folder`.  sums: whether with checksums; alignment: of the entries, in bytes."""

    def __init__(self, file: IO[bytes], folder: str, sums: bool = True, alignment: int = 64):
        self.zip, self.folder = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED), folder
        self.sums, self.alignment = sums, alignment

    def write(self, name: str, data: Any) -> None:
        """Add an entry.  data: bytes, or what gives them by slices."""
        info = zipfile.ZipInfo(f"{self.folder}/{name}", (1980, 1, 1, 0, 0, 0))
        info.file_size = info.compress_size = len(data)
        info.external_attr = 0o600 << 16
        info.CRC = _checksum(data) if self.sums else _NO_SUM
        info.header_offset = self.zip.start_dir
        self._write(info, self._header(info), data)

    def _header(self, info: zipfile.ZipInfo) -> bytes:
        """What stands before the bytes of an entry, as long as aligns them."""
        large = info.file_size > _LARGE
        size = _LOCAL_HEADER + len(info.filename) + (20 if large else 0) + 4
        padding = -(info.header_offset + size) % self.alignment
        info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        return info.FileHeader(zip64=large)

    def _write(self, info: zipfile.ZipInfo, header: bytes, data: object) -> None:
        """As `zipfile` does it, which would take the sum itself, slowly, and come back for the header."""
        file: Any = self.zip.fp
        file.write(header)
        for part in _parts(data):
            file.write(part)
        self.zip.filelist.append(info)
        self.zip.NameToInfo[info.filename] = info
        self.zip.start_dir = file.tell()

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


class Archive:
    """The entries of a zip archive that lie in one folder.  Raises RuntimeError for one that is damaged."""

    def __init__(self, file: IO[bytes], name: str):
        self.file, self.name = file, name
        try:
            self.zip = zipfile.ZipFile(file if hasattr(file, "seekable") else _Seekable(file))
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: failed finding central directory: {name} is damaged: it has no "
                "directory, as when writing it was cut off. Nothing was loaded"
            ) from error
        self.folder = self._folder()

    def _folder(self) -> str:
        """That of the first entry."""
        names = self.zip.namelist()
        return names[0].split("/")[0] if names else ""

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
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found: {self.name} is damaged: the entry {name!r} is "
                "missing. Nothing was loaded"
            ) from None

    def read(self, name: str) -> bytes:
        """The bytes of an entry."""
        info = self.info(name)
        if info.compress_type != zipfile.ZIP_STORED:
            return self._guarded(info, self.zip.read, info)
        data = bytearray(self._size(info))
        self._read_into(info, data)
        return bytes(data)

    def _size(self, info: zipfile.ZipInfo) -> int:
        """How many bytes an entry has: of those that are stored as they are there cannot be more than the file has."""
        if info.compress_type == zipfile.ZIP_STORED and info.file_size > self.zip.start_dir:
            raise self.damaged(f"{info.filename} is said to have {info.file_size} bytes")
        return info.file_size

    def _guarded(self, info: zipfile.ZipInfo, read: Callable[..., R], *args: object) -> R:
        """What reading an entry gives; RuntimeError where that fails."""
        try:
            return read(*args)
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
            raise self.damaged(f"{info.filename} cannot be read ({error})") from error

    def start(self, info: zipfile.ZipInfo) -> int:
        """Where the bytes of an entry begin."""
        self.file.seek(info.header_offset)
        header = self.file.read(_LOCAL_HEADER)
        if header[:4] != b"PK\x03\x04" or len(header) < _LOCAL_HEADER:
            raise self.damaged(f"{info.filename} has no header")
        name, extra = struct.unpack("<HH", header[26:30])
        if self.file.read(name) != info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437"):
            raise self.damaged(f"{info.filename} has the header of another entry")
        return int(info.header_offset + _LOCAL_HEADER + name + extra)

    def _read_into(self, info: zipfile.ZipInfo, target: Any) -> None:
        """Fill an array of bytes, checking the sum of the entry, where it has one."""
        stored = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & _ENCRYPTED
        self._guarded(info, self._copy if stored else self._unpack, info, memoryview(target))

    def _copy(self, info: zipfile.ZipInfo, view: memoryview) -> None:
        """Read an entry as it lies in the file: `zipfile` copies it once more, and takes the sum slowly."""
        if info.compress_size != len(view):
            raise zipfile.BadZipFile(f"it has {info.compress_size} bytes instead of {len(view)}")
        self.file.seek(self.start(info))
        _fill(view, self.file)
        if info.CRC != _NO_SUM and _checksum(view) != info.CRC:
            raise zipfile.BadZipFile("its CRC-32 is another")

    def _unpack(self, info: zipfile.ZipInfo, view: memoryview) -> None:
        with self.zip.open(info) as entry:
            _fill(view, entry)
            entry.read(1)  # the end: now the sum is checked


class ArchiveReader(Archive):
    """Reads what `torch.save` wrote.

    mapped: the storages are mapped into memory, copied on write, and read when they are touched.
    """

    def __init__(self, file: IO[bytes], name: str, mapped: bool = False):
        start = file.tell()
        super().__init__(file, name)
        first = min(entry.header_offset for entry in self.zip.infolist())
        if (
            first != start
        ):  # a directory is looked for from the end: of several archives in a file, that is the last one's
            raise RuntimeError(
                f"{name} holds several archives: the one that can be read begins at byte {first}, and the file stands at {start}; "
                "seek() there, or save each object to a file of its own"
            )
        if self.has("constants.pkl") or self.has("code"):
            raise RuntimeError(
                f"{name} is a TorchScript archive, a program: load it with PyTorch and save the state_dict"
            )
        shared = options.get_default_mmap_options() == options.MAP_SHARED
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        self.mapping: Any = mmap.mmap(file.fileno(), 0, access=access) if mapped else None
        if self.has("byteorder"):
            order = self.read("byteorder").strip()
            if order not in (b"little", b"big"):
                raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
            self.swapped = order == b"big"
        else:
            self.swapped = options.get_default_load_endianness() is options.LoadEndianness.BIG

    def _folder(self) -> str:
        found = [n for n in self.zip.namelist() if n.endswith("/data.pkl") and n.count("/") == 1]
        if not found:
            raise RuntimeError(f"{self.name} is a zip archive, but holds no data.pkl: torch.save did not write it")
        return found[0][: -len("/data.pkl")]

    def storage(self, key: str, dtype: np.dtype[Any], numel: int) -> Array:
        """The elements of a storage.  numel: how many there must be."""
        info = self.info(f"data/{key}")
        if self._size(info) != numel * dtype.itemsize:
            raise self.damaged(f"storage {key} has {info.file_size} bytes instead of {numel * dtype.itemsize}")
        if self.mapping is not None and numel and info.compress_type == zipfile.ZIP_STORED and not self.swapped:
            start = self.start(info)
            if start % dtype.itemsize == 0 and start + info.file_size <= len(self.mapping):
                return np.frombuffer(self.mapping, dtype, numel, start)
        array = np.empty(numel, dtype)
        if options.skipping():
            return array
        self._read_into(info, array.view(np.uint8))
        return array.byteswap(inplace=True) if self.swapped else array


def _fill(view: memoryview, file: IO[bytes]) -> None:
    """Read as many bytes as there is place for.  Raises EOFError where there are less."""
    into = getattr(file, "readinto", None)
    at = 0
    while at < len(view):
        part = view[at : at + _CHUNK]
        count = into(part) if into is not None else _put(part, file.read(len(part)))
        if not count:
            raise EOFError("it ends early")
        at += count


def _put(view: memoryview, data: bytes) -> int:
    view[: len(data)] = data
    return len(data)


def folder_name(path: object) -> str:
    """The folder that an archive written to `path` has: the file's stem, where it can be spelled in ASCII."""
    if not isinstance(path, (str, os.PathLike)):
        return "archive"
    stem = os.path.splitext(os.path.basename(os.fsdecode(path)))[0]
    return stem if stem.isascii() and stem and "/" not in stem else "archive"
