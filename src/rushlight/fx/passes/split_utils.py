"""Graphs cut by the tags of their steps; attributes by their paths."""

from __future__ import annotations

import operator
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg

__all__ = ["getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: object, name: str) -> Any:
    """What lies at a path; None where nothing does.

    >>> import rushlight as torch
    >>> getattr_recursive(torch.nn.Sequential(torch.nn.ReLU()), "0.inplace")
    False
    """
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Put something at a path."""
    *path, last = attr.split(".")
    setattr(getattr_recursive(obj, ".".join(path)) if path else obj, last, value)


class _Part:
    """A part while it is made: its graph, what goes in and what comes out, by the nodes of the graph that is cut."""

    def __init__(self, name: str):
        self.name, self.graph = name, Graph()
        self.env, self.outputs = dict[Node, Node](), dict[Node, None]()
        self.inputs: list[Node] = []

    def given(self, node: Node) -> Node:
        """What stands for a node of the graph here: a parameter's step, or an argument."""
        if node not in self.env:
            if node.op == "get_attr":
                self.env[node] = self.graph.node_copy(node)
            else:
                self.env[node] = self.graph.placeholder(node.name, node.type)
                self.inputs.append(node)
        return self.env[node]

    def built(self, gm: GraphModule) -> GraphModule:
        """The part as a module."""
        found = tuple(self.env[node] for node in self.outputs)
        self.graph.output(found[0] if len(found) == 1 else found)
        return GraphModule(gm, self.graph)


def split_by_tags(gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False, return_tuple: bool = False,
                  GraphModuleCls: Any = GraphModule) -> Any:  # fmt: skip
    """A module whose submodules, named by the tags, have the steps between them that have that in ``node.tag``.

    tags: in the order in which the parts run; parameters are read in the parts that need them.  Raises AssertionError for a
    step without a tag, NotImplementedError for `return_fqn_mapping` and `return_tuple`.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: x.exp().relu())
    >>> for node in traced.graph.find_nodes(op="call_method"):
    ...     node.tag = "first" if node.target == "exp" else "second"
    >>> [name for name, _ in split_by_tags(traced, ["first", "second"]).named_children()]
    ['first', 'second']
    """
    if return_fqn_mapping or return_tuple:
        raise NotImplementedError("split_by_tags: return_fqn_mapping and return_tuple are not here")
    parts, of = {tag: _Part(tag) for tag in tags}, dict[Node, _Part]()
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        if getattr(node, "tag", None) not in parts:
            raise AssertionError(f"split_by_tags: {node} has no tag of {tags}: set node.tag")
        part = of[node] = parts[getattr(node, "tag")]  # noqa: B009  (passes put it there)
        part.env[node] = part.graph.node_copy(node, part.given)
    for node in gm.graph.nodes:
        for used in node.all_input_nodes:
            if used in of and of[used] is not of.get(node):
                of[used].outputs[used] = None
    return GraphModuleCls(*_called(gm, [part for part in parts.values() if part.env]))


def _called(gm: GraphModule, parts: list[_Part]) -> tuple[dict[str, Any], Graph]:
    """The parts as modules, and a graph that calls them."""
    graph, env, modules = Graph(), dict[Node, Any](), dict[str, Any]()
    last = gm.graph.output_node()
    for node in gm.graph.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and last in node.users):
            env[node] = graph.node_copy(node)
            if node.op == "get_attr":
                modules[str(node.target)] = getattr_recursive(gm, str(node.target))
    for part in parts:
        modules[part.name] = part.built(gm)
        made = graph.call_module(part.name, tuple(env[node] for node in part.inputs))
        for i, node in enumerate(part.outputs):
            env[node] = made if len(part.outputs) == 1 else graph.call_function(operator.getitem, (made, i))
    graph.output(map_arg(last.args[0], lambda n: env[n]))
    return modules, graph
