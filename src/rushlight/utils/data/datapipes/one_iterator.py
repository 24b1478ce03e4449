"""One iterator of a datapipe at a time: a new one makes the one before invalid, and counts what it gives."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rushlight.utils.data.datapipes.datapipe import IterDataPipe

T = TypeVar("T")


class _SnapshotState(enum.Enum):
    """Where a datapipe is: not begun, brought to a place by a snapshot, or iterated over."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


def iterates(function: Callable[..., Iterator[T]]) -> Callable[..., Iterator[T]]:
    """What stands for the `__iter__` of a datapipe: what it gives is valid until it is called again."""

    @functools.wraps(function)
    def begun(pipe: IterDataPipe[T]) -> Iterator[T]:
        return begin(pipe, functools.partial(function, pipe))

    @functools.wraps(function)
    def later(pipe: IterDataPipe[T]) -> Iterator[T]:
        """As generators are, begun when the first element is asked for."""
        yield from begin(pipe, functools.partial(function, pipe))

    return later if inspect.isgeneratorfunction(function) else begun


def begin(pipe: IterDataPipe[T], function: Callable[[], Iterator[T]]) -> Iterator[T]:
    """A new iterator of a datapipe, or the one that a snapshot has brought to its place."""
    if pipe._snapshot_state is _SnapshotState.Restored:
        pipe._snapshot_state = _SnapshotState.Iterating
        found: Iterator[T] | None = pipe._fast_forward_iterator
        pipe._fast_forward_iterator = None
        if found is not None:
            return found
    number = pipe._begin_iterator()
    restored = pipe._snapshot_state is _SnapshotState.Restored
    pipe._snapshot_state = _SnapshotState.Iterating if not restored else pipe._snapshot_state
    return OneIterator(pipe, function(), number)


class OneIterator(Iterator[T]):
    """An iterator that raises RuntimeError once its datapipe has begun another one."""

    def __init__(self, pipe: IterDataPipe[T], inner: Iterator[T], number: int):
        self.pipe, self.inner, self.number = pipe, inner, number

    def __next__(self) -> T:
        if not self.pipe._is_valid(self.number):
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
                f"{self.pipe!r}. A datapipe has one iterator at a time: use fork() where its elements are needed twice"
            )
        self.pipe._snapshot_state = _SnapshotState.Iterating
        found = next(self.inner)
        self.pipe._number_of_samples_yielded += 1
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)
