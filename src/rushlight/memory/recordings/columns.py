"""The columns of a recording as one line of text, without loss: for a snapshot's key of ours."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

import numpy as np

from rushlight.memory.recordings.recording import Frame, Recording

VERSION = 1
EVENTS = {"time": "<i8", "action": "|u1", "block": "<i8", "value": "<i8"}
BLOCKS = {"address": "<i8", "size": "<i8", "stack": "<i4", "operator": "<i4", "module": "<i4"}
DIFFERENCES = ("time", "address")  # columns that pack better as differences
RATIO = 100  # bytes that a compressed one may become: more than recordings do, less than a bomb


class ColumnsError(ValueError):
    """The text is no recording."""


def pack(recording: Recording) -> str:
    """The recording as text: base64 of compressed JSON and columns."""
    initial = recording.initial_category
    header = {
        "version": VERSION, "events": len(recording.time), "blocks": len(recording.size), "initial": recording.initial,
        "initial_category": None if initial is None else [int(x) for x in initial],
        "stacks": shared_stacks(recording.stacks), "operators": recording.operators, "modules": recording.modules,
        "marks": recording.marks, "dropped": recording.dropped, "device": recording.device,
        "treatments": recording.treatments,
        "idle": recording.idle, "models": recording.models, "cut": [int(x) for x in recording.cut],
    }  # fmt: skip
    text = json.dumps(header, separators=(",", ":")).encode()
    parts = [len(text).to_bytes(8, "little"), text]
    for name, dtype in (EVENTS | BLOCKS).items():
        column = np.asarray(getattr(recording, name)).astype(dtype)
        parts.append(
            np.diff(column, prepend=column.dtype.type(0)).tobytes() if name in DIFFERENCES else column.tobytes()
        )
    packed = zlib.compress(b"".join(parts), 6 if len(recording.time) < 200_000 else 1)
    return base64.b64encode(packed).decode("ascii")


def shared_stacks(stacks: list[tuple[Frame, ...]]) -> dict[str, Any]:
    """Stacks as places in a table of frames, frames as places in a table of files: files repeat much."""
    files: dict[str, int] = {}
    frames: dict[Frame, int] = {}
    rows = [[frames.setdefault(frame, len(frames)) for frame in stack] for stack in stacks]
    table = [[files.setdefault(f.filename, len(files)), int(f.line), f.name] for f in frames]
    return {"files": list(files), "frames": table, "stacks": rows}


def unpack(text: str) -> Recording:
    """The recording that `pack` made text of.  Raises ColumnsError for anything else."""
    try:
        header, data = _open(text)
        return _recording(header, data)
    except ColumnsError:
        raise
    except (binascii.Error, zlib.error, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise ColumnsError(f"the recording in it is damaged: {what}") from None
    except RecursionError:
        raise ColumnsError("the recording in it is damaged (its header is nested too deep)") from None


def _open(text: str) -> tuple[dict[str, Any], bytes]:
    machine = zlib.decompressobj()
    packed = base64.b64decode(text, validate=True)
    data = machine.decompress(packed, RATIO * len(packed) + (1 << 24))
    if not machine.eof:
        raise ColumnsError("the recording in it is damaged: it ends early, or is larger than any recording")
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    if not isinstance(header, dict) or header.get("version") != VERSION:
        found = header.get("version") if isinstance(header, dict) else type(header).__name__
        raise ColumnsError(
            f"the recording in it has version {found!r}, expected {VERSION}: read it with a newer rushlight"
        )
    return header, data[8 + length :]


def _recording(header: dict[str, Any], data: bytes) -> Recording:
    events, blocks = int(header["events"]), int(header["blocks"])
    columns: dict[str, Any] = {}
    at = 0
    for name, dtype in (EVENTS | BLOCKS).items():
        count = events if name in EVENTS else blocks
        column = np.frombuffer(data, dtype, count, at).copy() if count else np.zeros(0, dtype)
        at += column.nbytes
        columns[name] = np.cumsum(column) if name in DIFFERENCES else column
    initial = header["initial_category"]
    table = header["stacks"]
    frames = [Frame(table["files"][file], int(line), str(name)) for file, line, name in table["frames"]]
    found = Recording(
        **columns,
        initial=int(header["initial"]),
        initial_category=None if initial is None else np.array(initial, np.uint8),
        stacks=[tuple(frames[i] for i in stack) for stack in table["stacks"]],
        operators=[str(x) for x in header["operators"]],
        modules=[str(x) for x in header["modules"]],
        marks=[str(x) for x in header["marks"]],
        treatments=[str(x) for x in header.get("treatments", ())],
        idle=[str(x) for x in header.get("idle", ())],
        models=[str(x) for x in header.get("models", ())],
        cut=[int(x) for x in header.get("cut", ())],
        dropped=int(header["dropped"]),
        device=str(header["device"]),
    )
    check(found)
    return found


def check(recording: Recording) -> None:
    """Raise ColumnsError where a number points nowhere, so that nothing after this has to look."""
    r, blocks = recording, len(recording.size)
    moved = r.action <= 2
    rules = [
        (0 <= r.initial <= blocks, "more initial blocks than blocks"),
        (
            r.initial_category is None or len(r.initial_category) == r.initial,
            "as many initial categories as initial blocks",
        ),
        (_within(r.action, 0, 5), "an unknown action"),
        (_within(r.block[moved], 0, blocks), "an event of a block that is not there"),
        (_within(r.value[(r.action == 0) | (r.action == 2)], 0, 8), "an unknown category"),
        (_within(r.value[r.action == 3], 0, 4), "an unknown phase"),
        (_within(r.value[r.action == 4], 0, len(r.marks)), "a mark that is not there"),
        (r.initial_category is None or _within(r.initial_category, 0, 8), "an unknown category"),
        (_within(r.size, 0, 1 << 53), "a size that is negative or above 2**53"),
        (_within(r.stack, -1, len(r.stacks)), "a stack that is not there"),
        (_within(r.operator, -1, len(r.operators)), "an operator that is not there"),
        (_within(r.module, -1, len(r.modules)), "a module that is not there"),
        (all(0 <= x < blocks for x in r.cut), "a part of a block that is not there"),
    ]
    for right, what in rules:
        if not right:
            raise ColumnsError(f"the recording in it is damaged: {what}")
    _check_lives(r)


def _check_lives(r: Recording) -> None:
    born, died = r.block[r.action == 0], r.block[r.action == 1]
    if len(np.unique(born)) != len(born) or len(np.unique(died)) != len(died) or (born < r.initial).any():
        raise ColumnsError("the recording in it is damaged: a block that is born or dies twice")
    if len(born) != len(r.size) - r.initial:
        raise ColumnsError("the recording in it is damaged: a block that is never born")


def _within(column: Any, low: int, high: int) -> bool:
    return not len(column) or bool(column.min() >= low and column.max() < high)
