"""Values by key, and queues of them, which threads of this process share."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["LocalTable", "first"]

T = TypeVar("T")
PAUSE = 0.01  # seconds between questions


def first(ask: Callable[[], T | None], seconds: float) -> T | None:
    """What a question is answered by, asked again until that is not None, or the time is over."""
    end = time.monotonic() + seconds
    while (found := ask()) is None and time.monotonic() < end:
        time.sleep(PAUSE)
    return found


class LocalTable:
    """What stores that are copies of each other share.  Keys are strings, values bytes; seconds: None is without end."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: bytes) -> None:
        """Keep a value."""
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str) -> bytes | None:
        """The value of a key, None where there is none."""
        return self.values.get(key)

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first, and return it.  Raises ValueError for a value that is none."""
        with self.changed:
            total = int(self.values.get(key, b"0")) + amount
            self.set(key, str(total).encode())
        return total

    def append(self, key: str, value: bytes) -> None:
        """Put more behind a value, which is empty at first."""
        with self.changed:
            self.set(key, self.values.get(key, b"") + value)

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        """Set a key that has the value expected, or has none and nothing is expected; what it holds then."""
        with self.changed:
            held = self.values.get(key)
            if held == expected or (held is None and not expected):
                self.set(key, desired)
            return self.values.get(key, expected)

    def missing(self, keys: Sequence[str]) -> list[str]:
        """Those of some keys that have no value."""
        return [key for key in keys if key not in self.values]

    def wait(self, keys: Sequence[str], seconds: float) -> list[str]:
        """Wait until all keys have values; those that have none after that time."""
        self._until(lambda: not self.missing(keys), seconds)
        return self.missing(keys)

    def _until(self, done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        with self.changed:
            while not done():
                left = end - time.monotonic()
                if left <= 0 or threading.active_count() == 1:  # nobody could set it any more
                    return
                self.changed.wait(min(left, 1.0))

    def push(self, key: str, value: bytes) -> None:
        """Put a value at the end of a queue."""
        with self.changed:
            self.queues.setdefault(key, deque()).append(value)
            self.changed.notify_all()

    def pop(self, key: str, seconds: float) -> bytes | None:
        """Take the first value of a queue; None where none comes."""
        with self.changed:
            self._until(lambda: bool(self.length(key)), seconds)
            return self.queues[key].popleft() if self.length(key) else None

    def length(self, key: str) -> int:
        """How many values wait in a queue."""
        return len(self.queues.get(key, ()))

    def delete(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        with self.changed:
            return self.values.pop(key, None) is not None

    def keys(self) -> list[str]:
        """All keys that have values."""
        return list(self.values)
