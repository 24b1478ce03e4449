"""An independent reader of snapshots, written from the format's description alone: it replays a file as the viewer does,
forwards for the timeline and backwards from the segments for the state, and says what a viewer would trip over."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from rushlight.memory.recordings.recording import CATEGORIES

PAIR = ("free_requested", "free_completed")
MOVES = ("alloc", *PAIR)
ACTIONS = (*MOVES, "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot", "annotate")
STATES = ("active_allocated", "active_pending_free", "inactive")
SEGMENT = ("device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream")
NUMBERS = ("addr", "size", "stream", "time_us")
FLAWS = 20  # that are listed


class Replayed(NamedTuple):
    """What the viewer finds in a trace.  In bytes."""

    start: int  # alive before the first event
    peak: int
    end: int  # alive after the last event
    categories: dict[str, int]  # born during the recording, all in all


def validate(snapshot: object, device: int = 0) -> Replayed:
    """Check a snapshot against the format and give what the viewer will show.

    Raises ValueError with every flaw that was found: wrong types, deaths that are not pairs, blocks outside segments, gaps
    in them, a state that the events do not lead to.
    """
    try:
        found, flaws = checked(snapshot, device)
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(
            f"no valid snapshot: its parts are not what they should be ({type(error).__name__}: {error})"
        ) from None
    if found is None:
        raise ValueError("no valid snapshot: " + "; ".join(flaws[:FLAWS]))
    return found


def checked(snapshot: Any, device: int) -> tuple[Replayed | None, list[str]]:
    """What the viewer finds, or the flaws."""
    flaws: list[str] = []
    plain(snapshot, flaws)
    if not flaws:
        shapes(snapshot, flaws)
    if flaws:
        return None, flaws
    trace = snapshot["device_traces"][device] if device < len(snapshot["device_traces"]) else []
    segments = [s for s in snapshot["segments"] if s["device"] == device]
    blocks = [b for s in segments for b in s["blocks"] if b["state"] != "inactive"]
    pairs(trace, flaws)
    backwards(trace, blocks, segments, flaws)
    found = forwards(trace, blocks, flaws)
    return (None if flaws else found), flaws


def plain(value: Any, flaws: list[str]) -> None:
    """Only plain values, and whole numbers that JavaScript can hold; shared lists are looked at once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is int and abs(value) >= 1 << 53:
            flaws.append(f"a number of {value.bit_length()} bits, not below 2**53")
        elif kind in (dict, list, tuple):
            if id(value) not in seen:
                seen.add(id(value))
                waiting.extend([*value.keys(), *value.values()] if kind is dict else value)
        elif value is not None and kind not in (str, int, float, bool):
            flaws.append(f"a value of type {kind.__module__}.{kind.__name__}")


def shapes(snapshot: object, flaws: list[str]) -> None:
    """Keys, and blocks that tile their segments."""
    if not isinstance(snapshot, dict) or not {"segments", "device_traces"} <= set(snapshot):
        flaws.append("no dictionary with 'segments' and 'device_traces'")
        return
    for segment in snapshot["segments"]:
        missing = [k for k in (*SEGMENT, "segment_type", "blocks") if k not in segment]
        if missing:
            flaws.append(f"a segment without {missing}")
        else:
            tiles(segment, flaws)
    categories = set()
    for trace in snapshot["device_traces"]:
        for number, event in enumerate(trace):
            shape(event, number, flaws)
            categories.add(short(event.get("category", "")))
        if any(categories - {"''"}) and "'unknown'" not in categories:
            flaws.append("no event has the category 'unknown'")
    for note in snapshot.get("external_annotations", ()):
        if note.get("stage") not in ("START", "END") or not {"name", "device", "time_us"} <= set(note):
            flaws.append("an annotation without its keys, or of no stage")


def short(value: object) -> str:
    """A value for a message, without looking into it."""
    return repr(value)[:60] if isinstance(value, (str, int, float)) else type(value).__name__


def tiles(segment: dict[str, Any], flaws: list[str]) -> None:
    """The blocks of a segment follow one another without gaps, and sum up to what it says."""
    at = segment["address"]
    numbers = [segment[key] for key in SEGMENT] + [b[key] for b in segment["blocks"] for key in ("address", "size")]
    if {*map(type, numbers)} - {int}:
        flaws.append("a segment or block whose figures are not whole numbers")
        return
    for block in segment["blocks"]:
        if block["address"] != at or block["state"] not in STATES or block["size"] <= 0:
            flaws.append(f"a block at {block['address']} where {at} was expected, or of {block['size']} bytes")
        at += block["size"]
    if at != segment["address"] + segment["total_size"]:
        flaws.append("blocks that do not fill their segment")
    active = sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
    if active != segment["allocated_size"]:
        flaws.append(f"allocated_size {segment['allocated_size']}, but blocks of {active} bytes")


