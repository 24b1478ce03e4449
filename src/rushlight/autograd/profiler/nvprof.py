"""Traces of nvprof: an SQLite file with the ranges of `emit_nvtx`, the calls of the CUDA runtime and the kernels."""

from __future__ import annotations

import os
from typing import Any

from rushlight.autograd.profiler.event_list import EventList
from rushlight.autograd.profiler.intervals import FunctionEvent

# Each marker is two rows of one id: where it begins, with its name, and where it ends, with name 0. Times are in ns.
MARKERS = """
SELECT start.id AS marker, start.name AS name, start.timestamp AS begin, end.timestamp AS finish
FROM CUPTI_ACTIVITY_KIND_MARKER AS start JOIN CUPTI_ACTIVITY_KIND_MARKER AS end ON start.id = end.id
WHERE start.name != 0 AND end.name = 0
ORDER BY begin, finish DESC
"""
# A launch belongs to every marker around it; 13 and 211 are the runtime's calls that launch a kernel.
LAUNCHES = """
SELECT start.id AS marker, runtime._id_ AS launch, kernel.name AS name, kernel.start AS begin, kernel.end AS finish,
       kernel.deviceId AS device
FROM CUPTI_ACTIVITY_KIND_MARKER AS start
JOIN CUPTI_ACTIVITY_KIND_MARKER AS end ON start.id = end.id
JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS runtime ON start.timestamp < runtime.start AND runtime.end < end.timestamp
JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel ON kernel.correlationId = runtime.correlationId
WHERE start.name != 0 AND end.name = 0 AND runtime.cbid IN (13, 211)
ORDER BY launch
"""


def load_nvprof(path: str | os.PathLike[str]) -> EventList:
    """The ranges of `emit_nvtx` in a file that nvprof wrote, each with the kernels that were launched in it.

    Times are in microseconds from the first range on. Raises FileNotFoundError where there is no file, ValueError for
    one that is no trace.
    """
    return EventList(parse_nvprof(path), use_device="cuda")._build_tree()


def parse_nvprof(path: str | os.PathLike[str]) -> list[FunctionEvent]:
    """The events of the file, in the order in which they began."""
    import sqlite3

    if not os.path.exists(path):
        raise FileNotFoundError(f"load_nvprof(): no such file: {path}")
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return events_of(connection)
    except sqlite3.DatabaseError as error:
        raise ValueError(f"load_nvprof(): {path} is not a trace of nvprof: {error}") from error
    finally:
        connection.close()


def events_of(connection: Any) -> list[FunctionEvent]:
    """The events of an open file."""
    strings = {row["id"]: row["value"] for row in connection.execute("SELECT _id_ AS id, value FROM StringTable")}
    markers = connection.execute(MARKERS).fetchall()
    events: dict[int, FunctionEvent] = {}
    for row in markers:
        if row["marker"] in events:
            raise ValueError(f"load_nvprof(): two ranges have the id {row['marker']}")
        start, end = ((row[key] - markers[0]["begin"]) / 1000 for key in ("begin", "finish"))
        events[row["marker"]] = FunctionEvent(row["marker"], strings[row["name"]], 0, start, end, use_device="cuda",
                                              is_legacy=True)  # fmt: skip
    seen = set()
    for row in connection.execute(LAUNCHES):
        if (row["marker"], row["launch"]) not in seen:
            seen.add((row["marker"], row["launch"]))
            events[row["marker"]].append_kernel(
                strings[row["name"]], row["device"], (row["finish"] - row["begin"]) / 1e3
            )
    return list(events.values())
