"""MPI, loaded when a group of several processes is made: mpi4py, on the MPI of its wheel or of the system."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from rushlight.basics.errors import explained

__all__ = ["HINT", "available", "launched", "library", "local_rank"]

HINT = "pip install 'rushlight[mpi]' brings mpi4py and an MPI"
# What launchers tell the processes that they start: MPICH and Intel MPI, Open MPI, PMIx, Slurm's srun.
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
LOCAL = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")


def launched() -> bool:
    """Whether an MPI launcher started this process."""
    return any(name in os.environ for name in RANKS) or ("SLURM_PROCID" in os.environ and "SLURM_STEP_ID" in os.environ)


def available() -> bool:
    """Whether there is an MPI to start processes by."""
    return importlib.util.find_spec("mpi4py") is not None


def local_rank() -> int | None:
    """The number of this process on its machine, as the launcher says."""
    return next((int(os.environ[name]) for name in LOCAL if name in os.environ), None)


def library() -> Any:
    """The module `mpi4py.MPI`, initialized so that several threads may call it.

    Raises ModuleNotFoundError, with what to install, where mpi4py is missing.
    """
    try:
        import mpi4py
    except ModuleNotFoundError:
        said = f"a group of several processes sends messages by MPI, and mpi4py is not installed: {HINT}"
        raise explained(ModuleNotFoundError(said, name="mpi4py"), "missing-extra") from None
    mpi4py.rc.thread_level = "multiple"
    from mpi4py import MPI

    return MPI
