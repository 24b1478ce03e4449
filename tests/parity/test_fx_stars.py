"""Programs with `*args` and `**kwargs`, the text of programs to the last blank, and what a value in a trace cannot be."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight
import rushlight.fx

torch = pytest.importorskip("torch")
fx = pytest.importorskip("torch.fx")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def of_module(t: Any) -> Any:
    class Net(t.nn.Module):
        def forward(self, x: Any, *rest: Any, factor: Any = 2.0, **more: Any) -> Any:
            return x * factor + rest[0] - more["shift"]

    return Net()


PROGRAMS: list[Callable[[Any], Any]] = [
    lambda t: lambda x, *a: x + a[0] * a[1],
    lambda t: lambda *a: a[0].relu(),
    lambda t: lambda x, **k: x + k["y"],
    lambda t: lambda x, *a, **k: t.relu(x) + a[0] + k["y"],
    lambda t: lambda x, *, y=1: x + y,
    lambda t: lambda x: t.relu(x) + 1,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_text_of_programs(program: Callable[[Any], Any]) -> None:
    ours, theirs = (t.fx.symbolic_trace(program(t)) for t in (rushlight, torch))
    assert ours.code == theirs.code
    assert str(ours.graph).replace("rushlight", "torch") == str(theirs.graph)


def test_programs_with_stars_run() -> None:
    for t in (rushlight, torch):
        made = t.fx.symbolic_trace(lambda x, *a, **k: x + a[1] * k["y"])
        assert made(t.ones(1), 5, 3, y=2).tolist() == [7]
    # PyTorch puts the keyword-only factor before the others, and the program fails.
    assert rushlight.fx.symbolic_trace(of_module(rushlight))(rushlight.ones(1), 5, shift=1).tolist() == [6]


@pytest.mark.parametrize("program", [lambda x: int(x), lambda x: [1, 2][x], lambda *a: list(a)])
def test_what_a_value_in_a_trace_cannot_be(program: Callable[..., Any]) -> None:
    kinds = []
    for t in (rushlight, torch):
        with pytest.raises(Exception) as caught:
            t.fx.symbolic_trace(program)
        kinds.append(type(caught.value).__name__)
    assert kinds[0] == kinds[1]
