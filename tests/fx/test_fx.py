"""``torch.fx``: programs as graphs."""

import copy
import operator
import pickle

import pytest

import rushlight as torch
from rushlight import fx, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(3, 4))
        self.layers = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
        self.register_buffer("shift", torch.ones(5))

    def forward(self, x, times=2, *, flat: bool = False):
        first, second = x.chunk(2)
        y = self.layers(first + self.scale).clamp(min=0.0) + self.shift
        return y.view(y.shape[0], -1) * times, {"second": second[..., 0]}


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net()


def same(a, b) -> bool:
    return a[0].equal(b[0]) and a[1]["second"].equal(b[1]["second"])


def test_a_traced_module_does_the_same_and_shares_parameters(net) -> None:
    traced = fx.symbolic_trace(net)
    x = torch.rand(6, 4)
    assert same(traced(x), net(x)) and same(traced(x, times=3), net(x, 3))
    assert traced.scale is net.scale and dict(traced.named_parameters()).keys() == dict(net.named_parameters()).keys()
    traced(x)[0].sum().backward()
    assert net.scale.grad is not None and set(traced.state_dict()) == set(net.state_dict())


def test_the_steps_are_there_to_look_at(net) -> None:
    graph = fx.symbolic_trace(net).graph
    kinds = [node.op for node in graph.nodes]
    assert kinds.count("placeholder") == 3 and kinds.count("call_module") == 2 and kinds[-1] == "output"
    (chunk,) = graph.find_nodes(op="call_method", target="chunk")
    assert chunk.args[1] == 2 and [user.target for user in chunk.users] == [operator.getitem] * 2
    assert "%chunk : [num_users=2] = call_method[target=chunk](args = (%x, 2), kwargs = {})" in str(graph)
    graph.lint()


def test_copied_and_kept_in_files(net) -> None:
    traced = fx.symbolic_trace(net)
    x = torch.rand(6, 4)
    again = pickle.loads(pickle.dumps(traced))
    other = copy.deepcopy(traced)
    assert same(again(x), net(x)) and same(other(x), net(x)) and other.scale is not net.scale
    assert other.code == traced.code and again.code == traced.code


def test_a_graph_can_be_changed(net) -> None:
    traced = fx.symbolic_trace(net)
    for node in traced.graph.find_nodes(op="call_method", target="clamp"):
        with traced.graph.inserting_after(node):
            new = traced.graph.call_method("neg", (node.args[0],))
        node.replace_all_uses_with(new)
        with pytest.raises(RuntimeError, match="still had"):
            traced.graph.erase_node(new)
        traced.graph.erase_node(node)
    traced.recompile()
    x = torch.rand(6, 4)
    assert traced(x)[0].equal((-net.layers(x[:3] + net.scale) + 1) * 2)
    assert "neg" in traced.code and "clamp" not in traced.code


def test_steps_go_to_a_place_from_the_call_on_until_its_context_ends(net) -> None:
    graph = fx.symbolic_trace(net).graph
    first, last = next(iter(graph.nodes)), list(graph.nodes)[-1]
    place = graph.inserting_after(first)
    new = graph.call_function(torch.sigmoid, (first,))
    with place, graph.inserting_before(last):
        inner = graph.call_function(torch.neg, (new,))
    outer = graph.placeholder("behind")
    assert first.next is new and inner.next is last and last.next is outer
    graph.lint()
    with graph.inserting_before():
        front = graph.placeholder("in_front")
    with graph.inserting_after():
        back = graph.call_function(torch.neg, (new,))
    assert next(iter(graph.nodes)) is front and list(graph.nodes)[-1] is back


