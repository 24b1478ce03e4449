"""Groups of steps that something else can run, as large as they can be."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.names import qualified_name
from rushlight.fx.node import Node
from rushlight.fx.passes.operator_support import OperatorSupportBase
from rushlight.fx.passes.utils.fuser_utils import comes_back, downstream, fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]

NO_WORK = frozenset({"torch.ops.aten.view", "_operator.getitem"})  # what is not worth a group


def _name(node: Node) -> str:
    """What a step calls, as PyTorch names it."""
    name = qualified_name(node.target)
    return f"_{name}" if name.startswith("operator.") else name


class Partition:
    """A group of steps."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        found = list(nodes or ())
        self.nodes: dict[Node, int | None] = dict.fromkeys(found)
        if node_orders is not None:
            self.nodes.update(zip(found, node_orders, strict=True))

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Take a step in."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Take a step out."""
        del self.nodes[node]

    def size(self) -> int:
        """How many steps there are."""
        return len(self.nodes)

    def __repr__(self) -> str:
        return str(self.nodes)


class CapabilityBasedPartitioner:
    """Puts steps that are supported into groups that can each be one step.

    graph_module: the program; operator_support: says of each step whether it is supported; allows_single_node_partition: whether
    a group may do one thing alone; non_compute_ops: names of functions that count for nothing there;
    allowed_single_node_partition_ops: of those that may be alone; skip_horizontal_fusion: whether steps only join
    those whose results they give or take.
    """

    def __init__(self, graph_module: GraphModule, operator_support: OperatorSupportBase, allows_single_node_partition: bool = False,
                 non_compute_ops: Sequence[str] | None = None, allowed_single_node_partition_ops: Sequence[str] | None = None,
                 skip_horizontal_fusion: bool = False) -> None:  # fmt: skip
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self) -> list[Partition]:
        """The groups.  From the end on each step begins one, which is joined with all others that it can be one with."""
        nodes = list(self.graph_module.graph.nodes)
        bits = downstream(nodes)
        groups: dict[int, Partition] = {}
        begun: dict[int, int] = {}  # when the first of a group's steps was met
        home: dict[Node, int] = {}
        for number, node in enumerate(reversed(nodes)):
            if self._is_node_supported(node):
                groups[number], begun[number], home[node] = Partition(number, [node]), number, number
            elif self.skip_horizontal_fusion:
                continue
            others = [key for key, _ in sorted(begun.items(), key=lambda item: item[1]) if key != number]
            if self.skip_horizontal_fusion:
                others = [
                    key for key in dict.fromkeys(home[user] for user in node.users if user in home) if key != number
                ]
            ids = [number] * (number in groups) + others
            for other in ids[1:]:
                ids[0] = self._joined(groups, begun, home, ids[0], other, nodes, bits)
        self._keep_items(groups, home)
        if not self.allows_single_node_partition:
            groups = {key: group for key, group in groups.items() if self._work(group) > 1}
        return [group for group in groups.values() if group.size()]

    @staticmethod
    def _joined(groups: dict[int, Partition], begun: dict[int, int], home: dict[Node, int], one: int, other: int,
                nodes: list[Node], bits: tuple[dict[Node, int], dict[Node, int]]) -> int:  # fmt: skip
        """The group that two are now: the larger, or still the first where they cannot be one."""
        if comes_back([*groups[one].nodes, *groups[other].nodes], *bits, nodes):
            return one
        kept, gone = (one, other) if groups[one].size() >= groups[other].size() else (other, one)
        groups[kept].nodes.update(groups[gone].nodes)
        home.update(dict.fromkeys(groups.pop(gone).nodes, kept))
        begun[kept] = min(begun[kept], begun.pop(gone))
        return kept

    def _keep_items(self, groups: dict[int, Partition], home: dict[Node, int]) -> None:
        """Items of a tuple that one step gives go where it is."""
        for node in self.graph_module.graph.nodes:
            if all(user.op == "call_function" and user.target is operator.getitem for user in node.users):
                for user in [user for user in node.users if home.get(user) != home.get(node)]:
                    if user in home:
                        groups[home.pop(user)].remove_node(user)
                    if node in home:
                        home[user] = home[node]
                        groups[home[node]].add_node(user)

    def _work(self, group: Partition) -> int:
        """How many functions a group calls that count; one that may be alone counts twice."""
        names = [_name(node) for node in group.nodes if node.op == "call_function"]
        counted = sum(name not in NO_WORK and name not in self.non_compute_ops for name in names)
        return counted + sum(name in self.allowed_single_node_partition_ops for name in names)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take out of each group what counts for nothing, where it only gives to the group or takes from it at its borders."""
        for group in partitions:
            idle = [node for node in group.nodes if node.op == "call_function" and _name(node) in self.non_compute_ops]
            moved = True
            while moved:
                moved = False
                for node in idle:
                    inside = [other for other in (*node.all_input_nodes, *node.users) if other in group.nodes]
                    border = all(other not in group.nodes for other in node.all_input_nodes) or all(
                        other not in group.nodes for other in node.users
                    )
                    if node in group.nodes and inside and border:
                        group.remove_node(node)
                        moved = True

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """The program with each group in a submodule."""
        return fuse_by_partitions(self.graph_module, [group.nodes for group in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """The program with the groups that are found in submodules."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
