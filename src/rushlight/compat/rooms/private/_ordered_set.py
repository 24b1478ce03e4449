"""``torch.utils._ordered_set``: a set that keeps the order in which elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import TypeVar

__all__ = ["OrderedSet"]

T = TypeVar("T")


class OrderedSet(MutableSet[T]):
    """A set in the order of insertion.

    >>> from rushlight.compat.rooms.private._ordered_set import OrderedSet
    >>> OrderedSet([3, 1, 3]) | OrderedSet([2])
    OrderedSet([3, 1, 2])
    """

    def __init__(self, iterable: Iterable[T] | None = None):
        self._dict = dict.fromkeys(iterable if iterable is not None else ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def add(self, elem: T) -> None:
        """Put an element behind the others, unless it is there."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Take an element out, if it is there."""
        self._dict.pop(elem, None)

    def update(self, *others: Iterable[T]) -> None:
        """Put the elements of others behind."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def copy(self) -> OrderedSet[T]:
        """A set of the same elements."""
        return type(self)(self)

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of these elements and those of others behind."""
        found = self.copy()
        found.update(*others)
        return found

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of the elements that are in no other."""
        left = {x for other in others for x in other}
        return type(self)(x for x in self if x not in left)

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of the elements that are in all others."""
        kept = [set(other) for other in others]
        return type(self)(x for x in self if all(x in other for other in kept))
