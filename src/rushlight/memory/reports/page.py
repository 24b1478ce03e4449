"""A recording as the data of a page: a table of names as JSON, and columns of numbers, compressed, as text.

The page's `data.js` reads them.  Blocks are numbered by birth, those that were alive from the start first, so that a birth
needs no number; blocks of one size that one place made share a row of a table.
"""

from __future__ import annotations

import base64
import json
import linecache
import os
import zlib
from typing import Any

import numpy as np

from rushlight.memory.recordings.columns import shared_stacks
from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, FREE, MARK, PHASE, Recording


def encode(recording: Recording, name: str) -> tuple[str, str]:
    """The tables as JSON, and the columns as base64 of compressed bytes, of a recording that is `settled`."""
    at = np.flatnonzero(recording.action <= FREE)  # events of blocks: the others are few, and go into the JSON
    number, order = by_birth(recording)
    makers, maker = tables(recording, order)
    action, block = recording.action[at], number[recording.block[at]]
    born = recording.initial + np.cumsum(action == ALLOC)  # the number of the next birth, after each event
    refs = (born - block)[action != ALLOC]
    code = action.astype(np.int64) | np.where(action == FREE, 0, recording.value[at]) << 2
    initial = recording.initial_category
    first = np.zeros(recording.initial, np.uint8) if initial is None else np.asarray(initial, np.uint8)
    time = recording.time[at]
    steps = np.clip(np.diff(time, prepend=recording.time[:1][: len(time)]), 0, 2**32 - 1)
    parts = (
        makers["size"].astype("<f8"), makers["stack"].astype("<i4"), makers["operator"].astype("<i4"),
        makers["module"].astype("<i4"), maker.astype("<u4"), steps.astype("<u4"), refs.astype("<u4"), code.astype("u1"), first,
    )  # fmt: skip
    data = base64.b64encode(zlib.compress(b"".join(p.tobytes() for p in parts), 9 if len(at) < 200_000 else 6))
    meta = {"name": name, "events": len(at), "blocks": len(recording.size), "makers": len(makers["size"]), "refs": len(refs),
            "initial": recording.initial, **names(recording, at)}  # fmt: skip
    return script_json(meta), data.decode("ascii")


def by_birth(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """The number of each block by birth, and the blocks in that order."""
    born = recording.block[recording.action == ALLOC]
    order = np.concatenate([np.arange(recording.initial), born])
    number = np.zeros(max(len(recording.size), 1), np.int64)
    number[order] = np.arange(len(order))
    return number, order


def tables(recording: Recording, order: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Distinct makers (size, stack, operator, module), and the row of each block, in an order of blocks."""
    columns = {
        name: getattr(recording, name)[order].astype(np.int64) for name in ("size", "stack", "operator", "module")
    }
    key = np.zeros(len(order), np.int64)
    for column in columns.values():
        _, places = np.unique(column, return_inverse=True)
        _, key = np.unique(key * (int(places.max(initial=0)) + 1) + places, return_inverse=True)
    _, first, maker = np.unique(key, return_index=True, return_inverse=True)
    return {name: column[first] for name, column in columns.items()}, maker


def names(recording: Recording, at: np.ndarray) -> dict[str, Any]:
    """The tables of names, and phases and marks by the number of the next event and their time."""
    told = {action: np.flatnonzero(recording.action == action) for action in (PHASE, MARK)}
    places = {action: np.searchsorted(at, rows).tolist() for action, rows in told.items()}
    values = {action: recording.value[rows].tolist() for action, rows in told.items()}
    zero = int(recording.time[0]) if len(recording.time) else 0
    times = {action: (recording.time[rows] - zero).tolist() for action, rows in told.items()}
    return {
        "categories": list(CATEGORIES),
        "operators": recording.operators,
        "modules": recording.modules,
        **shared_stacks(recording.stacks),
        "source": sources(recording),
        "phases": [list(x) for x in zip(places[PHASE], values[PHASE], times[PHASE], strict=True)],
        "marks": [[p, recording.marks[v], t] for p, v, t in zip(places[MARK], values[MARK], times[MARK], strict=True)],
        "last": int(recording.time[-1]) - zero if len(recording.time) else 0,
    }


def sources(recording: Recording) -> list[str]:
    """The text of the line of each frame of `shared_stacks`; "" where its file is not here, or is younger than the recording."""
    frames = dict.fromkeys(frame for stack in recording.stacks for frame in stack)
    begun = int(recording.time[0]) / 1e6 if len(recording.time) else 0.0
    here = {name: is_as_old(name, begun) for name in {frame.filename for frame in frames}}
    return [linecache.getline(f.filename, int(f.line)).strip()[:200] if here[f.filename] else "" for f in frames]


def is_as_old(filename: str, moment: float) -> bool:
    """Whether a file is there, and was not written since a moment.  Cells of notebooks always are.

    A script that was started by a relative name is looked for from where we are.
    """
    if filename.startswith("<"):
        return filename in linecache.cache
    try:
        return os.stat(filename).st_mtime <= moment
    except OSError:
        return False


def script_json(value: object) -> str:
    """JSON that can stand in a script element whatever names it holds."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
