"""`graph`: the picture of the graph behind tensors."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from rushlight.viz.layout import Layout
from rushlight.viz.model import Model, Walk, names_of, outputs_of
from rushlight.viz.svg import dot, draw, summary


class Picture:
    """A picture of a graph: shows itself in notebooks.

    svg: the drawing; dot: text for Graphviz.
    """

    def __init__(self, model: Model):
        self.model = model

    @cached_property
    def svg(self) -> str:
        """The drawing as SVG."""
        return draw(self.model, Layout(self.model))

    @cached_property
    def dot(self) -> str:
        """The graph in the language of Graphviz."""
        return dot(self.model)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to a file that ends in .svg, the text for Graphviz to one in .dot or .gv; the path.

        Raises ValueError for another ending.
        """
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in (".svg", ".dot", ".gv"):
            raise ValueError(f"Picture.save(): the file must end in .svg, .dot or .gv, got {os.fspath(path)!r}")
        found = Path(path)
        found.write_text(self.svg if ending == ".svg" else self.dot, encoding="utf-8")
        return found

    def __repr__(self) -> str:
        return f"<picture of a graph: {summary(self.model)}>"


def graph(y: object, params: object = None, show_saved: bool = True, max_nodes: int = 300) -> Picture:
    """Draw the graph that backward from `y` runs through: leaves above, outputs below, arrows with the data.

    y: a tensor that requires grad, a node, or a sequence or dict of them. params: names for leaves: a module, a dict of
    name to tensor, or pairs of both. show_saved: draw what operations keep for backward: in orange, with its own box
    unless it is the memory of a leaf. max_nodes: how many operations and leaves are drawn, those nearest to the outputs
    first; the others are counted.

    Nothing is unpacked, and no hook runs. Raises ValueError for a tensor without a graph.

    >>> import rushlight as torch
    >>> from rushlight import viz
    >>> a = torch.randn(5, requires_grad=True)
    >>> viz.graph((a.exp() * a).sum(), {"a": a})
    <picture of a graph: 3 operations · 1 leaf · 1 tensor kept for backward, 20 B beyond the leaves>
    """
    if max_nodes < 1:
        raise ValueError(f"viz.graph(): max_nodes must be at least 1, got {max_nodes}")
    return Picture(Walk(names_of(params), show_saved, max_nodes).run(outputs_of(y)))
