"""What a frontier looks like: on a terminal, as SVG, as a page."""

from __future__ import annotations

import html
import math
import shutil
import textwrap
from typing import TYPE_CHECKING

from rushlight.memory.counting.account import human
from rushlight.memory.counting.units import clock

if TYPE_CHECKING:
    from rushlight.memory.planning.frontier import Frontier, Point

MARKS = "0123456789abcdefghijklmnopqrstuvwxyz"
HEIGHT = 14  # lines of the picture on a terminal
WIDTH, TALL, LEFT, BOTTOM, TOP, RIGHT = 760, 420, 90, 60, 30, 30  # of the SVG, and its margins


def shown(found: Frontier) -> list[Point]:
    """The points in the order of the table: those on the curve, then the others, by bytes."""
    rest = [point for point in found.points if point not in found.curve]
    return [*found.curve, *sorted(rest, key=lambda point: -point.peak)]


def rows(found: Frontier) -> list[tuple[str, str, str, str, str, str]]:
    """Mark, name, peak, seconds, how much longer than plain, and code of each point."""
    made = []
    for mark, point in zip(MARKS, shown(found), strict=False):
        name = point.name + ("" if point.exact else " (other gradients)")
        times = f"{point.seconds / max(found.plain.seconds, 1e-12):.2f}x"
        made.append((mark, name, human(point.peak), clock(point.seconds), times, point.code))
    return made


def said(found: Frontier) -> str:
    """What the figures are, in a line."""
    count = sum(point.measured for point in found.points)
    how = "measured" if count == len(found.points) else f"{count} of {len(found.points)} measured, the others predicted"
    return f"{how}; {found.machine}"


def lost(found: Frontier) -> list[tuple[str, str]]:
    """What was not possible, and why: the names of all ways that failed for one reason, and it."""
    names = dict[str, list[str]]()
    for name, why in found.failed.items():
        names.setdefault(why, []).append(name)
    return [("; ".join(several), why) for why, several in names.items()]


# Terminal ----------------------------------------------------------------------------------------------------


def text(found: Frontier, width: int | None = None) -> str:
    """The picture and the table."""
    columns = width or shutil.get_terminal_size((100, 24)).columns
    table = rows(found)
    wide = max(len(row[1]) for row in table)
    beside = max(len(row[5]) for row in table) <= columns - wide - 34
    lines = [*plot(found, max(min(columns, 100) - 21, 20)), ""]
    lines.append(f"  {'':<2}{'':<{wide}}{'peak':>10}{'a step':>10}")
    for number, (mark, name, peak, seconds, times, code) in enumerate(table):
        if number == len(found.curve):
            lines.append("  not on the curve:")
        lines.append(f"  {mark} {name:<{wide}}{peak:>10}{seconds:>10}{times:>8}  {code if beside else ''}".rstrip())
    if not beside:
        lines += ["", *(f"  {row[0]} {row[5]}" for row in table if row[5])]
    told = [*(f"not possible: {names}: {why}" for names, why in lost(found)), said(found)]
    for line in told:
        lines += textwrap.wrap(line, max(columns, 20), initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines)


def plot(found: Frontier, columns: int) -> list[str]:
    """Bytes upwards, seconds to the right, a mark for each point; those on the curve joined by dots."""
    points = shown(found)
    most, longest = max(p.peak for p in points), max(p.seconds for p in points)
    shortest = min(p.seconds for p in points)
    span = max(longest - shortest, 1e-12)
    field = [[" "] * columns for _ in range(HEIGHT)]

    def place(point: Point) -> tuple[int, int]:
        column = round((point.seconds - shortest) / span * (columns - 1))
        return HEIGHT - 1 - round(point.peak / max(most, 1) * (HEIGHT - 1)), column

    for one, other in zip(found.curve, found.curve[1:], strict=False):
        join(field, place(one), place(other))
    for mark, point in reversed(list(zip(MARKS, points, strict=False))):
        line, column = place(point)
        field[line][column] = mark
    labels = [human(most), *[""] * (HEIGHT - 2), "0 B"]
    lines = [f"{label:>10} |{''.join(line).rstrip()}" for label, line in zip(labels, field, strict=True)]
    left, right = clock(shortest), clock(longest)
    return [*lines, f"{'':>10} +{'-' * columns}", f"{'':>12}{left}{right:>{max(columns - len(left), 1)}} a step"]


def join(field: list[list[str]], one: tuple[int, int], other: tuple[int, int]) -> None:
    """Dots from one place to another."""
    steps = max(abs(one[0] - other[0]), abs(one[1] - other[1]), 1)
    for k in range(1, steps, 2):
        line, column = (round(a + (b - a) * k / steps) for a, b in zip(one, other, strict=True))
        field[line][column] = "."


