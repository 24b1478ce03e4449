"""Programs traced by `torch.fx`: steps, code and results as PyTorch's, for sizes that are not there yet, arguments that are not
traced, annotations, and code written in one's own way."""

import re
import typing
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytest.importorskip("torch.fx")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

Pair = namedtuple("Pair", "a b")


def said(text: str) -> str:
    """A text without the words of a check, which are each one's own."""
    text = re.sub(r"'\w+ (has been|was fixed) .*?'", "'said'", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def steps(graph: Any) -> list[Any]:
    def called(node: Any) -> Any:
        return node.target if isinstance(node.target, str) else node.target.__name__

    def told(value: Any) -> str:
        return re.sub(r"\w+ (has been|was fixed) [^)]*", "said", str(value))

    return [(n.op, n.name, called(n), told(n.args), told(n.kwargs), n.type is None) for n in graph.nodes]


def shown(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return str(value.dtype), value.shape, [round(v, 4) for v in value.flatten().tolist()]
    return {k: shown(v) for k, v in value.items()} if isinstance(value, dict) else value


def both(make: Callable[[Any], Any], *given: Callable[[Any], Any], **options: Callable[[Any], Any]) -> None:
    """The same code, steps and result."""
    found = []
    for t in (rushlight, torch):
        program, concrete = make(t), {k: v(t) for k, v in options.items()} or None
        module = t.fx.symbolic_trace(program, concrete_args=concrete)
        args = [g(t) for g in given]
        found.append(
            (said(module.code), steps(module.graph), shown(module(*args)), shown(t.fx.Interpreter(module).run(*args)))
        )
    assert found[0] == found[1]


def bound(program: Callable[[Any, Any], Any], t: Any) -> Callable[[Any], Any]:
    return lambda x: program(t, x)


def x(t: Any) -> Any:
    return t.arange(6.0).reshape(2, 3)


FACTORIES: dict[str, Callable[[Any, Any], Any]] = {
    "ones": lambda t, x: t.ones(x.shape) + x,
    "sizes in a list": lambda t, x: t.zeros([x.size(0), 2], dtype=x.dtype, device=x.device),
    "full": lambda t, x: t.full((x.shape[0], 3), x.size(1)),
    "size by name": lambda t, x: t.ones(size=(2, x.size(0))),
    "eye": lambda t, x: t.eye(x.size(1)),
    "linspace": lambda t, x: t.linspace(0, x.size(1), 3),
    "steps of linspace": lambda t, x: t.linspace(0, 1, x.size(1)),
    "arange": lambda t, x: t.arange(0, x.size(0), device=x.device),
    "tril_indices": lambda t, x: t.tril_indices(x.size(0), 3),
    "window": lambda t, x: t.hann_window(x.size(1)),
    "dtype": lambda t, x: t.tensor(2, dtype=x.dtype),
    "scalar_tensor": lambda t, x: t.scalar_tensor(x.size(0)),
    "meshgrid": lambda t, x: t.meshgrid(t.arange(x.size(0)), t.arange(x.size(1)), indexing="ij")[0],
}


@pytest.mark.parametrize("program", FACTORIES.values(), ids=FACTORIES)
def test_tensors_of_sizes_that_are_not_there_yet(program: Callable[[Any, Any], Any]) -> None:
    both(lambda t: bound(program, t), x)


@pytest.mark.parametrize("call", [
    lambda t, x: t.rand(x.shape), lambda t, x: t.randn(2, x.size(0)), lambda t, x: t.randint(0, x.size(0), (3,)),
    lambda t, x: t.randperm(x.size(0)), lambda t, x: t.empty(x.size()),
])  # fmt: skip
def test_random_and_empty_tensors_of_such_sizes(call: Callable[[Any, Any], Any]) -> None:
    ours, theirs = (t.fx.symbolic_trace(bound(call, t)) for t in (rushlight, torch))
    assert said(ours.code) == said(theirs.code)
    assert ours(rushlight.ones(3)).shape == theirs(torch.ones(3)).shape


CONCRETE: dict[str, Any] = {
    "int": (lambda x, n=2: x * n, {"n": lambda t: 3}, [x, lambda t: 3]),
    "bool": (lambda x, n: x + 1 if n else x - 1, {"n": lambda t: True}, [x, lambda t: True]),
    "none": (lambda x, n=None: x if n is None else x * n, {"n": lambda t: None}, [x, lambda t: None]),
    "text": (lambda x, n: getattr(x, n)(), {"n": lambda t: "exp"}, [x, lambda t: "exp"]),
    "dict": (lambda x, d: x + d["a"] * d["b"], {"d": lambda t: {"a": t.fx.PH, "b": 2}}, [x, lambda t: {"a": x(t), "b": 2}]),
    "list": (lambda x: x[0] + x[1], {"x": lambda t: [t.fx.PH, t.fx.PH]}, [lambda t: [x(t), x(t)]]),
    "trees": (lambda x: {"o": x["k"][0] + x["k"][1], "p": [x["z"]]}, {"x": lambda t: {"k": [t.fx.PH, t.fx.PH], "z": t.fx.PH}},
              [lambda t: {"k": [x(t), x(t)], "z": x(t)}]),
}  # fmt: skip


@pytest.mark.parametrize("case", CONCRETE.values(), ids=CONCRETE)
def test_arguments_that_are_not_traced_are_checked_by_the_program(case: Any) -> None:
    program, concrete, given = case
    if case is CONCRETE["trees"]:
        ours, theirs = (
            t.fx.symbolic_trace(program, concrete_args={k: v(t) for k, v in concrete.items()})
            for t in (rushlight, torch)
        )
        assert said(ours.code) == said(theirs.code)
        found = ours(*(g(rushlight) for g in given))
        assert found["o"].tolist() == [[0, 2, 4], [6, 8, 10]] and found["p"][0].tolist() == x(rushlight).tolist()
        return
    both(lambda t: program, *given, **concrete)


@pytest.mark.parametrize(("fixed", "given"), [(3, 4), (None, 1), ("a", "b"), (True, False)])
def test_another_value_is_refused(fixed: Any, given: Any) -> None:
    for t in (rushlight, torch):
        module = t.fx.symbolic_trace(lambda x, n=None: x, concrete_args={"n": fixed})
        module.graph.eliminate_dead_code()
        module.recompile()
        if fixed is None:
            continue  # that check is dead code to both
        with pytest.raises(AssertionError):
            module(t.ones(1), given)
    with pytest.raises(AssertionError, match="n has been specialized to have value"):
        rushlight.fx.symbolic_trace(lambda x, n: x, concrete_args={"n": fixed})(rushlight.ones(1), given)


def test_concrete_arguments_by_position() -> None:
    for t in (rushlight, torch):
        module = t.fx.symbolic_trace(lambda x, y, z: x + (y or 0) + (z or 1), concrete_args=(t.fx.PH, 2, None))
        assert module(t.ones(1), 2, None).item() == 4
        with pytest.raises(RuntimeError):
            t.fx.symbolic_trace(lambda x, y: x, concrete_args=(t.fx.PH,))


def annotated(t: Any) -> list[Any]:
    T, cpu = t.Tensor, t.device("cpu")

    def plain(x: T, y: T) -> T:
        return x + y

    def trees(x: T | None, k: list[int], d: dict[str, T] = None) -> tuple[T, int]:  # noqa: RUF013
        return x, k

    def others(x: Any, c: Callable, s: typing.Sequence[int] = (1,), u: tuple[int, ...] = (), m: t.nn.Module = None,
               dt: t.dtype = t.float32, dv: t.device = cpu, mode: typing.Literal["a", "b"] = "a"):  # fmt: skip
        return x

    def text(x: "T", y: "int" = 2):
        return x + y

    plain.__annotations__["y"] = typing.Optional[T]  # noqa: UP045
    return [plain, trees, others, text]


@pytest.mark.parametrize("number", range(4))
def test_annotations_are_written_and_kept(number: int) -> None:
    ours, theirs = (t.fx.symbolic_trace(annotated(t)[number]) for t in (rushlight, torch))
    assert said(ours.code) == said(theirs.code)
    assert steps(ours.graph) == steps(theirs.graph)


def test_annotations_of_steps() -> None:
    for t in (rushlight, torch):
        graph = t.fx.Graph()
        x = graph.placeholder("x", type_expr=int)
        y = graph.call_function(t.relu, (x,), type_expr=t.Tensor)
        graph.output(y, type_expr=list[t.Tensor])
        code = said(graph.python_code("self").src)
        assert (
            code
            == "def forward(self, x : int) -> list[torch.Tensor]:\n    relu : torch.Tensor = torch.relu(x);  x = None\n    return relu"
        )


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda t, x: t.nn.functional.dropout(t.nn.functional.relu(x), 0.3, False),
    lambda t, x: t.nn.functional.layer_norm(t.nn.functional.pad(x, (1, 1)), (5,)),
    lambda t, x: t.nn.functional.interpolate(x[None], scale_factor=2),
    lambda t, x: t.nn.functional.softmax(x, -1) + t.nn.functional.normalize(x),
    lambda t, x: t.einsum("ij,kj->ik", x, x) + t.split(x, 1)[0].sum() + t.norm(x),
    lambda t, x: Pair(x, x + 1),
]


@pytest.mark.parametrize("program", CALLS)
def test_calls_are_written_as_they_are_made(program: Callable[[Any, Any], Any]) -> None:
    """Those of functions that PyTorch has in Python hand on all that they take."""
    ours, theirs = (t.fx.symbolic_trace(bound(program, t)) for t in (rushlight, torch))
    assert said(ours.code) == said(theirs.code)


def own_code(t: Any) -> Any:
    class Listed(t.fx.graph.CodeGen):  # type: ignore[misc]
        def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
            return f"\ndef forward(self, given: List){maybe_return_annotation}:\n    {', '.join(free_vars)} = given"

        def additional_globals(self) -> list[Any]:
            return [("List", list)]

        def process_inputs(self, *inputs: Any) -> Any:
            return inputs[0]

        def generate_output(self, output_args: Any, **_: Any) -> str:
            return f"return [{output_args!r}]"

        def process_outputs(self, outputs: Any) -> Any:
            return [outputs]

    module = t.fx.symbolic_trace(lambda x, y: x + y)
    module.graph.set_codegen(Listed())
    module.recompile()
    given = [x(t), x(t)]
    return (said(module.code), [shown(v) for v in module(given)], [shown(v) for v in t.fx.Interpreter(module).run(given)],
            module.graph.process_inputs([1, 2]), module.graph.process_outputs(3))  # fmt: skip


def changed_lines(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x: x + 1)
    with module.graph.on_generate_code(lambda now: lambda body: ["import math\n", *(now(body) if now else body)]):
        inside = said(module.recompile().src)
    return inside, said(module.recompile().src)


def scopes(t: Any) -> Any:
    class Twice(t.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = t.nn.Linear(3, 3), t.nn.Sequential(t.nn.ReLU())
            self.scale = t.nn.Parameter(t.ones(1))

        def forward(self, x: Any) -> Any:
            return self.b(self.a(self.a(x))) * self.scale

    tracer = t.fx.Tracer()
    graph = tracer.trace(Twice())

    def told(where: Any) -> Any:
        return where[0], where[1] and where[1].__name__

    return ({name: told(where) for name, where in tracer.node_name_to_scope.items()},
            [(n.name, {k: told(v) for k, v in n.meta.get("nn_module_stack", {}).items()}) for n in graph.nodes])  # fmt: skip


def where_it_was_traced(t: Any) -> Any:
    class Noting(t.fx.Tracer):  # type: ignore[misc]
        record_stack_traces = True

    class Program(t.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x.relu() + 1

    return [(n.name, "return x.relu() + 1" in (n.stack_trace or "")) for n in Noting().trace(Program()).nodes]


def buffers_of_constants(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x: x + t.ones(1))
    graph = t.fx.Graph()
    graph.output(graph.get_attr("a.w"))
    by_path = t.fx.GraphModule({"a.w": t.ones(1)}, graph)
    return list(module.state_dict()), list(by_path.state_dict()), module.meta


def wrong_graphs(t: Any) -> Any:
    def raised(call: Callable[[], Any]) -> str:
        with pytest.raises(Exception) as caught:
            call()
        return caught.type.__name__

    graph, other = t.fx.Graph(), t.fx.Graph()
    x, y = graph.placeholder("x"), other.placeholder("y")
    graph.call_module("missing", (x,))
    return [raised(lambda: x.append(y)), raised(lambda: t.fx.GraphModule(t.nn.Module(), graph)),
            raised(lambda: t.fx.GraphModule({}, graph)), raised(lambda: t.fx.node.map_arg([1], 3))]  # fmt: skip


def kept_lists(t: Any) -> Any:
    mapped = t.fx.node.map_aggregate([1, {"a": (2, [3])}, slice(1, 2)], lambda x: x)
    return [type(v).__name__ for v in (mapped, mapped[1], mapped[1]["a"], mapped[1]["a"][1], mapped[2])]


@pytest.mark.parametrize(
    "case", [own_code, changed_lines, scopes, where_it_was_traced, buffers_of_constants, wrong_graphs, kept_lists]
)
def test_the_same_is_found(case: Callable[[Any], Any]) -> None:
    assert case(rushlight) == case(torch)


def test_wrapped_functions_are_steps_in_traced_code_too() -> None:
    def sign(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    graph = rushlight.fx.Tracer(autowrap_functions=(sign,)).trace(lambda x: x + 1)
    with graph.inserting_before(graph.output_node()):
        node = graph.call_function(sign, (list(graph.nodes)[1],))
    node.meta["is_wrapped"] = True
    graph.output_node().args = (node,)
    module = rushlight.fx.GraphModule(rushlight.nn.Module(), graph)
    again = rushlight.fx.symbolic_trace(rushlight.nn.Sequential(module))
    assert [n.op for n in again.graph.nodes] == ["placeholder", "call_function", "call_function", "output"]
    assert again(rushlight.tensor([-3.0])).item() == 2
