"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


@contextmanager
def replacing_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """A new, empty file beside `path` to write to, which takes its place when it is complete.

    Whatever goes wrong, the file that was there stays as it was: it is replaced when the new one is on the disk.  Where there was
    none, nobody waits for the disk.  Devices and pipes are given as they are.
    """
    target = os.path.realpath(os.fsdecode(path))
    if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        yield target
        return
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:200]}.{secrets.token_hex(6)}.tmp")
    try:
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:  # of which the user knows by the name that was given
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        yield temporary
        if os.path.exists(target):
            _to_disk(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        os.unlink(temporary)
        error.add_note(f"{os.fspath(path)!r} was not written; what was there before is unchanged.")
        raise


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """As `replacing_path`, open for writing."""
    with replacing_path(path) as temporary, open(temporary, "r+b" if os.path.isfile(temporary) else "wb") as file:
        yield file


def _to_disk(path: str) -> None:
    """Wait until the file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
