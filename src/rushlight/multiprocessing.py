"""``torch.multiprocessing``: that of the standard library.  Tensors sent to another process are copied."""

from __future__ import annotations

import itertools
import multiprocessing as _standard
import os
from multiprocessing import *  # noqa: F403
from typing import Any

from rushlight.compat.spawned import ProcessException, ProcessRaisedException
from rushlight.compat.spawned import spawn as started
from rushlight.distributed import launch, mpi

__all__ = [*_standard.__all__]  # noqa: PLE0604
__all__ += [
    "ProcessException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors reach other processes: copied through a pipe, by the name that PyTorch's default has."""
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """The way in which tensors reach other processes."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts "file_descriptor" and "file_system": tensors are copied in either case.  Raises AssertionError for another."""
    if new_strategy not in ("file_descriptor", "file_system"):
        raise AssertionError(f"set_sharing_strategy: expected 'file_descriptor' or 'file_system', got {new_strategy!r}")


def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> None:  # fmt: skip
    """Call ``fn(rank, *args)`` in each of `nprocs` processes that can make a group, and wait for them.

    Under ``rushlight run -n N`` they are there already: the function is called in this one, as its rank.  Raises
    ProcessRaisedException where one fails, ModuleNotFoundError without MPI, NotImplementedError for ``join=False``.
    """
    if not join:
        raise NotImplementedError("torch.multiprocessing.spawn: join=False is not supported: processes are waited for")
    started(fn, tuple(args), nprocs)


def start_processes(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> None:  # fmt: skip
    """As `spawn`."""
    spawn(fn, args, nprocs, join, daemon, start_method)


class OneOfGroup:
    """`Process` under a launcher that has started the processes of a group: the Nth to be started is the one of rank N.

    Programs that start one process for each rank run on each process of the group the one that is its own, when it is started.
    """

    exitcode = 0
    _started = itertools.count()

    def __init__(self, group: None = None, target: Any = None, name: str | None = None, args: Any = (), kwargs: Any = None,
                 *, daemon: bool | None = None) -> None:  # fmt: skip
        self.target, self.args, self.kwargs, self.name, self.daemon = target, args, kwargs or {}, name, daemon

    def start(self) -> None:
        """Call the target if this is the process that it is for."""
        launch.environment()
        if next(self._started) % int(os.environ["WORLD_SIZE"]) == int(os.environ["RANK"]):
            self.target(*self.args, **self.kwargs)

    def join(self, timeout: float | None = None) -> None:
        """Nothing: what was started has ended."""

    def is_alive(self) -> bool:
        """Whether it runs: what was started has ended."""
        return False


if mpi.launched():
    Process = OneOfGroup  # type: ignore[assignment,misc]
