"""The demo's chart: resident memory of the three runs over their first pass through the data, as SVG."""

from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import Any

__all__ = ["draw"]

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM, GAP = 70, 200, 48, 52, 18
COLOURS = {"adam": "#c2410c", "fused": "#15803d", "budget": "#2563eb"}
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #334155 }
.title { font-size: 17px; font-weight: 600; fill: #0f172a } .name { font-weight: 600 }
.grid { stroke: #e2e8f0 } .axis { stroke: #94a3b8 }
.run { fill: none; stroke-width: 1.4; stroke-linejoin: round } .peak { stroke-dasharray: 2 4 }
"""


def draw(results: list[dict[str, Any]]) -> str:
    """An SVG document with one panel per run, from the model's construction to its first evaluation."""
    end = results[0]["steps"] + 3.0
    top = _round_up(max(result["peak"] for result in results) / 1e6)
    height = (HEIGHT - TOP - BOTTOM - GAP * (len(results) - 1)) / len(results)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Memory over time of three ways of training">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text class="title" x="{LEFT}" y="26">Resident memory in the first pass over the data</text>',
    ]
    for index, result in enumerate(results):
        panel = Panel(TOP + index * (height + GAP), height, end, top)
        parts += [*panel.grid(), *panel.run(result), *panel.label(result)]
    parts += [*_step_axis(results[0]["steps"], end), "</svg>"]
    return "\n".join(parts) + "\n"


def _x(step: float, end: float) -> float:
    """Where a step lies: the model is built in the step before 0."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (step + 1) / (end + 1)


def _round_up(value: float) -> float:
    """The next multiple of 50 above ``value``.

    >>> _round_up(171.0)
    200.0
    """
    return float(50 * (int(value / 50) + 1))


def _step_axis(steps: int, end: float) -> Iterable[str]:
    y = HEIGHT - BOTTOM
    for step in range(0, steps + 1, 10):
        x = _x(step, end)
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 5}"/>'
        yield f'<text x="{x:.1f}" y="{y + 20}" text-anchor="middle">{step}</text>'
    yield f'<text x="{_x(steps / 2, end):.1f}" y="{HEIGHT - 10}" text-anchor="middle">steps</text>'
    yield f'<text x="{_x(end, end):.1f}" y="{HEIGHT - 10}" text-anchor="end">evaluation</text>'


class Panel:
    """The part of the chart for one run: where it begins, its height, and the ends of its axes."""

    def __init__(self, above: float, height: float, end: float, top: float) -> None:
        self.above, self.height, self.end, self.top = above, height, end, top

    def y(self, size: float) -> float:
        """Where a number of bytes lies."""
        return self.above + self.height * (1 - size / 1e6 / self.top)

    def grid(self) -> Iterable[str]:
        """Horizontal lines with their megabytes."""
        for megabytes in range(0, int(self.top) + 1, 100 if self.top >= 200 else 50):
            y = self.y(megabytes * 1e6)
            kind = "grid" if megabytes else "axis"
            yield f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            unit = "" if megabytes else " MB"
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{megabytes}{unit}</text>'

    def run(self, result: dict[str, Any]) -> Iterable[str]:
        """The run's memory, and its peak."""
        colour = COLOURS[result["way"]]
        points = " ".join(f"{x},{self.y(size):.1f}" for x, size in _columns(result["series"], self.end))
        y = self.y(result["peak"])
        yield f'<line class="peak" stroke="{colour}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<polyline class="run" stroke="{colour}" points="{points}"/>'

    def label(self, result: dict[str, Any]) -> Iterable[str]:
        """The run's name and the height of its peak, beside the panel."""
        x, y = WIDTH - RIGHT + 12, self.y(result["peak"])
        yield f'<text class="name" x="{x}" y="{y + 5:.1f}" style="fill:{COLOURS[result["way"]]}">'
        yield f'{escape(result["name"])}</text><text x="{x}" y="{y + 23:.1f}">peak {result["peak"] / 1e6:.0f} MB</text>'


def _columns(series: list[tuple[float, int]], end: float) -> Iterable[tuple[int, int]]:
    """The samples, thinned: of those in one column of pixels the first, the extremes and the last, in order."""
    for x, group in groupby(series, key=lambda sample: round(_x(sample[0], end))):
        sizes = [size for _, size in group]
        places = sorted({0, sizes.index(min(sizes)), sizes.index(max(sizes)), len(sizes) - 1})
        yield from ((x, sizes[place]) for place in places)
