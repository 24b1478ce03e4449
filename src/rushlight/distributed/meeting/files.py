"""A table that several processes see in a file: the calls that changed it, line by line, which each of them does as well."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

from rushlight.distributed.errors import DistStoreError
from rushlight.distributed.meeting import words
from rushlight.distributed.meeting.tables import LocalTable, first

__all__ = ["FileTable"]

CHANGES = ("set", "add", "append", "compare_set", "push", "delete")


class FileTable:
    """A table in a file, which is made where there is none.  It has what `LocalTable` has.

    Raises DistStoreError for a file that holds something else.
    """

    def __init__(self, path: str) -> None:
        self.path, self._table, self._seen = path, LocalTable(), 0
        with self._now(create=True):
            pass

    @contextlib.contextmanager
    def _now(self, create: bool = False) -> Iterator[BinaryIO]:
        """The file, which no other process changes meanwhile, after what others have done was done here too."""
        import fcntl

        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
        with self._table.changed, open(os.open(self.path, flags, 0o600), "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(self._seen)
            for line in file.read().splitlines():
                self._do(line)
            self._seen = file.tell()
            yield file

    def _do(self, line: bytes) -> None:
        try:
            name, *args = words.call(line)
        except ValueError as error:
            raise DistStoreError(
                f"FileStore: {self.path} is no file of a store ({error}); give the path of one that is not there yet"
            ) from None
        getattr(self._table, name)(*args)

    def _change(self, *call: Any) -> Any:
        with self._now() as file:
            result = getattr(self._table, call[0])(*call[1:])
            self._tell(file, call)
        return result

    def _tell(self, file: BinaryIO, call: tuple[Any, ...]) -> None:
        file.write(words.written(call))
        self._seen = file.tell()

    def wait(self, keys: Sequence[str], seconds: float) -> list[str]:
        """As `LocalTable.wait`."""
        first(lambda: None if self.missing(keys) else True, seconds)
        found: list[str] = self.missing(keys)
        return found

    def pop(self, key: str, seconds: float) -> bytes | None:
        """As `LocalTable.pop`."""
        return first(lambda: self._popped(key), seconds)

    def _popped(self, key: str) -> bytes | None:
        with self._now() as file:
            if self._table.length(key):
                self._tell(file, ("pop", key, 0.0))
            return self._table.pop(key, 0.0)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in words.CALLS:
            raise AttributeError(name)
        return partial(self._change if name in CHANGES else self._look, name)

    def _look(self, name: str, *args: Any) -> Any:
        with self._now():
            return getattr(self._table, name)(*args)
