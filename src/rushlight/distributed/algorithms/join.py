"""Training together with different numbers of batches: processes that have none left take part in what the others do.

Before each step every process says whether it still has a batch.  One that has none answers the messages of those that have, until
nobody has any; then all take what belongs to the last.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import groups
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.group import get_rank
from rushlight.distributed.running import nothing, run
from rushlight.nn.parallel.distributed import DistributedDataParallel

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process without batches does."""

    def main_hook(self) -> None:
        """In each step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """When nobody has a batch any more.  is_last_joiner: whether this process was among the last that had one."""


class Joinable(ABC):
    """What takes part in training with different numbers of batches: it calls ``Join.notify_join_context(self)`` in each step."""

    @abstractmethod
    def join_hook(self, **kwargs: object) -> JoinHook:
        """What a process without batches does for this."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where its tensors are."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that it has."""


Joinable.register(DistributedDataParallel)


class Join:
    """A block in which processes may have different numbers of batches.

    joinables: what communicates in each step, such as a DistributedDataParallel and a ZeroRedundancyOptimizer, in the
    order in which they do; enable: False for a block without effect; throw_on_early_termination: an error on all
    processes as soon as one has no batch; kwargs: for the hooks, such as `divide_by_initial_world_size`.  Raises
    ValueError for no joinables.
    """

    def __init__(
        self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("Join: expected joinables, got none")
        self.joinables, self.throw, self.options = list(joinables), throw_on_early_termination, kwargs
        self.group: ProcessGroup = hook_group(joinables[0])
        self.enable = enable and self.group.size() > 1
        self.active: list[int] = []  # the numbers in the group of those that have a batch
        self.sync = True  # whether any of them averages gradients in this step

    def __enter__(self) -> Join:
        if self.enable:
            for one in self.joinables:
                one.__dict__["_join"] = self
            self.hooks = [hook_of(one, self) for one in self.joinables]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.enable:
            return
        for one in self.joinables:
            del one.__dict__["_join"]
        if error is not None:
            return
        rank, last = self.group.rank(), True
        while True:
            before = list(self.active)
            self.ask(False, False)
            if not self.active:
                break
            last = False
            if self.throw:
                self.stop()
            for hook in self.hooks:
                hook.main_hook()
        self.last = before if before else list(range(self.group.size()))
        for hook in self.hooks:
            hook.post_hook(last and rank in self.last)

    def ask(self, active: bool, sync: bool) -> None:
        """Tell the others whether this process has a batch, and hear of them."""
        found = np.empty((self.group.size(), 2), np.uint8)
        mine = np.array([active, sync], np.uint8)
        run("join", self.group, lambda way: way.all_gather(found, mine), nothing, False)
        self.active = [r for r, (here, _) in enumerate(found) if here]
        self.sync = bool(found[:, 1].any())

    def stop(self) -> None:
        """Raise RuntimeError on all processes."""
        mine = self.group.rank() not in self.active
        who = f"Rank {get_rank()} exhausted all inputs" if mine else "Detected at least one rank that exhausted inputs"
        raise RuntimeError(f"Join: {who}, and throw_on_early_termination=True makes that an error on all")

    @staticmethod
    def notify_join_context(joinable: object) -> None:
        """Say that this process has a batch; called by a joinable in each step, once for all that are in the block."""
        join = joinable.__dict__.get("_join")
        if join is None or join.joinables[0] is not joinable:
            return
        join.ask(True, getattr(joinable, "require_backward_grad_sync", True))
        if join.throw and len(join.active) < join.group.size():
            join.stop()
        for hook in join.hooks:
            getattr(hook, "stepping", lambda: None)()


def hook_group(joinable: Any) -> ProcessGroup:
    """The processes of a joinable."""
    found: ProcessGroup = (
        joinable.process_group if isinstance(joinable, DistributedDataParallel) else joinable.join_process_group
    )
    return found


def hook_of(joinable: Any, join: Join) -> JoinHook:
    """What a process without batches does for a joinable."""
    if isinstance(joinable, DistributedDataParallel):
        return AveragingHook(joinable, join)
    return joinable.join_hook(**join.options)  # type: ignore[no-any-return]


class AveragingHook(JoinHook):
    """For DistributedDataParallel: gradients of 0, and in the end the parameters and buffers of the last."""

    def __init__(self, model: Any, join: Join) -> None:
        self.model, self.join = model, join

    def stepping(self) -> None:
        """This process has a batch: what sums are divided by."""
        whole = self.join.options.get("divide_by_initial_world_size", True)
        self.model.reducer.count = None if whole else len(self.join.active)

    def main_hook(self) -> None:
        """Take the buffers of who has a batch, and give gradients of 0."""
        if self.model.broadcast_buffers and self.model.require_forward_param_sync:
            for buffer in self.model._buffers_kept():
                broadcast(buffer, group=self.join.group, group_src=self.join.active[0])
        self.model.require_forward_param_sync = self.join.sync
        if not self.join.sync:
            return
        self.stepping()
        self.model.reducer.shadow(len(self.join.joinables) > 1)

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take the parameters and buffers of one that was among the last."""
        self.model.reducer.count = None
        for tensor in (*self.model.module.parameters(), *self.model.module.buffers()):
            broadcast(tensor.detach(), group=self.join.group, group_src=self.join.last[0])


@contextlib.contextmanager
def joined(model: Module, enable: bool, throw: bool, **options: object) -> Iterator[None]:
    """``DistributedDataParallel.join``."""
    with Join([model], enable, throw, **options):
        yield


groups.averaging.update(joined=joined, notify=Join.notify_join_context)
