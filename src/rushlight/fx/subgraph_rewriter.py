"""Replacing parts of a graph that look like a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.nn.modules.module import Module

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A place where a pattern was found: its last step, and which step of the graph each of the pattern's is."""

    anchor: Node
    nodes_map: dict[Node, Any]


def _graph_of(program: Callable[..., Any]) -> Graph:
    from rushlight.fx._symbolic_trace import Tracer

    return program.graph if isinstance(program, GraphModule) else Tracer().trace(program)


def _same(pattern: Any, found: Any, seen: dict[Node, Any]) -> bool:
    """Whether what is passed in a graph is what is passed in the pattern."""
    if isinstance(pattern, Node):
        return _matches(pattern, found, seen)
    if isinstance(pattern, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(pattern) == len(found)
            and all(_same(a, b, seen) for a, b in zip(pattern, found, strict=True))
        )
    if isinstance(pattern, dict):
        return (
            isinstance(found, dict)
            and pattern.keys() == found.keys()
            and all(_same(v, found[k], seen) for k, v in pattern.items())
        )
    return bool(pattern == found)


def _matches(pattern: Node, found: Node, seen: dict[Node, Any]) -> bool:
    """Whether a step and what it takes look like the pattern's."""
    if pattern in seen:
        return seen[pattern] is found
    if pattern.op != "placeholder":
        alike = isinstance(found, Node) and (pattern.op, pattern.target) == (found.op, found.target)
        if not alike or not (_same(pattern.args, found.args, seen) and _same(pattern.kwargs, found.kwargs, seen)):
            return False
    seen[pattern] = found
    return True


def _whole(anchor: Node, seen: dict[Node, Any]) -> bool:
    """Whether nobody outside of the match uses what is in its middle."""
    inside = {found for pattern, found in seen.items() if pattern.op != "placeholder"}
    return all(user in inside for node in inside if node is not anchor for user in node.users)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace every part of a module's graph that looks like `pattern`; what was found, in order.

    pattern, replacement: functions or modules with the same arguments and one result.  Parts that overlap one that was
    replaced stay.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(lambda x, y: (x + y).relu())
    >>> found = torch.fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a * b)
    >>> len(found), traced(torch.tensor(2.0), torch.tensor(3.0))
    (1, tensor(6.))
    """
    wanted, given = _graph_of(pattern), _graph_of(replacement)
    last = wanted.output_node().args[0]
    names = [[n for n in graph.nodes if n.op == "placeholder"] for graph in (wanted, given)]
    found: list[Match] = []
    replaced: set[Node] = set()
    for node in list(gm.graph.nodes):
        seen: dict[Node, Any] = {}
        if node._erased or not _matches(last, node, seen) or not _whole(node, seen):
            continue
        inside = {n for p, n in seen.items() if p.op != "placeholder"}
        if inside & replaced:
            continue
        copied = {new: seen[old] for old, new in zip(*names, strict=True) if old in seen}
        with gm.graph.inserting_before(node):
            result = gm.graph.graph_copy(given, copied)
        node.replace_all_uses_with(map_arg(result, lambda n: n))
        replaced |= inside
        for old in [n for n in reversed(gm.graph.nodes) if n in inside]:
            gm.graph.erase_node(old)
        found.append(Match(node, seen))
    _adopt(gm, replacement)
    gm.recompile()
    return found


def _adopt(gm: GraphModule, replacement: Callable[..., Any]) -> None:
    """Give the module what the replacement names and it has not."""
    if isinstance(replacement, Module):
        from rushlight.fx.graph_module import _take

        for node in gm.graph.nodes:
            if node.op in ("get_attr", "call_module") and not hasattr(gm, str(node.target).split(".")[0]):
                _take(gm, str(node.target), replacement)
