"""Datapipes that put elements together: by number, by key, and apart again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, sized
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES, ShardingFilterIterDataPipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = [
    "SHARDING_PRIORITIES",
    "BatcherIterDataPipe",
    "GrouperIterDataPipe",
    "ShardingFilterIterDataPipe",
    "UnBatcherIterDataPipe",
]

T_co = TypeVar("T_co", covariant=True)


def batches(length: int, size: int, drop_last: bool) -> int:
    """How many batches there are."""
    return length // size if drop_last else -(-length // size)


class Batching:
    """Lists of `batch_size` elements of a datapipe; the last may be shorter unless `drop_last`."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: type[DataChunk[Any]] = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class


@functional_datapipe("batch")
class BatcherIterDataPipe(Batching, IterDataPipe[DataChunk[Any]]):
    """Lists of `batch_size` elements; the last may be shorter unless `drop_last`."""

    def __iter__(self) -> Iterator[DataChunk[Any]]:
        batch: list[Any] = []
        for x in self.datapipe:
            batch.append(x)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        return batches(sized(self, [self.datapipe])[0], self.batch_size, self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The elements of batches, `unbatch_level` levels of lists taken away, or with -1 all of them.

    Raises ValueError for a level below -1, IndexError for more levels than there are.
    """

    def __init__(self, datapipe: IterDataPipe[Any], unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        batch = isinstance(element, (list, DataChunk))
        if level == 0 or (level == -1 and not batch):
            yield element
        elif not batch:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            for item in element:
                yield from self._dive(item, level if level == -1 else level - 1)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Lists of elements of one key.

    A group is given when it has `group_size` elements, all that is left at the end. Where `buffer_size` elements wait, the
    largest group is given if it has guaranteed_group_size elements; else it is dropped with drop_remaining, or RuntimeError
    is raised. keep_key: give pairs of key and list.
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        self.datapipe, self.group_key_fn, self.keep_key, self.max_buffer_size = (
            datapipe,
            group_key_fn,
            keep_key,
            buffer_size,
        )
        self.buffer_elements: dict[Any, list[Any]] = {}
        self.curr_buffer_size, self.group_size, self.drop_remaining = 0, group_size, drop_remaining
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and not (
            group_size is not None and 0 < guaranteed_group_size <= group_size
        ):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size, which must be set")
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.wrapper_class = DataChunk

    def _given(self, key: object) -> object:
        """A group, taken out of the buffer."""
        group = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(group)
        made = self.wrapper_class(group)
        return (key, made) if self.keep_key else made

    def _remove_biggest_key(self) -> Iterator[Any]:
        """Make room: give the largest group, or drop it."""
        key = max(self.buffer_elements, key=lambda k: len(self.buffer_elements[k]))
        few = self.guaranteed_group_size is not None and len(self.buffer_elements[key]) < self.guaranteed_group_size
        if few and not self.drop_remaining:
            raise RuntimeError(f"Failed to group items: the buffer of {self.max_buffer_size} elements is full, and {key!r}, the "
                               f"largest group, has {len(self.buffer_elements[key])} of {self.guaranteed_group_size}")  # fmt: skip
        found = self._given(key)
        if not few:
            yield found

    def __iter__(self) -> Iterator[Any]:
        for x in self.datapipe:
            key = self.group_key_fn(x)
            self.buffer_elements.setdefault(key, []).append(x)
            self.curr_buffer_size += 1
            if self.group_size is not None and self.group_size == len(self.buffer_elements[key]):
                yield self._given(key)
            if self.curr_buffer_size == self.max_buffer_size:
                yield from self._remove_biggest_key()
        for key in list(self.buffer_elements):
            yield self._given(key)

    def reset(self) -> None:
        """Forget what waited."""
        self.curr_buffer_size, self.buffer_elements = 0, {}
