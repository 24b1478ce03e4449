"""Passes of `torch.fx`: graphs cut into modules, put into order, asked what they call, written into folders."""

import copy
import importlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.parity.refusing import refused

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def room(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.fx.{name}")


def traced(t: Any) -> Any:
    class Net(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l, self.p = t.nn.Linear(3, 3), t.nn.Parameter(t.ones(3))
            self.m = t.nn.Sequential(t.nn.Linear(3, 3), t.nn.ReLU())

        def forward(self, x, y):
            a = x + y
            c = self.l(a) * self.p
            return t.cat([self.m(c), a], 1), c.sum()

    return room(t, "_symbolic_trace").symbolic_trace(Net())


def text(module: Any) -> str:
    return "\n".join(line.rstrip() for line in module.code.strip().splitlines())


def cut(t: Any, parts: Callable[[int], Any], **options: Any) -> Any:
    module = traced(t)
    numbers = {n: i for i, n in enumerate(n for n in module.graph.nodes if n.op.startswith("call"))}
    asked: list[str] = []
    split = room(t, "passes.split_module").split_module(
        module, None, lambda n: (asked.append(n.name), parts(numbers[n]))[1], **options
    )
    x = t.arange(6.0).reshape(2, 3)
    same = [t.equal(a, b) for a, b in zip(split(x, x), module(x, x), strict=True)]
    return str(split.graph), text(split), [(name, text(child)) for name, child in split.named_children()], asked, same


def three_parts(t: Any) -> Any:
    places: dict[str, str] = {}
    return cut(t, lambda i: min(i // 2, 2), qualname_map=places), places


def two_parts_by_name(t: Any) -> Any:
    return cut(t, lambda i: "head" if i < 3 else "tail", partition_affix="part")


def parts_that_need_each_other(t: Any) -> Any:
    return refused(lambda: cut(t, lambda i: i % 2))


def collections(t: Any) -> Any:
    c = room(t, "immutable_collections")
    items, table = c.immutable_list([1, 2]), c.immutable_dict({"a": 1})
    node = next(n for n in traced(t).graph.nodes if n.name == "cat")
    changes = [lambda: items.append(1), lambda: items.__setitem__(0, 1), lambda: items.sort(), lambda: items.__iadd__([1]), lambda: table.pop("a"),
               lambda: table.__setitem__("a", 2), lambda: table.update({}), lambda: node.args[0].append(1), lambda: node.kwargs.clear()]  # fmt: skip
    mapped = importlib.import_module(f"{t.__name__}.utils._pytree").tree_map(lambda x: x + 1, [items, table])
    return ([refused(change) for change in changes], hash(items) == hash(tuple(items)), [*items, 3], type(items + items).__name__, table | {"b": 2},
            copy.deepcopy(items), pickle.loads(pickle.dumps(table)), type(node.args[0]).__name__, mapped, type(mapped[0]).__name__)  # fmt: skip


def managed(t: Any) -> Any:
    base, manager = room(t, "passes.infra.pass_base"), room(t, "passes.infra.pass_manager")
    seen: list[str] = []

    class Own(base.PassBase):
        def requires(self, gm: Any) -> None:
            seen.append("requires")

        def call(self, gm: Any) -> Any:
            seen.append("call")
            return base.PassResult(gm, True)

        def ensures(self, gm: Any) -> None:
            seen.append("ensures")

    def first(gm: Any) -> Any:
        return base.PassResult(gm, False)

    def second(gm: Any) -> Any:
        return base.PassResult(gm, True)

    module = traced(t)
    twice = manager.PassManager([Own()], steps=2)(module)
    ordered = manager.PassManager(
        [second, first], constraints=[manager.this_before_that_pass_constraint(first, second)]
    )
    wrong = refused(ordered.validate_constraints)
    result = ordered(module)
    wrapped = manager.PassManager([manager.pass_result_wrapper(lambda gm: None)])(module)
    return (seen, twice.modified, wrong, result.modified, [p.__name__ for p in ordered.passes], wrapped.modified,
            refused(lambda: manager.PassManager([lambda gm: gm])(module)))  # fmt: skip


def support(t: Any) -> Any:
    s, tools, module = room(t, "passes.operator_support"), room(t, "passes.tools_common"), traced(t)
    room(t, "passes.shape_prop").ShapeProp(module).propagate(t.ones(2, 3), t.ones(2, 3))
    inside = dict(module.named_modules())
    calls = [n for n in module.graph.nodes if n.op.startswith("call")]
    by_name = s.OperatorSupport(
        {"_operator.add": None, "torch.nn.modules.linear.Linear": None, "_operator.mul": ([[t.float64]], {})}
    )
    functions = s.create_op_support(lambda modules, n: n.op == "call_function")
    kinds = (by_name, s.chain(by_name, functions), s.any_chain(by_name, functions), s.OpSupports.decline_if_input_dtype(t.float32),
             s.OpSupports.decline_if_node_in_names({"cat"}))  # fmt: skip
    return ([[k.is_node_supported(inside, n) for n in calls] for k in kinds],
            [tools.get_node_target(inside, n) for n in calls if n.target is not t.cat], [tools.is_node_output_tensor(n) for n in calls])  # fmt: skip


def put_in_order(t: Any) -> Any:
    graph = t.fx.Graph() if t is rushlight else room(t, "graph").Graph()
    x = graph.placeholder("x")
    a = graph.call_function(t.neg, (x,))
    b = graph.call_function(t.exp, (x,))
    graph.output(a)
    a.args = (b,)
    module = room(t, "graph_module").GraphModule(t.nn.Module(), graph)
    room(t, "passes.tools_common").legalize_graph(module)
    module.graph.lint()
    return text(module), module(t.zeros(2)).tolist()


def kept_for_its_effect(t: Any) -> Any:
    def log(x: Any) -> None:
        """Notes something."""

    def plain(x: Any) -> None:
        """Does nothing."""

    room(t, "node").has_side_effect(log)
    graph = room(t, "graph").Graph()
    x = graph.placeholder("x")
    graph.call_function(log, (x,))
    graph.call_function(plain, (x,))
    graph.output(x)
    return graph.eliminate_dead_code(), [n.name for n in graph.nodes]


CASES = [
    three_parts,
    two_parts_by_name,
    parts_that_need_each_other,
    collections,
    managed,
    support,
    put_in_order,
    kept_for_its_effect,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_passes_do_what_pytorchs_do(case: Callable[[Any], Any]) -> None:
    assert case(rushlight) == case(torch)


def test_a_module_written_into_a_folder_is_imported_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = traced(rushlight)
    module.to_folder(tmp_path / "written_net", "Written")
    monkeypatch.syspath_prepend(tmp_path)
    again = importlib.import_module("written_net").Written()
    x = rushlight.arange(6.0).reshape(2, 3)
    assert all(map(rushlight.equal, again(x, x), module(x, x)))
    assert sorted(dict(again.named_parameters())) == sorted(dict(module.named_parameters()))
    for name in ("written_net", "written_net.module"):
        sys.modules.pop(name, None)
