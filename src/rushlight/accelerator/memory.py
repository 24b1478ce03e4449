"""``torch.accelerator.memory``: the memory of an accelerator, of which there is none: each raises RuntimeError."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.basics.devices import device

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def needs_one(name: str) -> NoReturn:
    """Raise the RuntimeError of a function of that name."""
    raise RuntimeError(f"torch.accelerator.{name}: there is no accelerator; ask torch.accelerator.is_available() first")


def empty_cache() -> None:
    """Give unused memory of an accelerator back; refused."""
    needs_one("empty_cache")


def empty_host_cache() -> None:
    """Give unused pinned memory back; refused."""
    needs_one("empty_host_cache")


def get_memory_info(device_index: device | str | int | None = None, /) -> tuple[int, int]:
    """Free bytes of an accelerator, and all; refused."""
    needs_one("get_memory_info")


def max_memory_allocated(device_index: device | str | int | None = None, /) -> int:
    """The most bytes in use at once on an accelerator; refused."""
    needs_one("max_memory_allocated")


def max_memory_reserved(device_index: device | str | int | None = None, /) -> int:
    """The most bytes that an accelerator's allocator held; refused."""
    needs_one("max_memory_reserved")


def memory_allocated(device_index: device | str | int | None = None, /) -> int:
    """Bytes in use on an accelerator; refused."""
    needs_one("memory_allocated")


def memory_reserved(device_index: device | str | int | None = None, /) -> int:
    """Bytes that an accelerator's allocator holds; refused."""
    needs_one("memory_reserved")


def memory_stats(device_index: device | str | int | None = None, /) -> dict[str, Any]:
    """The counters of an accelerator's allocator; refused."""
    needs_one("memory_stats")


def reset_accumulated_memory_stats(device_index: device | str | int | None = None, /) -> None:
    """Set those counters that add up to 0; refused."""
    needs_one("reset_accumulated_memory_stats")


def reset_peak_memory_stats(device_index: device | str | int | None = None, /) -> None:
    """Let the peaks be what is in use now; refused."""
    needs_one("reset_peak_memory_stats")