def test_libraries_know_the_class_whose_forward_is_the_graph(net) -> None:
    class Mine(fx.GraphModule):
        pass

    traced = fx.symbolic_trace(net)
    for module in (traced, Mine(net, traced.graph), copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert str(type(module)).endswith(".fx.graph_module.GraphModule.__new__.<locals>.GraphModuleImpl'>")
        assert "forward" in vars(type(module)) and "forward" not in vars(module)
    assert type(traced).__name__ == type(net).__name__ and type(traced) is not type(fx.symbolic_trace(net))


fx.wrap("write_")


def write_(y):
    y[0] = 5


def test_dead_code_goes_and_writes_stay() -> None:
    def program(x):
        unused = x * 3  # noqa: F841
        y = x + 1
        write_(y)
        return y

    traced = fx.symbolic_trace(program)
    assert traced.graph.eliminate_dead_code()
    traced.recompile()
    assert "*" not in traced.code and traced(torch.zeros(2)).tolist() == [5, 1]


def test_what_depends_on_values_is_refused() -> None:
    with pytest.raises(fx.proxy.TraceError, match="inputs to control flow"):
        fx.symbolic_trace(lambda x: x if x > 0 else -x)
    with pytest.raises(fx.proxy.TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: [row for row in x])  # noqa: C416
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing"):
        fx.symbolic_trace(lambda x: len(x))


def test_arguments_that_are_not_traced() -> None:
    def program(x, negative):
        return -x if negative else x

    traced = fx.symbolic_trace(program, concrete_args={"negative": True})
    assert traced(torch.ones(1), True).item() == -1 and "if" not in traced.code


def helper(x):
    return x if x.sum() > 0 else -x


fx.wrap("helper")


def test_wrapped_functions_are_steps() -> None:
    traced = fx.symbolic_trace(lambda x: helper(x) + 1)
    assert [node.op for node in traced.graph.nodes] == ["placeholder", "call_function", "call_function", "output"]
    assert traced(torch.tensor([-2.0])).item() == 3 and helper(torch.tensor([-2.0])).item() == 2
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("helper")


def test_tracers_choose_what_is_a_step(net) -> None:
    class Deep(fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, nn.Sequential)

    graph = Deep().trace(net)
    assert [node.target for node in graph.find_nodes(op="call_module")] == ["layers"]


def test_interpreters_and_transformers(net) -> None:
    class Doubling(fx.Transformer):
        def call_method(self, target, args, kwargs):
            result = super().call_method(target, args, kwargs)
            return result * 2 if target == "view" else result

    traced = fx.symbolic_trace(net)
    x = torch.rand(6, 4)
    assert same(fx.Interpreter(traced).run(x), net(x))
    doubled = Doubling(traced).transform()
    assert doubled(x)[0].allclose(net(x)[0] * 2)
    with pytest.raises(TypeError, match="While executing %add"):
        fx.Interpreter(fx.symbolic_trace(lambda x: x + "a")).run(x)


def test_shapes_of_all_steps(net) -> None:
    from rushlight.fx.passes.shape_prop import ShapeProp

    traced = fx.symbolic_trace(net)
    ShapeProp(traced).propagate(torch.rand(6, 4))
    (clamp,) = traced.graph.find_nodes(op="call_method", target="clamp")
    assert clamp.meta["tensor_meta"].shape == (3, 5) and clamp.meta["tensor_meta"].dtype is torch.float32


def test_patterns_are_replaced_where_they_stand_alone() -> None:
    traced = fx.symbolic_trace(lambda x, y: ((x + y).relu() + (y + x)).relu())
    found = fx.replace_pattern(traced, lambda a, b: (a + b).relu(), lambda a, b: (a * b).sigmoid())
    x, y = torch.rand(3), torch.rand(3)
    inner = (x * y).sigmoid()
    assert len(found) == 2 and traced(x, y).allclose((inner * (y + x)).sigmoid())


def test_code_that_runs_alone() -> None:
    traced = fx.symbolic_trace(lambda x: x.to(torch.float64).sum(dim=(0, 1), keepdim=True)[:, None] ** 2)
    assert traced(torch.ones(2, 2)).tolist() == [[[16.0]]]
    assert "dtype" not in traced.code and "torch.float64" in traced.code


@pytest.mark.parametrize(
    "function", [torch._assert, torch.vmap, torch.is_grad_enabled, torch.hann_window, torch.segment_reduce]
)
def test_functions_of_torch_are_written_by_its_name(function) -> None:
    graph = fx.Graph()
    graph.output(graph.call_function(function, (graph.placeholder("x"),)))
    assert f"= torch.{function.__name__}(x)" in graph.python_code("self").src


def test_functions_are_written_by_their_public_names() -> None:
    def program(x):
        return nn.functional.gelu(torch.relu(x)), torch.linalg.norm(torch.cat([x, x]))

    traced = fx.symbolic_trace(program)
    for text in (
        "= torch.nn.functional.gelu(relu)",
        "= torch.relu(x)",
        "= torch.linalg.norm(cat)",
        "= torch.cat([x, x])",
    ):
        assert text in traced.code
    x = torch.rand(3)
    assert all(torch.equal(a, b) for a, b in zip(traced(x), program(x), strict=True))
    assert torch.equal(pickle.loads(pickle.dumps(fx.symbolic_trace(lambda x: torch.relu(x))))(x), torch.relu(x))


def test_modules_of_two_graphs_copy_what_both_name(net) -> None:
    graph = fx.Tracer().trace(net)

    class Dual(fx.GraphModule):
        def __init__(self, root, graph):
            super(fx.GraphModule, self).__init__()
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    fx.graph_module._copy_attr(root, self, node.target)
            self.graph = graph

    x = torch.rand(6, 4)
    assert same(Dual(net, graph)(x), net(x))
    assert fx.graph_module._CodeOnlyModule({**vars(net)}).scale is net.scale


def test_submodules_nobody_uses() -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(1, 1), nn.ReLU()))
    assert traced.add_submodule("more.inner", nn.Tanh()) and isinstance(traced.more.inner, nn.Tanh)
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "more") and hasattr(traced, "0")


def test_lists_with_what_is_not_there_yet_are_joined() -> None:
    def forward(x):  # type: ignore[no-untyped-def]
        return torch.cat([x, torch.ones(1), x], -1), torch.stack([x, x]), torch.hstack((x, x))

    x = torch.tensor([2.0])
    for got, want in zip(torch.fx.symbolic_trace(forward)(x), forward(x), strict=True):
        assert torch.equal(got, want)


def test_hooks_of_modules_of_graphs_run() -> None:
    traced, seen = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU())), []
    traced.register_forward_pre_hook(lambda module, args: seen.append("before"))
    traced.register_forward_hook(lambda module, args, result: seen.append("after"))
    traced.register_full_backward_hook(lambda module, inputs, outputs: seen.append("back"))
    traced(torch.randn(2, 3, requires_grad=True)).sum().backward()
    assert seen == ["before", "after", "back"]
    with pytest.raises(RuntimeError, match="shapes"):  # and the error of a module that has hooks is its own
        traced(torch.randn(2, 7))
