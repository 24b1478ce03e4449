"""Stores: values by key, for the threads of one process or for several processes, which can make a group by them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rushlight.distributed.errors import DistStoreError, QueueEmptyError
from rushlight.distributed.meeting.tables import LocalTable, first

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_MINUTES = timedelta(seconds=300)


def _bytes(value: object) -> bytes:
    if not isinstance(value, str | bytes):
        raise TypeError(f"a store keeps strings and bytes, got {type(value).__name__}")
    return value if isinstance(value, bytes) else value.encode()


class Store:
    """Values by key.  timeout: how long is waited for keys that another thread may set.  Raises DistStoreError after that."""

    prefix = ""  # of its keys in the table
    _table: Any

    def __init__(self) -> None:
        self._table, self.timeout = LocalTable(), _MINUTES

    def set(self, key: str, value: object) -> None:
        """Keep a value, a string or bytes."""
        self._table.set(self.prefix + key, _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, which is waited for.  Raises DistStoreError where none comes."""
        self.wait([key])
        found: bytes = self._table.get(self.prefix + key)
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first, and return it.  Raises ValueError for a value that is none."""
        return int(self._table.add(self.prefix + key, int(amount)))

    def append(self, key: str, value: Any) -> None:
        """Put more behind a value, which is empty at first."""
        self._table.append(self.prefix + key, _bytes(value))

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Set a key that has the value expected, or has none and "" is expected; what it holds then."""
        found: bytes = self._table.compare_set(self.prefix + key, _bytes(expected_value), _bytes(desired_value))
        return found

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Keep several values.  Raises ValueError where there are not as many as keys."""
        if len(keys) != len(values):
            raise ValueError(f"multi_set: expected as many values as keys, got {len(values)} and {len(keys)}")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, which are waited for."""
        self.wait(keys)
        return [self.get(key) for key in keys]

    def has_extended_api(self) -> bool:
        """Whether there are `append`, `multi_set` and `multi_get`: yes."""
        return True

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return not self._table.missing(self._within(keys))

    def _within(self, keys: Sequence[str]) -> list[str]:
        """Keys as the table has them."""
        if isinstance(keys, str):
            raise TypeError(f"a store expects a list of keys, got the string {keys!r}")
        return [self.prefix + key for key in keys]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there.  timeout: how long, the store's own by default.  Raises DistStoreError after that."""
        seconds = (timeout or self.timeout).total_seconds()
        late = self._table.wait(self._within(keys), seconds)
        if late:
            raise DistStoreError(
                self._late(f"no value of {', '.join(key[len(self.prefix) :] for key in late)}", seconds)
            )

    def _late(self, missing: str, seconds: float) -> str:
        name = type(self).__name__
        return f"{name}: wait timeout after {seconds * 1000:.0f}ms: {missing}, and no other process has set one"

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until as many processes as that have called this.  Raises DistStoreError after `timeout`, or the store's own."""
        if self.add(f"{key}/here", 1) == world_size:
            self.set(f"{key}/all", "yes")
        self.wait([f"{key}/all"], timeout)

    def queue_push(self, key: str, value: object) -> None:
        """Put a value at the end of a queue."""
        self._table.push(self.prefix + key, _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue.

        block: wait for one.  Raises DistStoreError where none comes, QueueEmptyError at once where `block` is False.
        """
        seconds = self.timeout.total_seconds() if block else 0.0
        found: bytes | None = self._table.pop(self.prefix + key, seconds)
        if found is not None:
            return found
        if not block:
            raise QueueEmptyError(f"queue_pop: the queue {key!r} is empty")
        raise DistStoreError(self._late(f"nothing in the queue {key}", seconds))

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        return int(self._table.length(self.prefix + key))

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return bool(self._table.delete(self.prefix + key))

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._table.keys())

    def list_keys(self) -> list[str]:
        """All keys."""
        start = len(self.prefix)
        return [key[start:] for key in self._table.keys() if key.startswith(self.prefix)]

    def set_timeout(self, timeout: timedelta) -> None:
        """How long to wait from now on."""
        self.timeout = timeout

    def clone(self) -> Any:
        """Another store of the same values."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _of=self)  # which may answer others as long as it is there
        return made


class HashStore(Store):
    """A store of threads of one process.

    >>> import rushlight as torch
    >>> store = torch.distributed.HashStore()
    >>> store.add("count", 2), store.add("count", 3)
    (2, 5)
    """

    def _late(self, missing: str, seconds: float) -> str:
        return f"Wait timeout: {type(self).__name__}: {missing}, and no other thread sets one"


_INIT = "init/"  # how many processes have come


class TCPStore(Store):
    """A store that one process holds, the one with `is_master`, and others ask by its address, until that one ends.

    host_name: of that process's machine; port: where it listens, 0 for any that is free, which is its `port` then;
    world_size: how many processes there are, which wait for each other unless `wait_for_workers` is False; timeout: how long;
    multi_tenant: whether a store of this process that listens there is another name of this one; master_listen_fd: a socket that
    listens already.  Names that no other machine knows, localhost and 127.0.0.1, are heard on this one alone.

    Raises DistNetworkError where the port is taken or nobody listens, DistStoreError where not all processes come in time.

    >>> import rushlight as torch
    >>> store = torch.distributed.TCPStore("localhost", 0, world_size=1, is_master=True)
    >>> other = torch.distributed.TCPStore("localhost", store.port, is_master=False)  # in another process
    >>> store.set("key", "value")
    >>> other.get("key")
    b'value'
    """

    def __init__(self, host_name: str, port: int = 0, world_size: int | None = None, is_master: bool = False,
                 timeout: timedelta = _MINUTES, wait_for_workers: bool = True, multi_tenant: bool = False,
                 master_listen_fd: int | None = None, use_libuv: bool = True) -> None:  # fmt: skip
        from rushlight.distributed.meeting import remote

        self.host, self.timeout = host_name, timeout
        self.libuvBackend = use_libuv  # accepted: there is one kind of server
        seconds = timeout.total_seconds()
        if is_master:
            self._server = server = remote.served(host_name, port, multi_tenant, master_listen_fd)
            self.port, self._table = int(server.server_address[1]), server.table
        else:
            self.port, self._table = port, remote.RemoteTable(host_name, port, seconds)
        if world_size is not None and world_size > 0:
            self.add(_INIT, 1)
            if wait_for_workers:
                self._all(world_size, seconds)

    def _all(self, world_size: int, seconds: float) -> None:
        if first(lambda: self.add(_INIT, 0) >= world_size or None, seconds) is None:
            raise DistStoreError(
                f"Timed out after {seconds:g} seconds waiting for clients. {self.add(_INIT, 0)}/{world_size} clients joined."
            )

    def list_keys(self) -> list[str]:
        """All keys that somebody set."""
        return [key for key in super().list_keys() if key != _INIT]

    def __repr__(self) -> str:
        return f"TCPStore(host={self.host!r}, port={self.port})"


_USERS, _GONE = "refcount/", "cleanup/"  # how many stores there are of a file, and were


class FileStore(Store):
    """A store of processes that see one file, which is made where it is not there.

    world_size: after as many stores as that, the last to go removes the file.  Raises DistStoreError for a file that holds
    something else.

    >>> import rushlight as torch, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = torch.distributed.FileStore(os.path.join(folder, "meeting"), 2)
    ...     other = torch.distributed.FileStore(store.path, 2)  # in another process
    ...     store.set("key", "value")
    ...     other.get("key")
    b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        from rushlight.distributed.meeting.files import FileTable

        self.path, self.timeout = file_name, _MINUTES
        self._table = FileTable(file_name)
        self.add(_USERS, 1)
        weakref.finalize(self, _leave, self._table, world_size, os.getpid())

    def list_keys(self) -> list[str]:
        """All keys that somebody set."""
        return [key for key in super().list_keys() if key not in (_USERS, _GONE)]

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self.list_keys())


def _leave(table: Any, world_size: int, process: int) -> None:
    """The end of a store of a file; of the last one, if it was known how many there would be, also of the file."""
    if os.getpid() != process or not os.path.exists(table.path):
        return
    table.add(_GONE, 1)
    if not table.add(_USERS, -1) and 0 <= world_size <= table.add(_GONE, 0):
        os.remove(table.path)


class PrefixStore(Store):
    """The keys of another store that begin with a prefix and a slash."""

    def __init__(self, prefix: str, store: Store) -> None:
        if store is None:
            raise ValueError("PrefixStore: store argument cannot be None")
        self.underlying_store, self._table, self.timeout = store, store._table, store.timeout
        self.prefix = f"{store.prefix}{prefix}/"

    @property
    def _underlying_non_prefix_store(self) -> Store:
        """The store below all prefixes."""
        below = self.underlying_store
        return below._underlying_non_prefix_store if isinstance(below, PrefixStore) else below
