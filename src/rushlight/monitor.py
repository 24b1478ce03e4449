"""``torch.monitor``: counters that tell of themselves at intervals, and those who listen."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Protocol

__all__ = ["Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
           "register_event_handler", "unregister_event_handler"]  # fmt: skip

data_value_t = str | int | float | bool
STAT = "torch.monitor.Stat"  # the name of the events of counters


class Aggregation(enum.Enum):
    """What a counter tells of the numbers that were added: the last one, their mean, how many, their sum, the extremes."""

    VALUE, MEAN, COUNT, SUM, MAX, MIN = 0, 2, 3, 4, 5, 6

    __str__ = enum.Enum.__str__


_COMPUTED: dict[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.VALUE: lambda xs: xs[-1] if xs else 0.0, Aggregation.MEAN: lambda xs: sum(xs) / len(xs) if xs else 0.0,
    Aggregation.COUNT: lambda xs: float(len(xs)), Aggregation.SUM: lambda xs: float(sum(xs)),
    Aggregation.MAX: lambda xs: max(xs, default=0.0), Aggregation.MIN: lambda xs: min(xs, default=0.0),
}  # fmt: skip


class Event:
    """Something that happened: its name, when, and data: strings and numbers by name.  TypeError for other data.

    >>> import rushlight as torch
    >>> from datetime import datetime
    >>> torch.monitor.Event("begun", datetime.now(), {"step": 3}).data
    {'step': 3}
    """

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, data_value_t]) -> None:
        if not (isinstance(name, str) and isinstance(timestamp, datetime) and isinstance(data, Mapping)):
            raise TypeError("Event(): expected a name, a datetime, and a mapping of strings to strings and numbers")
        for key, value in data.items():
            if not (isinstance(key, str) and isinstance(value, data_value_t)):
                raise TypeError(f"Event(): data must be strings and numbers by name, got {value!r} for {key!r}")
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """What `unregister_event_handler` takes."""

    def __init__(self, callback: Callable[[Event], object]) -> None:
        self.callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], object]) -> EventHandlerHandle:
    """Call a function with each event from now on."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handle: EventHandlerHandle) -> None:
    """Call it no more."""
    with suppress(ValueError):
        _handlers.remove(handle)


def log_event(event: Event) -> None:
    """Tell all who listen of an event, in the order in which they registered."""
    if not isinstance(event, Event):
        raise TypeError(f"log_event(): expected an Event, got {type(event).__name__}")
    for handle in list(_handlers):
        handle.callback(event)


class Stat:
    """A counter: of what is added in a window of time, aggregations are an event at the end of it.

    The window ends with the first `add` behind it, or with the counter. max_samples: that many numbers are told of at once;
    more in the same window are left out.

    >>> import rushlight as torch
    >>> from datetime import timedelta
    >>> Aggregation = torch.monitor.Aggregation
    >>> stat = torch.monitor.Stat("loss", (Aggregation.SUM, Aggregation.COUNT), timedelta(hours=1), 2)
    >>> stat.add(1.5), stat.add(2.5)
    (None, None)
    >>> stat.get()[Aggregation.SUM]
    4.0
    """

    def __init__(
        self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta, max_samples: int = (1 << 63) - 1
    ) -> None:
        if not isinstance(window_size, timedelta):
            raise TypeError(f"Stat(): window_size must be a timedelta, got {type(window_size).__name__}")
        self.name, self._kinds = name, tuple(dict.fromkeys(aggregations))
        self._window, self._most = window_size.total_seconds(), max_samples
        self._numbers: list[float] = []
        self._found, self._full = dict.fromkeys(self._kinds, 0.0), False
        self._end = time.monotonic() + self._window

    @property
    def count(self) -> int:
        """How many numbers this window has."""
        return len(self._numbers)

    def get(self) -> dict[Aggregation, float]:
        """What was told last; zeros before."""
        return dict(self._found)

    def add(self, v: float) -> None:
        """Add a number."""
        if time.monotonic() >= self._end:
            if not self._full:
                self._tell()
            self._end, self._full = time.monotonic() + self._window, False
        if self._full:
            return
        self._numbers.append(float(v))
        if len(self._numbers) >= self._most:
            self._tell()
            self._full = True

    def _tell(self) -> None:
        """Aggregate what was added, forget it, and tell of it."""
        numbers, self._numbers = self._numbers, []
        self._found = {kind: _COMPUTED[kind](numbers) for kind in self._kinds}
        data = {f"{self.name}.{kind.name.lower()}": value for kind, value in self._found.items()}
        log_event(Event(STAT, datetime.now(), data))

    def __del__(self) -> None:
        if getattr(self, "_numbers", None):
            self._tell()


class _Writer(Protocol):
    def add_scalar(self, tag: str, scalar_value: float, *, walltime: float) -> object: ...


class TensorboardEventHandler:
    """Writes what counters tell of to a `SummaryWriter`, as scalars.

    Register it: `register_event_handler(TensorboardEventHandler(writer))`.
    """

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT:
            for name, value in event.data.items():
                if not isinstance(value, str):
                    self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """Counts what is waited for; here it has no one to tell."""

    def __init__(self, key: str) -> None:
        self.key = key

    @contextmanager
    def guard(self) -> Iterator[None]:
        """A context of something that is waited for."""
        yield
