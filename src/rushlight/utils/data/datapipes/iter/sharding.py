"""The datapipe that leaves elements to other workers and processes."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import TypeVar

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, sized

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]

T_co = TypeVar("T_co", covariant=True)


class SHARDING_PRIORITIES(enum.IntEnum):
    """What elements are shared among, the outermost first."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[T_co]):
    """A datapipe that can be told to give one instance's elements."""

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how it is shared")


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe[T_co]):
    """Every n-th element, once `apply_sharding` says which; all of them before.

    >>> import rushlight as torch
    >>> pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(5)).sharding_filter()
    >>> pipe.apply_sharding(2, 1)
    >>> list(pipe)
    [1, 3]
    """

    def __init__(
        self, source_datapipe: IterDataPipe[T_co], sharding_group_filter: SHARDING_PRIORITIES | None = None
    ) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0
        self._update_num_of_instances()

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT
    ) -> None:
        """Give the elements of instance `instance_id` of `num_of_instances` of this group.

        Raises ValueError for an instance beyond their number, RuntimeError for the group DEFAULT beside another one.
        """
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        default = int(SHARDING_PRIORITIES.DEFAULT)
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[int(sharding_group)] = (num_of_instances, instance_id)
        self._update_num_of_instances()

    def _update_num_of_instances(self) -> None:
        self.num_of_instances, self.instance_id = 1, 0
        for group, (count, number) in sorted(self.groups.items(), reverse=True):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[T_co]:
        yield from itertools.islice(self.source_datapipe, self.instance_id, None, self.num_of_instances)

    def __len__(self) -> int:
        (length,) = sized(self, [self.source_datapipe])
        return length // self.num_of_instances + (self.instance_id < length % self.num_of_instances)
