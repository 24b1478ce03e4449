"""Saving and loading state dicts whose tensors lie on several processes."""

from __future__ import annotations

import io
import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from rushlight.basics import groups
from rushlight.basics.tree import tree_map
from rushlight.distributed.checkpoint.files import (
    DTYPES,
    CheckpointException,
    FileSystemReader,
    FileSystemWriter,
    filled,
)
from rushlight.distributed.group import member, new_group
from rushlight.distributed.objects import all_gather_object
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.placement_types import Partial
from rushlight.serialization.load import load as load_file
from rushlight.serialization.save import save as save_file
from rushlight.storage import bump, settle
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.basics.groups import ProcessGroup

__all__ = ["Stateful", "async_save", "load", "save", "whole"]


@runtime_checkable
class Stateful(Protocol):
    """What has a state: a state dict to be saved, and takes one back."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        ...


class Index(int):
    """A place in a list, on the way to a value."""


def flat(tree: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The tensors and other values of a nested state dict, with the keys that lead to them."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from flat(value, (*path, key))
    elif isinstance(tree, list) and any(isinstance(x, (Tensor, dict)) for x in tree):
        for i, value in enumerate(tree):
            yield from flat(value, (*path, Index(i)))
    else:
        yield path, tree


def name(path: tuple[Any, ...]) -> str:
    """The name of a value: the keys that lead to it, with dots between."""
    return ".".join(map(str, path))


class Together:
    """The processes that save or load: those of a group, or this one alone."""

    def __init__(self, group: Any, alone: bool) -> None:
        self.group = None if alone or groups.world() is None else member(group)
        self.rank = 0 if self.group is None else self.group.rank()

    def all(self, value: object) -> list[Any]:
        """What each process has."""
        found = [value] if self.group is None else [None] * self.group.size()
        if self.group is not None:
            all_gather_object(found, value, self.group)
        return found

    def agreed(self, what: str, make: Callable[[], Any]) -> list[Any]:
        """What `make` returns on each process.  Raises CheckpointException on all where it raises on one."""
        try:
            mine: tuple[Any, Any] = (make(), None)
        except Exception as error:
            if self.group is None:
                raise
            mine = (None, f"{type(error).__name__}: {error}")
        found = self.all(mine)
        failures = {
            self.group.ranks[r] if self.group else r: error for r, (_, error) in enumerate(found) if error is not None
        }
        if failures:
            raise CheckpointException(f"{what} failed", failures)
        return [value for value, _ in found]

    def first(self, what: str, make: Callable[[], Any]) -> Any:
        """What `make` returns on the first process."""
        return self.agreed(what, lambda: make() if self.rank == 0 else None)[0]


def place(checkpoint_id: object, storage: object, kind: type[Any], call: str) -> Any:
    """The folder of a call's arguments.  Raises ValueError without one, TypeError for a storage of another kind."""
    if storage is None:
        if checkpoint_id is None:
            raise ValueError(f"{call}: expected a folder as checkpoint_id, or a {kind.__name__}")
        return kind(checkpoint_id)
    if not isinstance(storage, kind):
        raise TypeError(f"{call}: expected a {kind.__name__}, got {type(storage).__name__}")
    if checkpoint_id is not None:
        storage.path = type(storage)(checkpoint_id).path
    return storage


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: object = None,
    planner: object = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """Write a state dict into a folder; all processes call this, and each writes its part.

    state_dict: nested dicts and lists of tensors, DTensors and what `torch.save` takes; what has a `state_dict()` gives that.  What
    is the same on several processes is written by one.  checkpoint_id: the folder; storage_writer: a `FileSystemWriter`;
    process_group: all by default; no_dist: this process alone.  The checkpoint that was in the folder stays until the new one is
    whole.  Raises CheckpointException on all processes where one fails.

    >>> import rushlight as torch, tempfile
    >>> import rushlight.distributed.checkpoint as dcp
    >>> folder = tempfile.mkdtemp()
    >>> dcp.save({"model": torch.nn.Linear(2, 1).state_dict(), "epoch": 3}, checkpoint_id=folder)
    >>> state = {"model": {"weight": torch.empty(1, 2)}, "epoch": 0}
    >>> dcp.load(state, checkpoint_id=folder)
    >>> state["epoch"]
    3
    """
    refuse_planner("save", planner)
    writer = place(checkpoint_id, storage_writer, FileSystemWriter, "save")
    together = Together(process_group, no_dist)
    mine = {name(path): (path, value) for path, value in flat(states(state_dict))}
    token = together.first("checkpoint.save", writer.token)
    plans = together.agreed(
        "checkpoint.save", lambda: {key: described(path, value) for key, (path, value) in mine.items()}
    )
    chosen = dealt(plans)
    entries = together.agreed(
        "checkpoint.save",
        lambda: writer.write(
            together.rank,
            token,
            [
                written(key, *mine[key])
                for key in mine
                if chosen[key, box_key(plans[together.rank][key])] == together.rank
            ],
        ),
    )
    together.first("checkpoint.save", lambda: writer.finish([entry for some in entries for entry in some]))


