"""torch.futures: results that come later, and what is to be done with them then.

>>> from rushlight.futures import Future
>>> future = Future()
>>> doubled = future.then(lambda f: 2 * f.value())
>>> future.set_result(21)
>>> doubled.wait()
42
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from logging import getLogger
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value, or an exception, that some thread sets once; others wait for it.

    devices: accepted: all memory is the CPU's, which is not among them (ValueError).
    """

    def __init__(self, *, devices: Any = None):
        for device in () if devices is None else devices:
            if getattr(device, "type", device) == "cpu":
                raise ValueError(f"Expected devices to have indices, got {device}: the CPU has none, leave devices out")
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._result: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._set.is_set()

    def wait(self) -> T:
        """The value, once it is there.  Raises the exception where that was set instead."""
        self._set.wait()
        return self.value()

    def value(self) -> T:
        """The value.  Raises RuntimeError where there is none yet, or the exception that was set."""
        if not self.done():
            raise RuntimeError("Future.value: not done yet. Call wait(), or value() in a callback")
        if self._error is not None:
            raise self._error
        result: T = self._result
        return result

    def set_result(self, result: T) -> None:
        """Set the value and run the callbacks in this thread.  Raises RuntimeError the second time."""
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Set an exception, which `wait` and `value` raise.  Raises AssertionError for what is none."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, result: object, error: Exception | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only be "
                                   "marked completed once.")  # fmt: skip
            self._result, self._error = result, error
            self._set.set()
            waiting, self._callbacks = self._callbacks, []
        for callback in waiting:
            callback()

    def __reduce__(self) -> str:
        raise RuntimeError("Can not pickle torch.futures.Future: another thread is to set it here")

    def _when_done(self, callback: Callable[[], None]) -> None:
        """Run `callback` once there is a value or an exception: now, if there is."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The future result of callback(self), which runs once this one is done.

        What it raises is the cause of the RuntimeError that waiting for the result raises.  Raises TypeError for no function.
        """
        result: Future[Any] = Future()
        checked(callback, "then")

        def run() -> None:
            try:
                found = callback(self)
            except Exception as error:
                result.set_exception(of_callback(error))
            else:
                result.set_result(found)

        self._when_done(run)
        return result

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call callback(self) once this one is done; what it raises is logged.  Raises TypeError for no function."""
        checked(callback, "add_done_callback")

        def run() -> None:
            try:
                callback(self)
            except Exception:
                getLogger(__name__).exception("a callback of a future raised")

        self._when_done(run)


def checked(callback: object, name: str) -> None:
    """Raise TypeError unless `callback` can be called."""
    if not callable(callback):
        raise TypeError(
            f"{name}(): incompatible function arguments: expected a function of one future, got {callback!r}"
        )


def of_callback(error: Exception) -> RuntimeError:
    """What a callback raised, as the exception of its result."""
    made = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future whose value is the list of `futures` once all of them are done; the first exception where one has any."""
    collected: Future[list[Future[Any]]] = Future()
    left, lock = [len(futures)], threading.Lock()

    def one_less() -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            failed = next((f._error for f in futures if f._error is not None), None)
            if failed is None:
                collected.set_result(list(futures))
            else:
                collected.set_exception(failed)

    if not futures:
        collected.set_result([])
    for future in futures:
        future._when_done(one_less)
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all of them.  Raises the first exception that one of them has."""
    return [future.wait() for future in collect_all(futures).wait()]
