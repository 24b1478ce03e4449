"""Processes that call one function each: started together, waited for together, ended together when one of them fails."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import connection
from typing import Any

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext"]

_GRACE = 5.0  # seconds until processes that were asked to end are killed


class ProcessException(Exception):
    """A process that was started failed.  error_index: which of them; error_pid: its number in the system."""

    def __init__(self, msg: str, error_index: int, error_pid: int | None):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(vars(self).values())


class ProcessRaisedException(ProcessException):
    """A function that ran in another process raised an error."""


class ProcessExitedException(ProcessException):
    """A process ended by itself, or by a signal.  exit_code: its status; signal_name: of the signal, None without one."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int | None, exit_code: int, signal_name: str | None = None
    ):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def call(fn: Callable[..., Any], i: int, args: tuple[Any, ...], path: str) -> None:
    """Call ``fn(i, *args)``; what it raises is told in a file."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the process that started this one was interrupted too
    except Exception:
        with open(path, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], folder: str):
        self.processes, self.folder = processes, folder
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their numbers in the system."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one of them ends; whether all have ended well.

        timeout: seconds to wait at most; grace_period: how long the others may take to end when one failed.  Raises
        ProcessRaisedException for one whose function raised an error, ProcessExitedException for one that ended otherwise.
        """
        ended = [self.sentinels.pop(sentinel) for sentinel in connection.wait(self.sentinels.keys(), timeout)]
        for i in ended:
            self.processes[i].join()
        failed = next((i for i in ended if self.processes[i].exitcode != 0), None)
        if failed is None:
            return not self.sentinels
        self._end(_GRACE if grace_period is None else grace_period)
        raise self._error(failed)

    def _end(self, grace: float) -> None:
        """End those that still run: first they are asked to."""
        until = time.monotonic() + grace
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _error(self, i: int) -> ProcessException:
        process, path = self.processes[i], error_path(self.folder, i)
        if os.path.exists(path):
            with open(path, "rb") as file:
                told = pickle.load(file)
            return ProcessRaisedException(
                f"\n\n-- Process {i} terminated with the following error:\n{told}", i, process.pid
            )
        code = process.exitcode
        if code >= 0:
            return ProcessExitedException(f"process {i} terminated with exit code {code}", i, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(f"process {i} terminated with signal {name}", i, process.pid, code, name)


class SpawnContext(ProcessContext):
    """Processes that `spawn` started."""


def error_path(folder: str, i: int) -> str:
    """The file in which process i tells its error."""
    return os.path.join(folder, str(i))


def start(
    fn: Callable[..., Any], args: tuple[Any, ...], count: int, daemon: bool, method: str, kind: type[ProcessContext]
) -> ProcessContext:
    """Start `count` processes by a method of the standard library that call ``fn(rank, *args)``."""
    context: Any = multiprocessing.get_context(method)
    folder = tempfile.mkdtemp(prefix="rushlight-errors-")
    processes = []
    with together(count):
        for i in range(count):
            process = context.Process(target=call, args=(fn, i, args, error_path(folder, i)), daemon=daemon)
            process.start()
            processes.append(process)
    return kind(processes, folder)


@contextlib.contextmanager
def together(count: int) -> Iterator[None]:
    """Let processes that are started meanwhile know where they meet, and, unless they are forked, what processors they share."""
    if count < 2:
        yield
        return
    said = {
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": free_port(),
        "OMP_NUM_THREADS": max((os.cpu_count() or 1) // count, 1),
    }
    ours = {name: str(value) for name, value in said.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


def free_port() -> int:
    """A port of this machine at which nobody listens now."""
    with socket.create_server(("localhost", 0)) as listener:
        return int(listener.getsockname()[1])
