"""The demo's chart: resident memory of the three runs over their first pass through the data, as SVG."""

from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import Any

__all__ = ["draw"]

WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 56, 52
COLOURS = {"adam": "#c2410c", "loop": "#2563eb", "fused": "#15803d"}
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #334155 }
.title { font-size: 17px; font-weight: 600; fill: #0f172a }
.grid { stroke: #e2e8f0 } .axis { stroke: #94a3b8 }
.run { fill: none; stroke-width: 1.8; stroke-linejoin: round } .peak { stroke-dasharray: 2 4; opacity: .7 }
"""


def draw(results: list[dict[str, Any]]) -> str:
    """An SVG document with one line per run, from the model's construction to its first evaluation."""
    end = max(result["window"] for result in results)
    top = _round_up(max(result["peak"] for result in results) / 1e6)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Memory over time of three ways of training">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text class="title" x="{LEFT}" y="28">Resident memory in the first pass over the data</text>',
        *_axes(end, top),
        *(part for result in results for part in _run(result, end, top)),
        *_legend(results, top),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(seconds: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * seconds / end


def _y(megabytes: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * megabytes / top


def _round_up(value: float) -> float:
    """The next multiple of 50 above ``value``.

    >>> _round_up(171.0)
    200.0
    """
    return float(50 * (int(value / 50) + 1))


def _axes(end: float, top: float) -> Iterable[str]:
    for megabytes in range(0, int(top) + 1, 50):
        y = _y(megabytes, top)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{megabytes}</text>'
    step = _tick(end)
    for index in range(int(end / step) + 1):
        x = _x(index * step, end)
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 5}"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{index * step:g}</text>'
    y = HEIGHT - BOTTOM
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">seconds</text>'
    yield f'<text x="{LEFT - 8}" y="{TOP - 10}" text-anchor="end">MB</text>'


def _tick(end: float) -> float:
    """A round distance between ticks that gives about six of them.

    >>> _tick(1.0), _tick(4.2)
    (0.2, 1.0)
    """
    return next((step for step in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0) if end / step <= 6), 10.0)


def _run(result: dict[str, Any], end: float, top: float) -> Iterable[str]:
    colour = COLOURS[result["way"]]
    points = " ".join(f"{x},{_y(size / 1e6, top):.1f}" for x, size in _columns(result["series"], end))
    y = _y(result["peak"] / 1e6, top)
    yield f'<line class="peak" stroke="{colour}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    yield f'<polyline class="run" stroke="{colour}" points="{points}"/>'


def _columns(series: list[tuple[float, int]], end: float) -> Iterable[tuple[int, int]]:
    """The samples, thinned: of those in one column of pixels the first, the extremes and the last, in order."""
    for x, group in groupby(series, key=lambda sample: round(_x(sample[0], end))):
        sizes = [size for _, size in group]
        places = sorted({0, sizes.index(min(sizes)), sizes.index(max(sizes)), len(sizes) - 1})
        yield from ((x, sizes[place]) for place in places)


def _legend(results: list[dict[str, Any]], top: float) -> Iterable[str]:
    below = TOP - 20.0
    for result in sorted(results, key=lambda result: -result["peak"]):
        y = max(_y(result["peak"] / 1e6, top), below + 40)
        below = y
        x = WIDTH - RIGHT + 12
        yield f'<rect x="{x}" y="{y - 9:.1f}" width="10" height="10" fill="{COLOURS[result["way"]]}"/>'
        yield f'<text x="{x + 16}" y="{y:.1f}">{escape(result["name"])}</text>'
        yield f'<text x="{x + 16}" y="{y + 16:.1f}">peak {result["peak"] / 1e6:.0f} MB</text>'
