"""Groups of steps that something else runs: which are proposed, and what the program is with each of them in a module."""

from __future__ import annotations

import operator

import pytest

import rushlight as torch
from rushlight import fx
from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from rushlight.fx.passes.operator_support import OperatorSupportBase
from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions, topo_sort, validate_partition


class Sums(OperatorSupportBase):
    def is_node_supported(self, submodules, node) -> bool:
        return node.target in (operator.add, operator.getitem, torch.chunk, torch.relu)


def between(a, b):
    first = a + b
    second = first + 1
    outside = torch.neg(second)
    return outside + first + 2, second


def pieces(a, b):
    x, y = torch.chunk(a, 2)
    return torch.neg(x) + y


def apart(a, b):
    return torch.neg(a + 1) + torch.neg(b + 1)


def names(groups) -> list[list[str]]:
    return sorted(sorted(node.name for node in group.nodes) for group in groups)


@pytest.mark.parametrize(
    "program, alone, want",
    [
        (between, False, [["add", "add_1"], ["add_2", "add_3"]]),
        (pieces, False, []),
        (pieces, True, [["add"], ["chunk", "getitem", "getitem_1"]]),
        (apart, True, [["add", "add_1"], ["add_2"]]),
        (apart, False, [["add", "add_1"]]),
    ],
)
def test_groups_are_as_large_as_can_be_and_run_as_the_program_does(program, alone, want) -> None:
    module = fx.symbolic_trace(program)
    partitioner = CapabilityBasedPartitioner(module, Sums(), allows_single_node_partition=alone)
    groups = partitioner.propose_partitions()
    assert names(groups) == want
    a, b = torch.arange(4.0), torch.ones(4)
    before = module(a, b)
    fused = partitioner.fuse_partitions(groups)
    called = [node.target for node in fused.graph.nodes if node.op == "call_module"]
    assert sorted(called) == [f"fused_{i}" for i in range(len(want))]
    torch.testing.assert_close(fused(a, b), before)


def test_steps_between_which_others_stand_are_no_group() -> None:
    module = fx.symbolic_trace(between)
    node = {node.name: node for node in module.graph.nodes}
    assert validate_partition([node["add"], node["add_1"]]) and not validate_partition([node["add"], node["add_2"]])
    assert topo_sort([node["add_1"], node["add"]]) == [node["add"], node["add_1"]]
    with pytest.raises(AssertionError, match="dependency cycles"):
        fuse_by_partitions(module, [[node["add"], node["add_2"]]])


def test_steps_only_join_their_neighbours_where_that_is_asked_for() -> None:
    module = fx.symbolic_trace(lambda a, b: (a + 1, b + 1))
    whole, single = (
        CapabilityBasedPartitioner(module, Sums(), True, skip_horizontal_fusion=skip).propose_partitions()
        for skip in (False, True)
    )
    assert names(whole) == [["add", "add_1"]] and names(single) == [["add"], ["add_1"]]


def test_what_counts_for_nothing_at_the_borders_of_a_group_goes() -> None:
    module = fx.symbolic_trace(lambda a: torch.relu(a[0] + 1)[0])
    group = Partition(0, [node for node in module.graph.nodes if node.op == "call_function"])
    CapabilityBasedPartitioner(module, Sums(), non_compute_ops=["_operator.getitem"]).remove_bookend_non_compute_ops(
        [group]
    )
    assert names([group]) == [["add", "relu"]]
