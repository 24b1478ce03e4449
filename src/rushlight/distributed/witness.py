"""A process that waits for one of a group, and says how it ended before MPI's launcher hears of it.

When one process dies, the launcher kills all others, and then all of them have been killed: it cannot say which was first.  What
connects a process to the launcher is also in the hands of its witness, so that the launcher takes it for alive until the witness
has written down how it ended, and has ended itself.  The file runs by itself, as a program that imports little: it is there once
for each process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["End", "FOLDER", "first", "main", "tell", "write"]

FOLDER = "RUSHLIGHT_ENDS"  # the variable that names the folder of the launching machine where ends are written down
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")  # where launchers say which process it is
# Seconds in which MPI's launcher passes on what was printed: at the end it throws away what it has not read.
FORWARD = 0.5
PARENT_DEATH = 1  # the number of prctl's operation PR_SET_PDEATHSIG


class End(NamedTuple):
    """How a process ended.  when: ns; status: as of a shell, 128 + N after signal N; told: whether its message is out."""

    when: int
    rank: str
    status: int
    killed: bool
    told: bool


def tell(end: End, others: str) -> str:
    """What is printed of the end of a process.  others: what becomes of them"""
    if end.killed:
        return f"rank {end.rank} was killed by signal {end.status - 128}; {others}"
    return f"rank {end.rank} ended with status {end.status}; {others}"


def write(rank: str, status: int, *, killed: bool = False, told: bool = False) -> bool:
    """Write down the end of a process, unless that is done; whether the folder is there, which it is on one machine."""
    folder = os.environ.get(FOLDER, "")
    if not os.path.isdir(folder):
        return False
    try:
        with open(os.path.join(folder, rank), "x") as file:
            file.write(f"{time.time_ns()} {rank} {status} {int(killed)} {int(told)}\n")
    except FileExistsError:
        pass
    return True


def first(folder: str) -> End | None:
    """The end that was the first, of those written down in a folder."""
    found = []
    for path in Path(folder).iterdir():
        text = path.read_text()
        if text.endswith("\n"):  # else the process was killed while it wrote: after another
            when, rank, status, killed, told = text.split()
            found.append(End(int(when), rank, int(status), killed == "1", told == "1"))
    return min(found, default=None)


def main(program: Sequence[str]) -> int:
    """Run a program, and return its exit status, 128 + N after signal N, when it has been written down."""
    child = os.fork()
    if not child:
        follow_parent()
        os.execvp(program[0], list(program))
    # The launcher sends signals to both: what the program makes of them is awaited.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    _, waited = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(waited)
    status = 128 + os.WTERMSIG(waited) if killed else os.waitstatus_to_exitcode(waited)
    rank = next((os.environ[name] for name in RANKS if name in os.environ), "?")
    if status and not write(rank, status, killed=killed) and killed:  # on another machine
        print(
            tell(End(0, rank, status, killed, False), "the other processes of its group are ended."),
            file=sys.stderr,
            flush=True,
        )
        time.sleep(FORWARD)
    return status


def follow_parent() -> None:
    """Have this process killed when its parent dies, where the system knows of that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
