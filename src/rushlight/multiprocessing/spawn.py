"""``torch.multiprocessing.spawn``: processes that call one function, and what is raised where one fails."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

from rushlight.basics.caller import warn
from rushlight.compat import contexts
from rushlight.compat.contexts import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
)
from rushlight.compat.spawned import spawn as started
from rushlight.distributed import mpi
from rushlight.storage import Storage
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

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

    Several processes that are waited for are started by MPI, where it is there, so that they can make a group; those whose
    arguments are in shared memory, or that nobody waits for, by the standard library.  Under ``rushlight run -n N`` they are there
    already: the function is called in this one, as its rank.

    Raises ProcessRaisedException where one fails, ProcessExitedException where one ends otherwise than by its function's end,
    NotImplementedError for ``join=False`` under a launcher.
    """
    if start_method != "spawn":
        warn(
            f"torch.multiprocessing.spawn: start_processes() is the one that takes start_method={start_method!r}",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def start_processes(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> Any:  # fmt: skip
    """As `spawn`.  start_method: another than "spawn" is always the standard library's."""
    args = tuple(args)
    if mpi.launched() and not join:
        raise NotImplementedError(
            "torch.multiprocessing.spawn: join=False is not supported under a launcher: the processes run already"
        )
    if mpi.launched() or (
        join and start_method == "spawn" and nprocs > 1 and mpi.available() and _can_be_copied((fn, args))
    ):
        started(fn, args, nprocs)
        return None
    kind = SpawnContext if start_method == "spawn" else ProcessContext
    context = contexts.start(fn, args, nprocs, daemon, start_method, kind)
    if not join:
        return context
    while not context.join():
        pass
    return None


class _Finder(pickle.Pickler):
    """Pickles, and notes whether memory is among it that other processes see already."""

    found = False

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, (Tensor, Storage)) and obj.is_shared():  # type: ignore[union-attr]
            self.found = True
        return NotImplemented


def _can_be_copied(call: object) -> bool:
    """Whether nothing is lost where another process gets a copy: no shared memory, no queue, lock or event."""
    finder = _Finder(io.BytesIO())
    try:
        finder.dump(call)
    except RuntimeError:  # of what only those may get who are started by the standard library
        return False
    return not finder.found
