"""A layout as SVG, and a model as text for Graphviz."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

from rushlight.viz.layout import MARGIN, SMALL_CHAR, Layout, Place
from rushlight.viz.model import CUSTOM, LEAF, MORE, NODE, OUTPUT, SAVED, Model, bytes_text

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# fill, line and text of each kind of box
COLOURS = {
    OUTPUT: ("#dcfce7", "#15803d", "#14532d"),
    NODE: ("#f1f5f9", "#64748b", "#0f172a"),
    CUSTOM: ("#f3e8ff", "#7e22ce", "#3b0764"),
    LEAF: ("#dbeafe", "#1d4ed8", "#172554"),
    SAVED: ("#ffedd5", "#c2410c", "#431407"),
    MORE: ("#ffffff", "#64748b", "#334155"),
}
WORDS = {OUTPUT: "output", NODE: "operation", CUSTOM: "custom function", LEAF: "leaf (.grad gathers here)",
         SAVED: "saved for backward", MORE: "not drawn"}  # fmt: skip
FLOW, KEPT = "#64748b", "#ea580c"
STYLE = f"""
.t {{ font: 12px {FONT}; }} .d {{ font: 10px {FONT}; opacity: .8; }} text {{ text-anchor: middle; }}
.e {{ fill: none; stroke: {FLOW}; stroke-width: 1.4; marker-end: url(#flow); }}
.k {{ fill: none; stroke: {KEPT}; stroke-width: 1.3; stroke-dasharray: 4 3; marker-end: url(#kept); }}
g.box:hover rect {{ stroke-width: 2.4; }} .legend text {{ text-anchor: start; }}
"""
MARKER = """<marker id="{name}" viewBox="0 0 8 8" refX="7.4" refY="4" markerWidth="7" markerHeight="7" \
orient="auto-start-reverse"><path d="M0 .8 7.4 4 0 7.2z" fill="{colour}"/></marker>"""


def draw(model: Model, layout: Layout) -> str:
    """The picture as text."""
    legend, wide = legend_of(model)
    width, height = max(layout.width, wide + 2 * MARGIN), layout.height + 52
    shift = (width - layout.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="autograd graph">',
        f"<style>{STYLE}</style><defs>{MARKER.format(name='flow', colour=FLOW)}"
        f"{MARKER.format(name='kept', colour=KEPT)}</defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="10" fill="#ffffff"/>',
        f'<g transform="translate({shift:.1f} 0)">',
    ]
    parts += [curve(way, arrow.saved, arrow.label, ends) for (_, arrow, way), ends in zip(layout.ways, layout.ends)]
    parts += [box(place) for place in layout.places.values()]
    parts += [
        "</g>",
        f'<g class="legend" transform="translate({MARGIN} {layout.height + 2:.1f})">{legend}</g>',
        "</svg>",
    ]
    return "\n".join(parts)


def box(place: Place) -> str:
    """One box: a rounded rectangle, one or two lines of text, and what is shown under the pointer."""
    it: Any = place.box
    fill, line, text = COLOURS[it.kind]
    x, y = place.x - place.width / 2, place.y - place.height / 2
    radius = 13 if it.kind in (NODE, CUSTOM) else 4
    dashes = ' stroke-dasharray="3 3"' if it.kind in (MORE, SAVED) else ""
    title = escape("\n".join(filter(None, (f"{WORDS[it.kind]}: {it.title}", it.detail, it.note))))
    lines = f'<text class="t" x="{place.x:.1f}" y="{place.y + (-2 if it.detail else 4):.1f}">{escape(it.title)}</text>'
    if it.detail:
        lines += f'<text class="d" x="{place.x:.1f}" y="{place.y + 12:.1f}">{escape(it.detail)}</text>'
    return (
        f'<g class="box" fill="{text}"><title>{title}</title><rect x="{x:.1f}" y="{y:.1f}" width="{place.width:.1f}" '
        f'height="{place.height:.1f}" rx="{radius}" fill="{fill}" stroke="{line}" stroke-width="1.3"{dashes}/>{lines}</g>'
    )


def curve(way: list[Place], saved: bool, label: str, ends: tuple[float, float]) -> str:
    """An arrow through the points of its way, upright where it crosses a layer."""
    points = [(p.x, p.y) for p in way]
    points[0] = (points[0][0] + ends[0], points[0][1] + way[0].height / 2)
    points[-1] = (points[-1][0] + ends[1], points[-1][1] - way[-1].height / 2 - 1)
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f" C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    title = f"<title>{escape(f'saved as {label}')}</title>" if saved else ""
    return f'<path class="{"k" if saved else "e"}" d="{path}">{title}</path>'


def summary(model: Model) -> str:
    """The figures of the graph in one line."""
    counts = model.counts
    words = [(counts["nodes"], "operation", "operations"), (counts["leaves"], "leaf", "leaves"),
             (counts["saved"], "tensor kept for backward", "tensors kept for backward")]  # fmt: skip
    text = " · ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in words if n)
    return text + (f", {bytes_text(counts['bytes'])} beyond the leaves" if counts["bytes"] else "")


def legend_of(model: Model) -> tuple[str, float]:
    """The kinds of boxes in the picture, and its figures; and how wide they are."""
    x, parts = 0.0, []
    for kind in COLOURS:
        if any(it.kind == kind for it in model.boxes):
            fill, line, _ = COLOURS[kind]
            parts.append(f'<rect x="{x:.1f}" y="0" width="14" height="11" rx="3" fill="{fill}" stroke="{line}"/>'
                         f'<text class="d" x="{x + 19:.1f}" y="9" fill="#0f172a">{WORDS[kind]}</text>')  # fmt: skip
            x += 19 + len(WORDS[kind]) * SMALL_CHAR + 18
    text = summary(model)
    parts.append(f'<text class="d" x="0" y="30" fill="#334155">{escape(text)}</text>')
    return "".join(parts), max(x - 18, len(text) * SMALL_CHAR)


def quoted(text: str) -> str:
    """A string of DOT."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def dot(model: Model) -> str:
    """The model in the language of Graphviz."""
    lines = ["digraph autograd {", '  graph [rankdir=TB, bgcolor="white", nodesep=0.25, ranksep=0.4];',
             '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=11];',
             f'  edge [color="{FLOW}", arrowsize=0.7, fontname="monospace", fontsize=9];']  # fmt: skip
    for it in model.boxes:
        fill, line, text = COLOURS[it.kind]
        style = (
            "filled,dashed" if it.kind in (SAVED, MORE) else "rounded,filled" if it.kind in (NODE, CUSTOM) else "filled"
        )
        label = quoted("\n".join(filter(None, (it.title, it.detail))))
        lines.append(f'  {it.key} [label={label}, fillcolor="{fill}", color="{line}", fontcolor="{text}", '
                     f'style="{style}", tooltip={quoted(it.note or it.title)}];')  # fmt: skip
    for it in model.boxes:
        for arrow in it.inputs:
            kept = f' [style=dashed, color="{KEPT}", label={quoted(arrow.label)}]' if arrow.saved else ""
            lines.append(f"  {arrow.source.key} -> {it.key}{kept};")
    return "\n".join([*lines, "}"]) + "\n"
