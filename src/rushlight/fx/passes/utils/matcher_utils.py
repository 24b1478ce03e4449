"""Parts of a graph that look like a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, leaves

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A part that looks like a pattern.

    anchors: the pattern's last steps; nodes_map: which node, or value, each of the pattern's is; placeholder_nodes:
    what goes in, in the order of the pattern's placeholders; returning_nodes: what comes out, in the order of the
    pattern's results.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds parts of graphs.

    pattern: a graph; its placeholders stand for anything.  match_output: whether the part is to be what the graph returns;
    match_placeholder: whether what goes in is to be placeholders too; remove_overlapping_matches: whether of parts that share
    steps only the first is given; ignore_literals: whether numbers and other values that are no nodes may differ.
    """

    def __init__(self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:  # fmt: skip
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if not any(node.op != "output" for node in pattern.nodes):
            raise ValueError("SubgraphMatcher: the pattern has no steps")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        self.pattern_anchors = (
            [output] if match_output else [n for n in self.pattern_returning_nodes if len(n.users) == 1]
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The parts, in the order of their last steps.  node_name_match: only those whose last step has that name."""
        first, *others = self.pattern_anchors
        found: list[InternalMatch] = []
        for node in graph.nodes:
            if node_name_match and node.name != node_name_match:
                continue
            for match in self._around(
                InternalMatch([*self.pattern_anchors]), [first, *others], list(graph.nodes), node
            ):
                found.append(self._finished(match))
        whole = [match for match in found if self._contained(match)]
        return self._apart(whole) if self.remove_overlapping_matches else whole

    def _around(
        self, match: InternalMatch, anchors: list[Node], nodes: list[Node], start: Node | None
    ) -> list[InternalMatch]:
        """Matches of all anchors; of the first at `start`."""
        if not anchors:
            return [match]
        found = []
        for node in nodes if start is None else [start]:
            trial = InternalMatch(match.anchors, dict(match.nodes_map))
            if self._node(anchors[0], node, trial):
                found += self._around(trial, anchors[1:], nodes, None)
        return found

    def _finished(self, match: InternalMatch) -> InternalMatch:
        match.placeholder_nodes = [match.nodes_map[n] for n in self.pattern_placeholder_nodes if n in match.nodes_map]
        match.returning_nodes = [match.nodes_map[n] for n in self.pattern_returning_nodes]
        return match

    def _node(self, pattern: Node, node: object, match: InternalMatch) -> bool:
        """Whether a node, and what it takes, looks like the pattern's."""
        if pattern in match.nodes_map:
            return match.nodes_map[pattern] is node
        if isinstance(node, Node) and node in match.nodes_map.values():  # two of the pattern's are two
            return False
        if pattern.op == "placeholder" and not self.match_placeholder:
            match.nodes_map[pattern] = node
            return True
        if not isinstance(node, Node) or not self._alike(pattern, node):
            return False
        match.nodes_map[pattern] = node
        return self._value((pattern.args, pattern.kwargs), _in_order(pattern, node), match)

    def _alike(self, pattern: Node, node: Node) -> bool:
        if pattern.op != node.op:
            return False
        if pattern.op in ("placeholder", "output"):
            return True
        return bool(pattern.op == "get_attr" or pattern.target == node.target)

    def _value(self, pattern: object, found: object, match: InternalMatch) -> bool:
        if isinstance(pattern, Node):
            return self._node(pattern, found, match)
        if isinstance(pattern, list | tuple):
            return (isinstance(found, list | tuple) and len(pattern) == len(found)
                    and all(self._value(a, b, match) for a, b in zip(pattern, found, strict=True)))  # fmt: skip
        if isinstance(pattern, dict):
            return (isinstance(found, dict) and pattern.keys() == found.keys()
                    and all(self._value(a, found[key], match) for key, a in pattern.items()))  # fmt: skip
        if isinstance(found, Node):
            return False
        return self.ignore_literals or bool(type(pattern) is type(found) and pattern == found)

    def _contained(self, match: InternalMatch) -> bool:
        """Whether nobody outside uses what is in its middle."""
        inside = {n for p, n in match.nodes_map.items() if isinstance(n, Node) and p.op != "placeholder"}
        given = set(match.returning_nodes)
        return all(user in inside for n in inside - given for user in n.users if n.op != "get_attr")

    def _apart(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        taken: set[Node] = set()
        found = []
        for match in matches:
            inside = {
                n for p, n in match.nodes_map.items() if isinstance(n, Node) and p.op not in ("placeholder", "output")
            }
            if not inside & taken:
                found.append(match)
                taken |= inside
        return found


def _in_order(pattern: Node, node: Node) -> tuple[Any, Any]:
    """What is passed to a node, by position and by name as it is to the pattern's."""
    if len(pattern.args) == len(node.args) and pattern.kwargs.keys() == node.kwargs.keys():
        return node.args, node.kwargs
    ways = [each.normalized_arguments(each.graph.owning_module) for each in (pattern, node)]
    if None in ways or len(leaves(ways[0])) != len(leaves(ways[1])):
        return node.args, node.kwargs
    known = dict(zip(_names(pattern, ways[0]), (*pattern.args, *pattern.kwargs.values()), strict=False))
    given = dict(zip(_names(node, ways[1]), (*node.args, *node.kwargs.values()), strict=False))
    if known.keys() != given.keys():
        return node.args, node.kwargs
    names = list(known)
    return tuple(given[name] for name in names[: len(pattern.args)]), {name: given[name] for name in pattern.kwargs}


def _names(node: Node, way: object) -> list[str]:
    """The names of what is passed to a node."""
    whole = node.normalized_arguments(node.graph.owning_module, normalize_to_only_use_kwargs=True)
    return [*list(whole.kwargs if whole else ())[: len(node.args)], *node.kwargs]
