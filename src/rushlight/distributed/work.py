"""Operations that are under way: what is waited for, for how long, and what is done then."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rushlight.basics import events
from rushlight.basics.state import special
from rushlight.distributed.errors import DistBackendError
from rushlight.futures import Future

__all__ = ["Arriving", "Work", "finish"]

BUSY = 0.02  # seconds in which completion is asked for without pause
PAUSE = 0.0001  # seconds between questions after that


class Pending:
    """A request that is asked whether it is done, by whoever waits and by the thread that sees to progress.

    It holds nothing but the request, and that what it reads and writes until it is done.  event: a name and shapes,
        for who observes
    """

    __slots__ = ("done", "error", "lock", "request", "status", "tell")

    def __init__(self, request: Any, status: Any, event: tuple[str, list[list[int]]] | None) -> None:
        self.request, self.status, self.lock, self.done = request, status, threading.Lock(), request is None
        self.error: DistBackendError | None = None
        self.tell = events.message(*event) if special.observing and event is not None and not self.done else None

    def poll(self) -> bool:
        """Whether it is done.  Raises DistBackendError where it never will be."""
        with self.lock:
            if self.error is not None:
                raise self.error
            if not self.done:
                self._ask()
            return self.done

    def _ask(self) -> None:
        try:
            self.done = bool(self.request.Test(self.status))
        except DistBackendError as error:
            self.error = error
            raise
        if self.done:
            self.request = None
            if self.tell is not None:
                self.tell()

    def cancel(self) -> None:
        """Have it be done without its message."""
        with self.lock:
            if not self.done and self.request is not None:
                self.request.Cancel()
                self.done, self.request = True, None


class Work:
    """The handle of an operation with ``async_op=True``: what it writes is there after `wait`.

    request: of MPI, None where it is done; after: brings the result into the tensors; what: its name, for errors; status:
    where MPI says from whom a message came; event: the name and the shapes that profiles have of it, else "mpi:" and `what`.
    """

    def __init__(
        self,
        request: Any = None,
        after: Callable[[], None] | None = None,
        what: str = "",
        timeout: float | None = None,
        status: Any = None,
        event: tuple[str, list[list[int]]] | None = None,
    ) -> None:
        self._after, self._what, self._timeout, self._status = after, what, timeout, status
        self._pending = Pending(request, status, event or ((f"mpi:{what}", []) if what else None))
        if request is None:
            self._end()
        else:
            progress(self._pending)

    def _end(self) -> None:
        after, self._after = self._after, None
        if after is not None:
            after()

    def later(self, step: Callable[[], None]) -> None:
        """Have something done after the result has come, before `wait` returns."""
        before = self._after
        if before is None and self._pending.done:
            step()
            return

        def both() -> None:
            if before is not None:
                before()
            step()

        self._after = both

    def poll(self) -> bool:
        """Whether it is done, as far as MPI is concerned."""
        return self._pending.poll()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done.  Raises DistBackendError after `timeout`, or that of the group."""
        limit = self._timeout if timeout is None or not timeout else timeout.total_seconds()
        finish(self.poll, self._what, limit)
        self._end()
        return True

    def cancel(self) -> None:
        """Give up waiting for a message, which is for another one then."""
        self._pending.cancel()

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self.poll()

    def source(self) -> int:
        """The process within its group that a message came from."""
        return int(self._status.Get_source())

    _source_rank = source

    def is_success(self) -> bool:
        """Whether it is done and worked."""
        return self.poll()

    def exception(self) -> None:
        """What went wrong: errors of messages are raised where they are waited for."""

    def result(self) -> list[Any]:
        """The tensors that the operation wrote."""
        return self.tensors

    tensors: list[Any] = []  # noqa: RUF012 - replaced, never changed

    def get_future(self) -> Arriving:
        """A future of the tensors that the operation writes."""
        return Arriving(self, lambda: self.tensors, alone=True)


class Arriving(Future[Any]):
    """A value that is there when an operation is done: who asks for it waits, and what is to be done with it is done then.

    work: what is waited for first; value: makes the value; alone: whether that needs no message.  `done` says so of no other:
    what begins a message must do so at the same point of all processes.
    """

    def __init__(self, work: Any, value: Callable[[], Any], alone: bool = False) -> None:
        super().__init__()
        self._work, self._make, self._alone = work, value, alone

    def done(self) -> bool:
        """Whether the value is there without waiting."""
        return super().done() or (self._alone and self._work.is_completed())

    def wait(self) -> Any:
        """The value, once it is there."""
        if not super().done():
            self._work.wait()
            self.set_result(self._make())
        return super().value()

    value = wait
    is_completed = done

    def _complete(self, result: object, error: Exception | None) -> None:
        self._alone = False  # no question to the work any more
        super()._complete(result, error)

    def then(self, callback: Callable[[Any], Any]) -> Arriving:
        """The future of callback(self), which runs when that is asked for."""
        return Arriving(self, lambda: callback(self))


def finish(done: Callable[[], Any], what: str, timeout: float | None) -> None:
    """Return when `done()` says so; raise DistBackendError after `timeout` seconds.  Ctrl-C is heard meanwhile."""
    begin = time.monotonic()
    while not done():
        waited = time.monotonic() - begin
        if timeout is not None and waited > timeout:
            raise DistBackendError(
                f"{what}: Timed out after {timeout:g} s: not every process of the group has called it. A process that is behind, or "
                "took another way through the program, is waited for: monitored_barrier() says which, and "
                "RUSHLIGHT_DISTRIBUTED_DEBUG=1 compares what the processes call"
            )
        time.sleep(0 if waited < BUSY else PAUSE)


_waiting: queue.SimpleQueue[Pending] = queue.SimpleQueue()
_thread: threading.Thread | None = None


def progress(pending: Pending) -> None:
    """See to it that an operation goes on while this thread computes: MPI works only when it is asked."""
    global _thread
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_ask, name="rushlight messages", daemon=True)
        _thread.start()
    _waiting.put(pending)


def _ask() -> None:
    while True:
        pending = _waiting.get()
        with contextlib.suppress(DistBackendError):  # which is raised where it is waited for
            while not pending.poll():
                time.sleep(PAUSE)
