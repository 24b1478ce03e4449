"""A process that fails ends all: the others would wait for it without end."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rushlight.distributed import mpi, witness

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
    print(f"rank {rank} failed; the other processes of its group are ended.", file=sys.stderr)
    _watched[0](kind, error, trace)
    end(status)


def end(status: int) -> None:
    """End all processes of the group with a status, if there is one of several; what they printed is shown first."""
    if not _watched:
        return
    world = mpi.library().COMM_WORLD
    witness.write(str(world.rank), status)
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(witness.FORWARD)
    world.Abort(status)
