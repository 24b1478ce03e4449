"""Starting several processes by MPI's launcher, and what each of them finds in its environment."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rushlight.distributed import mpi

__all__ = ["command", "environment", "start"]


def launcher() -> str:
    """The program mpiexec: of this environment, else of the system.  Raises FileNotFoundError where there is none."""
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    found = shutil.which("mpiexec", path=path) or shutil.which("mpirun", path=path)
    if found is None:
        raise FileNotFoundError(f"no mpiexec was found, which starts several processes: {mpi.HINT}")
    return found


def command(count: int, program: Sequence[str], hosts: str | None = None, label: bool = False) -> list[str]:
    """The command that starts a program `count` times.  hosts: names with commas between them, or a file of names."""
    words = [launcher(), "-n", str(count)]
    if hosts is not None:
        words += ["-f" if os.path.isfile(hosts) else "-hosts", hosts]
    if label:
        words.append("-prepend-rank")
    return [*words, *program]


def start(count: int, program: Sequence[str], hosts: str | None = None, label: bool = False, restarts: int = 0) -> int:
    """Start a program `count` times and wait; the exit status is that of the first failure, 128 + N after signal N.

    Processes of one machine share its processors: each gets its part as OMP_NUM_THREADS, unless that is set.  restarts: how
    often all of them are started again after a failure, which TORCHELASTIC_RESTART_COUNT counts; not after Ctrl-C.
    """
    given = dict(os.environ)
    if hosts is None:
        given.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // count, 1)))
    given["TORCHELASTIC_MAX_RESTARTS"] = str(restarts)
    for turn in range(restarts + 1):
        given["TORCHELASTIC_RESTART_COUNT"] = str(turn)
        status = once(count, program, hosts, label, given)
        if status in (0, INTERRUPTED) or turn == restarts:
            break
        print(
            f"rushlight run: ended with status {status}; start {turn + 2} of {restarts + 1}",
            file=sys.stderr,
            flush=True,
        )
    return status


INTERRUPTED = 130  # the exit status after Ctrl-C


def once(count: int, program: Sequence[str], hosts: str | None, label: bool, given: dict[str, str]) -> int:
    """Start a program `count` times and wait.  given: the environment"""
    with tempfile.TemporaryDirectory() as folder:
        given[ROLL] = folder
        with subprocess.Popen(command(count, program, hosts, label), env=given, stdout=subprocess.PIPE) as running:
            status, last = passed_on(running)
        lost = killed(last, folder)
    if status and lost:
        print(f"{lost} was killed; the other processes of its group were ended.", file=sys.stderr)
    return 128 - status if status < 0 else status


ROLL = "RUSHLIGHT_ROLL"  # the variable that names a folder in which each process leaves its rank, under its process's number
GONE = re.compile(rb"PID (\d+) RUNNING AT (\S+)")  # what MPICH's launcher says of a process that a signal ended


def passed_on(running: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Print what processes print, as it comes; the exit status, and the last of it."""
    last = b""
    assert isinstance(running.stdout, io.BufferedReader)
    while True:
        try:
            while some := running.stdout.read1():
                sys.stdout.buffer.write(some)
                sys.stdout.buffer.flush()
                last = (last + some)[-4096:]
            return running.wait(), last
        except KeyboardInterrupt:  # which the processes get too: they end, and then the launcher
            continue


def killed(last: bytes, folder: str) -> str | None:
    """The process that a signal ended, as the launcher says: its rank where it ran on this machine."""
    found = GONE.search(last)
    if found is None:
        return None
    number, host = found[1].decode(), found[2].decode()
    path = Path(folder, number)
    return f"rank {path.read_text()}" if path.exists() else f"process {number} on {host}"


def enroll(rank: int) -> None:
    """Leave this process's rank where the launcher looks for it."""
    if ROLL in os.environ:
        with contextlib.suppress(OSError):  # on another machine the folder is not there
            Path(os.environ[ROLL], str(os.getpid())).write_text(str(rank))


def environment() -> None:
    """Set what scripts ask for (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, ...) from what MPI's launcher says."""
    if not mpi.launched():
        return
    world = mpi.library().COMM_WORLD
    local = mpi.local_rank()
    said = {"RANK": world.rank, "WORLD_SIZE": world.size, "MASTER_ADDR": "localhost", "MASTER_PORT": 29500,
            "LOCAL_RANK": world.rank if local is None else local,
            "LOCAL_WORLD_SIZE": os.environ.get("MPI_LOCALNRANKS", world.size)}  # fmt: skip
    for name, value in said.items():
        os.environ.setdefault(name, str(value))
    enroll(world.rank)