def shape(event: dict[str, Any], number: int, flaws: list[str]) -> None:
    """What every event has."""
    if event.get("action") not in ACTIONS:
        flaws.append(f"event {number}: the action {short(event.get('action'))}")
    elif event["action"] in MOVES and not all(type(event.get(key)) is int for key in NUMBERS):
        flaws.append(f"event {number}: expected whole numbers {NUMBERS}, found the keys {sorted(event)[:9]}")
    if event.get("category", "unknown") not in CATEGORIES:
        flaws.append(f"event {number}: the category {short(event['category'])}")
    for frame in event.get("frames") or ():
        if set(frame) != {"filename", "line", "name"}:
            flaws.append(f"event {number}: a frame with the keys {sorted(frame)[:5]}")


def pairs(trace: list[dict[str, Any]], flaws: list[str]) -> None:
    """Deaths are a request and its completion, next to each other, of one address; time does not go back."""
    for number, event in enumerate(trace):
        if event["action"] in PAIR:
            other = number + (1 if event["action"] == PAIR[0] else -1)
            partner = trace[other] if 0 <= other < len(trace) else {}
            if (
                partner.get("action") not in PAIR
                or partner["action"] == event["action"]
                or partner["addr"] != event["addr"]
            ):
                flaws.append(f"event {number}: a {event['action']} alone")
        if number and event["time_us"] < trace[number - 1]["time_us"]:
            flaws.append(f"event {number}: time goes back")


def forwards(trace: list[dict[str, Any]], blocks: list[dict[str, Any]], flaws: list[str]) -> Replayed:
    """The timeline: what was alive from the start is what dies, or is there at the end, without a birth."""
    live: dict[int, int] = {}
    start = now = top = 0
    born: dict[str, int] = {}
    for number, event in enumerate(trace):
        where, size = event.get("addr", -1), event.get("size", 0)
        if event["action"] == "alloc":
            if where in live:
                flaws.append(f"event {number}: born at {where}, where a block is")
            live[where] = size
            now += size
            name = event.get("category", "unknown")
            born[name] = born.get(name, 0) + size
        elif event["action"] == "free_completed":
            known = live.pop(where, None)
            if known is None:
                start += size
            elif known != size:
                flaws.append(f"event {number}: {size} bytes freed of a block of {known}")
            now -= size
        top = max(top, now)
    there = {b["address"] for b in blocks}
    flaws.extend(
        f"the block at {a} is alive after the last event but in no segment" for a in sorted(set(live) - there)[:3]
    )
    start += sum(b["size"] for b in blocks if b["address"] not in live)
    return Replayed(start, start + top, start + now, born)


def backwards(
    trace: list[dict[str, Any]], blocks: list[dict[str, Any]], segments: list[dict[str, Any]], flaws: list[str]
) -> None:
    """The state view: from the segments back through the events, every block stays inside a segment, alone in its place."""
    starts = sorted((s["address"], s["address"] + s["total_size"]) for s in segments)
    live = {b["address"]: b["size"] for b in blocks}
    order = sorted(live)
    for number in range(len(trace) - 1, -1, -1):
        event = trace[number]
        if event["action"] == "alloc":
            if live.pop(event["addr"], None) != event["size"]:
                flaws.append(f"event {number}: back in time, no block of {event['size']} bytes is at {event['addr']}")
            else:
                order.pop(bisect_right(order, event["addr"]) - 1)
        elif event["action"] == "free_completed":
            back(event, number, live, order, starts, flaws)


def back(
    event: dict[str, Any],
    number: int,
    live: dict[int, int],
    order: list[int],
    starts: list[tuple[int, int]],
    flaws: list[str],
) -> None:
    """Back in time a freed block is there again: inside a segment, and over no other."""
    where, size = event["addr"], event["size"]
    segment = bisect_right(starts, (where, 1 << 62)) - 1
    if segment < 0 or where + size > starts[segment][1]:
        flaws.append(f"event {number}: a block at {where} outside every segment")
    place = bisect_right(order, where)
    if (place and order[place - 1] + live[order[place - 1]] > where) or (
        place < len(order) and order[place] < where + size
    ):
        flaws.append(f"event {number}: a block at {where} over another")
    order.insert(place, where)
    live[where] = size
