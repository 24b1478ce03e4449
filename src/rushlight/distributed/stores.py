"""Stores of one process: dictionaries in its memory.  Several processes send each other messages and use no store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_MINUTES = timedelta(seconds=300)


class Store:
    """Values by key.  Keys that are waited for and are not there will never be: RuntimeError at once."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self.timeout = _MINUTES

    def set(self, key: str, value: Any) -> None:
        """Keep a value, a string or bytes."""
        self._values[key] = value if isinstance(value, bytes) else str(value).encode()

    def get(self, key: str) -> bytes:
        """The value of a key.  Raises RuntimeError where there is none."""
        self.wait([key])
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first, and return it."""
        total = int(self._values.get(key, b"0")) + amount
        self.set(key, str(total))
        return total

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Set a key that has the value expected, or has none and "" is expected; what it holds then."""
        held = self._values.get(key)
        if held == expected_value.encode() or (held is None and not expected_value):
            self.set(key, desired_value)
        return self._values.get(key, expected_value.encode())

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return all(key in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Raises RuntimeError unless all keys are there: no other process could set them."""
        missing = [key for key in keys if key not in self._values]
        if missing:
            raise RuntimeError(
                f"{type(self).__name__}.wait: no value of {', '.join(missing)}, and no other process to set one"
            )

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long to wait: kept, nothing is waited for."""
        self.timeout = timeout


class HashStore(Store):
    """A store of threads of one process."""


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
    """The keys of another store that begin with a prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self.underlying_store = prefix, store
        self._values = _Prefixed(prefix, store._values)


class _Prefixed(dict[str, bytes]):
    """A dictionary's entries under keys with a prefix."""

    def __init__(self, prefix: str, inner: dict[str, bytes]) -> None:
        super().__init__()
        self.prefix, self.inner = f"{prefix}/", inner

    def __getitem__(self, key: str) -> bytes:
        return self.inner[self.prefix + key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.inner[self.prefix + key] = value

    def __contains__(self, key: object) -> bool:
        return f"{self.prefix}{key}" in self.inner

    def __len__(self) -> int:
        return len(self.inner)

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or another where there is none."""
        return self.inner.get(self.prefix + key, default)

    def pop(self, key: str, default: Any = None) -> Any:
        """Take the value out."""
        return self.inner.pop(self.prefix + key, default)
