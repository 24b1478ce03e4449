"""ZeroRedundancyOptimizer: each process keeps the optimizer state of some of the parameters, and steps those."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import groups
from rushlight.distributed.algorithms.join import Joinable, JoinHook
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.group import member, new_group
from rushlight.distributed.messages import recv, send
from rushlight.distributed.objects import broadcast_object_list, packed
from rushlight.optim.optimizer import Optimizer
from rushlight.tensor import Tensor, wrap

__all__ = ["ZeroRedundancyOptimizer"]


def _broadcast_object(obj: Any, src_rank: int, group: Any = None, device: object = None) -> Any:
    """The object of process `src_rank`, on all processes."""
    found = [obj]
    broadcast_object_list(found, src_rank, group)
    return found[0]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is dealt to processes: each steps its parameters and sends them to the others.

    For gradients that are the same on all processes, as DistributedDataParallel gives them (Rajbhandari et al., ZeRO, SC 2020,
    stage 1).  State takes a process about 1/n of the bytes.  `step`, schedulers and `optim.in_backward` work as for any
    optimizer.

    Args:
        params: as for any optimizer, the same on all processes.
        optimizer_class: the optimizer of each process's parameters, which is `self.optim`.
        process_group: the processes, all by default.
        parameters_as_bucket_view: accepted: parameters are sent from where they lie.
        overlap_with_ddp: refused: `optim.in_backward` steps while DistributedDataParallel averages.
        defaults: options of the optimizer.

    Raises ValueError before ``torch.distributed.init_process_group`` and for sparse parameters, NotImplementedError
        for `overlap_with_ddp`.

    >>> import rushlight as torch
    >>> from rushlight.distributed.optim import ZeroRedundancyOptimizer
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> layer = torch.nn.Linear(2, 1)
    >>> optimizer = ZeroRedundancyOptimizer(layer.parameters(), torch.optim.Adam, lr=0.01)
    >>> layer(torch.ones(1, 2)).sum().backward()
    >>> optimizer.step()
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any) -> None:  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer(overlap_with_ddp=True): pass False, and torch.optim.in_backward(optimizer): each "
                "parameter is stepped and sent as its bucket of gradients arrives"
            )
        self.process_group = groups.required() if process_group is None else member(process_group)
        ranks = self.process_group.ranks
        # Messages of its own: those of gradients, which go on during backward, are begun at other moments.
        self._way = new_group(ranks) if self.process_group.size() > 1 else self.process_group
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self._class, self._options = optimizer_class, defaults
        self._owners: dict[int, int] = {}  # by the identity of a parameter: the number in the group of who steps it
        self._load = [0] * self.world_size
        self._sending: list[Any] = []
        self._states: list[dict[str, Any]] | None = None  # of all processes, where they have been brought together
        self.optim: Optimizer | None = None
        super().__init__(params, defaults)
        self.optim = optimizer_class([self._own(group) for group in self.param_groups], **defaults)
        self.defaults = self.optim.defaults
        for group in self.param_groups:
            for name, value in self.optim.defaults.items():
                group.setdefault(name, value)
        self.state = self.optim.state
        self.refused_in_backward = self.optim.refused_in_backward  # type: ignore[misc]
        self.register_step_post_hook(lambda *_: self._arrive())

    # Who steps what ----------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; the largest parameters go to who has least, one after the other."""
        super().add_param_group(param_group)
        if any(p.is_sparse for p in self.param_groups[-1]["params"]):
            raise ValueError("ZeroRedundancyOptimizer only supports dense parameters, got a sparse one")
        for p in sorted(self.param_groups[-1]["params"], key=lambda p: -p.numel()):
            if id(p) not in self._owners:
                least = int(np.argmin(self._load))
                self._owners[id(p)] = least
                self._load[least] += p.numel()
        if self.optim is not None:
            self.optim.add_param_group(self._own(self.param_groups[-1]))

    def _partition_parameters(self, params_per_rank: list[list[Tensor]] | None = None) -> list[list[dict[str, Any]]]:
        """For each process the groups with the parameters that it steps.  Raises ValueError for another deal: this one is made once."""
        if params_per_rank is not None:
            raise ValueError(
                "ZeroRedundancyOptimizer: parameters are dealt when they are given, and stay where they are"
            )
        return [[self._own(group, rank) for group in self.param_groups] for rank in range(self.world_size)]

    def _own(self, group: dict[str, Any], rank: int | None = None) -> dict[str, Any]:
        """The part of a group that this process steps, or another."""
        who = self.rank if rank is None else rank
        chosen = [i for i, p in enumerate(group["params"]) if self._owners[id(p)] == who]
        names = {"param_names": [group["param_names"][i] for i in chosen]} if "param_names" in group else {}
        return {**group, **names, "params": [group["params"][i] for i in chosen]}

    def _options_to(self, source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        """Give groups the options of others, which schedulers or a step may have changed."""
        for one, other in zip(source, target, strict=True):
            other.update({k: v for k, v in one.items() if k not in ("params", "param_names")})

    # Steps -------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step the parameters of this process, and give all processes all parameters.  closure: evaluates the model again."""
        assert self.optim is not None
        self._options_to(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure, **kwargs)
        self._options_to(self.optim.param_groups, self.param_groups)
        for group in self.param_groups:
            for p in group["params"]:
                self._send(p)
        self._arrive()
        return loss

    def step_param(self, param: Tensor, group: dict[str, Any]) -> None:
        """Step a parameter if it is this process's, and give it to all processes: what a step inside backward is made of."""
        assert self.optim is not None
        if self._owners[id(param)] == self.rank:
            i = next(i for i, one in enumerate(self.param_groups) if any(p is param for p in one["params"]))
            own = self.optim.param_groups[i]
            own.update({k: v for k, v in group.items() if k not in ("params", "param_names")})
            self.optim.step_param(param, own)
        self._send(param)

    def _send(self, p: Tensor) -> None:
        if self.world_size > 1:
            self._sending.append(broadcast(p.detach(), group=self._way, group_src=self._owners[id(p)], async_op=True))

    def _arrive(self) -> None:
        """Wait for what is sent."""
        sending, self._sending = self._sending, []
        for work in sending:
            work.wait()

    # Different numbers of batches ---------------------------------------------------------------------

    def join_hook(self, **kwargs: object) -> JoinHook:
        """What a process without batches does: it steps its parameters by the gradients that the others have."""
        return _Stepping(self)

    @property
    def join_device(self) -> Any:
        """Where the parameters are."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    # Checkpoints -------------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all processes to process `to`, whose `state_dict()` is that of an ordinary optimizer; all call this."""
        assert self.optim is not None
        if self.world_size == 1 and to != self.process_group.ranks[0]:  # there is nobody whose state it would be
            self._states = None
            return
        root = self.process_group.within(to)
        if self.rank != root:
            self._states = None
            data = packed(self.optim.state_dict())
            send(wrap(np.array([data.size])), group=self._way, group_dst=root)
            send(wrap(data), group=self._way, group_dst=root)
            return
        self._states = []
        for r in range(self.world_size):
            self._states.append(self.optim.state_dict() if r == root else self._received(r))

    def _received(self, sender: int) -> dict[str, Any]:
        size = np.zeros(1, np.int64)
        recv(wrap(size), group=self._way, group_src=sender)
        data = np.empty(int(size[0]), np.uint8)
        recv(wrap(data), group=self._way, group_src=sender)
        return pickle.loads(data.tobytes())  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """The state of all processes, as an ordinary optimizer has it.  Raises RuntimeError before `consolidate_state_dict`, and
        on other processes than its `to`."""
        if self._states is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer.state_dict: this process has the state of its own parameters alone: have all processes call "
                f"consolidate_state_dict(to=...) before, and ask that one; this is rank {self.process_group.ranks[self.rank]}"
            )
        found = super().state_dict()
        found["state"] = {}
        numbers = self._numbers()
        for r, one in enumerate(self._states):
            for theirs, state in one["state"].items():
                found["state"][numbers[r][theirs]] = state
        found["state"] = dict(sorted(found["state"].items()))
        return found

    def _numbers(self) -> list[list[int]]:
        """For each process: the numbers among all parameters of its own, in their order."""
        found: list[list[int]] = [[] for _ in range(self.world_size)]
        for i, p in enumerate(p for group in self.param_groups for p in group["params"]):
            found[self._owners[id(p)]].append(i)
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over, of the state of an ordinary optimizer, what is this process's."""
        assert self.optim is not None
        mine = {number: k for k, number in enumerate(self._numbers()[self.rank])}
        local = self.optim.state_dict()
        local["state"] = {mine[number]: state for number, state in state_dict["state"].items() if number in mine}
        super().load_state_dict({"state": {}, "param_groups": state_dict["param_groups"]})
        self._options_to(self.param_groups, local["param_groups"])
        self.optim.load_state_dict(local)
        self.state, self._states = self.optim.state, None


class _Stepping(JoinHook):
    """A process without batches goes on stepping its parameters."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """A step of the others."""
        self.optimizer.step()
        self.optimizer.zero_grad()
