"""When parameters are averaged: after a number of steps, and then every so many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from rushlight.basics import caller
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.algorithms.model_averaging import utils
from rushlight.distributed.group import member

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """What averages parameters; `step` counts its calls.  process_group: over whom, all processes if None."""

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = member(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, where it is time to."""
        raise NotImplementedError


class PeriodicModelAverager(ModelAverager):
    """Averages parameters at the end of `warmup_steps` steps, and then every `period` steps.

    Raises ValueError for a period below 1 and for negative steps; warns where the period is 1.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError(
                f"PeriodicModelAverager: Arg ``warmup_steps`` must be a non-negative number, got {warmup_steps}"
            )
        if period < 1:
            raise ValueError(f"PeriodicModelAverager: Arg ``period`` must be a positive value, got {period}")
        if period == 1:
            warn_of_one("PeriodicModelAverager")
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, where it is time to."""
        past = self.step - self.warmup_steps
        if past >= 0 and past % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1


def warn_of_one(name: str) -> None:
    """Warn that parameters are averaged in each step."""
    caller.warn(
        f"{name}: a period of 1 sends all parameters in each step, as many bytes as gradients have: DistributedDataParallel alone does better",
        UserWarning,
    )
