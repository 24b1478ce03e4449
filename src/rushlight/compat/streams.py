"""`torch.Stream` and `torch.Event` of the CPU, whose work is done when a call returns: there is nothing to wait for."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.basics.devices import device as device_of

__all__ = ["Event", "Stream"]


def _own(kind: str, device: Any) -> Any:
    """The device of a stream or an event.  Raises RuntimeError for one that is not here."""
    found = device_of("cpu" if device is None else device)
    if found.type not in ("cpu", "meta"):
        raise RuntimeError(
            f"torch.{kind}: there is no accelerator of type {found.type!r}, whose work could wait in a queue"
        )
    return found


def _no_events() -> NoReturn:
    raise RuntimeError("the CPU has no events in its queue: work is done when a call returns, and time.perf_counter() "
                       "measures it")  # fmt: skip


class Stream:
    """The queue of a device: that of the CPU, in which nothing waits.

    device: the CPU or meta; RuntimeError for others.  priority: passed over.

    >>> import rushlight as torch
    >>> torch.Stream()
    torch.Stream device_type=cpu, device_index=-1, stream_id=0
    """

    device_index, device_type, stream_id = -1, 0, 0

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = _own("Stream", device)

    def query(self) -> bool:
        """Whether all work in it is done: yes."""
        return True

    def is_capturing(self) -> bool:
        """Whether its work is recorded to run again: no."""
        return False

    def synchronize(self) -> None:
        """Wait for its work: it is done."""

    def wait_event(self, event: Event) -> None:
        """Let its work wait for a moment: that has passed."""

    def wait_stream(self, stream: Stream) -> None:
        """Let its work wait for that of another queue.  Raises RuntimeError: the CPU has no events."""
        _no_events()

    def record_event(self, event: Event | None = None) -> Event:
        """A moment in it.  Raises RuntimeError: the CPU has none."""
        _no_events()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device.type}, device_index=-1, stream_id=0"


class Event:
    """A moment in the queue of a device: of the CPU, one that has always passed.

    device: the CPU or meta; RuntimeError for others.
    """

    event_id = 0

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False) -> None:  # fmt: skip
        self.device, self.enable_timing = _own("Event", device), enable_timing

    def query(self) -> bool:
        """Whether it has passed: yes."""
        return True

    def synchronize(self) -> None:
        """Wait for it: it has passed."""

    def wait(self, stream: Stream | None = None) -> None:
        """Let a queue wait for it: it has passed."""

    def record(self, stream: Stream | None = None) -> None:
        """Let it be now.  Raises RuntimeError: the CPU has no events."""
        _no_events()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two moments.  Raises ValueError where they were not to be timed, else RuntimeError."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("elapsed_time(): make both events with enable_timing=True")
        _no_events()

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag={self.enable_timing:d}, event_id=0"