def async_save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
               storage_writer: object = None, planner: object = None, process_group: ProcessGroup | None = None,
               async_checkpointer_type: object = None, async_stager: object = None, no_dist: bool = False,
               use_collectives: bool = True) -> Future[None]:  # fmt: skip
    """As `save`, of a copy that is made now and written while training goes on; all processes call this.

    Its result is there when the checkpoint is whole; it raises what `save` raises.  The copy takes the bytes of this
    process's part.
    """
    refuse_planner("async_save", planner)
    staged = tree_map(lambda x: copied(x) if isinstance(x, Tensor) else x, states(state_dict))
    group: Any = None
    if groups.world() is not None and not no_dist:  # its messages go beside those of training
        group = new_group(member(process_group).ranks)
    done: Future[None] = Future()

    def write() -> None:
        try:
            save(
                staged, checkpoint_id=checkpoint_id, storage_writer=storage_writer, process_group=group, no_dist=no_dist
            )
            if group is not None:
                group.channel.close()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=write, name="rushlight checkpoint").start()
    return done


def copied(tensor: Tensor) -> Tensor:
    """A copy of a tensor, of what this process has of it."""
    found: Tensor = tensor.detach().clone()
    return found


def refuse_planner(call: str, planner: object) -> None:
    """Raise NotImplementedError for a planner."""
    if planner is not None and type(planner).__name__ not in ("DefaultSavePlanner", "DefaultLoadPlanner"):
        raise NotImplementedError(f"checkpoint.{call}: planners are not asked here: pass None")


def states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """A state dict with the states of what has one."""
    return {key: value.state_dict() if stateful(value) else value for key, value in state_dict.items()}


def stateful(value: object) -> bool:
    """Whether a value gives and takes a state dict."""
    return not isinstance(value, (Tensor, type)) and isinstance(value, Stateful)


def described(path: tuple[Any, ...], value: object) -> dict[str, Any]:
    """What a process has of a value.  Raises TypeError for keys that are neither strings nor whole numbers."""
    if not all(isinstance(key, (str, int)) for key in path):
        raise TypeError(f"checkpoint.save: expected keys that are strings or whole numbers, got {path}")
    steps = [
        [int(key)] if isinstance(key, Index) else key for key in path
    ]  # places in lists apart from keys that are numbers
    found: dict[str, Any] = {"key": name(path), "path": steps}
    if not isinstance(value, Tensor):
        return found
    box = tuple(slice(0, n) for n in value.shape)
    if isinstance(value, DTensor):
        if any(isinstance(one, Partial) for one in value._spec.placements):
            raise NotImplementedError(
                f"checkpoint.save: {found['key']} is a sum over processes: redistribute it before"
            )
        box = value._spec.box()
    return {**found, "dtype": value.dtype.name, "shape": list(value.shape), "box": [[s.start, s.stop] for s in box]}


def box_key(plan: dict[str, Any]) -> Any:
    """Which part of a value it is."""
    return tuple(map(tuple, plan.get("box", ())))


def dealt(plans: list[dict[str, Any]]) -> dict[Any, int]:
    """For each part of each value the process that writes it: one of those that have it, who has least to write."""
    owners: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    for r, plan in enumerate(plans):
        for key, one in plan.items():
            part = (key, box_key(one))
            owners.setdefault(part, []).append(r)
            sizes[part] = math.prod(b - a for a, b in one["box"]) if "box" in one else 0
    load, found = [0] * len(plans), {}
    for part, ranks in owners.items():
        # Objects are taken from the first that has one, and so are tensors without elements.
        found[part] = r = ranks[0] if not sizes[part] else min(ranks, key=lambda r: load[r])
        load[r] += sizes[part]
    return found


