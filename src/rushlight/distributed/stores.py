"""Stores: values by key, for the threads of one process.  Several processes send each other messages and use no store."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from rushlight.distributed.errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_MINUTES = timedelta(seconds=300)


class _Table:
    """What stores that are copies of each other share."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}
        self.changed = threading.Condition()


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class Store:
    """Values by key.  timeout: how long is waited for keys that another thread may set.  Raises DistStoreError after that."""

    prefix = ""  # of its keys in the table

    def __init__(self) -> None:
        self._table, self.timeout = _Table(), _MINUTES

    def set(self, key: str, value: object) -> None:
        """Keep a value, a string or bytes."""
        with self._table.changed:
            self._table.values[self.prefix + key] = _bytes(value)
            self._table.changed.notify_all()

    def get(self, key: str) -> bytes:
        """The value of a key, which is waited for.  Raises DistStoreError where none comes."""
        self.wait([key])
        return self._table.values[self.prefix + key]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first, and return it.  Raises ValueError for a value that is none."""
        with self._table.changed:
            total = int(self._table.values.get(self.prefix + key, b"0")) + amount
            self.set(key, str(total))
        return total

    def append(self, key: str, value: Any) -> None:
        """Put more behind a value, which is empty at first."""
        with self._table.changed:
            self.set(key, self._table.values.get(self.prefix + key, b"") + _bytes(value))

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Set a key that has the value expected, or has none and "" is expected; what it holds then."""
        with self._table.changed:
            held = self._table.values.get(self.prefix + key)
            if held == _bytes(expected_value) or (held is None and not expected_value):
                self.set(key, desired_value)
            return self._table.values.get(self.prefix + key, _bytes(expected_value))

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Keep several values at once.  Raises ValueError where there are not as many as keys."""
        if len(keys) != len(values):
            raise ValueError(f"multi_set: expected as many values as keys, got {len(values)} and {len(keys)}")
        with self._table.changed:
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
        return not self._missing(keys)

    def _missing(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if self.prefix + key not in self._table.values]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there.  timeout: how long, the store's own by default.  Raises DistStoreError after that."""
        self._until(lambda: not self._missing(keys), timeout, lambda: f"no value of {', '.join(self._missing(keys))}")

    def _until(self, done: Callable[[], bool], timeout: timedelta | None, missing: Callable[[], str]) -> None:
        end = time.monotonic() + (timeout or self.timeout).total_seconds()
        with self._table.changed:
            while not done():
                left = end - time.monotonic()
                if left <= 0 or threading.active_count() == 1:  # nobody could set it any more
                    raise DistStoreError(
                        f"Wait timeout: {type(self).__name__}: {missing()}, and no other thread sets one"
                    )
                self._table.changed.wait(min(left, 1.0))

    def queue_push(self, key: str, value: object) -> None:
        """Put a value at the end of a queue."""
        with self._table.changed:
            self._table.queues.setdefault(self.prefix + key, deque()).append(_bytes(value))
            self._table.changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue.

        block: wait for one.  Raises DistStoreError where none comes, QueueEmptyError at once where `block` is False.
        """
        with self._table.changed:
            if not block and not self.queue_len(key):
                raise QueueEmptyError(f"queue_pop: the queue {key!r} is empty")
            self._until(lambda: bool(self.queue_len(key)), None, lambda: f"nothing in the queue {key}")
            return self._table.queues[self.prefix + key].popleft()

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        return len(self._table.queues.get(self.prefix + key, ()))

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        with self._table.changed:
            return self._table.values.pop(self.prefix + key, None) is not None

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._table.values)

    def list_keys(self) -> list[str]:
        """All keys."""
        start = len(self.prefix)
        return [key[start:] for key in self._table.values if key.startswith(self.prefix)]

    def set_timeout(self, timeout: timedelta) -> None:
        """How long to wait from now on."""
        self.timeout = timeout

    def clone(self) -> Any:
        """Another store of the same values."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


class HashStore(Store):
    """A store of threads of one process.

    >>> import rushlight as torch
    >>> store = torch.distributed.HashStore()
    >>> store.add("count", 2), store.add("count", 3)
    (2, 5)
    """


def _alone(name: str, world_size: int | None) -> None:
    if world_size is not None and world_size > 1:
        raise NotImplementedError(
            f"{name}: expected world_size=1, got {world_size}: a store is of one process; collectives go by MPI"
        )


class TCPStore(Store):
    """A store under an address, which nobody else asks.  Raises NotImplementedError for more than one process."""

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
                 timeout: timedelta = _MINUTES, wait_for_workers: bool = True, **options: object) -> None:  # fmt: skip
        _alone("TCPStore", world_size)
        super().__init__()
        self.host, self.port, self.timeout = host_name, port, timeout


class FileStore(Store):
    """A store under a path, which is not written.  Raises NotImplementedError for more than one process."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        _alone("FileStore", world_size)
        super().__init__()
        self.path = file_name


class PrefixStore(Store):
    """The keys of another store that begin with a prefix and a slash."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.underlying_store, self._table, self.timeout = store, store._table, store.timeout
        self.prefix = f"{store.prefix}{prefix}/"
