"""The datapipe of anything that can be iterated over."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rushlight.basics.caller import warn
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, sized

__all__ = ["IterableWrapperIterDataPipe"]

T = TypeVar("T")


class IterableWrapperIterDataPipe(IterDataPipe[T]):
    """The elements of an iterable, of a deep copy of it at each pass unless `deepcopy=False`.

    >>> import rushlight as torch
    >>> list(torch.utils.data.datapipes.iter.IterableWrapper("ab"))
    ['a', 'b']
    """

    def __init__(self, iterable: Iterable[T], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[T]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:  # generators, say
                warn("The input iterable can not be deepcopied: a change of its elements in place changes the source")
        yield from source

    def __len__(self) -> int:
        return sized(self, [self.iterable])[0]
