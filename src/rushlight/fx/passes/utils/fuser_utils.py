"""Steps of a graph moved into modules, by which they are called."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import legalize_graph

__all__ = [
    "downstream",
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def downstream(nodes: Iterable[Node]) -> tuple[dict[Node, int], dict[Node, int]]:
    """For each node its bit, and the bits of all that depend on it."""
    order = list(nodes)
    bit = {node: 1 << i for i, node in enumerate(order)}
    below: dict[Node, int] = {}
    for node in reversed(order):
        below[node] = 0
        for user in node.users:
            below[node] |= bit[user] | below[user]
    return bit, below


def comes_back(group: Iterable[Node], bit: Mapping[Node, int], below: Mapping[Node, int], nodes: list[Node]) -> bool:
    """Whether what depends on a group, and is outside of it, is needed by it: as one step it would need itself."""
    inside = after = 0
    for node in group:
        inside |= bit[node]
        after |= below[node]
    outside = after & ~inside
    while outside:
        lowest = outside & -outside
        if below[nodes[lowest.bit_length() - 1]] & inside:
            return True
        outside ^= lowest
    return False


def topo_sort(nodes: list[Node]) -> list[Node]:
    """Steps of a graph in an order in which each comes after those that it needs.  Raises AssertionError where there is none."""
    left, done = dict.fromkeys(nodes), dict[Node, None]()
    while left:
        ready = [node for node in left if not any(used in left for used in node.all_input_nodes)]
        if not ready:
            raise AssertionError(
                "topological sorted nodes doesn't have same length as input nodes: they need each other"
            )
        for node in ready:
            done[node] = left.pop(node)
    return list(done)


def validate_partition(partition: list[Node]) -> bool:
    """Whether steps can be one: nothing outside stands between them."""
    if not partition:
        return True
    nodes = list(partition[0].graph.nodes)
    return not comes_back(partition, *downstream(nodes), nodes)


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: Mapping[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of steps, which stay where they are; the nodes that it is to be given, and those that its results stand for.

    nodes: in an order in which they can run; partition_lookup_table: those that belong to it, default: these;
    always_return_tuple: whether one result comes in a tuple, too.  Raises AssertionError for steps of another graph, those that
    were erased, and those between which others stand.
    """
    for node in nodes:
        if node.graph.owning_module is not gm or node._erased:
            raise AssertionError(f"{node} is not in the graph of the module, or was erased from it")
    if not validate_partition(nodes):
        raise AssertionError(
            "Invalid partition, found dependency cycles: what it gives is needed by steps that it needs"
        )
    inside = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    graph, env, inputs = Graph(), dict[Node, Node](), dict[Node, None]()

    def given(node: Node) -> Node:
        if node not in env:
            env[node] = graph.placeholder(node.name, node.type)
            env[node].meta, inputs[node] = dict(node.meta), None
        return env[node]

    for node in nodes:
        env[node] = graph.node_copy(node, given)
    outputs = tuple(node for node in nodes if any(user not in inside for user in node.users))
    results = tuple(env[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(inputs), outputs


def insert_subgm(gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...],
                 insertion_point: Node | None = None) -> GraphModule:  # fmt: skip
    """Call a module of steps, under the name of its class, in the place of these: those who took their results take its.

    insertion_point: the step behind which it is called, default: the last of those that its results stand for.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    behind = insertion_point or max(orig_outputs, default=next(iter(reversed(gm.graph.nodes))).prev)
    with gm.graph.inserting_after(behind):
        called = gm.graph.call_module(name, orig_inputs)
    output = sub_gm.graph.output_node().args[0]
    if len(orig_outputs) == 1 and isinstance(output, Node):
        orig_outputs[0].replace_all_uses_with(called, propagate_meta=True)
        return gm
    at = called
    for i, node in enumerate(orig_outputs):
        with gm.graph.inserting_after(at):
            at = gm.graph.call_function(operator.getitem, (called, i))
        node.replace_all_uses_with(at, propagate_meta=True)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Take steps out, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """The module, with each group of its steps in a submodule of that prefix and a number.  partitions: groups of nodes."""
    for number, group in enumerate(partitions):
        nodes = sorted(group)
        sub, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, sub, inputs, outputs)
        erase_nodes(gm, nodes)
        legalize_graph(gm)
    gm.graph.lint()
    gm.recompile()
    return gm
