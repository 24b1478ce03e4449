"""Functions rewritten before they are traced, steps that are done once, types of tensors."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.rewriter import RewritingTracer
from rushlight.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise


class Inner(nn.Module):
    def forward(self, x):
        assert x.sum() > 0, "inside"
        return x * factor()


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.inner = nn.Linear(2, 2), Inner()

    def forward(self, x):
        assert x.shape[0] == 2
        y: int = x + 1
        return self.inner(self.layer(y).abs())


def factor() -> int:
    return 2


def traced(what) -> fx.GraphModule:
    tracer = RewritingTracer()
    graph = tracer.trace(what)
    return fx.GraphModule(tracer.root, graph)


def test_asserts_are_steps_and_annotations_are_kept() -> None:
    net = Outer()
    module = traced(net)
    assert [node.target for node in module.graph.nodes].count(torch._assert) == 2
    assert any(node.type == "int" or node.type is int for node in module.graph.nodes)
    assert torch.equal(module(torch.ones(2, 2)), net(torch.ones(2, 2)))
    with pytest.raises(AssertionError):
        module(torch.ones(3, 2))
    with pytest.raises(AssertionError):  # the module itself is as it was
        net(torch.ones(3, 2))


def test_functions_keep_the_variables_around_them() -> None:
    limit = 3

    def function(x, *, more=2):
        assert x > limit, "too small"
        return x + limit + more

    assert traced(function)(torch.tensor(4)).item() == 9
    with pytest.raises(AssertionError, match="too small"):
        traced(function)(torch.tensor(1))


def test_steps_that_do_the_same_are_done_once() -> None:
    def function(x):
        a, b, c = x + 1, x + 1, x + 1.0
        y = x.clone()
        y.add_(1)
        y.add_(1)
        return torch.neg(a) + torch.neg(b) + torch.stack([a, b]).sum(0) + c + y

    module = fx.symbolic_trace(function)
    result = CSEPass()(module)
    x = torch.tensor([1, 2])
    assert result.modified and torch.equal(result.graph_module(x), module(x))
    names = [node.name for node in result.graph_module.graph.nodes]
    assert "neg_1" not in names and "add_1" not in names and names.count("add__1") == 1
    again = CSEPass()(result.graph_module)
    assert not again.modified
    kept = CSEPass(banned_ops={torch.neg})(module).graph_module.graph.nodes
    assert [node.target for node in kept].count(torch.neg) == 2
    assert torch.ops.aten.rand in get_CSE_banned_ops()


def test_types_of_tensors_agree_where_both_are_known() -> None:
    some, all_known, other = TensorType((1, Dyn)), TensorType((1, 3)), TensorType((2, 3))
    assert TensorType[1, 3] == all_known and repr(some) == "TensorType[(1, Dyn)]" and some != all_known
    assert is_consistent(some, all_known) and not is_consistent(some, other) and is_consistent(Dyn, other)
    assert is_more_precise(all_known, some) and not is_more_precise(some, all_known) and is_more_precise(some, Dyn)


def test_modules_of_a_pattern_are_those_of_their_paths() -> None:
    class Pattern(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

    class Replacement(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.new = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return self.new(x)

    module = fx.symbolic_trace(Outermost())
    assert len(fx.replace_pattern(module, Pattern(), Replacement())) == 1
    called = [node.target for node in module.graph.nodes if node.op == "call_module"]
    assert called == ["new", "inner.layer"] and sorted(dict(module.named_modules())) == [
        "",
        "inner",
        "inner.layer",
        "new",
    ]


class Outermost(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.inner = nn.Linear(2, 2), nn.Sequential()
        self.inner.add_module("layer", nn.Linear(2, 2))

    def forward(self, x):
        return self.inner(self.layer(x))


def test_two_arguments_of_a_pattern_are_two_values() -> None:
    module = fx.symbolic_trace(lambda x, y: torch.mul(x, x) + torch.mul(x, y))
    found = fx.replace_pattern(module, lambda a, b: torch.mul(a, b), lambda a, b: torch.sub(a, b))
    assert len(found) == 1 and module(torch.tensor(3), torch.tensor(2)) == 10
