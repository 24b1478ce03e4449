"""Starting several processes by MPI's launcher, and what each of them finds in its environment."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence

from rushlight.basics.errors import explained
from rushlight.distributed import faults, mpi, witness

__all__ = ["command", "environment", "main", "start"]


def launcher() -> str:
    """The program mpiexec: of this environment, else of the system.  Raises FileNotFoundError where there is none."""
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    found = shutil.which("mpiexec", path=path) or shutil.which("mpirun", path=path)
    if found is None:
        words = f"no mpiexec was found, which starts several processes: {mpi.HINT}"
        raise explained(FileNotFoundError(words), "missing-extra")
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
    elif given.get("HYDRA_LAUNCHER") == "ssh" or not ("HYDRA_LAUNCHER" in given or MANAGERS & given.keys()):
        given.setdefault("HYDRA_LAUNCHER_EXTRA_ARGS", ALIVE)
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


# Variables of who else starts processes on other machines than ssh.
MANAGERS = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"}
ALIVE = "-o ServerAliveInterval=2 -o ServerAliveCountMax=3"  # ssh ends when the other machine is gone: it would wait for hours
INTERRUPTED = 130  # the exit status after Ctrl-C


# Seconds in which MPI's launcher ends the other processes.  It cannot where the way to their machine is cut, and does not where one
# was killed before it had told the launcher that it is there.
PATIENCE = 3


def once(count: int, program: Sequence[str], hosts: str | None, label: bool, given: dict[str, str]) -> int:
    """Start a program `count` times and wait.  given: the environment"""
    with tempfile.TemporaryDirectory() as folder:
        given[witness.FOLDER] = folder
        posix = os.name == "posix"
        words = command(count, watched(program) if posix else program, hosts, label)
        # What starts it may be killed: mpiexec is then too, and its processes end with it.
        with subprocess.Popen(words, env=given, preexec_fn=witness.follow_parent if posix else None) as running:
            with handed_on(running):
                status = ended(running, folder)
        end = witness.first(folder)
    if end is not None and not end.told and end.status != INTERRUPTED:
        print(witness.tell(end, "the other processes of its group were ended."), file=sys.stderr)
    return end.status if status and end is not None else 128 - status if status < 0 else status


def watched(program: Sequence[str]) -> list[str]:
    """A program with a witness of how it ends."""
    return [sys.executable, "-I", "-S", witness.__file__, *program]


@contextlib.contextmanager
def handed_on(running: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGTERM goes on to a launcher, and from it to the processes, which may have something to save."""
    if threading.current_thread() is not threading.main_thread():  # which alone may say so
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: running.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def ended(running: subprocess.Popen[bytes], folder: str) -> int:
    """The exit status of a launcher, when it has ended; it is killed where that takes too long after the end of a process."""
    while True:
        try:
            return running.wait(1)
        except KeyboardInterrupt:  # which the processes get too: they end, and then the launcher
            continue
        except subprocess.TimeoutExpired:
            end = witness.first(folder)
            if end is not None and time.time() - end.when / 1e9 > PATIENCE:
                running.kill()


def environment() -> None:
    """Set what scripts ask for (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, ...) from what MPI's launcher says."""
    if not mpi.told():  # as Slurm's does, where it is asked to; else processes may meet in another way
        return
    world = mpi.library().COMM_WORLD
    local = mpi.local_rank()
    said = {"RANK": world.rank, "WORLD_SIZE": world.size, "MASTER_ADDR": "localhost", "MASTER_PORT": 29500,
            "LOCAL_RANK": world.rank if local is None else local,
            "ROLE_RANK": world.rank, "ROLE_WORLD_SIZE": world.size,
            "LOCAL_WORLD_SIZE": os.environ.get("MPI_LOCALNRANKS", world.size)}  # fmt: skip
    for name, value in said.items():
        os.environ.setdefault(name, str(value))
    if world.size > 1:  # one that fails would wait for the others at its end, which wait for it
        faults.watch(world.rank)


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m torch.distributed.launch``, as torchrun was called before; scripts get the argument --local-rank."""
    from rushlight.distributed import run  # which starts processes by this module

    return run.main(argv, local_rank=True)


if __name__ == "__main__":
    sys.exit(main())
