"""What a run will look at: every node and leaf that gradients reach, or those alone that lie on ways to its targets."""

from __future__ import annotations

from typing import Any

from rushlight.engine.node import EVERY, Edge, Node, Port
from rushlight.tensor import Tensor

# A record of what a node or leaf waits for: [contributions outstanding, gradient so far (a list for several outputs),
# whether it is a leaf].
Records = dict[Any, list[Any]]


def record_of(target: Node | Tensor, outstanding: int) -> list[Any]:
    """The record of a node or leaf that waits for so many contributions."""
    if isinstance(target, Tensor):
        return [outstanding, None, True]
    return [outstanding, [None] * target.count if target.count != 1 else None, False]


def target_of(edge: Edge) -> Node | Tensor:
    """The leaf or node that an edge leads to."""
    return edge.node if isinstance(edge, Port) else edge


def count_contributions(roots: list[Any]) -> Records:
    """For every node and leaf that gradients can reach from `roots` = [(edge, ...)], how many contributions will arrive."""
    records: Records = {}
    stack: list[Any] = []
    for edge, _ in roots:
        target = edge.node if edge.__class__ is Port else edge
        if target not in records:
            records[target] = record_of(target, 0)
            if not records[target][2]:
                stack.append(target)
    while stack:
        for edge in stack.pop().edges:
            if edge is None:
                continue
            record = records.get(edge)
            if record is not None:
                record[0] += 1
            elif edge.__class__ is Port:
                node = edge.node
                record = records.get(node)
                if record is None:
                    records[node] = record_of(node, 1)
                    stack.append(node)
                else:
                    record[0] += 1
            elif isinstance(edge, Tensor):
                records[edge] = [1, None, True]
            else:
                records[edge] = [1, None, False]
                stack.append(edge)
    return records


def count_between(roots: list[Any], targets: dict[Any, Any]) -> tuple[Records, dict[Node, int]]:
    """As `count_contributions`, of what lies on ways from `roots` to `targets` alone, and which edges of each node do.

    targets: keys as those of `Run`. Nothing behind the last of them is looked at.
    """
    wanted = {target for target, _ in targets}
    records: Records = {}
    masks: dict[Node, int] = {}
    for node in sorted(younger(roots, wanted), key=_seq):
        mask, bit, every = 0, 1, True
        for edge in node.edges:
            if edge is not None:
                if edge.__class__ is Port:
                    edge = edge.node
                if edge in masks or edge in wanted:
                    mask |= bit
                    record = records.get(edge)
                    if record is None:
                        records[edge] = record_of(edge, 1)
                    else:
                        record[0] += 1
                else:
                    every = False
            bit += bit
        if mask:
            masks[node] = EVERY if every else mask
    for target in [target_of(edge) for edge, _ in roots]:
        if target not in records and (target in masks or target in wanted):
            records[target] = record_of(target, 0)
    return records, masks


def younger(roots: list[Any], wanted: set[Any]) -> set[Node]:
    """The nodes that gradients reach from `roots` and that may lead to one of `wanted`.

    Edges lead to nodes that were made before, with smaller sequence numbers: a node older than all of `wanted` leads to
    none of them. Of a leaf it is not known when it was made.
    """
    oldest = min(-1 if isinstance(target, Tensor) else target.seq for target in wanted)
    starts = [target_of(edge) for edge, _ in roots]
    found = {node for node in starts if not isinstance(node, Tensor) and node.seq >= oldest}
    stack = list(found)
    while stack:
        for edge in stack.pop().edges:
            if edge.__class__ is Port:
                edge = edge.node
            if edge is None or edge in found or isinstance(edge, Tensor) or edge.seq < oldest:
                continue
            found.add(edge)
            stack.append(edge)
    return found


def _seq(node: Node) -> int:
    return node.seq
