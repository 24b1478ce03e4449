"""A graph cut into parts, each a module of its own, and a graph that calls them."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem as _getitem
from typing import TYPE_CHECKING, Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


__all__ = ["Partition", "split_module"]

_CALLS = ("call_function", "call_method", "call_module")


class Partition:
    """A part: its steps, and what goes in and out, by the nodes of the graph that is cut."""

    def __init__(self, name: str):
        self.name, self.submod_name = name, f"submod_{name}"
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.partitions_dependent_on: dict[str, None] = {}
        self.graph, self.targets = Graph(), dict[str, Any]()

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.nodes},\n inputs: {list(self.inputs)},\n outputs: {list(self.outputs)}"
        )

    def built(self, module: GraphModule, qualname_map: dict[str, str] | None, tuple_return: bool) -> GraphModule:
        """The part as a module."""
        env = {given: self.graph.placeholder(given.name, given.type) for given in self.inputs}
        for given, made in env.items():
            made.meta = dict(given.meta)
        for node in self.nodes:
            env[node] = self.graph.node_copy(node, lambda n: env[n])
            if node.op == "call_module":
                target = str(node.target).replace(".", "_")
                env[node].target = target
                self.targets[target] = module.get_submodule(str(node.target))
                if qualname_map is not None:
                    qualname_map[f"{self.submod_name}.{target}"] = str(node.target)
        found = [env[node] for node in self.outputs]
        self.graph.output(found[0] if len(found) == 1 and not tuple_return else tuple(found))
        made_module = GraphModule(self.targets, self.graph)
        made_module.training = module.training
        return made_module


def _parts(graph: Graph, split_callback: Callable[[Node], Any]) -> tuple[dict[str, Partition], dict[Node, Partition]]:
    """The parts by name, and the part of each step, with what each of them needs of others."""
    parts: dict[str, Partition] = {}
    of: dict[Node, Partition] = {}
    for node in graph.nodes:
        if node.op in _CALLS:
            name = str(split_callback(node))
            part = of[node] = parts.setdefault(name, Partition(name))
            part.nodes.append(node)
        for used in node.all_input_nodes if node.op in (*_CALLS, "output") else ():
            _crosses(used, node, of)
    return parts, of


def _crosses(used: Node, user: Node, of: dict[Node, Partition]) -> None:
    """Note that a step takes the result of another, where they are of two parts."""
    giver, taker = of.get(used), of.get(user)
    if giver is taker:
        return
    if giver is not None:
        giver.outputs[used] = None
    if taker is not None:
        taker.inputs[used] = None
        if giver is not None:
            taker.partitions_dependent_on[giver.name] = None


def _ordered(parts: dict[str, Partition]) -> list[Partition]:
    """The parts, each after those that it needs.  Raises RuntimeError where two need each other."""
    done: list[Partition] = []
    left = dict(parts)
    while left:
        ready = next((p for p in left.values() if not any(name in left for name in p.partitions_dependent_on)), None)
        if ready is None:
            raise RuntimeError("cycle exists between partitions!")
        done.append(left.pop(ready.name))
    return done


def split_module(m: GraphModule, root_m: object, split_callback: Callable[[Node], Any], qualname_map: dict[str, str] | None = None,
                 keep_original_order: bool = False, keep_original_node_name: bool = False, *, partition_affix: str | None = None,
                 tuple_return: bool = False) -> GraphModule:  # fmt: skip
    """A module that calls ``submod_0``, ``submod_1``, ..., which have the steps of `m` between them.

    Args:
        m, root_m: the traced module, and what it was traced from, which is not needed.
        split_callback: the name or number of a step's part; asked in order, of calls alone.  Parameters are passed in.
        qualname_map: filled with which path in `m` each module in the parts had.
        keep_original_order: whether parameters are read where the first part needs them, in place of at the beginning; parts
            are in the order of their first steps, as far as they can be.  keep_original_node_name: taken.
        partition_affix: between ``submod`` and the number.
        tuple_return: whether a part with one result returns a tuple of it.

    Raises RuntimeError where two parts need each other.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: x.exp().sin().relu())
    >>> parts = split_module(traced, None, lambda node: node.name == "relu")
    >>> [name for name, _ in parts.named_children()]
    ['submod_False', 'submod_True']
    """
    parts, _ = _parts(m.graph, split_callback)
    base, env, modules = Graph(), dict[Node, Any](), dict[str, Any]()

    def given(node: Node) -> Node:
        """What stands for a node of the module's graph: a parameter is read now, where it was not."""
        if node not in env:
            env[node] = base.node_copy(node)
            if node.op == "get_attr":
                modules[str(node.target)] = _attribute(m, str(node.target))
        return env[node]  # type: ignore[no-any-return]

    for node in m.graph.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and not keep_original_order):
            given(node)
    for part in _ordered(parts):
        if partition_affix:
            part.submod_name = f"submod_{partition_affix}_{part.name}"
        modules[part.submod_name] = part.built(m, qualname_map, tuple_return)
        result = base.call_module(part.submod_name, tuple(given(node) for node in part.inputs))
        if len(part.outputs) == 1 and not tuple_return:
            env[next(iter(part.outputs))] = result
        else:
            env.update({node: base.call_function(_getitem, (result, i)) for i, node in enumerate(part.outputs)})
    last = m.graph.output_node()
    base.output(map_arg(last.args[0], given)).meta = dict(last.meta)
    split = GraphModule(modules, base)
    split.training = m.training
    return split


def _attribute(module: Module, path: str) -> object:
    for part in path.split("."):
        module = getattr(module, part)
    return module
