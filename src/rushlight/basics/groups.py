"""The groups of processes that train together, and which of them is the default one.

Kept here, below ``torch.distributed``, because samplers and modules ask for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from rushlight.basics.errors import explained

__all__ = ["NO_GROUP", "ProcessGroup", "averaging", "join", "leave", "required", "world"]

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


class ProcessGroup:
    """Processes that take part in collectives together.

    channel: carries arrays between them, see ``distributed.channel``; ranks: their numbers among all; timeout: seconds; store: by
    which they met, if they did; group_name: by which all of them know it; group_desc: what it is for.
    """

    def __init__(
        self,
        backend: str,
        channel: Any,
        ranks: Sequence[int] = (0,),
        timeout: float | None = None,
        store: Any = None,
        group_name: str = "",
        group_desc: str = "undefined",
    ) -> None:
        self.backend, self.channel, self.ranks, self.timeout = backend, channel, tuple(ranks), timeout
        self.store, self.group_name, self.group_desc = store, group_name, group_desc
        named[group_name] = self

    def rank(self) -> int:
        """The number of this process within the group."""
        return int(self.channel.rank)

    def size(self) -> int:
        """How many processes the group has."""
        return int(self.channel.size)

    def name(self) -> str:
        """The name of what carries messages."""
        return self.backend

    _get_backend_name = name

    def get_group_store(self) -> Any:
        """The store by which its processes met, None where a launcher joined them."""
        return self.store

    @property
    def bound_device_id(self) -> None:
        """The device that the group is for: none alone."""
        return None

    def within(self, rank: int) -> int:
        """The number in this group of a process.  Raises ValueError where it is none of it."""
        if rank not in self.ranks:
            raise ValueError(f"Global rank {rank} is not part of group {self}")
        return self.ranks.index(rank)

    def __repr__(self) -> str:
        return f"ProcessGroup({self.backend!r}, ranks={list(self.ranks)})"


# What averages gradients over a group of several, by name; put here by ``torch.distributed``, which lies above modules.
averaging: dict[str, Any] = {}
_world: list[ProcessGroup] = []
named: weakref.WeakValueDictionary[str, ProcessGroup] = weakref.WeakValueDictionary()  # groups by their names


def world() -> ProcessGroup | None:
    """The default group, None before it is made."""
    return _world[0] if _world else None


def required() -> ProcessGroup:
    """The default group.  Raises ValueError before it is made."""
    if not _world:
        raise explained(ValueError(NO_GROUP), "no-process-group")
    return _world[0]


def join(group: ProcessGroup) -> None:
    """Make a group the default one.  Raises ValueError where there is one."""
    if _world:
        raise ValueError("trying to initialize the default process group twice!")
    _world.append(group)


def leave() -> None:
    """Forget the default group."""
    _world.clear()
