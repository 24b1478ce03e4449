"""MPI, loaded when a group of several processes is made: mpi4py, on the MPI of its wheel or of the system."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from typing import Any

from rushlight.basics.errors import explained

__all__ = ["HINT", "available", "launched", "library", "local_rank"]

HINT = "pip install 'rushlight[mpi]' brings mpi4py and an MPI"
# What launchers tell the processes that they start: MPICH and Intel MPI, Open MPI, PMIx, Slurm's srun.
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
LOCAL = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")


def launched() -> bool:
    """Whether a launcher started this process that MPI knows, or may know: Slurm's, where the script does not say how to meet."""
    slurm = "SLURM_PROCID" in os.environ and "SLURM_STEP_ID" in os.environ
    return told() or (slurm and not {"RANK", "MASTER_ADDR"} <= os.environ.keys())


def told() -> bool:
    """Whether a launcher has told this process its number in the way of MPI."""
    return any(name in os.environ for name in RANKS)


def available() -> bool:
    """Whether there is an MPI to start processes by."""
    return importlib.util.find_spec("mpi4py") is not None


def local_rank() -> int | None:
    """The number of this process on its machine, as the launcher says."""
    return next((int(os.environ[name]) for name in LOCAL if name in os.environ), None)


def library(launched: bool = True) -> Any:
    """The module `mpi4py.MPI`, initialized so that several threads may call it.

    launched: whether it is ended when this process ends, as all do then; said at the first call.

    Raises ModuleNotFoundError, with what to install, where mpi4py is missing.
    """
    try:
        import mpi4py
    except ModuleNotFoundError:
        said = f"a group of several processes sends messages by MPI, and mpi4py is not installed: {HINT}"
        raise explained(ModuleNotFoundError(said, name="mpi4py"), "missing-extra") from None
    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.thread_level, mpi4py.rc.initialize, mpi4py.rc.finalize = "multiple", launched, launched
    from mpi4py import MPI

    if not MPI.Is_initialized():
        initialize(MPI)

    return MPI


def initialize(module: Any) -> None:
    """Initialize MPI, while other threads of this process go on: the others ask one of them for where they meet.

    (mpi4py's own call keeps them waiting, and with them the other processes, for which it waits.)
    """
    provided = ctypes.c_int()
    if ctypes.CDLL(module.__file__).MPI_Init_thread(None, None, module.THREAD_MULTIPLE, ctypes.byref(provided)):
        raise RuntimeError("MPI_Init_thread failed: the processes of the group do not reach each other")


def unname() -> None:
    """Remove the names of the memory that processes of this machine share, when all of them have it.

    MPICH does so when it ends: those of processes that are killed stay, 3 MB each in /dev/shm.
    """
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        paths = {line.split()[5] for line in maps if "/dev/shm/mpich_shm_" in line and "(deleted)" not in line}
        for path in paths:
            with contextlib.suppress(FileNotFoundError):  # another was first
                os.unlink(path)
