"""From what a collector noted to events."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.profiler.collector import MESSAGE, Collector
from rushlight.autograd.profiler.event_list import EventList
from rushlight.autograd.profiler.intervals import MEMORY_EVENT_NAME, FunctionEvent
from rushlight.basics.events import DRAW, EVALUATE, EVALUATE_LEAF, FUNCTION, INPLACE, LEAF, MARK, NODE, OPERATOR, ROOT

ACCUMULATE = "torch::autograd::AccumulateGrad"
EVALUATE_FUNCTION = "autograd::engine::evaluate_function: "
BACKWARD_SCOPE, USER_SCOPE = 1, 7
STEP = "ProfilerStep"


def name_of(kind: int, what: Any) -> str:
    """The name of an event, as PyTorch spells it."""
    if kind == OPERATOR:
        return f"aten::{what.shown}"
    if kind == DRAW:
        return f"aten::{what}"
    if kind == INPLACE:
        return f"aten::{what.shown.rstrip('_')}_"
    if kind == FUNCTION:
        return str(what.__name__)
    if kind == EVALUATE:
        return f"{EVALUATE_FUNCTION}{what}"
    if kind == MARK:
        return str(what[0])
    return {ROOT: "torch::autograd::GraphRoot", EVALUATE_LEAF: EVALUATE_FUNCTION + ACCUMULATE,
            LEAF: ACCUMULATE}.get(kind) or str(what)  # fmt: skip


def scope_of(kind: int) -> int:
    """The scope of an event: of operators, of nodes, or of the user."""
    return USER_SCOPE if kind == MARK else 0 if kind in (OPERATOR, INPLACE, FUNCTION, DRAW, MESSAGE) else BACKWARD_SCOPE


def frame_text(code: Any, line: int) -> str:
    """A line of a stack."""
    return f"{code.co_filename}({line}): {code.co_name}"


def assemble(collector: Collector, start: int, use_device: str | None, memory: bool, flops: bool) -> EventList:
    """The events of a collector, in the order in which they began; times from `start` on."""
    numbers: dict[int, int] = {}
    rows = sorted(enumerate(collector.rows), key=lambda row: (row[1][2], -row[1][3], -row[0]))
    for _, row in rows:
        numbers.setdefault(row[5], len(numbers) + 1)
    forward = {row[4]: (numbers[row[5]], row[6]) for _, row in rows if row[0] in (OPERATOR, INPLACE, FUNCTION)}
    events = [event_of(i, row, start, numbers, forward, use_device, flops) for i, (_, row) in enumerate(rows)]
    made = EventList(events, use_device, memory, flops, {numbers[t]: collector.threads.get(t, "") for t in numbers})
    made._build_tree()
    if memory:
        place_memory(made, collector, [row for _, row in rows], start, numbers)
    return made


def event_of(i: int, row: tuple[Any, ...], start: int, numbers: dict[int, int], forward: dict[int, Any],
             use_device: str | None, flops: bool) -> FunctionEvent:  # fmt: skip
    """One event."""
    kind, what, begin, end, seq, thread, details = row
    name, origin, exact = name_of(kind, what), None, None
    if kind == MARK and name.startswith(f"{STEP}#"):  # the steps of a loop are added up
        name, exact = f"{STEP}*", name
    if kind in (NODE, EVALUATE):
        origin = forward.get(seq)
    shapes = stack = concrete = None
    count, modules = None, ""
    if details is not None:
        shapes, concrete, modules = details.shapes, details.concrete, details.modules or ""
        stack = details.stack
        if origin is not None and origin[1] is not None:
            stack = origin[1].stack  # a node is asked about for the line that recorded it
        stack = [frame_text(code, line) for code, line in stack or ()]
        if flops:
            count = details.flops
    return FunctionEvent(
        i,
        name,
        numbers[thread],
        (begin - start) / 1000,
        (end - start) / 1000,
        input_shapes=shapes,
        stack=stack,
        scope=scope_of(kind),
        sequence_nr=seq,
        fwd_thread=None if origin is None else origin[0],
        flops=count,
        trace_name=exact,
        concrete_inputs=concrete,
        is_user_annotation=kind == MARK,
        module_hierarchy=modules,
        use_device=use_device,
        is_async=kind == MESSAGE,
        kwinputs={"args": what[1]} if kind == MARK and what[1] is not None else None,
    )


def place_memory(events: EventList, collector: Collector, rows: list[Any], start: int, numbers: dict[int, int]) -> None:
    """Give each event the bytes made and given back during it, those of events within it included; what was given back
    outside of all becomes an event of its own."""
    changes = [0] * len(events)
    notes: list[tuple[int, int, int, int]] = []
    for i, row in enumerate(rows):
        for nbytes, address in row[6].allocated if row[6] is not None else ():
            changes[i] += nbytes
            notes.append((row[3], nbytes, address, numbers[row[5]]))
    alone: list[FunctionEvent] = []
    innermost = Innermost(events)
    for free in sorted(collector.frees):
        number = numbers.get(free.thread, 1)
        time = (free.time - start) / 1000
        found = innermost.at(number, time)
        notes.append((free.time, -free.nbytes, free.address, number))
        if found is None:
            alone.append(FunctionEvent(len(events) + len(alone), MEMORY_EVENT_NAME, number, time, time,
                                       cpu_memory_usage=-free.nbytes))  # fmt: skip
        else:
            changes[found.id] -= free.nbytes
    for event in reversed(events):  # children begin later than their parents
        event.cpu_memory_usage += changes[event.id]
        if event.cpu_parent is not None:
            event.cpu_parent.cpu_memory_usage += event.cpu_memory_usage
    events.extend(alone)
    events._memory = sorted((time - start, *rest) for time, *rest in notes)  # type: ignore[attr-defined]


class Innermost:
    """Finds the innermost event of a thread at a time; asked for times in rising order."""

    def __init__(self, events: EventList):
        self.queues: dict[int, Any] = {}
        self.stacks: dict[int, list[Any]] = {}
        for event in events:
            self.queues.setdefault(event.thread, []).append(event)
        self.queues = {thread: iter(found) for thread, found in self.queues.items()}
        self.next = {thread: next(queue, None) for thread, queue in self.queues.items()}

    def at(self, thread: int, time: float) -> Any:
        """The event, or None."""
        stack = self.stacks.setdefault(thread, [])
        while (event := self.next.get(thread)) is not None and event.time_range.start <= time:
            stack.append(event)
            self.next[thread] = next(self.queues[thread], None)
        while stack and stack[-1].time_range.end < time:
            stack.pop()
        return stack[-1] if stack else None
