"""Events as a trace in the JSON format of Chrome, which Perfetto opens."""

from __future__ import annotations

import gzip
import json
import os
import platform
from collections.abc import Iterator
from typing import Any

from rushlight.autograd.profiler.intervals import MEMORY_EVENT_NAME

FORWARD_SCOPE, BACKWARD_SCOPE, USER_SCOPE = 0, 1, 7


def write(events: Any, path: Any, threads: dict[int, str], metadata: dict[str, Any] | None = None) -> None:
    """Write the trace to `path`."""
    trace = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "host_name": platform.node(),
        "traceName": str(path),
        **(metadata or {}),
        "traceEvents": list(trace_events(events, threads)),
    }
    name = os.fspath(path)
    with gzip.open(name, "wt", encoding="utf-8") if name.endswith(".gz") else open(name, "w", encoding="utf-8") as file:
        json.dump(trace, file)


def trace_events(events: Any, threads: dict[int, str]) -> Iterator[dict[str, Any]]:
    """Names of the process and the threads, then the events, arrows and changes of memory."""
    pid = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python"}}
    for number in sorted({event.thread for event in events} | set(threads)):
        name = threads.get(number) or f"thread {number}"
        where = {"ph": "M", "pid": pid, "tid": number, "ts": 0}
        yield {**where, "name": "thread_name", "args": {"name": name}}
        yield {**where, "name": "thread_sort_index", "args": {"sort_index": number}}
    for event in events:
        if event.is_async:
            yield from beside(event, pid)
        elif event.name != MEMORY_EVENT_NAME:
            yield complete(event, pid)
            for kernel in event.kernels:
                yield device_event(event, kernel, pid)
    yield from window(events)
    yield from arrows(events, pid)
    yield from memory(getattr(events, "_memory", ()), pid)


def window(events: Any) -> Iterator[dict[str, Any]]:
    """The time that was recorded: a span, its beginning, and its end."""
    begin = min((event.time_range.start for event in events), default=0.0)
    end = max((event.time_range.end for event in events), default=0.0)
    yield {
        "ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": begin,
        "dur": end - begin, "args": {"Op count": 0},
    }  # fmt: skip
    yield {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace PyTorch Profiler",
           "ts": begin}  # fmt: skip
    yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": end}


def complete(event: Any, pid: int) -> dict[str, Any]:
    """An event with its beginning and length."""
    args: dict[str, Any] = {"External id": event.id, "Ev Idx": event.id}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    if event.fwd_thread is not None:
        args["Fwd thread id"] = event.fwd_thread
    concrete = ["" if value is None else str(value) for value in event.concrete_inputs]
    for key, value in (("Input Dims", event.input_shapes), ("Concrete Inputs", concrete),
                       ("Call stack", ";".join(event.stack)), ("Module Hierarchy", event.module_hierarchy),
                       ("flops", event.flops), ("Bytes", event.cpu_memory_usage)):  # fmt: skip
        if value:
            args[key] = value
    return {
        "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.trace_name,
        "pid": pid, "tid": event.thread, "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
        "args": args,
    }  # fmt: skip


def beside(event: Any, pid: int) -> Iterator[dict[str, Any]]:
    """The beginning and the end of a message: several overlap, which the events of a thread do not."""
    both = {"cat": "message", "name": event.trace_name, "id": event.id, "pid": pid, "tid": event.thread}
    yield {**both, "ph": "b", "ts": event.time_range.start}
    yield {**both, "ph": "e", "ts": event.time_range.end}


def device_event(event: Any, kernel: Any, pid: int) -> dict[str, Any]:
    """Work on a device, drawn from the beginning of the event that started it."""
    return {
        "ph": "X", "cat": "kernel", "name": kernel.name, "pid": pid, "tid": f"device {kernel.device}",
        "ts": event.time_range.start, "dur": kernel.duration, "args": {"External id": event.id},
    }  # fmt: skip


def arrows(events: Any, pid: int) -> Iterator[dict[str, Any]]:
    """From each operator to the runs of the node that it recorded; the outermost of each where several have a number."""
    forward: dict[int, Any] = {}
    for event in events:
        if event.scope == FORWARD_SCOPE and event.sequence_nr >= 0 and not event.is_user_annotation:
            forward.setdefault(event.sequence_nr, event)
    number = 0
    for event in events:
        parent = event.cpu_parent
        inner = parent is not None and parent.scope == BACKWARD_SCOPE and parent.sequence_nr == event.sequence_nr
        origin = forward.get(event.sequence_nr)
        if event.scope != BACKWARD_SCOPE or inner or origin is None:
            continue
        number += 1
        arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": pid}
        yield {**arrow, "ph": "s", "tid": origin.thread, "ts": origin.time_range.start}
        yield {**arrow, "ph": "f", "bp": "e", "tid": event.thread, "ts": event.time_range.start}


def memory(notes: Any, pid: int) -> Iterator[dict[str, Any]]:
    """Every change of memory, with the sum so far."""
    total = 0
    for time, nbytes, address, thread in notes:
        total += nbytes
        yield {
            "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": MEMORY_EVENT_NAME, "pid": pid, "tid": thread,
            "ts": time / 1000, "args": {"Bytes": nbytes, "Addr": address, "Total Allocated": total, "Device Type": 0,
                                        "Device Id": -1},
        }  # fmt: skip
