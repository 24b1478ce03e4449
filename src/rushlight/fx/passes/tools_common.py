"""Questions that passes ask of nodes, and graphs put into order."""

from __future__ import annotations

from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.tensor import Tensor

__all__ = ["CALLABLE_NODE_OPS", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Any, node: Node) -> str:
    """The name of what a step calls: class of a module, function with its module, method.

    submodules: by path.  Raises AssertionError for a step that calls nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_method":
        return str(node.target)
    if node.op == "call_module":
        return _known(type(submodules[node.target]))
    return _known(node.target)


def _known(target: Any) -> str:
    """The name of a class or function as PyTorch has it, with its module."""
    name = getattr(target, "__qualname__", target.__name__)
    return f"{target.__module__ or 'builtins'}.{name}".replace("rushlight", "torch", 1).replace(
        "torch._ops", "torch.ops", 1
    )


def is_node_output_tensor(node: Node) -> bool:
    """Whether a step gives a tensor, as `ShapeProp` noted it."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, Tensor)


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the steps of a module, each after those whose results it takes; the module.

    Steps that are in order stay so.  Raises RuntimeError where steps need each other.
    """
    graph = gm.graph
    left, done = list(graph.nodes), dict[Node, None]()
    while left:
        waiting: list[Node] = []
        for node in left:
            if all(used in done for used in node.all_input_nodes):
                done[node] = None
            else:
                waiting.append(node)
        if len(waiting) == len(left):
            raise RuntimeError(f"Input graph has cycles, unable to add {waiting}")
        left = waiting
    for node in done:
        graph._root.prepend(node)
    gm.recompile()
    return gm


stable_topological_sort = legalize_graph
