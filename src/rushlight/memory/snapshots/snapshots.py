"""Snapshots: recordings in the format of PyTorch's memory viewer, written and read.

A snapshot is a dictionary of plain values; pickled, it opens in PyTorch's viewer.  Ours carry under the key "rushlight"
what that format has no place for, so that a recording comes back as it was.
"""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from rushlight.basics.errors import explained
from rushlight.memory.recordings import columns
from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, FREE, MARK, PHASE, PHASES, Recording
from rushlight.memory.recordings.replay import lives, most_telling
from rushlight.memory.snapshots import plain_pickles

__all__ = ["SnapshotError", "from_snapshot", "load", "load_snapshot", "save", "to_snapshot"]

KEY = "rushlight"
BASE = 1 << 33  # where the synthetic addresses begin
PROTOCOL = 4  # 5, the default of new Pythons, is refused by most copies of the viewer
LARGEST_FILE = 1 << 34


class SnapshotError(ValueError):
    """A file or value is no snapshot; the message names the file, what was found and what was expected."""


# Writing ------------------------------------------------------------------------------------------------


def to_snapshot(recording: Recording) -> dict[str, Any]:
    """The recording as a dictionary of plain values, as PyTorch's `torch.cuda.memory._snapshot()` gives it.

    Pickle it with protocol 4 (`save` does) and it opens in PyTorch's viewer.  Blocks get addresses that lie close together,
    in one segment; each block has the most telling category that it ever had.

    >>> from rushlight import memory
    >>> recording = memory.Recording(time=[], action=[], block=[], value=[], address=[], size=[], stack=[], operator=[],
    ...                              module=[])
    >>> sorted(memory.to_snapshot(recording))
    ['allocator_settings', 'device_traces', 'external_annotations', 'rushlight', 'segments']
    """
    recording = as_arrays(recording)
    address, span = compact_addresses(recording)
    frames = [[{"name": f.name, "filename": f.filename, "line": int(f.line)} for f in s] for s in recording.stacks]
    frames.append([])  # for blocks without a stack, at place -1
    device = device_index(recording.device)
    trace = events(recording, address, frames, span)
    return {
        KEY: columns.pack(recording),
        "segments": segments(recording, address, span, frames, device),
        "device_traces": [*([] for _ in range(device)), trace],
        "allocator_settings": settings(),
        "external_annotations": notes(recording, device),
    }


def as_arrays(recording: Recording) -> Recording:
    """The same with columns that are arrays, where they were given as lists."""
    for names in (columns.EVENTS, columns.BLOCKS):
        for name, dtype in names.items():
            setattr(recording, name, np.asarray(getattr(recording, name), dtype))
    return recording


def device_index(device: str) -> int:
    """The place of a device in the list of traces: of a GPU its number, 0 for others."""
    number = device.partition(":")[2]
    return int(number) if number.isdigit() and int(number) < 1024 else 0


