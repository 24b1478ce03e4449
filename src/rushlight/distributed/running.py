"""Beginning operations of a group of processes, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.debug import compared
from rushlight.distributed.work import Work
from rushlight.tensor import Tensor

__all__ = ["nothing", "run", "told"]


def run(
    name: str,
    group: ProcessGroup,
    begin: Callable[[Any], Any],
    after: Callable[[], None],
    async_op: bool,
    *shown: object,
    results: Sequence[Tensor] | None = None,
) -> Work | None:
    """Begin an operation on the group's channel, and wait for it unless it is asynchronous.

    shown: what is the same on all processes; results: the tensors that are written, those shown if None.
    """
    compared(name, group, shown)
    work = Work(begin(group.channel), after, name, group.timeout, event=told(name, group, shown))
    if async_op:
        work.tensors = [x for x in shown if isinstance(x, Tensor)] if results is None else list(results)
        return work
    work.wait()
    return None


def told(name: str, group: ProcessGroup, shown: Sequence[object]) -> tuple[str, list[list[int]]]:
    """What profiles have of an operation: "gloo:all_reduce", and the shapes of its tensors."""
    backend = group.backend if group.backend == "gloo" else "mpi"
    return f"{backend}:{name}", [[*x.shape, 2][: x.dim() + x.is_complex()] for x in shown if isinstance(x, Tensor)]


def nothing() -> None:
    """What is done after operations that bring nothing."""
