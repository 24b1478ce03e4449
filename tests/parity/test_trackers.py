"""Which modules run and what they cost: names and figures are PyTorch's."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def room(t: Any, name: str) -> Any:
    if t is rushlight:
        return getattr(t.utils, name)
    return importlib.import_module(f"torch.utils.{name}")


def refused(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


def tracked(t: Any, requires_grad: bool) -> Any:
    class Net(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = t.nn.Linear(2, 2), t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Tanh())

        def forward(self, x):
            seen.append((sorted(tracker.parents), tracker.is_bw))
            return self.b(self.a(x))

    seen: list[Any] = []
    net = Net()
    net.a.register_forward_hook(lambda module, args, out: seen.append(sorted(tracker.parents)))
    x = t.ones(1, 2, requires_grad=requires_grad)
    with room(t, "module_tracker").ModuleTracker() as tracker:
        y = net(x)
        for layer in (net.b[0], net.a):
            layer.weight.register_hook(lambda g: seen.append((sorted(tracker.parents), tracker.is_bw)))
        y.sum().backward()
        seen.append(sorted(tracker.parents))
        with t.no_grad():
            net(x)
    return seen, sorted(tracker.parents)


def formulas(t: Any) -> Any:
    f = room(t, "flop_counter")
    q, k, v, g = (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 7), (1, 2, 3, 7)
    return [f.mm_flop((2, 3), (3, 4)), f.addmm_flop((4,), (2, 3), (3, 4)), f.bmm_flop((5, 2, 3), (5, 3, 4)), refused(lambda: f.mm_flop((2, 3), (4, 4))),
            refused(lambda: f.bmm_flop((5, 2, 3), (4, 3, 4))), f.baddbmm_flop((5, 2, 4), (5, 2, 3), (5, 3, 4)),
            f.conv_flop_count([1, 3, 8, 8], [4, 3, 3, 3], [1, 4, 6, 6]), f.conv_flop_count([1, 4, 6, 6], [4, 3, 3, 3], [1, 3, 8, 8], True),
            f.sdpa_flop_count(q, k, v), f.sdpa_backward_flop_count(g, q, k, v), [f.get_suffix_str(n) for n in (5, 1500, 9999, 15000, 10**9, 10**16)],
            f.convert_num_with_suffix(10**7, "M"), f.convert_to_percent_str(1, 0), f.convert_to_percent_str(1, 3), f.normalize_tuple(3)]  # fmt: skip


@pytest.mark.parametrize("requires_grad", [False, True])
def test_modules_are_known_while_they_run(requires_grad: bool) -> None:
    assert tracked(rushlight, requires_grad) == tracked(torch, requires_grad)


def test_formulas_give_pytorchs_figures() -> None:
    assert formulas(rushlight) == formulas(torch)
