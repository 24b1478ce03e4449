"""Snapshots that PyTorch wrote, of any age, as recordings.

What they leave out is worked out: a block that is freed without a birth, or is alive at the end without one, was alive from
the start.  Segments' own events are passed over: they tell of the allocator's reserve, not of blocks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from rushlight.memory.counting.units import size
from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, FREE, MARK, PHASE, PHASES, Frame, Recording

LARGEST = 1 << 53  # what a size must be below
ADDRESSES = 1 << 63
IGNORED = ("segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "free_requested")
OLDER_FREE = ("free", "free_completed")
GAPS = ("inactive",)


class ForeignError(ValueError):
    """The value is no snapshot; the message says what is wrong where."""


def read(snapshot: object, device: int | str | None = None) -> Recording:
    """The recording of one device, by default of the one with the most events."""
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot}
    if not isinstance(snapshot, dict) or not ("segments" in snapshot or "device_traces" in snapshot):
        found = f"keys {_shown(list(snapshot)[:5])}" if isinstance(snapshot, dict) else type(snapshot).__name__
        raise ForeignError(
            f"no memory snapshot: expected a dictionary with 'segments' and 'device_traces', found {found}"
        )
    segments, traces = listed(snapshot, "segments"), listed(snapshot, "device_traces")
    if device == "host":
        return Reader("host").run(_flat(listed(snapshot, "host_traces")), listed(snapshot, "host_segments"), [])
    number = choose(segments, traces, device)
    own = [s for s in segments if whole(of(s, "segment"), "device", 0) == number]
    trace = traces[number] if number < len(traces) else []
    reader = Reader(f"cuda:{number}")
    told = [
        a for a in listed(snapshot, "external_annotations") if whole(of(a, "annotation"), "device", number) == number
    ]
    return reader.run(as_list(trace, "a trace"), own, told)


def choose(segments: list[Any], traces: list[Any], device: int | str | None) -> int:
    """The number of the device to read."""
    numbers = {whole(of(s, "segment"), "device", 0) for s in segments} | set(range(len(traces)))
    if device is None:
        lengths = {n: len(as_list(traces[n], "a trace")) if n < len(traces) else 0 for n in numbers}
        blocks = Counter(whole(s, "device", 0) for s in segments)
        return max(sorted(numbers), key=lambda n: (lengths[n], blocks[n]), default=0)
    number = int(str(device).rpartition(":")[2]) if str(device).rpartition(":")[2].isdigit() else -1
    if number not in numbers:
        raise ForeignError(f"device {device!r} is not in it; it has {sorted(numbers) or 'none'}, or 'host'")
    return number


class Reader:
    """Puts a recording together, event after event."""

    def __init__(self, device: str):
        self.device = device
        self.rows: list[tuple[int, int, int, int]] = []  # time, action, block, value
        self.size: list[int] = []
        self.address: list[int] = []
        self.stack: list[int] = []
        self.category: list[int] = []
        self.initial: list[int] = []
        self.marks: list[str] = []
        self.live: dict[int, int] = {}  # block by address
        self.stacks: dict[tuple[Frame, ...], int] = {}
        self.known: dict[int, int] = {}  # places of stacks by the identity of their lists, which are shared
        self.time = 0

    def run(self, trace: list[Any], segments: list[Any], annotations: list[Any]) -> Recording:
        """The recording."""
        for number, event in enumerate(trace):
            self.event(of(event, f"event {number:,}"), number)
        for segment in distinct(segments):
            self.segment(of(segment, "segment"))
        return self.finish(annotations)

    # Events -----------------------------------------------------------------------------------------------

    def event(self, event: dict[str, Any], number: int) -> None:
        """One event of a trace."""
        action = event.get("action")
        self.time = whole(event, "time_us", number)
        if action == "alloc":
            self.alloc(event)
        elif action in OLDER_FREE:
            self.free(event)
        elif action in ("oom", "user_defined", "annotate"):
            self.mark(action, event)
        elif action not in IGNORED and not isinstance(action, str):
            raise ForeignError(f"event {number:,} has no action: found {_shown(action)}")

    def alloc(self, event: dict[str, Any]) -> None:
        """A birth.  Where a block already is, its death was lost."""
        address = whole(event, "addr", high=ADDRESSES)
        if address in self.live:
            self.rows.append((self.time, FREE, self.live.pop(address), 0))
        block = self.block(address, whole(event, "size"), event.get("frames"), category_of(event))
        self.live[address] = block
        self.rows.append((self.time, ALLOC, block, self.category[block]))

    def free(self, event: dict[str, Any]) -> None:
        """A death; of a block that no birth was told of too."""
        address = whole(event, "addr", high=ADDRESSES)
        block = self.live.pop(address, None)
        if block is None:
            block = self.block(address, whole(event, "size"), event.get("frames"), category_of(event))
            self.initial.append(block)
        self.rows.append((self.time, FREE, block, 0))

    def mark(self, action: str, event: dict[str, Any]) -> None:
        """A moment with a text."""
        text = text_of(event, "user_metadata", text_of(event, "name", ""))[:200]
        if action == "oom":
            asked, free = whole(event, "size", 0), whole(event, "device_free", 0)
            text = f"out of memory: asked for {size(asked)} with {size(free)} free on the device"
        self.marks.append(text or action)
        self.rows.append((self.time, MARK, -1, len(self.marks) - 1))

    # Blocks -----------------------------------------------------------------------------------------------

    def block(self, address: int, size: int, frames: object, category: int = 0) -> int:
        """A new block; its number."""
        self.address.append(address)
        self.size.append(size)
        self.stack.append(self.place(frames))
        self.category.append(category)
        return len(self.size) - 1

    def place(self, frames: object) -> int:
        """The number of a stack, -1 for none."""
        if not frames:
            return -1
        place = self.known.get(id(frames))
        if place is None:
            found = lines([frame(of(f, "a frame")) for f in as_list(frames, "frames")[:1000]])
            place = self.stacks.setdefault(found, len(self.stacks)) if found else -1
            self.known[id(frames)] = place
        return place

    def segment(self, segment: dict[str, Any]) -> None:
        """Blocks alive at the end, without a birth: they were there from the start."""
        at = whole(segment, "address", 0, ADDRESSES)
        blocks = listed(segment, "blocks")
        for item in blocks if id(blocks) not in self.known else ():
            block = of(item, "block")
            address = whole(block, "address", at, ADDRESSES)
            at = address + whole(block, "size")
            if block.get("state") not in GAPS and block.get("size") and address not in self.live:
                self.initial.append(self.block(address, whole(block, "size"), frames_of(block)))
                self.live[address] = self.initial[-1]
        self.known[id(blocks)] = -1

    # The end ----------------------------------------------------------------------------------------------

    def finish(self, annotations: list[Any]) -> Recording:
        """Columns, with the blocks that were there from the start first."""
        rows = np.array([*self.rows, *self.annotated(annotations)], np.int64).reshape(-1, 4)
        rows = rows[np.argsort(rows[:, 0], kind="stable")] if annotations else rows
        count = len(self.size)
        first = np.zeros(count, bool)
        first[self.initial] = True
        order = np.argsort(~first, kind="stable")
        place = np.empty(count + 1, np.int64)
        place[order], place[count] = np.arange(count), -1
        return Recording(
            time=rows[:, 0].copy(),
            action=rows[:, 1].astype(np.uint8),
            block=place[rows[:, 2]],
            value=rows[:, 3].copy(),
            address=np.array(self.address, np.int64)[order] if count else np.zeros(0, np.int64),
            size=np.array(self.size, np.int64)[order] if count else np.zeros(0, np.int64),
            stack=np.array(self.stack, np.int32)[order] if count else np.zeros(0, np.int32),
            operator=np.full(count, -1, np.int32),
            module=np.full(count, -1, np.int32),
            initial=len(self.initial),
            initial_category=np.array(self.category, np.uint8)[order][: len(self.initial)],
            stacks=list(self.stacks),
            marks=self.marks,
            device=self.device,
        )

    def annotated(self, annotations: list[Any]) -> list[tuple[int, int, int, int]]:
        """Phases by the names of annotations; others are marks."""
        found = []
        for item in annotations:
            name, begins = text_of(item, "name", ""), item.get("stage") == "START"
            phase = phase_of(name)
            if phase:
                found.append((whole(item, "time_us", 0), PHASE, -1, phase if begins else 0))
            elif begins:
                self.marks.append(name[:200])
                found.append((whole(item, "time_us", 0), MARK, -1, len(self.marks) - 1))
        return found


def phase_of(name: str) -> int:
    """The phase that an annotation stands for, 0 for none."""
    lower = name.lower()
    if lower.startswith("optimizer") or ".step" in lower:
        return PHASES.index("optimizer")
    return next((PHASES.index(phase) for phase in ("backward", "forward") if lower.strip("# ").startswith(phase)), 0)


def category_of(event: dict[str, Any]) -> int:
    """The number of an event's category, 0 where it has none that we know."""
    name = event.get("category")
    name = name.lower() if isinstance(name, str) else "unknown"
    return CATEGORIES.index(name) if name in CATEGORIES else 0


