"""Parameters averaged often among few processes, and seldom among many (hierarchical SGD)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.algorithms.model_averaging import averagers, utils
from rushlight.distributed.group import new_subgroups

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages parameters among groups of processes, each size of which has a period.

    period_group_size_dict: the size of the groups for each period, in ascending order; the last is the number of all processes.
    After `warmup_steps` steps the largest period that divides the number of the step decides.  Raises ValueError where there is no
    period, one that is not positive, another last size, or a negative number of steps.
    """

    def __init__(
        self,
        period_group_size_dict: Mapping[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("HierarchicalModelAverager: Arg ``period_group_size_dict`` must not be empty")
        self._periods = list(period_group_size_dict)
        whole = self.process_group.size()
        self._check(list(period_group_size_dict.values())[-1], whole, warmup_steps)
        self.period_process_group_dict: OrderedDict[int, Any] = OrderedDict()
        for period, size in period_group_size_dict.items():
            part = self.process_group if size == whole else new_subgroups(size, self.process_group)[0]
            self.period_process_group_dict[period] = part
        self.warmup_steps = warmup_steps

    def _check(self, last: int, whole: int, warmup_steps: int) -> None:
        """Raise ValueError for periods, sizes and steps that make no sense."""
        name = type(self).__name__
        if self._periods[0] <= 0:
            raise ValueError(
                f"{name}: The minimum period in arg ``period_group_size_dict`` must be a positive value, got {self._periods[0]}"
            )
        if self._periods[-1] == 1:
            averagers.warn_of_one(name)
        if last != whole:
            raise ValueError(
                f"{name}: The last value in arg ``period_group_size_dict`` {last} must be equal to the size of arg ``process_group`` {whole}"
            )
        if warmup_steps < 0:
            raise ValueError(f"{name}: Arg ``warmup_steps`` must be a non-negative number, got {warmup_steps}")

    def _find_process_group(self) -> Any:
        """The group that averages in this step, None where none does."""
        fitting = (period for period in reversed(self._periods) if self.step % period == 0)
        return self.period_process_group_dict.get(next(fitting, 0))

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, where it is time to."""
        group = self._find_process_group() if self.step >= self.warmup_steps else None
        if group is not None:
            utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
