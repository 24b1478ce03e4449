"""Watches over memory that a cheap operator read and wrote, from when it ran: whether its result can still be made again."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.storage import changes, depend, independent, root_of

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import OpNode


class Watched:
    """Whether memory has changed since a cheap operator ran: what it saved, or its result, the first of `arrays`.

    stamp: how many changes of large memory there had been. overwritten: whether the result alone has changed.
    """

    __slots__ = ("__weakref__", "changed", "keys", "overwritten", "result", "stamp")

    def __init__(self, arrays: Sequence[Any]):
        self.changed, self.keys = False, [depend(array, self) for array in arrays]
        self.result, self.overwritten, self.stamp = weakref.ref(root_of(arrays[0])), False, changes.large
        changes.count(1)

    def __del__(self) -> None:
        if hasattr(self, "stamp"):
            changes.count(-1)
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """Some of it is about to change."""
        if root is self.result():
            self.overwritten = True
            self.keys.append(depend(root, self))  # of the next change, too
        else:
            self.changed = True


watched: dict[int, tuple[Any, Watched]] = {}  # by the id of a node, to which the first is a weak reference
written: dict[int, tuple[Any, int]] = {}  # the same: which change of large memory an operator made in place


def note_written(node: OpNode, array: Array) -> None:
    """Note that the last change of large memory was that of a node's operator, in place, if `array` is large."""
    if root_of(array).nbytes < changes.least:
        return
    key = id(node)
    written[key] = weakref.ref(node, lambda _: written.pop(key, None)), changes.large


def written_by(node: OpNode) -> set[int]:
    """Which change of large memory a node's operator made in place, if it did."""
    found = written.get(id(node))
    return {found[1]} if found is not None and found[0]() is node else set()


def watch_of(node: OpNode) -> Watched | None:
    """What watches since a cheap operator ran; None where it was not watched."""
    found = watched.get(id(node))
    return found[1] if found is not None and found[0]() is node else None
