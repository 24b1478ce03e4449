"""One cycle (Smith and Topin, Super-Convergence, 2017)."""

from __future__ import annotations

import math
from typing import Any

from rushlight.optim.lr_scheduler.base import LRScheduler, check_optimizer, for_groups
from rushlight.optim.lr_scheduler.momentum import set_momentum, uses_beta1
from rushlight.optim.optimizer import Optimizer


class OneCycleLR(LRScheduler):
    """The rate rises to max_lr and falls far below its start, once; call `step` after every batch.

    Args:
        optimizer: the optimizer whose groups are changed.
        max_lr: the highest rate, or a list with one for each group.
        total_steps: batches altogether; or epochs and steps_per_epoch, whose product it is.
        pct_start: the part of them that the rate rises in.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: momentum falls from max_momentum to base_momentum while the rate rises.
        div_factor: the rate starts at max_lr / div_factor.
        final_div_factor: it ends at the start divided by this.
        three_phase: fall to the start first, and then to the end.
        last_epoch: the batch to go on from.

    Raises ValueError for a step after the last.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        highest = for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, highest, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._prepare_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _prepare_momentum(self, base_momentum: object, max_momentum: object, last_epoch: int) -> None:
        self.use_beta1 = uses_beta1(self.optimizer)
        highs = for_groups("max_momentum", self.optimizer, max_momentum)
        lows = for_groups("base_momentum", self.optimizer, base_momentum)
        if last_epoch == -1:
            for group, high, low in zip(self.optimizer.param_groups, highs, lows, strict=True):
                set_momentum(group, high, self.use_beta1)
                group["max_momentum"], group["base_momentum"] = high, low

    def _anneal(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        """The rates of batch `last_epoch`; moves the momentum too."""
        self._current()
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(f"Tried to step {now} times. The specified number of total steps is {self.total_steps}")
        begin: float = 0
        for i, phase in enumerate(self._schedule_phases):
            if now <= phase["end_step"] or i == len(self._schedule_phases) - 1:
                break
            begin = phase["end_step"]
        part = (now - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                set_momentum(group, momentum, self.use_beta1)
        return rates


def _total(total_steps: int | None, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(name: str, value: int) -> int:
    if value <= 0 or not isinstance(value, int):
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(total: int, pct_start: float, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and between which options of a group it goes."""
    up = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
    top = float(pct_start * total) - 1
    if three:
        down = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
        out = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
        ends: list[Any] = [(top, up), (float(2 * pct_start * total) - 2, down), (total - 1, out)]
    else:
        ends = [(top, up), (total - 1, ("max_lr", "min_lr", "base_momentum", "max_momentum"))]
    names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return [{"end_step": end, **dict(zip(names, options, strict=True))} for end, options in ends]
