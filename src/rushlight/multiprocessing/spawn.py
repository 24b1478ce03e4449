"""``torch.multiprocessing.spawn``: processes that call one function, and what is raised where one fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.caller import warn
from rushlight.compat import contexts
from rushlight.compat.contexts import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
)
from rushlight.distributed import mpi

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> Any:  # fmt: skip
    """Call ``fn(rank, *args)`` in each of `nprocs` processes, and wait for them; without `join`, return a `ProcessContext`.

    They can make a group (`torch.distributed.init_process_group` with an address or a file of which all of them know).
    Under ``rushlight run -n N`` they are there already: the function is called in this one, as its rank.

    Raises ProcessRaisedException where one fails, ProcessExitedException where one ends otherwise than by its function's end;
    under a launcher NotImplementedError for ``join=False``, ValueError for another number than it started.
    """
    if start_method != "spawn":
        warn(
            f"torch.multiprocessing.spawn: start_processes() is the one that takes start_method={start_method!r}",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def start_processes(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> Any:  # fmt: skip
    """As `spawn`.  start_method: "spawn", "fork" or "forkserver", as the standard library has them."""
    args = tuple(args)
    if mpi.told():
        _as_one_of_them(fn, args, nprocs, join)
        return None
    kind = SpawnContext if start_method == "spawn" else ProcessContext
    context = contexts.start(fn, args, nprocs, daemon, start_method, kind)
    if not join:
        return context
    while not context.join():
        pass
    return None


def _as_one_of_them(fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, join: bool) -> None:
    """Call a function in this process, which a launcher started."""
    if not join:
        raise NotImplementedError(
            "torch.multiprocessing.spawn: join=False is not supported under a launcher: the processes run already"
        )
    world = mpi.library().COMM_WORLD
    if nprocs != world.size:
        raise ValueError(
            f"torch.multiprocessing.spawn: expected nprocs={world.size}, as many as the launcher started, got {nprocs}"
        )
    fn(world.rank, *args)
