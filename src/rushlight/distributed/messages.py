"""Messages from one process to another, and the barrier that says who is missing."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import numpy as np

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.collectives import check, one_of, outside
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.group import member
from rushlight.distributed.running import nothing, told
from rushlight.distributed.wire import Place, moved, readable
from rushlight.distributed.work import Work, finish
from rushlight.tensor import Tensor

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "monitored_barrier", "recv", "send"]


def peer_of(name: str, group: ProcessGroup, rank: int | None, within: int | None, what: str) -> int:
    """The other process of a message, within its group.  Raises ValueError where there is none."""
    one_of(name, rank, within, True)
    number = group.within(int(rank)) if within is None and rank in group.ranks else within
    if group.size() == 1:
        raise ValueError(
            f"{name}: Invalid {what} rank: {what} rank should not be the same as the rank of the current process: there is no process but this one"
        )
    if number is None or not 0 <= number < group.size() or number == group.rank():
        words = f"{what} rank should not be the same as the rank of the current process" * (number == group.rank())
        raise ValueError(
            f"{name}: Invalid {what} rank: {words or (rank if within is None else within)}: expected another process of {group}"
        )
    return number


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Send a tensor to process `dst`; the tensor may be changed after `wait()`.  Raises ValueError for no other process."""
    if outside(group):
        return None
    check("isend", tensor)
    used = member(group)
    peer, given = peer_of("send", used, dst, group_dst, "destination"), moved(readable(tensor))
    event = told("send", used, [tensor])
    return Work(used.channel.send(given, peer, tag), lambda: hold(given), f"send to {peer}", used.timeout, event=event)


def hold(given: object) -> None:
    """Keeps what is sent alive until it is gone."""


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Fill a tensor with what process `src`, or any, sends; it is there after `wait()`.  Raises ValueError for no other."""
    if outside(group):
        return None
    check("irecv", tensor)
    used = member(group)
    free = src is None and group_src is None and used.size() > 1
    peer = None if free else peer_of("recv", used, src, group_src, "source")
    place, shown = Place(tensor), "recv from any process" if peer is None else f"recv from {peer}"
    event = told("recvAnySource" if peer is None else "recv", used, [tensor])
    return Work(
        used.channel.receive(place.wire(), peer, tag), place.put, shown, used.timeout, used.channel.status(), event
    )


def send(tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
         group_dst: int | None = None) -> None:  # fmt: skip
    """Send a tensor to process `dst`.  Raises ValueError for no other process."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Fill a tensor with what process `src`, or any, sends; the number of the sender."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return member(group).ranks[work.source()]


class P2POp:
    """A message that `batch_isend_irecv` shall send or take.

    op: `isend` or `irecv`; tensor: what is sent, or where to; peer: the other process.  Raises ValueError for another op.
    """

    def __init__(self, op: object, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
                 group_peer: int | None = None) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                f"Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``, got {op!r}"
            )
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )

    def __repr__(self) -> str:
        sends, used = self.op is isend, member(self.group)
        peer = used.within(int(self.peer)) if self.group_peer is None and self.peer is not None else self.group_peer
        ends = (used.rank(), peer) if sends else (peer, used.rank())
        return (
            f"P2POp({'isend' if sends else 'irecv'} pg={used.group_name}, group_src={ends[0]}, group_dst={ends[1]}, "
            f"{tuple(self.tensor.shape)}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: Any) -> list[Work]:
    """Begin several messages of one group; what is received is there after `wait()` of each.

    Raises ValueError for what is no `P2POp`, and for several groups.
    """
    if not all(isinstance(message, P2POp) for message in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    if len({member(message.group) for message in p2p_op_list}) > 1:
        raise ValueError("batch_isend_irecv: All ops need to use the same group.")
    return [
        message.op(message.tensor, message.peer, message.group, message.tag, message.group_peer)
        for message in p2p_op_list
    ]


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes are here; raises DistBackendError that names those that are not within the timeout.

    timeout: a timedelta or seconds, that of the group by default; wait_all_ranks: name all that are missing, not the first alone.
    """
    if outside(group):
        return
    used = member(group)
    if used.size() == 1:
        return
    limit = used.timeout if timeout is None else seconds(timeout)
    if used.rank() == 0:
        missing = _gathered(used, limit)
        if missing:
            some = missing if wait_all_ranks else missing[:1]
            raise DistBackendError(
                f"Rank{'s' * (len(some) > 1)} {', '.join(map(str, some))} failed to pass monitoredBarrier within {limit:g} s"
            )
        for r in range(1, used.size()):
            Work(used.channel.send(np.zeros(1, np.uint8), r, BARRIER), nothing, "monitored_barrier", limit).wait()
        return
    mark = np.zeros(1, np.uint8)
    Work(used.channel.send(mark, 0, BARRIER), nothing, "monitored_barrier", limit).wait()
    answer = Work(used.channel.receive(mark, 0, BARRIER), nothing, "monitored_barrier", limit)
    try:
        answer.wait()
    except DistBackendError as error:
        answer.cancel()
        raise DistBackendError(
            f"Rank {used.ranks[used.rank()]} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
            f"from rank {used.ranks[0]}: it, or one that it waits for, has not come. ({error})"
        ) from None


def seconds(timeout: Any) -> float:
    """A time in seconds, which is a timedelta or says seconds."""
    return float(timeout.total_seconds() if isinstance(timeout, timedelta) else timeout)


def _gathered(group: ProcessGroup, limit: float | None) -> list[int]:
    """Wait for the other processes of a group: the numbers among all of those that do not come.  Raises DistBackendError for no time at all."""
    if limit is not None and limit <= 0:
        raise DistBackendError(f"Rank {group.ranks[0]} timed out in monitoredBarrier after {limit:g} s")
    way, marks = group.channel, {r: np.zeros(1, np.uint8) for r in range(1, group.size())}
    waiting = {r: Work(way.receive(mark, r, BARRIER), nothing, "", limit) for r, mark in marks.items()}
    try:
        finish(lambda: all(work.poll() for work in waiting.values()), "monitored_barrier", limit)
    except DistBackendError:
        missing = [r for r, work in waiting.items() if not here(work)]
        for r in missing:
            waiting[r].cancel()
        return [group.ranks[r] for r in missing]
    return []


def here(work: Work) -> bool:
    """Whether a message has come; not so where its sender has ended."""
    with contextlib.suppress(DistBackendError):
        return work.poll()
    return False


BARRIER = 32_000  # the tag of its messages
