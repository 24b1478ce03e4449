"""With RUSHLIGHT_DISTRIBUTED_DEBUG=1 processes compare what they are about to do together, so that none waits in vain."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from rushlight.basics import caller
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.work import Work, finish
from rushlight.tensor import Tensor

TAG = 32_001  # of what is compared
ROOM = 1024  # bytes of a description


def compared(name: str, group: ProcessGroup, shown: tuple[Any, ...]) -> None:
    """Raise DistBackendError on every process unless all are about to do the same; nothing unless the variable asks for it."""
    if os.environ.get("RUSHLIGHT_DISTRIBUTED_DEBUG", "0") == "0" or group.size() == 1:
        return
    mine = (name, tuple(described(item) for item in shown))
    found = told(group, (mine, caller.line()))
    for rank, (other, line) in found.items():
        if other != mine:
            raise DistBackendError(
                f"processes call different collectives: rank {group.ranks[group.rank()]} {written(mine)} at {caller.line()}, "
                f"rank {group.ranks[rank]} {written(other)} at {line}"
            )


def described(item: Any) -> str:
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
            f"{written(mine[0])} at {mine[1]}: rank {missing} did not come to any collective within {group.timeout:g} s"
        ) from None
    for work in leaving:
        work.wait()
    return {r: pickle.loads(room.tobytes()) for r, room in rooms.items()}
