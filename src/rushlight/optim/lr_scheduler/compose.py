"""Schedules made of schedules: one after the other, or all together."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from rushlight.optim.lr_scheduler.base import LRScheduler, copied, set_option
from rushlight.optim.lr_scheduler.plateau import ReduceLROnPlateau
from rushlight.optim.optimizer import Optimizer


def _check_members(owner: str, schedulers: Sequence[Any], optimizer: Optimizer, word: str) -> None:
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{owner} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{owner} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{owner} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} {word} another {type(scheduler.optimizer).__name__} than "
                f"the {type(optimizer).__name__} expected."
            )


class _Composed(LRScheduler):
    """What the two have in common: their members' states are kept with their own."""

    _schedulers: Any

    def state_dict(self) -> dict[str, Any]:
        """What the schedule and its members know, without their optimizer."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where `state_dict()` was called."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """One schedule after the other: the next takes over, from its start, at each of the epochs in milestones.

    Args:
        optimizer: the optimizer that all schedules are of.
        schedulers: one more than milestones.
        milestones: rising epochs.
        last_epoch: the epoch to go on from.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _check_members("SequentialLR", schedulers, optimizer, "has")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            set_option(group, "lr", copied(group["initial_lr"]))
        for scheduler in schedulers:
            _take_back(scheduler)
        first = schedulers[bisect.bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Step the schedule whose turn it is."""
        self.last_epoch += 1
        i = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _take_back(scheduler: object) -> None:
    """Undo the step that a schedule made when it was built."""
    if hasattr(scheduler, "_schedulers"):
        for member in scheduler._schedulers:
            _take_back(member)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ChainedScheduler(_Composed):
    """Schedules that all step together, each changing the rate that the one before it set.

    Args:
        schedulers: schedules of one optimizer.
        optimizer: that optimizer; None: the first schedule's.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check_members("ChainedScheduler", schedulers, optimizer, "has")
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = [copied(group["lr"]) for group in optimizer.param_groups]

    def step(self) -> None:  # type: ignore[override]
        """Step every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]
