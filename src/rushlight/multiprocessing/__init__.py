"""``torch.multiprocessing``: that of the standard library, whose queues and processes share the memory of tensors."""

from __future__ import annotations

import itertools
import multiprocessing as _standard
import os
from multiprocessing import *
from typing import Any

from rushlight.distributed import launch, mpi
from rushlight.multiprocessing import reductions
from rushlight.multiprocessing.reductions import init_reductions
from rushlight.multiprocessing.spawn import (  # the module is found by `import`, its function by the name
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

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


if mpi.told():
    Process = OneOfGroup  # type: ignore[assignment,misc]
