"""Files of `torch.save` record by record, as `torch._C.PyTorchFileReader` and `PyTorchFileWriter` give them."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any

import numpy as np

from rushlight.ops.create.typed_storage import TypedStorage
from rushlight.serialization import options
from rushlight.serialization.archive import Archive, ArchiveWriter, folder_name
from rushlight.serialization.atomic import replacing
from rushlight.storage import Storage
from rushlight.tensor import Tensor, wrap

_SIGN = b"PK\x03\x04"
_IDENTITY = ".data/serialization_id"


def is_zipfile(f: IO[bytes]) -> bool:
    """Whether a file has a zip archive where it stands."""
    start = f.read(len(_SIGN))
    f.seek(-len(start), os.SEEK_CUR)
    return start == _SIGN


class PyTorchFileReader:
    """The records of a file.  Raises RuntimeError for a file or a record that is damaged or not there.

    name_or_buffer: path, or file open for reading bytes.

    >>> import io
    >>> import rushlight as torch
    >>> buffer = io.BytesIO()
    >>> torch.save(torch.ones(2), buffer)
    >>> torch._C.PyTorchFileReader(buffer).get_record("byteorder")
    b'little'
    """

    def __init__(self, name_or_buffer: str | os.PathLike[str] | IO[bytes]):
        self._stack = ExitStack()
        file: Any = name_or_buffer
        if isinstance(name_or_buffer, (str, os.PathLike)):
            file = self._stack.enter_context(open(name_or_buffer, "rb"))
        self._archive = Archive(file, getattr(file, "name", None) or f"the {type(file).__name__}")

    def __del__(self) -> None:
        self.__dict__.get("_stack", ExitStack()).close()

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return f"{self._archive.folder}/{name}" in self._archive.zip.NameToInfo

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._archive.read(name)

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return [name.split("/", 1)[1] for name in self._archive.zip.namelist()]

    def get_record_offset(self, name: str) -> int:
        """Where in the file the bytes of a record begin."""
        return self._archive.start(self._archive.info(name))

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._archive.info(name).file_size

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """A record as memory of `numel` elements, which a tensor without elements stands for."""
        return wrap(np.frombuffer(bytearray(self.get_record(name)), dtype.numpy, numel))[:0]

    def serialization_id(self) -> str:
        """What tells this file from others, "" where it is not said."""
        return self.get_record(_IDENTITY).decode() if self.has_record(_IDENTITY) else ""


class PyTorchFileWriter:
    """Writes the records of a file, which is complete after `write_end_of_file`.

    name_or_buffer: path, where the file appears whole or not at all, or file open for writing bytes.
    """

    def __init__(
        self,
        name_or_buffer: str | os.PathLike[str] | IO[bytes],
        compute_crc32: bool = True,
        storage_alignment: int = 64,
    ):
        self._stack = ExitStack()
        file: Any = name_or_buffer
        if isinstance(name_or_buffer, (str, os.PathLike)):
            file = self._stack.enter_context(replacing(name_or_buffer))
        self._writer = ArchiveWriter(file, folder_name(name_or_buffer), compute_crc32, storage_alignment)
        self._names: list[str] = []

    def write_record(self, name: str, data: object, size: int) -> None:
        """Add a record of the first `size` bytes of `data`: bytes, a str or a storage."""
        if isinstance(data, (TypedStorage, Storage)):
            data = memoryview(data.untyped().bytes())
        data = data.encode() if isinstance(data, str) else data
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"write_record(): data must be bytes, str or a storage, got {type(data).__name__}")
        if name in self._names:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        self._names.append(name)
        self._writer.write(name, memoryview(data)[:size])

    def get_all_written_records(self) -> list[str]:
        """The names of the records until now."""
        return list(self._names)

    def archive_name(self) -> str:
        """The folder that the records lie in."""
        return self._writer.folder

    def write_end_of_file(self) -> None:
        """Write what every file has, and the directory."""
        every = {"byteorder": sys.byteorder, "version": "3\n", _IDENTITY: f"{secrets.randbelow(10**40):040d}"}
        for name, text in every.items():
            if name not in self._names:
                self.write_record(name, text, len(text))
        self.close()

    def close(self, error: BaseException | None = None) -> None:
        """End the file; after an error what was there before is left."""
        kind = None if error is None else type(error)
        self._writer.__exit__(kind, error, None)
        self._stack.__exit__(kind, error, None)


class open_zipfile_reader:
    """`PyTorchFileReader` as a context manager."""

    def __init__(self, name_or_buffer: Any):
        self.file_like = PyTorchFileReader(name_or_buffer)

    def __enter__(self) -> PyTorchFileReader:
        return self.file_like

    def __exit__(self, *error: object) -> None:
        self.file_like._stack.close()


class open_zipfile_writer:
    """`PyTorchFileWriter` as a context manager, at whose end the file is complete."""

    def __init__(self, name_or_buffer: Any):
        sums, alignment = options.get_crc32_options(), options.SAVING["storage_alignment"]
        self.file_like = PyTorchFileWriter(name_or_buffer, sums, alignment)

    def __enter__(self) -> PyTorchFileWriter:
        return self.file_like

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.file_like.write_end_of_file() if error is None else self.file_like.close(error)