def compact_addresses(recording: Recording) -> tuple[list[int], int]:
    """An address for each block that no other has while it lives, and the end of the last.

    Sizes are rounded up to an eighth of a power of two; freed places of the same rounded size are used again.
    """
    size = np.maximum(recording.size, 512)
    step = np.int64(1) << np.maximum(np.int64(np.log2(size)) - 3, 9)
    rounded = (-(-size // step) * step).tolist()
    address = [0] * len(rounded)
    free: dict[int, list[int]] = {}
    end = BASE
    for block in range(recording.initial):
        address[block] = end
        end += rounded[block]
    moves = np.flatnonzero((recording.action == ALLOC) | (recording.action == FREE))
    for action, block in zip(recording.action[moves].tolist(), recording.block[moves].tolist()):
        if action == FREE:
            free.setdefault(rounded[block], []).append(address[block])
        elif places := free.get(rounded[block]):
            address[block] = places.pop()
        else:
            address[block] = end
            end += rounded[block]
    return address, end


def events(recording: Recording, address: list[int], frames: list[Any], span: int) -> list[dict[str, Any]]:
    """The trace: births, and deaths as the pair of events that the viewer merges.  Blocks of no bytes are left out."""
    moves = np.flatnonzero((recording.action == ALLOC) | (recording.action == FREE))
    blocks = recording.block[moves]
    moves, blocks = moves[recording.size[blocks] > 0], blocks[recording.size[blocks] > 0]
    names = [CATEGORIES[c] for c in most_telling(recording).tolist()]
    stacks, sizes = recording.stack.tolist(), recording.size.tolist()
    found: list[dict[str, Any]] = []
    if "unknown" not in {names[b] for b in blocks[recording.action[moves] == ALLOC].tolist()}:
        found += unknown(span, int(recording.time[0]) if len(recording.time) else 0)
    for time, action, b in zip(recording.time[moves].tolist(), recording.action[moves].tolist(), blocks.tolist()):
        size, where, stack = sizes[b], address[b], frames[stacks[b]]
        if action == ALLOC:
            found.append({"action": "alloc", "addr": where, "size": size, "stream": 0, "time_us": time, "frames": stack,
                          "category": names[b]})  # fmt: skip
            continue
        for name in ("free_requested", "free_completed"):
            found.append({"action": name, "addr": where, "size": size, "stream": 0, "time_us": time, "frames": stack})
    return found


def unknown(where: int, time: int) -> list[dict[str, Any]]:
    """A byte without a category: copies of the viewer need one event of it."""
    common = {"addr": where, "size": 1, "stream": 0, "time_us": time, "frames": [], "category": "unknown"}
    return [{"action": action, **common} for action in ("alloc", "free_requested", "free_completed")]


def segments(
    recording: Recording, address: list[int], span: int, frames: list[Any], device: int
) -> list[dict[str, Any]]:
    """One segment around all addresses, with what is alive after the last event and the gaps between."""
    death = lives(recording).death
    alive = np.flatnonzero((death == len(recording.time)) & (recording.size > 0)).tolist()
    sizes, stacks = recording.size.tolist(), recording.stack.tolist()
    blocks: list[dict[str, Any]] = []
    at = BASE
    for b in sorted(alive, key=address.__getitem__):
        if address[b] > at:
            blocks.append(gap(at, address[b]))
        blocks.append({"address": address[b], "size": sizes[b], "requested_size": sizes[b], "state": "active_allocated",
                       "frames": frames[stacks[b]]})  # fmt: skip
        at = address[b] + sizes[b]
    end = span + 512  # with room for the byte without a category
    blocks.append(gap(at, end))
    live = sum(sizes[b] for b in alive)
    return [{
        "device": device, "address": BASE, "total_size": end - BASE, "allocated_size": live, "active_size": live,
        "requested_size": live, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
        "frames": [], "blocks": blocks,
    }]  # fmt: skip


def gap(start: int, stop: int) -> dict[str, Any]:
    """Bytes that no block has."""
    return {"address": start, "size": stop - start, "requested_size": 0, "state": "inactive", "frames": []}


def settings() -> dict[str, Any]:
    """Settings of an allocator that has none."""
    return {
        "PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
        "expandable_segments": False, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False, "graph_capture_record_stream_reuse": False,
        "roundup_power2_divisions": {},
    }  # fmt: skip


def notes(recording: Recording, device: int) -> list[dict[str, Any]]:
    """Beginnings and ends of phases, and the user's marks as moments."""
    found: list[dict[str, Any]] = []
    told = np.flatnonzero((recording.action == PHASE) | (recording.action == MARK))
    running = ""
    for at in told.tolist():
        time, value = int(recording.time[at]), int(recording.value[at])
        if recording.action[at] == MARK:
            found += [annotation(recording.marks[value], stage, device, time) for stage in ("START", "END")]
            continue
        if running:
            found.append(annotation(running, "END", device, time))
        running = PHASES[value]
        if running:
            found.append(annotation(running, "START", device, time))
    if running:
        found.append(annotation(running, "END", device, int(recording.time[-1])))
    return found


def annotation(name: str, stage: str, device: int, time: int) -> dict[str, Any]:
    """A beginning or an end."""
    return {"name": name, "stage": stage, "device": device, "time_us": time}


def save(recording: Recording | dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a recording, or a snapshot, to a file that PyTorch's viewer, `rushlight memory` and `load` read."""
    snapshot = to_snapshot(recording) if isinstance(recording, Recording) else recording
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, protocol=PROTOCOL)


# Reading ------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], device: int | str | None = None) -> Recording:
    """The recording in a file: ours, or one that PyTorch wrote, of any age.

    Nothing in the file is executed: whatever is not a plain value is refused.

    Args:
        path: the file.
        device: which device's memory, where a file of PyTorch's has several: its number or "host"; by default the one
            with the most events.

    Raises FileNotFoundError, and SnapshotError for what is no snapshot, damaged or hostile.

    >>> import tempfile, os
    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> path = os.path.join(tempfile.mkdtemp(), "snapshot.pickle")
    >>> memory.record_history(); y = torch.ones(1000).exp(); memory.record_history(None)
    >>> memory.save(memory.recording(), path)
    >>> memory.load(path).peak() == memory.recording().peak()
    True
    """
    data = _bytes(path)
    text = plain_pickles.first_item(data, KEY) if data.endswith(b".") else None
    if text is not None:
        return _ours(text, str(path), device)
    return from_snapshot(_parsed(data, str(path)), device, str(path))


def load_snapshot(path: str | os.PathLike[str]) -> Any:
    """The dictionary in a file, as `to_snapshot` makes it, or whatever plain values are in it.  Raises as `load` does."""
    return _parsed(_bytes(path), str(path))


def _bytes(path: str | os.PathLike[str]) -> bytes:
    size = os.stat(path).st_size
    if size > LARGEST_FILE:
        raise SnapshotError(f"{path}: {size:,} bytes, more than the {LARGEST_FILE:,} that can be read")
    with open(path, "rb") as file:
        return file.read()


def _parsed(data: bytes, name: str) -> object:
    if not data:
        raise SnapshotError(f"{name}: the file is empty; expected a memory snapshot (a pickle)")
    try:
        return plain_pickles.loads(data)
    except plain_pickles.PlainError as error:
        kind = _kind(data, name)
        raise explained(SnapshotError(f"{name}: no memory snapshot{kind}: {error}"), "not-a-snapshot") from None


def _kind(data: bytes, name: str) -> str:
    """What else a file may be, by its first bytes and its name."""
    begins = {b"PK\x03\x04": "a zip archive, perhaps a model's checkpoint", b"\x1f\x8b": "compressed with gzip: unpack it first",
              b"{": "JSON", b"<": "HTML or XML", b"\x89HDF": "HDF5"}  # fmt: skip
    found = next((kind for head, kind in begins.items() if data.startswith(head)), "")
    if not found and data[:1000].isascii() and b"\0" not in data[:1000]:
        script = f"a script: `rushlight memory report {name}` runs it"
        found = script if name.endswith(".py") else "text: what `rushlight memory report` is to run has a name in .py"
    return found and f" (it looks like {found})"


def _ours(text: str, name: str, device: int | str | None) -> Recording:
    try:
        found = columns.unpack(text)
    except columns.ColumnsError as error:
        raise SnapshotError(f"{name}: {error}") from None
    number = found.device.rpartition(":")[2]
    if device is not None and str(device) not in (found.device, number if number.isdigit() else "0"):
        raise SnapshotError(f"{name}: device {device!r} is not in it; it has {found.device!r} alone")
    return found


def from_snapshot(snapshot: object, device: int | str | None = None, name: str = "snapshot") -> Recording:
    """The recording that a snapshot holds: all of it for ours, what PyTorch's format tells for others.

    Args:
        snapshot: the dictionary, or a bare list of segments as old versions wrote it.
        device: as in `load`.
        name: of the file, for errors.

    Raises SnapshotError for anything else.
    """
    from rushlight.memory.snapshots import pytorch_files

    if isinstance(snapshot, dict) and isinstance(snapshot.get(KEY), str):
        return _ours(snapshot[KEY], name, device)
    try:
        return pytorch_files.read(snapshot, device)
    except pytorch_files.ForeignError as error:
        raise SnapshotError(f"{name}: {error}") from None
