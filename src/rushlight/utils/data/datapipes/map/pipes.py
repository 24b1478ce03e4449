"""Datapipes whose elements have keys."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rushlight.basics.caller import warn
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, Wrapped
from rushlight.utils.data.datapipes.iter.combinatorics import Shuffling
from rushlight.utils.data.datapipes.iter.grouping import Batching, batches
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = [
    "BatcherMapDataPipe",
    "ConcaterMapDataPipe",
    "MapperMapDataPipe",
    "SequenceWrapperMapDataPipe",
    "ShufflerIterDataPipe",
    "ZipperMapDataPipe",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def _length(pipe: object) -> int:
    return len(pipe)  # type: ignore[arg-type]


class SequenceWrapperMapDataPipe(MapDataPipe[T]):
    """The elements of a sequence or mapping, of a deep copy of it unless `deepcopy=False`."""

    def __init__(self, sequence: Wrapped[T], deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warn("The input sequence can not be deepcopied: a change of its elements in place changes the source")

    def __getitem__(self, index: Any) -> T:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def default_fn(data: T) -> T:
    """The element itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[Any]):
    """`fn` of each element."""

    def __init__(self, datapipe: MapDataPipe[Any], fn: Callable[[Any], Any] = default_fn) -> None:
        self.datapipe, self.fn = datapipe, fn
        _check_unpickable_fn(fn)

    def __len__(self) -> int:
        return _length(self.datapipe)

    def __getitem__(self, index: object) -> Any:
        return self.fn(self.datapipe[index])


def _checked(datapipes: tuple[Any, ...]) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(dp, MapDataPipe) for dp in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(dp), "__len__") for dp in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """The elements of one datapipe behind those of another, by numbers from 0.  IndexError beyond them."""

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        _checked(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        at = index
        for dp in self.datapipes:
            if at < _length(dp):
                return dp[at]
            at -= _length(dp)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(_length, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[tuple[Any, ...]]):
    """Tuples of the elements of several datapipes under one key."""

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        _checked(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: object) -> tuple[Any, ...]:
        found = []
        for dp in self.datapipes:
            try:
                found.append(dp[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {dp}.") from error
        return tuple(found)

    def __len__(self) -> int:
        return min(map(_length, self.datapipes))


@functional_datapipe("batch")
class BatcherMapDataPipe(Batching, MapDataPipe[DataChunk[Any]]):
    """Lists of `batch_size` elements, by numbers from 0; the last may be shorter unless `drop_last`."""

    def __getitem__(self, index: int) -> DataChunk[Any]:
        if index >= len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, _length(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])

    def __len__(self) -> int:
        return batches(_length(self.datapipe), self.batch_size, self.drop_last)


class ShufflerIterDataPipe(Shuffling, IterDataPipe[T_co]):
    """The elements one after another in a random order.  indices: the keys; numbers from 0 if None."""

    def __init__(self, datapipe: MapDataPipe[T_co], *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(_length(datapipe))) if indices is None else indices
        self._rng, self._shuffled_indices = random.Random(), self.indices

    def __iter__(self) -> Iterator[T_co]:
        for index in self._shuffled_indices if self._enabled else self.indices:
            yield self.datapipe[index]

    def reset(self) -> None:
        """Draw the order of this pass."""
        if self._enabled:
            self._reseed()
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))[::-1]

    def __len__(self) -> int:
        return _length(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
