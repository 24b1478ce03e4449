"""``torch.accelerator``: there is none.  The questions are answered, and what needs one raises RuntimeError."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.basics.devices import device

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
           "empty_cache", "is_available", "max_memory_allocated", "memory_allocated", "memory_reserved", "memory_stats",
           "set_device_idx", "set_device_index", "set_stream", "synchronize"]  # fmt: skip


def is_available() -> bool:
    """Whether there is an accelerator: no.

    >>> import rushlight as torch
    >>> torch.accelerator.is_available(), torch.accelerator.device_count(), torch.accelerator.current_accelerator()
    (False, 0, None)
    """
    return False


def device_count() -> int:
    """How many accelerators there are: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The accelerator in use: none."""
    return None


def _needs_one(name: str) -> NoReturn:
    raise RuntimeError(f"torch.accelerator.{name}: there is no accelerator; ask torch.accelerator.is_available() first")


def current_device_index() -> int:
    """The index of the accelerator in use; refused."""
    _needs_one("current_device_index")


def current_device_idx() -> int:
    """The older name of :func:`current_device_index`; refused."""
    _needs_one("current_device_idx")


def set_device_index(device: Any) -> None:
    """Choose an accelerator; refused."""
    _needs_one("set_device_index")


def set_device_idx(device: Any) -> None:
    """The older name of :func:`set_device_index`; refused."""
    _needs_one("set_device_idx")


def current_stream(device: Any = None) -> Any:
    """The queue of work of an accelerator; refused."""
    _needs_one("current_stream")


def set_stream(stream: Any) -> None:
    """Choose a queue of work; refused."""
    _needs_one("set_stream")


def synchronize(device: Any = None) -> None:
    """Wait until an accelerator has done its work; refused."""
    _needs_one("synchronize")


def empty_cache() -> None:
    """Give unused memory of an accelerator back; refused."""
    _needs_one("empty_cache")


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on an accelerator; refused."""
    _needs_one("memory_allocated")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use at once on an accelerator; refused."""
    _needs_one("max_memory_allocated")


def memory_reserved(device: Any = None) -> int:
    """Bytes that an accelerator's allocator holds; refused."""
    _needs_one("memory_reserved")


def memory_stats(device: Any = None) -> dict[str, int]:
    """The counters of an accelerator's allocator; refused."""
    _needs_one("memory_stats")
