"""A list of events as a table."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.profiler.intervals import format_time

NARROW, GAP = 12, 2
FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def format_memory(nbytes: float) -> str:
    """Bytes as text.

    >>> format_memory(8), format_memory(-3600), format_memory(1 << 21)
    ('8 B', '-3.52 KB', '2.00 MB')
    """
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{int(nbytes)} B"


def format_share(part: float, whole: float) -> str:
    """A part as a percentage of the whole."""
    return "NaN" if not whole else f"{part * 100.0 / whole:.2f}%"


def shortened(text: str, width: int | None) -> str:
    """Text that is not longer than `width`, if there is one."""
    return text if width is None or len(text) <= width else text[: max(0, width - 3)] + "..."


class Columns:
    """The cells of a table by column: each column is as wide as its heading or its kind, and set to the right."""

    def __init__(self) -> None:
        self.headings: list[str] = []
        self.widths: list[int] = []
        self.cells: list[list[str]] = []

    def add(self, heading: str, cells: list[str], width: int = NARROW) -> None:
        """One column."""
        self.headings.append(heading)
        self.widths.append(max([width, len(heading)]))
        self.cells.append(cells)

    def line(self, cells: Any) -> str:
        """One row as text."""
        gap = " " * GAP
        return "".join(f"{cell:>{width}}{gap}" for cell, width in zip(cells, self.widths, strict=True))

    def lines(self) -> list[str]:
        """The table as lines of text, between rules."""
        rule = self.line("-" * width for width in self.widths)
        rows = [self.line(row) for row in zip(*self.cells, strict=True)]
        return [rule, self.line(self.headings), rule, *rows, rule]


def ordered(events: Any, sort_by: str | None) -> list[Any]:
    """The events by one of their attributes, the largest first."""
    if sort_by is None:
        return list(events)
    for event in events:
        if not hasattr(event, sort_by):
            known = sorted(n for n in dir(event) if n.startswith(("cpu_", "self_", "cuda_", "device_", "count"))
                           and not n.endswith(("_str", "_children", "_parent")))  # fmt: skip
            raise AttributeError(f"table(): events have no attribute {sort_by!r} to sort by; they have {known}")
    return sorted(events, key=lambda event: getattr(event, sort_by), reverse=True)


def time_columns(columns: Columns, rows: list[Any], total: float, unit: str | None) -> None:
    """Self and total time, each as a share and as a figure, and the average."""
    columns.add("Self CPU %", [format_share(e.self_cpu_time_total, total) for e in rows])
    columns.add("Self CPU", [format_time(e.self_cpu_time_total, unit) for e in rows])
    columns.add("CPU total %", [format_share(e.cpu_time_total, total) for e in rows])
    columns.add("CPU total", [format_time(e.cpu_time_total, unit) for e in rows])
    columns.add("CPU time avg", [format_time(e.cpu_time, unit) for e in rows])


def device_columns(columns: Columns, rows: list[Any], total: float, unit: str | None, device: str) -> None:
    """The same of a device."""
    name = device.upper()
    columns.add(f"Self {name}", [format_time(e.self_device_time_total, unit) for e in rows])
    columns.add(f"Self {name} %", [format_share(e.self_device_time_total, total) for e in rows])
    columns.add(f"{name} total", [format_time(e.device_time_total, unit) for e in rows])
    columns.add(f"{name} time avg", [format_time(e.device_time, unit) for e in rows])


def flops_column(columns: Columns, rows: list[Any]) -> None:
    """Operations, in the unit that suits the largest figure."""
    largest, unit = max(((e.flops or 0) for e in rows), default=0), 0
    while largest >= 1000 and unit < len(FLOP_UNITS) - 1:
        largest, unit = largest / 1000, unit + 1
    columns.add(f"Total {FLOP_UNITS[unit]}", [f"{e.flops / 1000**unit:.3f}" if e.flops else "--" for e in rows], NARROW)


def text_columns(columns: Columns, rows: list[Any], shapes: int, source: int) -> None:
    """Shapes and the innermost line of the stack, where any event has them."""
    if any(e.input_shapes for e in rows):
        cells = [shortened(str(e.input_shapes), shapes) for e in rows]
        columns.add("Input Shapes", cells, max(map(len, cells)) + 4)
    if any(e.stack for e in rows):
        cells = [shortened(e.stack[0], source) if e.stack else "" for e in rows]
        columns.add("Source Location", cells, max(map(len, cells)))


def render(events: Any, sort_by: str | None, limit: int, widths: tuple[int, int, int], header: str | None,
           top_only: bool, unit: str | None) -> str:  # fmt: skip
    """The table: see EventList.table."""
    if not events:
        return ""
    found = ordered(events, sort_by)
    rows = [e for e in found if not (top_only and e.cpu_parent is not None)]
    rows = rows if limit < 0 else rows[:limit]
    total = sum(e.self_cpu_time_total for e in events)
    device = events._use_device
    names = [shortened(str(e.key), widths[0]) for e in rows]
    columns = Columns()
    columns.add("Name", names, min(widths[0], max(map(len, names), default=0) + 4))
    time_columns(columns, rows, total, unit)
    busy = sum(e.self_device_time_total for e in events)
    if device is not None:
        device_columns(columns, rows, busy, unit, device)
    if events._profile_memory:
        columns.add("CPU Mem", [format_memory(e.cpu_memory_usage) for e in rows])
        columns.add("Self CPU Mem", [format_memory(e.self_cpu_memory_usage) for e in rows])
    columns.add("# of Calls", [str(e.count) for e in rows])
    text_columns(columns, rows, widths[1], widths[2])
    if events._with_flops:
        flops_column(columns, rows)
    lines = columns.lines()
    if top_only:
        lines.insert(0, "This report only display top-level ops statistics")
    if header is not None:
        lines[:0] = ["=" * len(lines[-1]), header]
    lines.append(f"Self CPU time total: {format_time(total, unit)}")
    if device is not None:
        lines.append(f"Self {device.upper()} time total: {format_time(busy, unit)}")
    return "\n".join(lines) + "\n"
