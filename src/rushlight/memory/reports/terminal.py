"""A recording as text: a chart of bytes over time, tables of the peak, and advice.  In colour on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import IO

import numpy as np

from rushlight.kernels import allocator
from rushlight.memory.advice import advisor
from rushlight.memory.counting.units import duration, share, size
from rushlight.memory.recordings.recording import CATEGORIES, Recording
from rushlight.memory.recordings.replay import Breakdown, breakdown, near, phases, settled, timeline
from rushlight.memory.reports.reports import (
    COLORS,
    EMPTY,
    Source,
    difference,
    is_something,
    refusals,
    shown,
    subtitle,
    when,
)

__all__ = ["text_report"]

ROWS = 12  # of the chart
EIGHTHS = " ▁▂▃▄▅▆▇█"
IN_ASCII = {
    **{ord(sign): ascii for sign, ascii in zip(EIGHTHS, " __..==##", strict=True)},
    **dict.fromkeys(map(ord, "▏▎▍▌"), "-"), **dict.fromkeys(map(ord, "▋▊▉█"), "#"),
    ord("µ"): "u", ord("·"): "|", ord("…"): "~", ord("−"): "-",
}  # fmt: skip
STACKED = list(COLORS)  # from the floor up


@allocator.aside()
def text_report(
    recording: Source | Sequence[Source],
    width: int | None = None,
    color: bool | None = None,
    compare: Source | Sequence[Source] | None = None,
    title: str | None = None,
    other_title: str | Sequence[str] | None = None,
    file: IO[str] | None = None,
) -> str:
    """A report as text for a terminal, a log or a pipe.

    Args:
        recording: a `Recording`, or the path of a snapshot; or a list of these, whose peaks stand side by side.
        width: columns; by default the terminal's, at most 120.
        color: whether to colour; by default when `file` is a terminal that can, and NO_COLOR is not set.
        compare: another recording, whose figures stand beside the first's, or a list of others.
        title, other_title: as of `report`.
        file: where the text will go, to know whether it is a terminal; standard output by default.

    Raises as `load` does.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> memory.record_history(); y = torch.ones(100_000).exp(); memory.record_history(None)
    >>> "peak" in memory.text_report(memory.recording(), width=80)
    True
    """
    every = shown(recording, compare, title, other_title)
    one, name = every[0]
    wide = width or min(shutil.get_terminal_size((100, 24)).columns, 120)
    stream = file or sys.stdout
    paint = Paint(colourful(stream) if color is None else color)
    advised, told = suggestions(one, wide, paint), subtitle(one)
    if not is_something(*(some for some, _ in every)):
        return f"{paint.bold(f'{name}: nothing')}\n{told}\n\n" + "\n".join(textwrap.wrap(EMPTY, max(wide, 40))) + "\n"
    one = settled(one)
    at_peak = breakdown(one)
    peaks = [(at_peak, name), *((breakdown(settled(other)), called) for other, called in every[1:])]
    parts = [
        [
            paint.bold(f"{name}: peak {size(at_peak.total)} {when(one, at_peak.moment)}"),
            told,
            ends(one),
            *refusals(one),
        ],
        chart(one, max(wide, 40), paint),
        categories(peaks, wide, paint),
        places("module", at_peak.modules, at_peak.total, wide),
        places("line", at_peak.lines, at_peak.total, wide),
        advised,
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def colourful(stream: IO[str] | None) -> bool:
    """Whether to colour what is written to a stream, where nobody said; None: one that was closed."""
    return (
        stream is not None
        and stream.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in ("dumb", "unknown")
    )


def shown_in(text: str, encoding: str) -> str:
    """The text for a terminal of an encoding: with signs of ASCII for those that it has not."""
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        return text.translate(IN_ASCII).encode("ascii", "backslashreplace").decode()


class Paint:
    """Colours text, or leaves it plain."""

    def __init__(self, on: bool):
        self.on = on

    def bold(self, text: str) -> str:
        """Bold."""
        return f"\x1b[1m{text}\x1b[0m" if self.on else text

    def category(self, category: str, text: str, ground: str = "") -> str:
        """In the colour of a category, on that of another."""
        if not self.on or not text.strip():
            return text
        back = f";48;2;{rgb(ground)}" if ground else ""
        return f"\x1b[38;2;{rgb(category)}{back}m{text}\x1b[0m"


def rgb(category: str) -> str:
    """The colour of a category for a terminal."""
    value = COLORS[category].lstrip("#")
    return ";".join(str(int(value[i : i + 2], 16)) for i in (0, 2, 4))


def ends(recording: Recording) -> str:
    """What was alive at both ends."""
    start = recording.initial_bytes()
    live = recording.live()
    end = int(live[-1]) if len(live) else start
    return f"at the beginning {size(start)}, at the end {size(end)}: {difference(end - start)}"


def sampled(recording: Recording, columns: int) -> np.ndarray:
    """Bytes by category for so many columns of equal time, each at its moment of most bytes.  (columns, C)"""
    bytes_of = timeline(recording)
    total = bytes_of.sum(0)
    if not len(recording.time):
        return np.repeat(bytes_of[:, :1].T, columns, 0)
    since = recording.time - recording.time[0]
    edges = np.searchsorted(since, np.arange(1, columns + 1) * (int(since[-1]) + 1) / columns)
    found = np.zeros((columns, len(bytes_of)), np.int64)
    start = 0
    for i, stop in enumerate(edges.tolist()):
        best = start + int(total[start : stop + 1].argmax())
        found[i] = bytes_of[:, best]
        start = stop
    return found


def chart(recording: Recording, width: int, paint: Paint) -> list[str]:
    """The chart's lines."""
    columns = width - 10
    found = sampled(recording, columns)
    top = max(int(found.sum(1).max(initial=0)), 1)
    order = [CATEGORIES.index(name) for name in STACKED]
    heights = np.cumsum(found[:, order], axis=1) / top * ROWS * 8
    lines = []
    for row in range(ROWS - 1, -1, -1):
        label = size(top * (row + 1) / ROWS) if row in (ROWS - 1, ROWS // 2 - 1) else ""
        lines.append(f"{label:>9} " + "".join(cell(heights[i], row, paint) for i in range(columns)))
    lines.append(f"{'0 B':>9} " + strip(recording, columns))
    if len(recording.time):
        last = duration(int(recording.time[-1] - recording.time[0]))
        lines.append(" " * 10 + "0" + f"{last:>{columns - 1}}")
    return lines


def cell(heights: np.ndarray, row: int, paint: Paint) -> str:
    """One character of the chart: of the category at its foot, up to where that or the whole ends."""
    low, high = row * 8, row * 8 + 8
    if heights[-1] <= low:
        return " "
    place = int(np.searchsorted(heights, low, side="right"))
    name = STACKED[min(place, len(STACKED) - 1)]
    if not paint.on:
        return EIGHTHS[int(min(max(round(float(heights[-1]) - low), 1), 8))]
    reach = int(min(max(round(float(heights[place]) - low), 1), 8))
    after = int(np.searchsorted(heights, high - 1e-9))
    ground = STACKED[min(after, len(STACKED) - 1)] if reach < 8 and heights[-1] >= high else ""
    return paint.category(name, EIGHTHS[reach], ground)


def strip(recording: Recording, columns: int) -> str:
    """A line with the phases: f, b and o."""
    marks = [" "] * columns
    if not len(recording.time):
        return ""
    zero, length = int(recording.time[0]), int(recording.time[-1] - recording.time[0]) + 1
    for start, stop, name in phases(recording):
        ends = [int(recording.time[min(at, len(recording.time) - 1)]) - zero for at in (start, stop)]
        for i in range(ends[0] * columns // length, ends[1] * columns // length + 1):
            marks[min(i, columns - 1)] = name[0]
    return "".join(marks).rstrip()


def bar(part: float, whole: float, width: int) -> str:
    """A bar of eighths."""
    eighths = round(8 * width * part / whole) if whole else 0
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8].strip())


def categories(peaks: Sequence[tuple[Breakdown, str]], width: int, paint: Paint) -> list[str]:
    """The table by category; with other recordings' beside it."""
    if len(peaks) > 1:
        return compared(peaks)
    at_peak, _ = peaks[0]
    lines = [paint.bold("At the peak, by category")]
    for name, n in at_peak.categories.items():
        drawn = paint.category(name, bar(n, at_peak.total, max(width - 42, 10)))
        lines.append(f"{name.replace('_', ' '):<18} {size(n):>9} {share(n, at_peak.total):>6}  {drawn}".rstrip())
    return lines


def compared(peaks: Sequence[tuple[Breakdown, str]]) -> list[str]:
    """Several peaks by category; of two with their difference."""
    two = len(peaks) == 2
    titles = "".join(f" {name[:14]:>14}" for _, name in peaks)
    lines = [f"{'At the peaks':<18}{titles}{'  difference' if two else ''}"]
    rows = [("all", [peak.total for peak, _ in peaks])]
    rows += [(c, [peak.categories.get(c, 0) for peak, _ in peaks]) for c in STACKED]
    for name, counts in rows:
        if any(counts):
            more = counts[-1] - counts[0]
            change = f" {'+' * (more > 0) + size(more):>11}" if two else ""
            lines.append(f"{name.replace('_', ' '):<18}{''.join(f' {size(n):>14}' for n in counts)}{change}")
    return lines


def places(what: str, found: dict[str, int], total: int, width: int, most: int = 6) -> list[str]:
    """The table by module or line."""
    rows = [(name, n) for name, n in found.items() if name][:most]
    if not rows:
        return []
    room = max(width - 20, 20)
    lines = [f"At the peak, by {what}"]
    for name, n in [(near(name), n) for name, n in rows]:
        short = name if len(name) <= room else "…" + name[-(room - 1) :]
        lines.append(f"{size(n):>9} {share(n, total):>6}  {short}")
    return lines


def suggestions(recording: Recording, width: int, paint: Paint) -> list[str]:
    """The advice."""
    found = advisor.advise(recording)
    lines = [paint.bold("What would lower the peak")] if found else []
    for advice in found:
        lines.append(f"{advice.gain:>10}  {paint.bold(advice.title)}")
        lines += textwrap.wrap(advice.text, max(width, 40), initial_indent=" " * 12, subsequent_indent=" " * 12)
    return lines
