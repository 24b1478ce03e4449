"""``torch.multiprocessing.spawn``: a function called in several processes that can make a group."""

from __future__ import annotations

import multiprocessing.spawn
import os
import pickle
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from rushlight.compat import children
from rushlight.compat.contexts import ProcessRaisedException
from rushlight.distributed import launch, mpi

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["spawn"]


def spawn(fn: Callable[..., Any], args: tuple[Any, ...], count: int) -> None:
    """Call ``fn(rank, *args)`` in each of `count` processes; within a group that was started so, in this one.

    Raises ProcessRaisedException where one of them fails, ValueError for another number than the launcher started.
    """
    if mpi.launched():
        world = mpi.library().COMM_WORLD
        if count != world.size:
            raise ValueError(
                f"torch.multiprocessing.spawn: expected nprocs={world.size}, as many as the launcher started, got {count}"
            )
        fn(world.rank, *args)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "call")
        with open(path, "wb") as file:
            preparation = multiprocessing.spawn.get_preparation_data("rushlight")
            del preparation["authkey"]  # which no file is to hold
            pickle.dump(("torch" in sys.modules, preparation), file)
            pickle.dump((fn, args), file)
        status = launch.start(count, [sys.executable, "-m", "rushlight.compat.spawned", path])
    if status:
        raise ProcessRaisedException(
            f"torch.multiprocessing.spawn: a process of {count} ended with status {status}; its error is above",
            -1,
            None,
        )


def main(path: str) -> None:
    """Call the function that a file holds, as the process that MPI's launcher says."""
    with open(path, "rb") as file:
        as_torch, preparation = pickle.load(file)
        if as_torch:
            children.resolve()
        multiprocessing.spawn.prepare(preparation)
        fn, args = pickle.load(file)
    from rushlight.distributed import faults

    launch.environment()
    rank = mpi.library().COMM_WORLD.rank
    faults.watch(rank)
    fn(rank, *args)


if __name__ == "__main__":
    main(sys.argv[1])
