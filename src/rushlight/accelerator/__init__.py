"""``torch.accelerator``: there is none.  The questions are answered, and what needs one raises RuntimeError."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rushlight.accelerator.memory import *
from rushlight.accelerator.memory import needs_one as _needs_one
from rushlight.basics.devices import device

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count", "device_index",
           "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
           "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
           "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize"]  # fmt: skip


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


def current_device_index() -> int:
    """The index of the accelerator in use; refused."""
    _needs_one("current_device_index")


def current_device_idx() -> int:
    """The older name of `current_device_index`; refused."""
    _needs_one("current_device_idx")


def set_device_index(device: device | str | int | None) -> None:
    """Choose an accelerator; refused."""
    _needs_one("set_device_index")


def set_device_idx(device: device | str | int | None) -> None:
    """The older name of `set_device_index`; refused."""
    _needs_one("set_device_idx")


def current_stream(device: device | str | int | None = None) -> Any:
    """The queue of work of an accelerator; refused."""
    _needs_one("current_stream")


def set_stream(stream: object) -> None:
    """Choose a queue of work; refused."""
    _needs_one("set_stream")


def synchronize(device: device | str | int | None = None) -> None:
    """Wait until an accelerator has done its work; refused."""
    _needs_one("synchronize")


def get_device_capability(device: device | str | int | None = None) -> dict[str, Any]:
    """What an accelerator computes with; refused."""
    _needs_one("get_device_capability")


class device_index:
    """Use an accelerator within a block: of None, the one in use; refused with RuntimeError on entering for any other."""

    def __init__(self, device: int | None) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            _needs_one("device_index")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass
