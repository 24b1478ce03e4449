"""A recording as one HTML page that needs no network: timeline, breakdown, comparison and advice."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from rushlight.kernels import allocator
from rushlight.memory.advice import advisor
from rushlight.memory.counting.units import duration, share, size
from rushlight.memory.recordings.recording import CATEGORIES, MARK, Recording
from rushlight.memory.recordings.replay import Breakdown, breakdown, phases, settled
from rushlight.memory.reports import page
from rushlight.memory.snapshots import snapshots
from rushlight.version import __version__

__all__ = ["report"]

SCRIPTS = ("format.js", "data.js", "chart.js", "tables.js", "icicle.js", "main.js")
COLORS = {
    "parameter": "#0072b2", "optimizer_state": "#009e73", "input": "#56b4e9", "gradient": "#d55e00", "activation": "#e69f00",
    "autograd_detail": "#b8a90f", "temporary": "#cc79a7", "unknown": "#8c959e",
}  # fmt: skip
EMPTY = (
    "Nothing was allocated while this was recorded: no tensor and no array of NumPy's. A script that trains may have ended before "
    "it came to that; options that it needs stand behind its name."
)
BOUND = (
    "To bound it and leave the script as it is: <code>rushlight run --memory-budget min SCRIPT</code> finds the fewest bytes that "
    "it can be trained in, <code>--memory-budget 2GiB</code> keeps it below so many; results are the same to the bit."
)
Source = Recording | str | os.PathLike[str]


def report(
    recording: Source | Sequence[Source],
    out: str | os.PathLike[str] = "report.html",
    compare: Source | Sequence[Source] | None = None,
    title: str | None = None,
    other_title: str | Sequence[str] | None = None,
) -> str:
    """Write a report on a recording, or on several side by side, and return its path.

    The page shows bytes over time by category with the phases of training, what was alive at the peak or at any moment
    that is clicked on, by category, module, line, operator and block, and advice: what each technique would save in this
    run.  It is one file, opens in a browser and asks the network for nothing.

    Args:
        recording: a `Recording`, or the path of a snapshot: ours or PyTorch's; or a list of these, such as those of all
            processes of a group.
        out: the page.
        compare: another recording, shown beside the first, or a list of others.
        title, other_title: names of the two, or of all others; by default those of the files.  Of a list, `title` stands
            before "rank 0" and so on, as recordings that come from no file are called.

    Raises FileNotFoundError, SnapshotError for a file that is no snapshot, and ValueError for an empty list.

    >>> import os, tempfile
    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> memory.record_history(); y = torch.ones(1000).exp(); memory.record_history(None)
    >>> path = memory.report(memory.recording(), os.path.join(tempfile.mkdtemp(), "report.html"))
    >>> os.path.getsize(path) > 10_000
    True
    """
    text = render(shown(recording, compare, title, other_title))
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    return str(out)


Shown = list[tuple[Recording, str]]


def shown(
    recording: Source | Sequence[Source],
    compare: Source | Sequence[Source] | None,
    title: str | None,
    other_title: str | Sequence[str] | None,
) -> Shown:
    """What a report is on: recordings and their names, no two alike.  Raises ValueError for an empty list."""
    if isinstance(recording, (Recording, str, os.PathLike)):
        found = [named(recording, title)]
    else:
        lead = f"{title}, " if title else ""
        found = [named(source, None, f"{lead}rank {k}") for k, source in enumerate(recording)]
    if not found:
        raise ValueError("report: expected recordings, got an empty list")
    others = (
        [] if compare is None else [compare] if isinstance(compare, (Recording, str, os.PathLike)) else list(compare)
    )
    titles = [other_title] * len(others) if other_title is None or isinstance(other_title, str) else other_title
    found += [named(other, called, "the other") for other, called in zip(others, titles, strict=True)]
    names = [name for _, name in found]
    return [(r, f"{name} ({chr(65 + k % 26)})" if names.count(name) > 1 else name) for k, (r, name) in enumerate(found)]


def named(source: Source, title: str | None, default: str = "this run") -> tuple[Recording, str]:
    """A recording and its name."""
    if isinstance(source, Recording):
        return snapshots.as_arrays(source), title or default
    return snapshots.load(source), title or os.path.basename(os.fspath(source))


@allocator.aside()
def render(recordings: Shown) -> str:
    """The page as text."""
    first_one, name = recordings[0]
    found, told = advisor.advise(first_one), subtitle(first_one)
    every = [(settled(one), called) for one, called in recordings]
    recording = every[0][0]
    at_peak = breakdown(recording)
    something = is_something(*(one for one, _ in every))
    values = {
        "title": html.escape(f"{name}: peak {size(at_peak.total)}"),
        "heading": html.escape(name),
        "subtitle": html.escape(told),
        "described": html.escape(described(recording, at_peak)),
        "events": f"{len(recording.time):,}",
        "tiles": tiles(recording, at_peak),
        "first": first(found) if something else f'<p class="first" id="empty">{html.escape(EMPTY)}</p>',
        "kind": "" if something else "empty",
        "advice": advice(found),
        "comparison": comparison(every),
        "version": html.escape(__version__),
        "data": "".join(embedded(one, called, str(k)) for k, (one, called) in enumerate(every)),
        "style": read("report.css"),
        "script": "\n".join(read(script) for script in SCRIPTS),
    }
    return Template(read("report.html")).substitute(values)


def is_something(*recordings: Recording | None) -> bool:
    """Whether there is a block in one of these."""
    return any(recording is not None and len(recording.size) for recording in recordings)


def read(name: str) -> str:
    """A file of the page."""
    return resources.files("rushlight.memory.reports").joinpath("html", name).read_text(encoding="utf-8")


def embedded(recording: Recording, name: str, key: str) -> str:
    """The data of a recording as script elements."""
    meta, data = page.encode(recording, name)
    return (
        f'<script type="application/json" id="meta-{key}">{meta}</script>\n'
        f'<script type="text/plain" data-recording="meta-{key}">{data}</script>\n'
    )


def subtitle(recording: Recording) -> str:
    """One line on what was recorded."""
    blocks = len(recording.size)
    events = len(recording.time)
    parts = [
        f"{events:,} event{'s' * (events != 1)}",
        f"{blocks:,} block{'s' * (blocks != 1)}",
        f"on {recording.device}",
    ]
    if len(recording.time):
        parts.insert(0, duration(int(recording.time[-1] - recording.time[0])))
    if recording.dropped:
        parts.append(f"the first {recording.dropped:,} events were dropped for lack of room")
    return " · ".join(parts)


def described(recording: Recording, at_peak: Breakdown) -> str:
    """The chart in words."""
    largest = ", ".join(f"{name.replace('_', ' ')} {size(n)}" for name, n in list(at_peak.categories.items())[:4])
    return f"Bytes alive over time by category. The peak is {size(at_peak.total)}: {largest}."


def tiles(recording: Recording, at_peak: Breakdown) -> str:
    """The figures at the top."""
    live = recording.live()
    end = int(live[-1]) if len(live) else recording.initial_bytes()
    known = (
        end,
        end - recording.initial_bytes(),
        recording.initial_bytes() - end,
        at_peak.total,
        *at_peak.categories.values(),
    )
    largest, most = next(iter(at_peak.categories.items()), ("nothing", 0))
    rows = [
        ("peak", counted(at_peak.total), when(recording, at_peak.moment)),
        (
            "most of it",
            html.escape(largest.replace("_", " ")),
            f"{size(most)}, {share(most, at_peak.total)} of the peak",
        ),
        (
            "at the beginning",
            counted(recording.initial_bytes()),
            f"{recording.initial:,} block{'s' * (recording.initial != 1)}",
        ),
        ("at the end", counted(end), difference(end - recording.initial_bytes())),
    ]
    return "\n".join(
        f'<div class="tile"><span>{a}</span><b>{b}</b><i>{in_units(c, *known)}</i></div>' for a, b, c in rows
    )


def counted(n: int) -> str:
    """Bytes that the page's button for units can write anew."""
    return f'<span data-bytes="{n}" style="font:inherit;color:inherit">{size(n)}</span>'


def difference(n: int) -> str:
    """How much more or less than at the beginning."""
    return "as at the beginning" if n == 0 else f"{size(abs(n))} {'more' if n > 0 else 'less'} than at the beginning"


def when(recording: Recording, moment: int) -> str:
    """A moment in words."""
    if moment < 0:
        return "at the beginning"
    phase = next((name for start, stop, name in phases(recording) if start <= moment < stop), "")
    return f"at {duration(int(recording.time[moment] - recording.time[0]))}" + (f", in {phase}" if phase else "")


def refusals(recording: Recording) -> list[str]:
    """What was asked for and not given, a line for each of the last."""
    at = [
        e for e in np.flatnonzero(recording.action == MARK) if recording.marks[recording.value[e]].startswith(REFUSED)
    ]
    told = [f"{recording.marks[recording.value[e]]}, {when(recording, int(e))}" for e in at[-SHOWN:]]
    return [f"{len(at) - SHOWN:,} times out of memory before"] * (len(at) > SHOWN) + told


REFUSED, SHOWN = "out of memory", 3


# Advice -------------------------------------------------------------------------------------------------


def first(found: list[Any]) -> str:
    """A line that leads to the advice, with the first few of it: the rest lies below the timeline."""
    parts = [
        f"<b>{in_units(item.gain.replace('-', '−'), item.saves, item.each_step)}</b> {html.escape(item.title)}"
        for item in found[:3]
    ]
    return (
        f'<p class="first"><a href="#advice">What would lower the peak</a><span>: {" · ".join(parts)}</span></p>'
        if found
        else ""
    )


def in_units(text: str, *sizes: int) -> str:
    """Text as HTML, in which the page's button for units can write each size anew: those given, or what the text says."""
    exact = {size(n): n for n in sizes}
    units = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

    def marked(found: re.Match[str]) -> str:
        n = exact.get(found[0], round(float(found[1]) * units[found[2]]))
        return counted(n) if found[0] == size(n) else found[0]

    return re.sub(r"\b(\d+(?:\.\d+)?) (B|[kMGT]B)\b", marked, html.escape(text))


def advice(found: list[Any]) -> str:
    """What would lower the peak, each with its figures."""
    if not found:
        return ""
    cards = "\n".join(card(item) for item in found)
    return (
        f'<h2 id="advice" style="margin-bottom:10px">What would lower the peak</h2>\n<section class="advice">{cards}</section>'
        f'<p class="keys bound">{BOUND}</p>'
    )


def card(item: Any) -> str:
    """One piece of advice."""
    bars = "".join(
        f'<i style="width:{100 * n / max(item.after, 1):.2f}%;background:{COLORS[name]}"></i>'
        for name in COLORS if (n := item.categories.get(name, 0)) > 0
    )  # fmt: skip
    # What is too wide can be moved by keys where it can have the focus.
    code = f'<pre tabindex="0">{html.escape(item.code)}</pre>' if item.code else ""
    width = 100 * item.after / max(item.before, 1)
    sizes = (item.saves, item.each_step, item.before, item.after, *item.categories.values())
    label = f"{size(item.after)} instead of {size(item.before)}"
    return (
        f'<article class="card"><h3>{html.escape(item.title)}<span class="saves">{in_units(item.gain.replace("-", "−"), *sizes)}</span></h3>'
        f'<p>{in_units(item.text, *sizes)}</p><div class="meter" role="img" aria-label="{label}">'
        f'<span style="width:{width:.2f}%">{bars}</span></div>{code}</article>'
    )


# Comparison ---------------------------------------------------------------------------------------------


def comparison(recordings: Shown) -> str:
    """The peaks of several recordings, side by side; of two with their difference."""
    if len(recordings) == 1:
        return ""
    peaks = [breakdown(recording) for recording, _ in recordings]
    titles = [*(name for _, name in recordings), *(["difference"] if len(peaks) == 2 else [])]
    columns = "".join(f"<th class=n>{html.escape(name)}</th>" for name in titles)
    head = f"<thead><tr><th class=unseen>of the peak</th>{columns}</tr></thead>"
    by_category = row("<b>peak</b>", [peak.total for peak in peaks])
    for name in COLORS:
        counts = [peak.categories.get(name, 0) for peak in peaks]
        by_category += row(swatch(name), counts) if any(counts) else ""
    by_module = "".join(
        row(html.escape(name or "(outside modules)"), counts) for name, counts in modules_that_differ(peaks)
    )
    modules = f'<section class="card"><h3>Modules that differ most</h3><table>{head}<tbody>{by_module}</tbody></table></section>'
    return (
        '<section id="comparison"><div class="bar"><h2>Comparison at the peaks</h2></div><div class="grid">'
        f'<section class="card"><h3>By category</h3><table>{head}<tbody>{by_category}</tbody></table></section>'
        f"{modules if by_module else ''}</div></section>"
    )


def modules_that_differ(peaks: Sequence[Breakdown], most: int = 12) -> list[tuple[str, list[int]]]:
    """The modules whose bytes at the peaks differ most, each with its bytes at each."""
    names = set[str]().union(*(peak.modules for peak in peaks))
    found = [(name, [peak.modules.get(name, 0) for peak in peaks]) for name in names]
    found.sort(key=lambda item: (min(item[1]) - max(item[1]), item[0]))
    return [(name, counts) for name, counts in found if min(counts) != max(counts)][:most]


def swatch(category: str) -> str:
    """A category with its colour."""
    dot = f'<span class="dot" style="background:{COLORS[category]};margin-right:8px"></span>'
    return dot + html.escape(category.replace("_", " "))


def row(name: str, counts: Sequence[int]) -> str:
    """A row of figures, with the difference of two."""
    cells = "".join(f'<td class="n">{counted(n)}</td>' for n in counts)
    return f'<tr><td class="name">{name}</td>{cells}{change(*counts) if len(counts) == 2 else ""}</tr>'


def change(one: int, two: int) -> str:
    """How much more or less the second is, as a cell."""
    kind, sign = ("less", "−") if two < one else ("greater", "+") if two > one else ("", "")
    part = f" <small>({sign}{share(abs(two - one), one)})</small>" if one and two != one else ""
    return f'<td class="n {kind}">{sign}{counted(abs(two - one))}{part}</td>'


assert set(COLORS) == set(CATEGORIES)
