"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO


def replacing_path(path: str | os.PathLike[str]) -> AbstractContextManager[str]:
    """As `replacing`, but the name of a file that is empty and closed, or of the device or pipe, which is not opened: a reader would see its end."""
    target = followed(os.fsdecode(path))
    return nullcontext(target) if _is_special(_mode(target)) else _closed(path)


@contextmanager
def _closed(path: str | os.PathLike[str]) -> Iterator[str]:
    with replacing(path) as file:
        file.close()
        yield os.fsdecode(file.name)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new, empty file beside `path`, open for writing, which takes its place when it is complete.

    Whatever goes wrong, the file that was there stays as it was: it is replaced when the new one is on the disk.  Where there was
    none, nobody waits for the disk.  Devices and pipes are given as they are.
    """
    target = followed(os.fsdecode(path))
    file: IO[bytes]
    former = _mode(target)
    if _is_special(former):
        with open(target, "wb") as file:
            yield file
        return
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:200]}.{secrets.token_hex(6)}.tmp")
    try:
        file = open(temporary, "x+b")
    except OSError as error:  # of which the user knows by the name that was given
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with file:
            if former is not None:
                os.chmod(temporary, stat.S_IMODE(former))
            yield file
        if former is not None:
            _to_disk(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        os.unlink(temporary)
        error.add_note(f"{os.fspath(path)!r} was not written; what was there before is unchanged.")
        raise


def followed(path: str) -> str:
    """Where a link leads; what is none stands for itself."""
    return os.path.realpath(path) if os.path.islink(path) else path


def _mode(path: str) -> int | None:
    """What kind of file it is and who may do what with it, None where there is none."""
    with suppress(FileNotFoundError):
        return os.stat(path).st_mode
    return None


def _is_special(mode: int | None) -> bool:
    """Whether there is something that is no file: a device or a pipe."""
    return mode is not None and not stat.S_ISREG(mode)


def _to_disk(path: str) -> None:
    """Wait until the file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
