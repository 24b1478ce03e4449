"""CUDA's queues of work and its marks in them.  Without a CUDA device they are refused.

Under ``rushlight run``, where CUDA devices mean the CPU, work is done when a call returns: a stream has nothing to wait
for, and an event is a moment.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from rushlight.basics import devices
from rushlight.basics.devices import device

__all__ = [
    "AcceleratorError",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "current_stream",
    "default_stream",
    "get_device_properties",
    "stream",
]


class AcceleratorError(RuntimeError):
    """What PyTorch raises when a device fails.  Nothing raises it here; programs name it where they catch errors."""


class OutOfMemoryError(RuntimeError):
    """What PyTorch raises when a device has no memory left.  The CPU raises Python's MemoryError instead."""


def needs_device(name: str) -> None:
    """Raises RuntimeError unless CUDA devices mean the CPU."""
    if devices.instead_of_cuda is None:
        raise RuntimeError(f"torch.cuda.{name}: there is no CUDA device; ask torch.cuda.is_available() first")


class Event:
    """A moment in a stream's work; refused with RuntimeError where there is no CUDA device."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        needs_device("Event")
        self._timed, self._at = enable_timing, None if enable_timing else 0.0

    def record(self, stream: Any = None) -> None:
        """Let this moment be now."""
        self._at = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this moment to another.

        Raises ValueError for events without ``enable_timing=True``, or that were not recorded.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("elapsed_time: both events must be made with enable_timing=True")
        if self._at is None or end_event._at is None:
            raise ValueError("elapsed_time: both events must be recorded before")
        return (end_event._at - self._at) * 1e3

    def query(self) -> bool:
        """Whether the work before this moment is done: yes."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before this moment: it is done."""

    def wait(self, stream: object = None) -> None:
        """Let a stream wait for this moment: it has passed."""


class Stream:
    """A queue of work; refused with RuntimeError where there is no CUDA device."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: object) -> None:
        needs_device("Stream")

    def query(self) -> bool:
        """Whether all work is done: yes."""
        return True

    def synchronize(self) -> None:
        """Wait for all work: it is done."""

    def wait_event(self, event: Event) -> None:
        """Wait for an event: it has passed."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait for another stream: its work is done."""

    def record_event(self, event: Event | None = None) -> Event:
        """Let an event, or a new one, be now."""
        event = Event() if event is None else event
        event.record(self)
        return event


def current_stream(device: device | str | int | None = None) -> Stream:
    """The stream in use; refused with RuntimeError where there is no CUDA device."""
    needs_device("current_stream")
    return Stream()


def default_stream(device: device | str | int | None = None) -> Stream:
    """The stream in use at first; refused with RuntimeError where there is no CUDA device."""
    needs_device("default_stream")
    return Stream()


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Use a stream within a block, or, of None, the one that is in use."""
    yield


def get_device_properties(device: device | str | int | None = None) -> NoReturn:
    """The properties of a CUDA device; always refused with RuntimeError."""
    raise RuntimeError("torch.cuda.get_device_properties: there is no CUDA device; ask torch.cuda.is_available() first")