def written(key: str, path: tuple[Any, ...], value: object) -> tuple[dict[str, Any], Any]:
    """The description of what this process has of a value, and what is written."""
    if isinstance(value, Tensor):
        return described(path, value), value._array if value._spread else value.detach()._array
    buffer = io.BytesIO()
    save_file(value, buffer)
    return described(path, value), buffer.getvalue()


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: object = None,
    no_dist: bool = False,
) -> None:
    """Fill a state dict from a folder, in place: tensors keep their memory, and DTensors take their part, however many processes wrote it.

    All processes call this; arguments are those of `save`.  Other values are replaced, and what has a `load_state_dict` gets
    what it had saved.  Raises CheckpointException on all processes where one fails: for a key that the checkpoint lacks, a shape
    that differs (a folder without a whole checkpoint).
    """
    refuse_planner("load", planner)
    reader = place(checkpoint_id, storage_reader, FileSystemReader, "load")
    together = Together(process_group, no_dist)
    own = states(state_dict)

    def read() -> None:
        entries: dict[str, list[dict[str, Any]]] = {}
        for entry in reader.read_metadata():
            entries.setdefault(entry["key"], []).append(entry)
        for path, value in list(flat(own)):
            if name(path) not in entries:
                raise RuntimeError(f"checkpoint.load: the checkpoint has no {name(path)}")
            put(own, path, restored(value, entries[name(path)], reader))

    together.agreed("checkpoint.load", read)
    for key, value in state_dict.items():
        if stateful(value):
            value.load_state_dict(own[key])
        else:
            state_dict[key] = own[key]


def put(tree: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    """Put a value where keys lead."""
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def restored(value: object, entries: list[dict[str, Any]], reader: FileSystemReader) -> Any:
    """A value of the state dict as it was saved: a tensor in place.  Raises ValueError for one of another shape or parts that lack."""
    if not isinstance(value, Tensor):
        return read_object(entries[0], reader)
    if "dtype" not in entries[0]:
        raise ValueError(f"{entries[0]['key']} is no tensor in the checkpoint, and one in the state dict")
    if tuple(entries[0]["shape"]) != tuple(value.shape):
        raise ValueError(
            f"{entries[0]['key']}: expected the shape {list(value.shape)} of the state dict, got {entries[0]['shape']} in the checkpoint"
        )
    box = (
        [(s.start, s.stop) for s in value._spec.box()] if isinstance(value, DTensor) else [(0, n) for n in value.shape]
    )
    array = value.detach()._held
    settle(array)
    check_whole(array, sum(filled(array, box, entry, reader) for entry in entries), entries[0]["key"])
    bump(value)
    return value


def check_whole(array: Array, count: int, key: str) -> None:
    """Raise ValueError unless all elements have come."""
    if count != array.size:
        raise ValueError(f"{key}: the checkpoint has {count} of {array.size} elements")


def read_object(entry: dict[str, Any], reader: FileSystemReader) -> Any:
    """An object out of its bytes, or for a tensor that the state dict did not have one of its own."""
    if "dtype" in entry:
        raise ValueError(f"{entry['key']} is a tensor in the checkpoint, and none in the state dict")
    return load_file(io.BytesIO(reader.read(entry)))


def whole(reader: FileSystemReader) -> dict[str, Any]:
    """Everything in a checkpoint, as a nested state dict of plain tensors."""
    tree: dict[Any, Any] = {}
    together: dict[str, list[dict[str, Any]]] = {}
    for entry in reader.read_metadata():
        together.setdefault(entry["key"], []).append(entry)
    for entries in together.values():
        first = entries[0]
        steps = [Index(step[0]) if isinstance(step, list) else step for step in first["path"]]
        at = tree
        for step in steps[:-1]:
            at = at.setdefault(step, {})
        if "dtype" in first:
            at[steps[-1]] = restored(wrap(np.empty(first["shape"], DTYPES[first["dtype"]])), entries, reader)
        else:
            at[steps[-1]] = read_object(first, reader)
    return listed(tree)  # type: ignore[no-any-return]


def listed(tree: object) -> Any:
    """A nested dict with lists where the keys are places in one."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(isinstance(key, Index) for key in tree):
        return [listed(tree[key]) for key in sorted(tree)]
    return {key: listed(value) for key, value in tree.items()}
