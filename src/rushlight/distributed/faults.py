"""A process that fails ends all: the others would wait for it without end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import Any

from rushlight.distributed import mpi, witness
from rushlight.distributed.meeting import link

ANSWER = 2  # seconds in which the launcher ends a process that has asked it to end all
_watched: list[Any] = []


def watch(rank: int) -> None:
    """From now on an error that nobody catches in this process ends the processes of the group, after its message."""
    if _watched:
        return
    _watched.append(sys.excepthook)
    sys.excepthook = lambda *error: ended(rank, *error)


def ended(rank: int, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an error with the process that it happened in, and end all processes with status 1 (130 after Ctrl-C)."""
    status = 130 if issubclass(kind, KeyboardInterrupt) else 1
    witness.write(str(rank), status, told=True)
    others = "are ended" if link.current() is None else "fail where they wait for it"
    print(f"rank {rank} failed; the other processes of its group {others}.", file=sys.stderr)
    _watched[0](kind, error, trace)
    end(status)


def end(status: int) -> None:
    """End all processes of the group with a status, if there is one of several; what they printed is shown first.

    Where they were started one by one, it is this one that ends: the others hear of it.
    """
    if not _watched:
        return
    if link.current() is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    world = mpi.library().COMM_WORLD
    witness.write(str(world.rank), status)
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(witness.FORWARD)
    answered_soon()
    world.Abort(status)


def answered_soon() -> None:
    """End this process in a while: MPI asks the launcher to end all, and waits for its word, which a cut cable keeps away."""
    if hasattr(signal, "SIGALRM"):
        if threading.current_thread() is threading.main_thread():  # which alone may say so
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ANSWER)
