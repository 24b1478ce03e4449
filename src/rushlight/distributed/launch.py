"""Starting several processes by MPI's launcher, and what each of them finds in its environment."""

from __future__ import annotations

import atexit
import contextlib
import os
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


def start(count: int, program: Sequence[str], hosts: str | None = None, label: bool = False) -> int:
    """Start a program `count` times and wait; the exit status is that of the first failure, 128 + N after signal N.

    Processes of one machine share its processors: each gets its part as OMP_NUM_THREADS, unless that is set.
    """
    given = dict(os.environ)
    if hosts is None:
        given.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // count, 1)))
    with tempfile.TemporaryDirectory() as folder:
        given[ROLL] = folder
        with subprocess.Popen(command(count, program, hosts, label), env=given) as running:
            lost = None
            while True:
                try:
                    status = running.wait(0.1)
                    break
                except subprocess.TimeoutExpired:
                    lost = vanished(folder) if lost is None else lost
                except KeyboardInterrupt:  # which the processes get too: they end, and then the launcher
                    continue
            lost = vanished(folder) if lost is None else lost
    if status and lost is not None:
        print(
            f"rank {lost} ended without a word (killed?); the other processes of its group were ended.", file=sys.stderr
        )
    return 128 - status if status < 0 else status


ROLL = "RUSHLIGHT_ROLL"  # the variable that names a folder with a file for each process: its number, and its own number inside


def vanished(folder: str) -> int | None:
    """The first process that is gone without having said so: it was killed."""
    for name in sorted(os.listdir(folder), key=lambda name: int(name.split(".")[0])):
        if (
            "." not in name
            and not os.path.exists(os.path.join(folder, f"{name}.end"))
            and not alive(Path(folder, name).read_text())
        ):
            return int(name)
    return None


def alive(number: str) -> bool:
    """Whether a process of this machine runs; True where that cannot be seen."""
    try:
        return Path("/proc", number, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def enroll(rank: int) -> None:
    """Leave this process's number where the launcher looks, and at its end that it has ended by itself."""
    folder = os.environ.get(ROLL)
    if folder is None:
        return
    path = Path(folder, str(rank))
    with contextlib.suppress(OSError):  # on another machine the folder is not there
        path.write_text(str(os.getpid()))
        atexit.register(leave)


def leave() -> None:
    """Say that this process ends by itself."""
    with contextlib.suppress(OSError, KeyError):
        Path(os.environ[ROLL], f"{os.environ['RANK']}.end").touch()


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
