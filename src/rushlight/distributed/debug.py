"""With RUSHLIGHT_DISTRIBUTED_DEBUG=1, or TORCH_DISTRIBUTED_DEBUG=DETAIL, processes compare what they are about to do together, so that none waits in vain."""

from __future__ import annotations

import enum
import os
import pickle
from typing import Any

import numpy as np

from rushlight.basics import caller
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.work import Work, finish
from rushlight.tensor import Tensor

__all__ = ["DebugLevel", "compared", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]

TAG = 32_001  # of what is compared
ROOM = 1024  # bytes of a description


class DebugLevel(enum.IntEnum):
    """How much is compared and told: at DETAIL each collective, see `compared`."""

    OFF, INFO, DETAIL = range(3)


_chosen: list[DebugLevel] = []  # what a script has set


def get_debug_level() -> DebugLevel:
    """The level that was set, else that of TORCH_DISTRIBUTED_DEBUG; DETAIL with RUSHLIGHT_DISTRIBUTED_DEBUG=1."""
    if _chosen:
        return _chosen[0]
    if os.environ.get("RUSHLIGHT_DISTRIBUTED_DEBUG", "0") not in ("", "0"):
        return DebugLevel.DETAIL
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"TORCH_DISTRIBUTED_DEBUG: expected OFF, INFO or DETAIL, got {name}")
    return DebugLevel[name]


def set_debug_level(level: DebugLevel) -> None:
    """Set the level, on all processes alike."""
    _chosen[:] = [DebugLevel(level)]


def set_debug_level_from_env() -> None:
    """Take the level from the environment again."""
    _chosen.clear()
    get_debug_level()


def compared(name: str, group: ProcessGroup, shown: tuple[Any, ...]) -> None:
    """Raise DistBackendError on every process unless all are about to do the same; nothing below the level DETAIL."""
    if group.size() == 1 or get_debug_level() is not DebugLevel.DETAIL:
        return
    mine = (name, tuple(described(item) for item in shown))
    found = told(group, (mine, caller.line()))
    for rank, (other, line) in found.items():
        if other != mine:
            raise DistBackendError(
                f"processes call different collectives: rank {group.ranks[group.rank()]} {written(mine)} at {caller.line()}, "
                f"rank {group.ranks[rank]} {written(other)} at {line}"
            )


def described(item: object) -> str:
    """What has to be the same on all processes."""
    if isinstance(item, Tensor):
        return f"{str(item.dtype).removeprefix('torch.')}{list(item.shape)}"
    return str(item)


def written(description: tuple[str, tuple[str, ...]]) -> str:
    """A description as a call."""
    return f"{description[0]}({', '.join(description[1])})"


def told(group: ProcessGroup, mine: Any) -> dict[int, Any]:
    """What the other processes say, by their number in the group.  Raises DistBackendError that names who says nothing."""
    data = np.zeros(ROOM, np.uint8)
    packed = pickle.dumps(mine)[:ROOM]
    data[: len(packed)] = np.frombuffer(packed, np.uint8)
    others = [r for r in range(group.size()) if r != group.rank()]
    rooms = {r: np.empty(ROOM, np.uint8) for r in others}
    coming = {r: Work(group.channel.receive(rooms[r], r, TAG), None, "", group.timeout) for r in others}
    leaving = [Work(group.channel.send(data, r, TAG), None, "", group.timeout) for r in others]
    try:
        finish(lambda: all(work.poll() for work in coming.values()), "", group.timeout)
    except DistBackendError:
        missing = ", ".join(str(group.ranks[r]) for r, work in coming.items() if not work.poll())
        raise DistBackendError(
            f"{written(mine[0])} at {mine[1]}: rank {missing} failed to pass monitoredBarrier: it did not come to any collective within {group.timeout:g} s"
        ) from None
    for work in leaving:
        work.wait()
    return {r: pickle.loads(room.tobytes()) for r, room in rooms.items()}
