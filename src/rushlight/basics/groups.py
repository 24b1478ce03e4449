"""The group of processes that train together: one process so far, which is rank 0 of 1.

Kept here, below ``torch.distributed``, because samplers and modules ask for it.
"""

from __future__ import annotations

__all__ = ["NO_GROUP", "ProcessGroup", "join", "leave", "required", "world"]

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


class ProcessGroup:
    """A group of one process."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def rank(self) -> int:
        """The number of this process within the group: 0."""
        return 0

    def size(self) -> int:
        """How many processes the group has: 1."""
        return 1


_world: list[ProcessGroup] = []


def world() -> ProcessGroup | None:
    """The default group, None before it is made."""
    return _world[0] if _world else None


def required() -> ProcessGroup:
    """The default group.  Raises ValueError before it is made."""
    if not _world:
        raise ValueError(NO_GROUP)
    return _world[0]


def join(group: ProcessGroup) -> None:
    """Make a group the default one.  Raises ValueError where there is one."""
    if _world:
        raise ValueError("trying to initialize the default process group twice!")
    _world.append(group)


def leave() -> None:
    """Forget the default group."""
    _world.clear()
