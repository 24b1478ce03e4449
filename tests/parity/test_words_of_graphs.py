"""What programs look for in refusals of graphs, transforms and checkpoints, and what `repr` says inside of `vmap`."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

Case = tuple[str, Callable[[Any], Any]]


def small(t: Any) -> tuple[Any, Any]:
    """A graph, and its step."""
    graph = t.fx.Graph()
    step = graph.call_function(t.relu, (graph.placeholder("x"),))
    graph.output(step)
    return graph, step


def attribute(t: Any) -> Any:
    graph = t.fx.Graph()
    graph.get_attr("nowhere.x")
    return t.fx.GraphModule({}, graph)


def fixed(t: Any) -> Any:
    return t.fx.symbolic_trace(lambda x, flag: x if flag else -x, concrete_args={"flag": True})(1, False)


def program(t: Any, f: Callable[..., Any]) -> Any:
    return t.fx.GraphModule(t.nn.Module(), f(t.fx.Graph()))


CASES: dict[str, Case] = {
    "another graph": ("Attempting to move a Node into a different Graph", lambda t: small(t)[1].prepend(small(t)[1])),
    "a place beyond the arguments": ("", lambda t: small(t)[1].update_arg(3, 1)),
    "an argument beyond the end": ("insert_args index must be between 0 and len", lambda t: small(t)[1].insert_arg(9, 1)),
    "arguments that are no tuple": ("args must be a tuple", lambda t: t.fx.Graph().call_function(t.add, 3)),
    "steps of no function": ("target must not be None", lambda t: small(t)[0].find_nodes(op="call_function")),
    "no graph": ("Expected a Graph instance", lambda t: setattr(program(t, lambda g: g), "graph", 3)),
    "no module": ("Unsupported type 3 passed for root!", lambda t: t.fx.GraphModule(3, small(t)[0])),
    "no such attribute": ("referenced target nowhere.x but that target was not provided in", attribute),
    "another value": ("flag has been specialized to have value True but got another value", fixed),
    "packets of operators": (
        "Expected op in `op_list` to be an OpOverload.*update the OpOverloadPacket to a specific OpOverload",
        lambda t: t.utils.checkpoint.create_selective_checkpoint_contexts([t.ops.aten.mm]),
    ),
    "cotangents that are no tensors": ("", lambda t: t.func.vjp(t.sin, t.ones(2))[1](3)),
    "removing something else": (
        "received invalid argument for remove=.*Valid options are",
        lambda t: t.func.functionalize(t.sin, remove="all")(t.ones(2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refusals_are_of_pytorchs_kind_and_have_its_words(name: str) -> None:
    words, call = CASES[name]
    kinds = []
    for library in (reference, rushlight):
        with pytest.raises(Exception) as caught:
            call(library)
        assert re.search(words, str(caught.value), re.DOTALL), "".join(traceback.format_exception(caught.value))
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("t", [rushlight, reference], ids=["rushlight", "torch"])
def test_an_interpreter_says_in_the_message_where_it_was(t: Any) -> None:
    traced = t.fx.symbolic_trace(lambda x: t.mm(x, x))
    with pytest.raises(RuntimeError, match=r"(?s)cannot be multiplied.*While executing %mm"):
        t.fx.Interpreter(traced).run(t.ones(2, 3))


def test_orders_of_memory_are_written_in_programs_by_name() -> None:
    ours, theirs = (lambda x, t=t: x.contiguous(memory_format=t.channels_last) for t in (rushlight, reference))
    texts = [rushlight.fx.symbolic_trace(lambda x: ours(x)).code, reference.fx.symbolic_trace(lambda x: theirs(x)).code]
    assert "memory_format = torch.channels_last" in texts[0]
    assert texts[0] == texts[1]


def test_tables_of_operators_and_passes_have_their_names() -> None:
    ours, theirs = rushlight.fx.graph, reference.fx.graph
    for name in ("magic_methods", "inplace_methods", "reflectable_magic_methods"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert rushlight.fx.passes.shape_prop.ShapeProp
    with pytest.raises(AttributeError):
        rushlight.fx.passes.no_such_pass


def test_samples_show_themselves_by_level_and_dimension() -> None:
    said: list[list[str]] = [[], []]
    for texts, t in zip(said, (rushlight, reference), strict=True):

        def inner(x: Any, texts: list[str] = texts) -> Any:
            texts.append(repr(x))
            return x

        t.func.vmap(t.func.vmap(inner), in_dims=1)(t.arange(6.0).view(2, 3))
    assert said[0] == said[1]
