"""Python objects from process to process, pickled: as trusting as a pickle that one reads from another's file."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from rushlight.basics.devices import device
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.collectives import outside, root_of
from rushlight.distributed.group import member
from rushlight.distributed.messages import recv, send
from rushlight.distributed.running import nothing, run
from rushlight.tensor import wrap

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
           "send_object_list"]  # fmt: skip


def packed(obj: Any) -> Any:
    """An object as bytes.  (n,) of uint8"""
    return np.frombuffer(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL), np.uint8).copy()


def exchanged(name: str, obj: object, group: ProcessGroup) -> list[Any]:
    """The objects of all processes."""
    data = packed(obj)
    lengths = np.empty(group.size(), np.int64)
    run(name, group, lambda way: way.all_gather(lengths, np.array([data.size])), nothing, False)
    room = np.zeros(int(lengths.max()), np.uint8)
    room[: data.size] = data
    found = np.empty((group.size(), room.size), np.uint8)
    run(name, group, lambda way: way.all_gather(found, room), nothing, False)
    return [pickle.loads(row[:n].tobytes()) for row, n in zip(found, lengths, strict=True)]


def all_gather_object(object_list: list[Any], obj: object, group: ProcessGroup | None = None) -> None:
    """Put the objects of all processes into a list."""
    if outside(group):
        return
    used = member(group)
    if len(object_list) != used.size():
        raise ValueError(
            f"all_gather_object: expected a list with one element for each process, {used.size()}, got {len(object_list)}"
        )
    object_list[:] = exchanged("all_gather_object", obj, used)


def gather_object(
    obj: object,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """As `all_gather_object`, for the process `dst` alone."""
    if outside(group):
        return
    used = member(group)
    root = root_of("gather_object", used, dst, group_dst)
    if root == used.rank() and (object_gather_list is None or len(object_gather_list) != used.size()):
        raise ValueError(
            "gather_object: Argument ``gather_list`` must be specified on destination rank: expected a list with one element for "
            f"each process, {used.size()}"
        )
    found = exchanged("gather_object", obj, used)
    if root == used.rank() and object_gather_list is not None:
        object_gather_list[:] = found


def _sent(name: str, obj: object, group: ProcessGroup, root: int) -> Any:
    """The object of process `root`."""
    data = packed(obj) if group.rank() == root else np.empty(0, np.uint8)
    length = np.array([data.size])
    run(name, group, lambda way: way.broadcast(length, root), nothing, False)
    room = data if group.rank() == root else np.empty(int(length[0]), np.uint8)
    run(name, group, lambda way: way.broadcast(room, root), nothing, False)
    return obj if group.rank() == root or not room.size else pickle.loads(room.tobytes())


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: device | str | int | None = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects of a list by those of process `src`."""
    if outside(group):
        return
    used = member(group)
    root = root_of("broadcast_object_list", used, src, group_src)
    found = _sent("broadcast_object_list", object_list, used, root)
    if root != used.rank():
        object_list[:] = found


def scatter_object_list(
    output: list[Any],
    input: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put this process's object of the list of process `src` into `output`."""
    if outside(group):
        return
    used = member(group)
    root = root_of("scatter_object_list", used, src, group_src)
    if not isinstance(output, list) or not output:
        raise ValueError(
            "scatter_object_list: Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    if root == used.rank() and (input is None or len(input) != used.size()):
        raise ValueError(f"scatter_object_list: expected a list with one element for each process, {used.size()}")
    output[0] = _sent("scatter_object_list", input, used, root)[used.rank()]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: device | str | int | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send the objects of a list to process `dst`, which calls `recv_object_list`.  Raises ValueError for no other process."""
    if outside(group):
        return
    data = packed(list(object_list))
    for part in (np.array([data.size]), data):
        send(wrap(part), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: device | str | int | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Replace the objects of a list by those that process `src`, or any, sends; the number of the sender, -1 outside the group.

    Raises ValueError where the other list has another number of objects.
    """
    if outside(group):
        return -1
    length = wrap(np.zeros(1, np.int64))
    sender = recv(length, src, group, group_src=group_src)
    data = wrap(np.empty(int(length.item()), np.uint8))
    recv(data, sender, group)
    found = pickle.loads(data._array.tobytes())
    if len(found) != len(object_list):
        raise ValueError(f"recv_object_list: rank {sender} sent {len(found)} objects for a list of {len(object_list)}")
    object_list[:] = found
    return sender
