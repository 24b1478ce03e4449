"""Modules made faster for evaluation: normalisations folded into the layers before them, dropout taken out."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Transformer
from rushlight.fx.node import Node
from rushlight.nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d, Dropout, Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

PATTERNS: list[tuple[type[Any], type[Any]]] = [
    (Conv1d, BatchNorm1d),
    (Conv2d, BatchNorm2d),
    (Conv3d, BatchNorm3d),
    (Linear, BatchNorm1d),
]


def _parent_name(target: str) -> tuple[str, str]:
    """The path of a module's owner, and its name there."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type[Any]], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a step and the one whose result it takes first call modules of these classes: the second class is its own.

    modules: of the graph's module, by path.
    """
    if not node.args:
        return False
    steps = (node.args[0], node)
    return all(
        isinstance(step, Node) and step.op == "call_module" and type(modules.get(str(step.target))) is kind
        for kind, step in zip(pattern, steps, strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Let a step call another module, at the path of its own.  Raises AssertionError for a step that calls none."""
    if node.op != "call_module":
        raise AssertionError(f"replace_node_module: {node} calls no module")
    parent, name = _parent_name(str(node.target))
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """A module in which each normalisation that follows a convolution or a linear layer is part of it: for evaluation.

    Args:
        model: traced, unless `no_trace`; in evaluation mode.
        inplace: whether its layers are changed, where they are copied otherwise.

    Raises AssertionError where a layer to be fused is in training mode.

    >>> import rushlight as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).eval()
    >>> [name for name, _ in fuse(model).named_children()]
    ['0']
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    graph, modules = copy.deepcopy(traced.graph), dict(model.named_modules())
    for pattern in PATTERNS:
        for node in graph.nodes:
            if matches_module_pattern(pattern, node, modules) and len(node.args[0].users) == 1:
                _fused(graph, node, modules)
    return GraphModule(model, graph)


def _fused(graph: Graph, node: Node, modules: dict[str, Any]) -> None:
    """One step in place of a layer and its normalisation."""
    layer, norm = modules[str(node.args[0].target)], modules[str(node.target)]
    if not norm.track_running_stats:
        return
    if layer.training or norm.training:
        raise AssertionError("fuse: fusion is for evaluation, call model.eval() before it")
    made = fuse_linear_bn_eval(layer, norm) if isinstance(layer, Linear) else fuse_conv_bn_eval(layer, norm)
    replace_node_module(node.args[0], modules, made)
    node.replace_all_uses_with(node.args[0])
    graph.erase_node(node)


def remove_dropout(model: Module) -> Module:
    """A module without its dropout.

    >>> import rushlight as torch
    >>> remove_dropout(torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.ReLU()))(torch.ones(2))
    tensor([1., 1.])
    """
    return _WithoutDropout(symbolic_trace(model)).transform()


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0] if isinstance(self.submodules[target], Dropout) else super().call_module(target, args, kwargs)


def extract_subgraph(orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """A module of some steps of a graph.

    nodes: the steps, in order; inputs: what they take from others, its arguments; outputs: what it returns, in a list.
    """
    graph, env = Graph(), dict[Node, Node]()
    for given in inputs:
        env[given] = graph.placeholder(given.name)
    for node in nodes:
        env[node] = graph.node_copy(node, lambda n: env[n])
    graph.output([env[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