def frames_of(block: dict[str, Any]) -> Any:
    """A block's frames; old versions kept them in its history."""
    if block.get("frames"):
        return block["frames"]
    history = block.get("history")
    if isinstance(history, list) and history and isinstance(history[0], dict):
        return history[0].get("frames")
    return None


def frame(value: dict[str, Any]) -> Frame:
    """One line of a stack."""
    return Frame(text_of(value, "filename"), whole(value, "line", 0), text_of(value, "name"))


def lines(stack: list[Frame]) -> tuple[Frame, ...]:
    """The lines of Python outside PyTorch, innermost first; those inside where there are no others.  None of native code,
    which stands first in a stack recorded with `stacks="all"`.
    """
    python = tuple(f for f in stack if f.filename != "??" and not f.filename.endswith(NATIVE))
    return tuple(f for f in python if not any(part in f.filename for part in OF_PYTORCH)) or python


NATIVE = (".cpp", ".cc", ".c", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".so")
OF_PYTORCH = ("site-packages/torch/", "dist-packages/torch/")


# Checks: everything of a foreign file is what it should be, or the error says what and where ---------------


def of(value: Any, what: str) -> dict[str, Any]:
    """The value, which must be a dictionary."""
    if not isinstance(value, dict):
        raise ForeignError(f"{what}: expected a dictionary, found {_shown(value)}")
    return value