# SVG -----------------------------------------------------------------------------------------------------------


def ticks(most: float, count: int = 5) -> list[float]:
    """Round values from 0 up to `most`."""
    raw = max(most, 1e-12) / count
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next((unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= raw), 10 * unit)
    return [step * k for k in range(int(most / step) + 1)]


def svg(found: Frontier, title: str = "") -> str:
    """The picture."""
    points = shown(found)
    most = max(1.0, max(p.peak for p in points) * 1.05)
    longest = max(p.seconds for p in points) * 1.05 or 1.0

    def at(point: Point) -> tuple[float, float]:
        across = LEFT + point.seconds / longest * (WIDTH - LEFT - RIGHT)
        return across, TALL - BOTTOM - point.peak / most * (TALL - BOTTOM - TOP)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TALL}" width="{WIDTH}" height="{TALL}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{html.escape(title or 'peak bytes against seconds a step')}</title>",
        f'<rect width="{WIDTH}" height="{TALL}" fill="#fff"/>',
        *axes(most, longest),
        f'<text x="{LEFT}" y="18" font-weight="600">{html.escape(title or "Peak bytes against seconds a step")}</text>',
        '<polyline fill="none" stroke="#3b6fb6" stroke-width="2" points="'
        + " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, found.curve))
        + '"/>',
    ]
    for mark, point in reversed(list(zip(MARKS, points, strict=False))):
        lines += dot(mark, point, *at(point), point in found.curve)
    return "\n".join([*lines, "</svg>"])


def dot(mark: str, point: Point, x: float, y: float, on_curve: bool) -> list[str]:
    """A point with its mark, its figures where the mouse rests."""
    fill = "#3b6fb6" if on_curve else "#727a87"
    told = html.escape(f"{point}{': ' + point.code if point.code else ''}")
    return [
        f'<g><title>{told}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="{fill}" stroke="#fff"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" fill="#fff" text-anchor="middle">{mark}</text></g>'
    ]


def axes(most: float, longest: float) -> list[str]:
    """Both axes with round values."""
    lines = []
    for value in ticks(most):
        y = TALL - BOTTOM - value / most * (TALL - BOTTOM - TOP)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e7ec"/>'
                     f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{human(int(value))}</text>')  # fmt: skip
    for value in ticks(longest):
        x = LEFT + value / longest * (WIDTH - LEFT - RIGHT)
        lines.append(
            f'<path d="M{x:.1f} {TALL - BOTTOM}v5" stroke="#444"/>'
            f'<text x="{x:.1f}" y="{TALL - BOTTOM + 20}" text-anchor="middle" fill="#444">{clock(value)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*lines, f'<path d="M{LEFT} {TOP}V{TALL - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#444"/>',
            f'<text x="{middle}" y="{TALL - 14}" text-anchor="middle" fill="#444">a training step</text>']  # fmt: skip


def html_table(found: Frontier) -> str:
    """The table of the points."""
    head = "".join(f"<th>{name}</th>" for name in ("", "way", "peak", "a step", "times", "code"))
    lines = [
        "<tr>" + "".join(f"<td>{f'<code>{html.escape(cell)}</code>' if k == 5 and cell else html.escape(cell)}</td>"
                         for k, cell in enumerate(row)) + "</tr>"
        for row in rows(found)
    ]  # fmt: skip
    if len(lines) > len(found.curve):
        lines.insert(len(found.curve), '<tr><td></td><td colspan="5"><i>not on the curve</i></td></tr>')
    body = "".join(lines)
    failed = "".join(f"<li>{html.escape(names)}: {html.escape(why)}</li>" for names, why in lost(found))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(said(found))}</p>" + (
        f"<p>Not possible:</p><ul>{failed}</ul>" if failed else ""
    )


STYLE = (
    ":root{color-scheme:light dark}body{font-family:system-ui,sans-serif;margin:2rem;max-width:64rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{padding:.2rem .7rem;border-bottom:1px solid #e4e7ec;text-align:left}"
    "td:nth-child(n+3):nth-child(-n+5){text-align:right;white-space:nowrap}svg{max-width:100%;height:auto}"
    "@media(prefers-color-scheme:dark){td,th{border-color:#3a4048}svg>rect{fill:none}svg>path{stroke:#59616e}"
    "svg>path[stroke='#e4e7ec']{stroke:#2c323a}svg>text{fill:#c9cfd8}}"
)


def page(found: Frontier, title: str = "") -> str:
    """Picture and table as a page that needs no network."""
    named = html.escape(title or "memory frontier")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{named}</title>'
        f"<style>{STYLE}</style><body><h1>{named}</h1>{svg(found)}{html_table(found)}</body></html>\n"
    )
