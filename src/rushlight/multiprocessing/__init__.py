"""``torch.multiprocessing``: that of the standard library, whose queues and processes share the memory of tensors."""

from __future__ import annotations

import io
import itertools
import multiprocessing as _standard
import os
import pickle
from multiprocessing import *  # noqa: F403
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
from rushlight.distributed import launch, mpi
from rushlight.multiprocessing import reductions
from rushlight.multiprocessing.reductions import init_reductions
from rushlight.storage import Storage
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [*_standard.__all__]  # noqa: PLE0604
__all__ += [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_strategy = "file_descriptor"
init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` was given last, "file_descriptor" at first."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Kept: by either name memory goes to other processes by its descriptor.  Raises AssertionError for another name."""
    global _strategy
    known = get_all_sharing_strategies()
    assert new_strategy in known, f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(known)}"
    _strategy = new_strategy


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
