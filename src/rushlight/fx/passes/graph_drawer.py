"""Graphs drawn by Graphviz: needs the package pydot."""

from __future__ import annotations

import hashlib
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.names import qualified_name
from rushlight.fx.node import Node, text
from rushlight.fx.passes.shape_prop import TensorMetadata
from rushlight.nn.modules.module import Module

__all__ = ["FxGraphDrawer"]

COLORS = {"placeholder": "AliceBlue", "call_module": "LemonChiffon1", "get_param": "Yellow2", "get_attr": "LightGrey",
          "output": "PowderBlue"}  # fmt: skip
HUES = ["CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1", "LavenderBlush1",
        "LightSkyBlue", "MistyRose1", "MistyRose2", "PaleTurquoise2", "PeachPuff1", "Salmon", "Thistle1", "Thistle3",
        "Wheat1"]  # fmt: skip


class FxGraphDrawer:
    """A module's graph as one of pydot, and those of the graphs inside.

    name: of the drawing.  ignore_getattr, ignore_parameters_and_buffers: whether steps that read attributes, and the
    parameters of modules, are left out.  skip_node_names_in_args: whether nodes among arguments are left out.
    dot_graph_shape: of the boxes.  normalize_args: whether arguments are shown by name, with those that are as by default.

    Raises RuntimeError where pydot is not installed.

    >>> import rushlight as torch
    >>> drawn = FxGraphDrawer(torch.fx.symbolic_trace(torch.nn.ReLU()), "relu").get_dot_graph()  # doctest: +SKIP
    >>> drawn.write_svg("relu.svg")  # doctest: +SKIP
    """

    def __init__(self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
                 ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
                 parse_stack_trace: bool = False, dot_graph_shape: str | None = None, normalize_args: bool = False):  # fmt: skip
        self._name, self.dot_graph_shape = name, "record" if dot_graph_shape is None else dot_graph_shape
        self.ignore_getattr, self.ignore_parameters = ignore_getattr, ignore_parameters_and_buffers
        self.skip_node_names_in_args, self.normalize_args = skip_node_names_in_args, normalize_args
        self.parse_stack_trace = parse_stack_trace
        self._dot_graphs = {name: self._drawn(graph_module, name)}
        for path, inner in graph_module.named_modules():
            if path and isinstance(inner, GraphModule):
                self._dot_graphs[f"{name}_{path}"] = self._drawn(inner, f"{name}_{path}")

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The drawing of the graph, or of the one inside at that path."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """The drawing of the graph."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The drawing of the graph inside at that path."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All drawings, by name."""
        return self._dot_graphs

    def _drawn(self, module: GraphModule, name: str) -> Any:
        dot = _pydot()
        drawing = dot.Dot(name, rankdir="TB")
        nodes = [node for node in module.graph.nodes if not (self.ignore_getattr and node.op == "get_attr")]
        for node in nodes:
            drawing.add_node(dot.Node(node.name, label=self._label(module, node), **self._style(node)))
            if node.op == "call_module":
                self._parameters(dot, drawing, module, node)
        for node in nodes:
            for user in node.users:
                drawing.add_edge(dot.Edge(node.name, user.name))
        return drawing

    def _parameters(self, dot: Any, drawing: Any, module: GraphModule, node: Node) -> None:
        """The parameters and buffers of a module that is called, as boxes that lead to it."""
        inner: Module = module.get_submodule(str(node.target))
        if self.ignore_parameters or isinstance(inner, GraphModule):
            return
        for kind, found in (("get_parameter", inner.named_parameters()), ("get_buffer", inner.named_buffers())):
            for name, tensor in found:
                label = f"{{{node.target}.{name}|op_code={kind}\\l{_tensor(tensor)}}}"
                style = {**self._style(node), "fillcolor": COLORS["get_param"]}
                drawing.add_node(dot.Node(f"{node.name}.{name}", label=label, **style))
                drawing.add_edge(dot.Edge(f"{node.name}.{name}", node.name))

    def _style(self, node: Node) -> dict[str, str]:
        style = {
            "shape": self.dot_graph_shape,
            "fillcolor": "#CAFFE3",
            "style": '"filled,rounded"',
            "fontcolor": "#000000",
        }
        if node.op in COLORS:
            style["fillcolor"] = COLORS[node.op]
        else:
            name = str(node.target) if isinstance(node.target, str) else qualified_name(node.target)
            style["fillcolor"] = HUES[
                int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8], 16) % len(HUES)
            ]
        return style

    def _label(self, module: GraphModule, node: Node) -> str:
        """What a box says: name, kind, what is called and on what, and what is known of the result."""
        lines = [f"name=%{node.name}", f"op_code={node.op}\\n"]
        if node.op == "call_module":
            inner = module.get_submodule(str(node.target))
            lines[1] = f"op_code={node.op}\\n{qualified_name(type(inner))}\\n"
            lines.append(_plain(inner.extra_repr().replace(", ", "\\n")))
        else:
            target = node.target if isinstance(node.target, str) else qualified_name(node.target)
            lines.append(f"target={target}" + self._passed(module, node))
        lines.append(f"num_users={len(node.users)}")
        known = node.meta.get("tensor_meta")
        return "{" + "|".join(lines) + "\\n}" if known is None else "{" + "|".join(lines) + f"\\n{_result(known)}}}"

    def _passed(self, module: GraphModule, node: Node) -> str:
        way = node.normalized_arguments(module, normalize_to_only_use_kwargs=True) if self.normalize_args else None
        args, kwargs = (node.args, node.kwargs) if way is None else way
        shown = [text(a) for a in args if not (self.skip_node_names_in_args and isinstance(a, Node))]
        named = [
            f"{k}: {text(a)}" for k, a in kwargs.items() if not (self.skip_node_names_in_args and isinstance(a, Node))
        ]
        parts = (f"args=({', '.join(shown)},)", f"kwargs={{{', '.join(named)}}}")
        return "".join(f"|{_plain(part)}\\l" for part, given in zip(parts, (shown, named), strict=True) if given)


def _plain(label: str) -> str:
    """A text without what Graphviz would read as its own."""
    for mark in "{}<>|":
        label = label.replace(mark, f"\\{mark}")
    return label


def _result(known: object) -> str:
    if isinstance(known, TensorMetadata):
        return f"dtype={known.dtype}\\nshape={tuple(known.shape)}\\nrequires_grad={known.requires_grad}\\nstride={known.stride}\\n"
    if isinstance(known, dict):
        return "".join(_result(part) for part in known.values())
    return "".join(map(_result, known)) if isinstance(known, list | tuple) else ""


def _tensor(tensor: Any) -> str:
    return f"dtype={tensor.dtype}\\lshape={tuple(tensor.shape)}\\l"


def _pydot() -> Any:
    try:
        import pydot  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise RuntimeError("FxGraphDrawer: drawing needs the package pydot: pip install pydot") from error
    return pydot