def as_list(value: object, what: str) -> list[Any]:
    """The value, which must be a list."""
    if not isinstance(value, (list, tuple)):
        raise ForeignError(f"{what}: expected a list, found {_shown(value)}")
    return list(value) if isinstance(value, tuple) else value


def listed(value: dict[str, Any], key: str) -> list[Any]:
    """A list under a key, empty where there is none."""
    return as_list(value.get(key) or [], key)


def text_of(value: dict[str, Any], key: str, default: str = "??") -> str:
    """The text under a key; the default for anything else, which is not looked into."""
    found = value.get(key)
    return found if isinstance(found, str) and found else default


def whole(value: dict[str, Any], key: str, default: int | None = None, high: int = LARGEST) -> int:
    """A whole number under a key, not negative and below `high`."""
    found = value.get(key, default)
    if type(found) is not int or not 0 <= found < high:
        if type(found) is int and found < 0 and default is not None:
            return default
        raise ForeignError(
            f"{key!r}: expected a whole number from 0 below 2**{high.bit_length() - 1}, found {_shown(found)}"
        )
    return found


def distinct(values: list[Any]) -> list[Any]:
    """Each object once: one list that stands in a million places is looked at once."""
    return list({id(value): value for value in values}.values())


def _flat(traces: list[Any]) -> list[Any]:
    return [event for trace in distinct(traces) for event in (trace if isinstance(trace, list) else [trace])]


def _shown(value: object) -> str:
    """A value for a message: short, and without going deep."""
    if isinstance(value, (str, bool, float)) or value is None:
        return repr(value)[:60]
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 64 else f"a number of {value.bit_length()} bits"
    if isinstance(value, list) and all(isinstance(x, str) for x in value):
        return ", ".join(repr(x)[:30] for x in value) or "none"
    return f"{type(value).__name__} with {len(value)} items" if hasattr(value, "__len__") else type(value).__name__
