"""What works on graphs of `torch.fx`: arguments by name, patterns, fused modules, parts by tag, notes, drawings."""

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytest.importorskip("torch.fx")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def room(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.fx.{name}")


def text(module: Any) -> str:
    return "\n".join(line.rstrip() for line in module.code.strip().splitlines())


def trace(t: Any, program: Any) -> Any:
    return room(t, "_symbolic_trace").symbolic_trace(program)


def raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


def net(t: Any) -> Any:
    class Net(t.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn, self.drop = t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2), t.nn.Dropout(0.5)
            self.block = t.nn.Sequential(t.nn.ReLU(), t.nn.Identity())
            self.scale, self.fc = t.nn.Parameter(t.ones(1)), t.nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            x = self.drop(self.block(self.bn(self.conv(x)))) * self.scale
            return self.fc(t.flatten(x, 1))

    made = Net().eval()
    with t.no_grad():
        for p in made.parameters():
            p.copy_(t.arange(p.numel()).reshape(p.shape) / 10 + 0.5)
    return made


def image(t: Any) -> Any:
    return t.arange(16.0).reshape(1, 1, 4, 4)


def arguments_by_name(t: Any) -> Any:
    F = t.nn.functional
    programs = [lambda x: F.relu(F.dropout(x, 0.3)), lambda x: t.cat([x, x], 1), lambda x: x + 1, lambda x: t.sum(x, 1),
                lambda x: F.softmax(x, -1), lambda x: F.interpolate(x, scale_factor=2.0), lambda x: x.sum(1),
                t.nn.Sequential(t.nn.Linear(3, 3), t.nn.ReLU())]  # fmt: skip
    found = []
    for program in programs:
        module = trace(t, program)
        for node in module.graph.nodes:
            for by_name in (True, False):
                way = node.normalized_arguments(module, normalize_to_only_use_kwargs=by_name)
                found.append((node.name, None if way is None else (repr(way.args), repr(dict(way.kwargs)))))
    return found


def functions_by_name(t: Any) -> Any:
    schemas, F = room(t, "operator_schemas"), t.nn.functional
    calls = [(F.linear, (1, 2)), (F.dropout, (1,)), (t.relu, (1,)), (t.flatten, (1, 2)), (t.addmm, (1, 2, 3)), (t.relu, (1, 2, 3)),
             (F.batch_norm, (1, 2, 3)), (lambda x: x, (1,)), (t.cat, ([1],))]  # fmt: skip
    found = [
        schemas.normalize_function(f, args, normalize_to_only_use_kwargs=n) for f, args in calls for n in (True, False)
    ]
    modules = t.nn.Sequential(t.nn.Linear(1, 1), t.nn.Sequential())
    found += [schemas.normalize_module(modules, name, (1,)) for name in ("0", "1")]
    return ([each and (tuple(each.args), dict(each.kwargs)) for each in found], raised(lambda: schemas.normalize_module(modules, "9", ())),
            schemas.get_signature_for_torch_op(lambda x: x), [list(s.parameters) for s in schemas.get_signature_for_torch_op(t.flatten)])  # fmt: skip


def types_of_arguments(t: Any) -> Any:
    schemas, T = room(t, "operator_schemas"), t.Tensor
    hints = [
        schemas.create_type_hint(x)
        for x in ([int, int], (int, float), (int, int), int, [int, float], [], (), [[int], [int]])
    ]
    pairs = [(int, int), (T | None, None), (list[int], int), (list[int], list[int]), (Any, int), (float, int), (list[T], tuple[T, T]),
             (int, T), (T, int)]  # fmt: skip
    return hints, [schemas.type_matches(a, b) for a, b in pairs if b is not None]


def replaced(t: Any) -> Any:
    def branches(x: Any) -> Any:
        a = x.relu()
        return a.neg() + a.exp()

    def pattern(x: Any) -> Any:
        a = x.relu()
        return a.neg(), a.exp()

    cases = [
        (branches, pattern, lambda x: (x.sin(), x.cos())),
        (lambda x: x.relu().relu().relu(), lambda x: x.relu().relu(), lambda x: x.sigmoid()),
        (lambda x: t.softmax(x, 1) + t.softmax(x, 0), lambda x: t.softmax(x, 0), lambda x: x.neg()),
        (lambda x: t.neg(x).relu(), lambda x: t.neg(x), lambda x: x),
        (lambda x: t.neg(x), lambda x: t.neg(x), lambda x: x + 1),
        (lambda x, y: (x.relu() + y, x.relu() * y), lambda a, b: a.relu() + b, lambda a, b: a - b),
    ]
    found = []
    for program, looked_for, put in cases:
        module = trace(t, program)
        matches = room(t, "subgraph_rewriter").replace_pattern(module, looked_for, put)
        found.append((text(module), [{a.name: b.name for a, b in m.nodes_map.items()} for m in matches]))
    return found


def replaced_modules(t: Any) -> Any:
    class Old(t.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.fc = t.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.fc(x).relu()

    class New(t.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.new = t.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.new(x).sigmoid()

    module = trace(t, Old())
    matches = room(t, "subgraph_rewriter").replace_pattern(module, Old(), New())
    return text(module), len(matches), [name for name, _ in module.named_parameters()]


def filtered(t: Any) -> Any:
    rewriter, seen = room(t, "subgraph_rewriter"), []

    def first(match: Any, original: Any, pattern: Any) -> bool:
        seen.append(
            (
                [n.name for n in match.anchors],
                [n.name for n in match.placeholder_nodes],
                [n.name for n in match.returning_nodes],
            )
        )
        return len(seen) == 1

    module = trace(t, lambda x: t.softmax(x, 1) + t.softmax(x, 0))
    found = rewriter.replace_pattern_with_filters(
        module, lambda x: t.softmax(x, 0), lambda x: x.neg(), [first], ignore_literals=True
    )
    other = trace(t, lambda x: t.softmax(x, 1) + t.relu(x))
    made = rewriter.replace_pattern_with_filters(
        other,
        lambda x: t.relu(x),
        replacement_callback=lambda match, original, pattern: trace(t, lambda x: x.exp().log()).graph,
    )
    return text(module), seen, [[n.name for n in each.replacements] for each in found], text(other), len(made)


def matched(t: Any) -> Any:
    matcher = room(t, "passes.utils.matcher_utils").SubgraphMatcher(trace(t, lambda a, b: (a + b).relu()).graph)
    found = matcher.match(trace(t, lambda x, y: ((x + y).relu() + y).relu()).graph)
    return [
        (
            [n.name for n in m.anchors],
            {k.name: v.name for k, v in m.nodes_map.items()},
            [n.name for n in m.returning_nodes],
        )
        for m in found
    ]


def fused(t: Any) -> Any:
    optimization, model = room(t, "experimental.optimization"), net(t)
    made = optimization.fuse(model)
    linear = t.nn.Sequential(t.nn.Linear(3, 3), t.nn.BatchNorm1d(3)).eval()
    module = trace(t, model)
    steps, inside = {n.name: n for n in module.graph.nodes}, dict(module.named_modules())
    matches = [
        optimization.matches_module_pattern((t.nn.Conv2d, t.nn.BatchNorm2d), n, inside) for n in module.graph.nodes
    ]
    part = optimization.extract_subgraph(module, [steps["conv"], steps["bn"]], [steps["x"]], [steps["bn"]])
    optimization.replace_node_module(steps["conv"], inside, t.nn.Identity())
    return (text(made), [name for name, _ in made.named_modules()], bool(t.allclose(made(image(t)), model(image(t)), atol=1e-4)), text(optimization.fuse(linear)),
            raised(lambda: optimization.fuse(net(t).train())), text(optimization.remove_dropout(model)), matches, text(part),
            type(module.conv).__name__, type(model.conv).__name__)  # fmt: skip


def parts(t: Any) -> Any:
    utils, split = room(t, "passes.split_utils"), room(t, "passes.split_module").split_module
    module = trace(t, net(t))
    for node in module.graph.nodes:
        if node.op.startswith("call"):
            node.tag = "a" if node.name in ("conv", "bn") else "b"
    by_tag = utils.split_by_tags(module, ["a", "b"])
    kept = split(module, None, lambda n: int(n.tag == "b"), keep_original_order=True)
    tuples = split(module, None, lambda n: int(n.tag == "b"), tuple_return=True)
    same = [bool(t.allclose(m(image(t)), module(image(t)))) for m in (by_tag, kept, tuples)]
    utils.setattr_recursive(module, "block.0", t.nn.Tanh())
    return (text(by_tag), text(by_tag.a), text(by_tag.b), text(kept), text(tuples), text(tuples.submod_0), same,
            type(utils.getattr_recursive(module, "block.0")).__name__, utils.getattr_recursive(module, "block.9"))  # fmt: skip


def notes(t: Any) -> Any:
    notes = room(t, "traceback")
    before = notes.has_preserved_node_meta()
    with notes.preserve_node_meta():
        inside = notes.has_preserved_node_meta()
        with notes.annotate({"k": 1}):
            module = trace(t, lambda x: x.neg())
        for node in module.graph.nodes:
            node.meta["stack_trace"] = node.name
        made = room(t, "interpreter").Transformer(module).transform()
    return (before, inside, [n.meta.get("custom") for n in module.graph.nodes], [n.meta.get("stack_trace") for n in made.graph.nodes],
            notes.get_current_meta(), str(trace(t, lambda x: room(t, "annotate").annotate(x.relu(), int) + 1).graph),
            room(t, "_compatibility").compatibility(is_backward_compatible=True)(trace) is trace)  # fmt: skip


def by_name(t: Any) -> Any:
    F = t.nn.functional
    program = trace(t, lambda x: F.relu(F.dropout(x, 0.5, False)))
    return text(room(t, "experimental.normalize").NormalizeArgs(program).transform())


CASES = [
    arguments_by_name,
    functions_by_name,
    types_of_arguments,
    replaced,
    replaced_modules,
    filtered,
    matched,
    fused,
    parts,
    notes,
    by_name,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_tools_do_what_pytorchs_do(case: Callable[[Any], Any]) -> None:
    assert case(rushlight) == case(torch)


class Drawn:
    """A box, an arrow or a drawing of pydot's."""

    def __init__(self, *names: str, **style: Any):
        self.names, self.style = names, style
        self.nodes: list[Drawn] = []
        self.edges: list[Drawn] = []

    def add_node(self, node: "Drawn") -> None:
        self.nodes.append(node)

    def add_edge(self, edge: "Drawn") -> None:
        self.edges.append(edge)


def test_graphs_are_drawn_by_pydot(monkeypatch: pytest.MonkeyPatch) -> None:
    drawer = room(rushlight, "passes.graph_drawer").FxGraphDrawer
    module = trace(rushlight, net(rushlight))
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(RuntimeError, match="pip install pydot"):
        drawer(module, "net")
    monkeypatch.setitem(sys.modules, "pydot", types.SimpleNamespace(Dot=Drawn, Node=Drawn, Edge=Drawn))
    room(rushlight, "passes.shape_prop").ShapeProp(module).propagate(image(rushlight))
    split = room(rushlight, "passes.split_module").split_module(
        module, None, lambda n: int(n.name not in ("conv", "bn"))
    )
    drawing = drawer(split, "net")
    assert sorted(drawing.get_all_dot_graphs()) == ["net", "net_submod_0", "net_submod_1"]
    inner = drawing.get_dot_graph("submod_0")
    assert {("conv.weight", "conv"), ("conv", "bn"), ("x", "conv")} <= {edge.names for edge in inner.edges}
    labels = {node.names[0]: node.style["label"] for node in drawing.get_dot_graph("submod_1").nodes}
    assert "target=torch.flatten|args=(1,)" in labels["flatten"] and "shape=(1, 8)" in labels["flatten"]
    plain = drawer(module, "net", ignore_getattr=True, ignore_parameters_and_buffers=True).get_main_dot_graph()
    assert [node.names[0] for node in plain.nodes] == [
        "x",
        "conv",
        "bn",
        "block_0",
        "block_1",
        "drop",
        "mul",
        "flatten",
        "fc",
        "output",
    ]
