"""Workers that die: of loaders that libraries write, who waits for a batch hears of it by a signal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

__all__ = ["_error_if_any_worker_fails", "_remove_worker_pids", "_set_SIGCHLD_handler", "_set_worker_pids",
           "_set_worker_signal_handlers"]  # fmt: skip

_workers: dict[int, set[int]] = {}  # processes by loader
_handles = False


def _set_worker_pids(key: int, pids: Iterable[int]) -> None:
    """Note the processes that work for a loader."""
    _workers[key] = set(pids)


def _remove_worker_pids(key: int) -> None:
    """They may end from now on."""
    _workers.pop(key, None)


def _error_if_any_worker_fails() -> None:
    """Raise RuntimeError where a worker has ended by a signal, or with an error."""
    for pids in _workers.values():
        for pid in sorted(pids):
            words = _ended(pid)
            if words:
                pids.clear()
                raise RuntimeError(f"DataLoader worker (pid {pid}) {words}")


def _ended(pid: int) -> str:
    """How a process ended, where it has not ended well; who started it is still told."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return ""
    if found is None or not found.si_status:
        return ""
    if found.si_code == os.CLD_EXITED:
        return f"exited unexpectedly with exit code {found.si_status}."
    return f"is killed by signal: {signal.strsignal(found.si_status)}."


def _set_worker_signal_handlers() -> None:
    """Nothing: how a worker ended is said by who started it."""


def _set_SIGCHLD_handler() -> None:
    """Hear of the end of workers, in the main thread."""
    global _handles
    if _handles or not hasattr(signal, "SIGCHLD") or threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGCHLD, _handler(signal.getsignal(signal.SIGCHLD)))
    _handles = True


def _handler(before: Any) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)

    return handle
