"""Replacing parts of a graph that look like a pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _has_attr, _take
from rushlight.fx.node import Node
from rushlight.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from rushlight.nn.modules.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Program = Callable[..., Any] | GraphModule | Graph
Filter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """A place where a pattern was found: the pattern's last step, and which step of the graph each of the pattern's is."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """As `Match`, with the steps that came in place of it."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def _graph_of(program: object) -> Graph:
    from rushlight.fx._symbolic_trace import Tracer

    if isinstance(program, Graph):
        return program
    if isinstance(program, GraphModule):
        return program.graph
    return _owned(Tracer(), program)


def _owned(tracer: Any, program: Any) -> Graph:
    """The graph of a program, whose module is known: its submodules are compared by their classes."""
    graph: Graph = tracer.trace(program)
    graph.owning_module = tracer.root
    return graph


def replace_pattern(gm: GraphModule, pattern: Program, replacement: Program) -> list[Match]:
    """Replace every part of a module's graph that looks like `pattern`; what was found, in order.

    pattern, replacement: functions or modules with the same arguments and as many results.  Parts that overlap one that was
    replaced stay.  What the replacement names and the module has not is taken from it, what nobody names any more goes.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(lambda x, y: (x + y).relu())
    >>> found = torch.fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a * b)
    >>> len(found), traced(torch.tensor(2.0), torch.tensor(3.0))
    (1, tensor(6.))
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Program,
    replacement: Program | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, where all filters say so.

    match_filters: functions of a match, the module's graph and the pattern's; ignore_literals: whether numbers in the pattern
    stand for any; replacement_callback: gives the replacement for a match, in place of `replacement`; node_name_match: only
    at the step of that name.  Raises AssertionError where there is neither replacement nor callback, RuntimeError where the
    replacement has another number of arguments or results.
    """
    if replacement is None and replacement_callback is None:
        raise AssertionError("replace_pattern_with_filters: pass replacement or replacement_callback")
    wanted = _graph_of(pattern)
    given = None if replacement is None else _graph_of(replacement)
    matches = SubgraphMatcher(wanted, ignore_literals=ignore_literals).match(gm.graph, node_name_match)
    matches = [m for m in matches if all(ask(m, gm.graph, wanted) for ask in match_filters or ())]
    found, renamed = [], dict[Node, Any]()
    for match in matches:
        graph = given if replacement_callback is None else _graph_of(replacement_callback(match, gm.graph, wanted))
        if graph is not None:
            found.append(_replaced(gm.graph, wanted, match, graph, renamed))
    if isinstance(replacement, Module):
        _adopt(gm, replacement)
    gm.recompile()
    return found


def _replaced(
    graph: Graph, wanted: Graph, match: InternalMatch, given: Graph, renamed: dict[Node, Any]
) -> ReplacedPatterns:
    """Put a copy of `given` in the place of a match."""
    names = given.find_nodes(op="placeholder")
    inside = [n for p, n in match.nodes_map.items() if isinstance(n, Node) and p.op not in ("placeholder", "output")]
    values = [match.nodes_map[n] for n in wanted.find_nodes(op="placeholder") if n in match.nodes_map]
    if len(names) != len(values):
        raise RuntimeError(f"the pattern takes {len(values)} values, and its replacement {len(names)}: {given}")
    copied = {name: renamed.get(value, value) if isinstance(value, Node) else value
              for name, value in zip(names, values, strict=True)}  # fmt: skip
    former = set(graph.nodes)
    with graph.inserting_before(_first_user(graph, inside)):
        result = graph.graph_copy(given, copied)
    made = [node for node in graph.nodes if node not in former]
    results = list(result) if isinstance(result, tuple | list) else [result]
    if len(results) != len(match.returning_nodes):
        raise RuntimeError(f"the pattern gives {len(match.returning_nodes)} values, and its replacement {len(results)}")
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        renamed[old] = new
    for node in reversed(list(graph.nodes)):
        if node in inside and not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _first_user(graph: Graph, inside: list[Node]) -> Node:
    """Where the copy goes: before the first step outside that takes what comes out, or the last inside where none does."""
    users = {user for node in inside for user in node.users if user not in inside}
    return next((node for node in graph.nodes if node in users), inside[0])


def _adopt(gm: GraphModule, replacement: Module) -> None:
    """Give the module what the replacement names and it has not, and take out what nobody names."""
    for node in gm.graph.nodes:
        if node.op in ("get_attr", "call_module") and not _has_attr(gm, str(node.target)):
            _take(gm, str(node.target), replacement)
    gm.delete_all_unused_submodules()
