"""Modules of graphs as objects: what they keep when copied, where their code is said to be from, what steps keep."""

import collections
import copy
import dataclasses
import enum
import functools
import inspect
import pickle

import pytest

import rushlight as torch
from rushlight import fx
from rushlight.fx import graph_module
from rushlight.fx._symbolic_trace import PHWithMeta, is_fx_symbolic_tracing
from rushlight.fx.graph import _snake_case
from rushlight.utils import _pytree as pytree


class Kind(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass
class Both:
    left: object
    right: object


Pair = collections.namedtuple("Pair", "x y")


class Owned:
    def __init__(self, a, b) -> None:
        self.a, self.b = a, b


pytree.register_pytree_node(Owned, lambda found: ([found.a, found.b], None), lambda items, _: Owned(*items))


class Leafless(fx.Tracer):
    """A tracer that files can name."""


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        return self.used(x).relu()


@fx.wrap
def kept(x, *others):
    return x, *others


def _arguments(fn):
    """What the step of `kept` keeps."""
    (node,) = fx.symbolic_trace(fn).graph.find_nodes(op="call_function", target=kept)
    return node.args[1:]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_what_no_step_names_is_kept_in_copies_and_files(again) -> None:
    module = fx.symbolic_trace(Net())
    module.note = "kept"
    module.add_module("more", torch.nn.Linear(1, 1))
    module.register_buffer("extra", torch.ones(2))
    made = again(module)
    assert list(made.state_dict()) == list(module.state_dict())
    assert made.note == "kept" and made.graph is not module.graph
    made.graph.lint()


def test_a_shallow_copy_shares_the_graph_and_tensors() -> None:
    module = fx.symbolic_trace(Net())
    made = copy.copy(module)
    assert made.graph is module.graph and made.used is module.used


def test_the_class_of_the_tracer_is_known_from_files() -> None:
    module = fx.GraphModule(torch.nn.Module(), Leafless().trace(lambda x: x + 1))
    assert pickle.loads(pickle.dumps(module)).graph._tracer_cls is Leafless


def test_the_code_says_where_it_was_traced() -> None:
    made = fx.symbolic_trace(Net()).forward.__code__.co_filename
    assert "test_graph_modules.py" in made and "in forward" in made


def test_the_line_that_fails_is_printed_and_that_of_a_submodule_is_not(capsys) -> None:
    with pytest.raises(AttributeError):
        fx.symbolic_trace(lambda x: x.nothing() + 1)(torch.ones(1))
    said = capsys.readouterr().err
    assert "Call using an FX-traced Module, line" in said and ">     nothing = x.nothing()" in said
    with pytest.raises(RuntimeError):
        fx.symbolic_trace(Net())(torch.ones(1, 5))
    assert capsys.readouterr().err == ""


def test_lines_of_code_know_their_steps() -> None:
    module = fx.symbolic_trace(lambda a, b: torch.sin(a) + torch.cos(b))
    assert {1: 2, 2: 3, 3: 4, 4: 5}.items() <= module._lineno_map.items()
    module.graph.on_generate_code(lambda _: lambda lines: ["print('hello')\n", *lines])
    module.recompile()
    assert {2: 2, 3: 3, 4: 4, 5: 5}.items() <= module._lineno_map.items()


def test_objects_that_hold_values_are_steps_wherever_they_stand() -> None:
    (both,), (pair,) = _arguments(lambda x: kept(x, [Both(x, 1)]))[0], _arguments(lambda x: kept(x, [Pair(x, 1)]))[0]
    assert both.target is Both and dict(both.kwargs)["right"] == 1
    assert pair.target is Pair and pair.args[1] == 1
    traced = fx.symbolic_trace(lambda x: Both(x + 1, [x]))
    assert traced(torch.ones(1)).left.item() == 2


def test_members_of_enumerations_and_ranges_are_written_as_they_are() -> None:
    traced = fx.symbolic_trace(lambda x: kept(x, Kind.ONE, range(3), torch.strided))
    assert "Kind.ONE, range(0, 3), torch.strided)" in traced.code
    assert traced(1) == (1, Kind.ONE, range(3), torch.strided)


def test_what_no_step_can_keep_is_refused() -> None:
    with pytest.raises(RuntimeError, match="cannot contain a Node"):
        fx.symbolic_trace(lambda x: kept(x, {x: 1}))
    with pytest.raises(NotImplementedError, match="argument of type"):
        fx.symbolic_trace(lambda x: kept(x, b"bytes"))
    with pytest.raises(NameError, match="not a member"):
        fx.symbolic_trace(lambda x: kept(x, torch.nn.Parameter(torch.ones(1))))


def test_each_argument_is_asked_of_a_tracer_that_knows_more() -> None:
    class Bytes(fx.Tracer):
        def create_arg(self, a):
            return a.decode() if isinstance(a, bytes) else super().create_arg(a)

    graph = Bytes().trace(lambda x: kept(x, [(b"text",)]))
    assert graph.find_nodes(op="call_function", target=kept)[0].args[1] == [("text",)]


def test_a_module_without_self_is_refused() -> None:
    class Stars(torch.nn.Module):
        def forward(*args):
            return args[1]

    with pytest.raises(RuntimeError, match="cannot be part of"):
        fx.symbolic_trace(Stars())


def test_trees_of_registered_classes_are_taken_apart() -> None:
    traced = fx.symbolic_trace(lambda x: x.a + x.b, concrete_args={"x": Owned(fx.PH, fx.PH)})
    assert traced(Owned(1, 2)) == 3
    traced = fx.symbolic_trace(lambda x: x.x + x.y, concrete_args={"x": Pair(fx.PH, fx.PH)})
    assert traced(Pair(1, 2)) == 3


def test_a_module_called_twice_has_two_names_of_its_own() -> None:
    class Twice(torch.nn.Sequential):
        def forward(self, x):
            return self[0](self[1](self[0](x)))

    names = [node.name for node in fx.symbolic_trace(Twice(torch.nn.ReLU(), torch.nn.ReLU())).graph.nodes]
    assert names == ["x", "_0", "_1", "_0_1", "output"]


def test_steps_put_after_one_come_right_after_it() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    with graph.inserting_after(x):
        first, second = graph.call_function(torch.neg, (x,)), graph.call_function(torch.sin, (x,))
    assert list(graph.nodes) == [x, second, first]
    assert x < second < first and sorted([first, x, second]) == [x, second, first]
    with pytest.raises(AssertionError, match="is not in graph"):
        graph.inserting_before(fx.Graph().placeholder("x"))


def test_nodes_erased_twice_are_warned_of_and_names_twice_refused() -> None:
    graph = fx.Graph()
    graph.erase_node(x := graph.placeholder("x"))
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(x)
    graph.placeholder("a").name = "b"
    graph.placeholder("c").name = "b"
    with pytest.raises(RuntimeError, match="redefined name b"):
        graph.lint()


def test_whoever_asked_hears_of_changes_of_a_graph() -> None:
    module, heard = fx.symbolic_trace(lambda x: torch.relu(x)), []
    x, relu, _ = module.graph.nodes
    module._register_create_node_hook(lambda node: heard.append(("made", node.name)))
    module._register_replace_node_hook(lambda old, new, user: heard.append((old.name, new, user.name)))
    module._register_erase_node_hook(lambda node: heard.append(("erased", node.name)))
    with module.graph.inserting_after(x):
        relu.replace_all_uses_with(module.graph.call_function(torch.neg, (x,)))
    module.graph.erase_node(relu)
    assert heard == [("made", "neg"), ("relu", "neg", "output"), ("erased", "relu")]


def test_steps_of_what_a_module_lacks_are_warned_of_or_refused() -> None:
    graph = fx.symbolic_trace(Net()).graph
    with pytest.warns(UserWarning, match="no underlying reference"):
        graph.get_attr("nothing")
    with pytest.raises(AttributeError):
        graph.call_module("nothing")


def test_transformed_programs_take_what_they_took_and_say_where_steps_were() -> None:
    module = fx.symbolic_trace(lambda x: x["a"] + 1, concrete_args={"x": {"a": fx.PH}})
    assert fx.Transformer(module).transform()({"a": 1}) == 2
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(lambda x: x + 1)
    _, add, _ = fx.Transformer(fx.GraphModule(tracer.root, graph)).transform().graph.nodes
    assert "test_graph_modules.py" in add.stack_trace


def test_copies_within_a_traced_program_are_the_values() -> None:
    assert fx.symbolic_trace(lambda x: copy.deepcopy(x) + x)(2) == 4


def test_proxies_and_tracers_are_copied_deeply() -> None:
    tracer = Leafless()
    tracer.trace(Net())
    made = copy.deepcopy(fx.Proxy(tracer.graph.output_node(), tracer))
    assert isinstance(made.tracer, Leafless) and made.tracer is not tracer
    assert made.node is not tracer.graph.output_node() and made.node.name == "output"


def test_objects_that_are_called_are_traced_and_own_functions_have_no_annotations() -> None:
    class Called:
        def __call__(self, x):
            return x + 1

    assert fx.symbolic_trace(Called())(1) == 2
    assert fx.symbolic_trace(functools.partial(lambda x, y: x * y, y=3))(2) == 6
    assert "def forward(self, input)" in fx.symbolic_trace(torch.relu).code


def test_placeholders_have_the_defaults_and_marks_that_are_given() -> None:
    graph = fx.Graph()
    x, y = graph.placeholder("x", default_value=inspect.Signature.empty), graph.placeholder("y", default_value=...)
    assert x.args == () and y.args == (...,)
    marked = fx.symbolic_trace(lambda a, b: a + b, concrete_args={"b": PHWithMeta(ph_key="key")})
    assert [getattr(node, "ph_key", None) for node in marked.graph.nodes][:2] == [None, "key"]
    seen = []
    fx.symbolic_trace(lambda x: seen.append(is_fx_symbolic_tracing()) or x)
    assert seen == [True] and not is_fx_symbolic_tracing()


def test_a_tracer_that_checks_it_refuses_changes_of_arguments() -> None:
    class Pure(fx.Tracer):
        check_mutable_operations = True

    Pure().trace(lambda x: torch.relu(x))
    with pytest.raises(RuntimeError, match=r"mutable operation aten::sigmoid\.out"):
        Pure().trace(lambda x: torch.sigmoid(x, out=torch.empty(1)))
    with pytest.raises(RuntimeError, match="mutable operation aten::relu_"):
        Pure().trace(lambda x: torch.relu_(x))


def test_replicas_names_of_classes_and_attributes_by_paths() -> None:
    module = fx.symbolic_trace(Net())
    replica = module._replicate_for_data_parallel()
    assert torch.equal(replica(torch.ones(1, 2)), module(torch.ones(1, 2)))
    assert [_snake_case(name) for name in ("FooBar", "BatchNorm2D", "fooBAR")] == ["foo_bar", "batch_norm2d", "foo_bar"]
    graph_module._assign_attr(torch.ones(2), module, "a.b")
    assert graph_module._has_attr(module, "a.b") and "a.b" in module.state_dict()
    assert graph_module._get_attr(module, "a.b") is module.a.b
    graph_module._del_attr(module, "a.b")
    assert not graph_module._has_attr(module, "a.b")
