"""Results that a chain of cheap operators makes again: the same gradients and errors as when they are kept, whatever changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake

import rushlight as torch
from rushlight import memory, nn
from rushlight.dispatch.keeping import rebuilt
from rushlight.dispatch.keeping.remade import Rebuilt
from rushlight.memory.counting.holders import saved_arrays
from rushlight.storage import root_of

F = torch.nn.functional
Made = dict[str, Any]
Step = tuple[str, Callable[[Made], Any]]
ROWS, WIDTH, IMAGE = 256, 256, (2, 32, 32, 32)
UNIT = ROWS * WIDTH * 4  # bytes of a result: of images too


class Layers:
    """The layers of a chain, the same each time."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.one, self.other, self.last = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.first, self.conv = (nn.Conv2d(32, 32, 3, padding=1) for _ in range(2))
        self.bn, self.gn, self.ln, self.rms = (
            nn.BatchNorm2d(32),
            nn.GroupNorm(4, 32),
            nn.LayerNorm(WIDTH),
            nn.RMSNorm(WIDTH),
        )
        self.rows, self.image = torch.randn(ROWS, WIDTH), torch.randn(*IMAGE)

    def parameters(self) -> list[Any]:
        layers = (self.one, self.other, self.last, self.first, self.conv, self.bn, self.gn, self.ln, self.rms)
        return [p for layer in layers for p in layer.parameters()]


def dropped(x: Any) -> Any:
    torch.manual_seed(3)
    return F.dropout(x, 0.25)


def chains(net: Layers) -> dict[str, tuple[float, list[Step]]]:
    """By name: units that may be saved, and the steps, each making what it is named by of what was made before."""
    linear: Step = "x", lambda m: net.one(net.rows)
    image: Step = "x", lambda m: net.first(net.image)

    block = [image, ("i", lambda m: F.relu(m["x"])), ("w", lambda m: net.conv(m["i"])), ("n", lambda m: net.bn(m["w"]))]

    def last(name: str) -> Step:
        return "y", lambda m: net.last(m[name])

    def conv(name: str) -> Step:
        return "y", lambda m: net.conv(m[name])

    return {
        "silu": (1, [linear, ("h", lambda m: F.silu(m["x"])), last("h")]),
        "rms_norm": (1, [linear, ("h", lambda m: net.rms(m["x"])), last("h")]),
        "ln gelu": (1, [linear, ("n", lambda m: net.ln(m["x"])), ("h", lambda m: F.gelu(m["n"])), last("h")]),
        "gelu dropout": (1, [linear, ("n", lambda m: F.gelu(m["x"])), ("h", lambda m: dropped(m["n"])), last("h")]),
        "swiglu": (2, [linear, ("a", lambda m: F.silu(m["x"])), ("b", lambda m: net.other(net.rows)),
                       ("h", lambda m: m["a"] * m["b"]), last("h")]),
        "squared": (1, [linear, ("a", lambda m: F.gelu(m["x"])), ("h", lambda m: m["a"] * m["a"]), last("h")]),
        "silu conv": (1, [image, ("h", lambda m: F.silu(m["x"])), conv("h")]),
        "bn conv": (1, [image, ("h", lambda m: net.bn(m["x"])), conv("h")]),
        "bn relu conv": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.relu(m["n"])), conv("h")]),
        "bn relu_ conv": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.relu_(m["n"])), conv("h")]),
        "gn silu conv": (1, [image, ("n", lambda m: net.gn(m["x"])), ("h", lambda m: F.silu(m["n"])), conv("h")]),
        "bn silu conv": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.silu(m["n"])), conv("h")]),
        "bn relu two convs": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.relu(m["n"])),
                                  ("z", lambda m: net.first(m["h"])), ("y", lambda m: net.conv(m["h"]) + m["z"])]),
        "residual": (2, [*block, ("s", lambda m: m["n"] + m["i"]), ("h", lambda m: F.relu(m["s"])), conv("h")]),
        "residual_": (2, [*block, ("s", lambda m: m["n"].add_(m["i"])), ("h", lambda m: F.relu_(m["s"])), conv("h")]),
        "residual relu_": (2, [*block, ("s", lambda m: m["i"] + m["n"]), ("h", lambda m: F.relu_(m["s"])), conv("h")]),
        "two residuals_": (3, [*block, ("s", lambda m: m["n"].add_(m["i"])), ("h", lambda m: F.relu_(m["s"])),
                               ("v", lambda m: net.conv(m["h"])), ("k", lambda m: net.gn(m["v"])),
                               ("t", lambda m: m["k"].add_(m["h"])), ("l", lambda m: F.relu_(m["t"])), conv("l")]),
        "two norms": (2, [image, ("w", lambda m: net.conv(net.image)), ("n", lambda m: net.bn(m["x"])),
                          ("s", lambda m: m["n"] + net.gn(m["w"])), ("h", lambda m: F.relu(m["s"])), conv("h")]),
        "softmax dropout matmul": (2, [linear, ("p", lambda m: F.softmax(m["x"], -1)), ("h", lambda m: dropped(m["p"])),
                                       ("y", lambda m: m["h"] @ net.last(net.rows))]),
        "relu_ transposed": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.relu_(m["n"])),
                                 ("y", lambda m: F.conv_transpose2d(m["h"], net.conv.weight, net.conv.bias))]),
        "bn leaky_ conv": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.leaky_relu_(m["n"], 0.1)), conv("h")]),
        "bn relu6 conv": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.relu6(m["n"])), conv("h")]),
        "bn relu6_ conv": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.relu6(m["n"], True)), conv("h")]),
        "bn hardswish conv": (1, [image, ("n", lambda m: net.bn(m["x"])), ("h", lambda m: F.hardswish(m["n"])), conv("h")]),
        "mish": (1, [linear, ("h", lambda m: F.mish(m["x"])), last("h")]),
        "relu dropout": (1, [linear, ("n", lambda m: F.relu(m["x"])), ("h", lambda m: dropped(m["n"])), last("h")]),
    }  # fmt: skip


NAMES = list(chains(Layers()))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Says whether everything is to be kept."""
    former = rebuilt.switch.on
    yield lambda all_of_it: setattr(rebuilt.switch, "on", not all_of_it)
    rebuilt.switch.on = former


def run(name: str, change: Callable[[Made, str], None] | None = None, when: str = "", which: str = "",
        hold: bool = True) -> Any:  # fmt: skip
    """Gradients of a chain, with `change` made to `which` after the step `when`; the text of the error instead."""
    net = Layers()
    made: Made = {"net": net}
    try:
        for key, step in chains(net)[name][1]:
            made[key] = step(made)
            if key == when and change is not None:
                change(made, which)
        loss = made["y"].square().sum()
        if not hold:
            made = {}
        loss.backward()
    except RuntimeError as error:
        return str(error).split(" of shape")[0].split("Backward0")[0][:60]
    return [None if p.grad is None else p.grad.numpy().copy() for p in net.parameters()]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return all(
        (a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hold", [True, False])
def test_gradients_are_those_of_what_is_kept(name: str, hold: bool, kept: Any) -> None:
    kept(True)
    wanted = run(name, hold=hold)
    kept(False)
    assert same(wanted, run(name, hold=hold)) and not isinstance(wanted, str)


@pytest.mark.parametrize("name", NAMES)
def test_as_little_is_saved_as_may_be(name: str, kept: Any) -> None:
    def units() -> float:
        net = Layers()
        made: Made = {}
        steps = chains(net)[name][1]
        for key, step in steps:
            made[key] = step(made)
        own = {id(root_of(t._array)) for t in (*net.parameters(), net.rows, net.image, *net.bn.buffers())}
        roots, seen, stack = {}, set(), [made["y"].grad_fn]
        while stack:
            node = stack.pop()
            seen.add(id(node))
            roots.update({id(root_of(a)): root_of(a).nbytes for a in saved_arrays(node)})
            below = [getattr(edge, "node", edge) for edge in node.edges if edge is not None]
            stack += [b for b in below if id(b) not in seen and not isinstance(b, torch.Tensor)]
        return sum(count for key, count in roots.items() if key not in own) / UNIT

    kept(True)
    before = units()
    kept(False)
    assert units() < chains(Layers())[name][0] + 0.1 < before


def scale_data(made: Made, which: str) -> None:
    made[which].data.mul_(1.5)


def scale_in_place(made: Made, which: str) -> None:
    with torch.no_grad():
        made[which].mul_(1.5)


def scale_alias(made: Made, which: str) -> None:
    made[which].detach().mul_(1.5)


def scale_array(made: Made, which: str) -> None:
    array = made[which].detach().numpy()
    array *= 1.5


def put_other_data(made: Made, which: str) -> None:
    made[which].data = made[which].data * 1.5


def scale_parameters(made: Made, which: str) -> None:
    for p in made["net"].parameters():
        p.data.mul_(1.5)


def run_backward_of_a_part(made: Made, which: str) -> None:
    made[which].sum().backward(retain_graph=True)


CHANGES = [
    scale_data,
    scale_in_place,
    scale_alias,
    scale_array,
    put_other_data,
    scale_parameters,
    run_backward_of_a_part,
]
SOME = ["swiglu", "bn relu_ conv", "gelu dropout"]


def compare(name: str, change: Any, kept: Any) -> None:
    keys = [key for key, _ in chains(Layers())[name][1] if key != "y"]
    for when, which in itertools.product([*keys, "y"], keys):
        if keys.index(which) > (keys.index(when) if when in keys else len(keys)):
            continue
        kept(True)
        wanted = run(name, change, when, which)
        kept(False)
        assert same(wanted, run(name, change, when, which)), (name, change.__name__, when, which)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", SOME)
def test_changes_at_any_time_are_as_if_all_was_kept(name: str, change: Any, kept: Any) -> None:
    compare(name, change, kept)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SOME])
def test_changes_at_any_time_in_every_chain(name: str, change: Any, kept: Any) -> None:
    compare(name, change, kept)


@pytest.mark.parametrize("name", ["swiglu", "bn relu conv", "residual_", "two norms"])
def test_graphs_that_are_kept_and_second_order(name: str, kept: Any) -> None:
    def gradients(all_of_it: bool) -> list[Any]:
        kept(all_of_it)
        net = Layers()
        made: Made = {}
        for key, step in chains(net)[name][1]:
            made[key] = step(made)
        loss = made["y"].square().sum()
        wanted = [net.one.weight if name == "swiglu" else net.first.weight]
        once = torch.autograd.grad(loss, wanted, retain_graph=True)
        again = torch.autograd.grad(loss, wanted, retain_graph=True)
        first = torch.autograd.grad(loss, wanted, create_graph=True)
        second = torch.autograd.grad(first[0].square().mean(), wanted)
        return [g.detach().numpy() for g in (*once, *again, *first, *second)]

    for wanted, found in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_array_equal(wanted, found)


AROUND = {
    "recompute": torch.stores.recompute,
    "disk": lambda: torch.stores.disk(memory=0),
    "sleeping budget": lambda: memory.budget("1 GB"),
    "budget": awake,
    "tight budget": lambda: memory.budget(memory.current() + 14 * UNIT),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", ["residual_", "two residuals_", "relu dropout"])
@pytest.mark.filterwarnings("ignore::rushlight.stores.StoreWarning")
def test_stores_and_budgets_around_sums(name: str, around: str, kept: Any) -> None:
    kept(True)
    wanted = run(name, hold=False)
    kept(False)
    with AROUND[around]():
        assert same(wanted, run(name, hold=False))


@pytest.mark.parametrize("name", ["residual", "residual_", "bn relu_ conv"])
def test_what_is_made_again_takes_one_buffer(name: str) -> None:
    """The norm's result, the sum and relu's result are written over one another."""
    if not memory.is_counted():
        pytest.skip("bytes are counted where native kernels are")
    net, made = Layers(), {}
    for key, step in chains(net)[name][1]:
        made[key] = step(made)
    remade = made["y"].grad_fn.saved[0]
    assert isinstance(remade, Rebuilt)
    made = {}
    memory.reset_peak()
    before = memory.current()
    assert remade._array.nbytes == UNIT
    assert memory.peak() - before < 1.1 * UNIT


def test_the_price_decides() -> None:
    """A depthwise convolution costs less than making its input again."""
    x = torch.randn(*IMAGE, requires_grad=True)
    depthwise, dense = nn.Conv2d(32, 32, 3, groups=32), nn.Conv2d(32, 32, 3)
    assert isinstance(dense(F.silu(x)).grad_fn.saved[0], Rebuilt)
    assert not isinstance(depthwise(F.silu(x)).grad_fn.saved[0], Rebuilt)


def test_the_switch() -> None:
    x, layer = torch.randn(ROWS, WIDTH, requires_grad=True), nn.Linear(WIDTH, WIDTH)
    assert memory.recompute_cheap() is True
    assert memory.recompute_cheap(False) is True
    try:
        assert not isinstance(layer(F.silu(x)).grad_fn.saved[0], Rebuilt)
    finally:
        assert memory.recompute_cheap(True) is False
    assert isinstance(layer(F.silu(x)).grad_fn.saved[0], Rebuilt)


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
@pytest.mark.parametrize("name", ["swiglu", "bn relu conv", "gn silu conv"])
def test_an_estimate_knows_of_it(name: str) -> None:
    net = Layers()
    steps = chains(net)[name][1]

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for i, layer in enumerate((net.one, net.other, net.last, net.first, net.conv, net.bn, net.gn)):
                self.add_module(str(i), layer)

        def forward(self, x: Any) -> Any:
            made: Made = {}
            for key, step in steps:
                made[key] = step(made)
            return made["y"].square().sum() + x.sum() * 0

    model, x = Net(), torch.randn(4)
    found = memory.estimate(model, (x,)).peak
    model.zero_grad()
    model(x).backward()
    model.zero_grad()
    held = memory.current() - sum(
        t.nbytes for t in (*model.parameters(), *model.buffers(), x, net.rows)
    )  # or the images
    memory.reset_peak()
    model(x).backward()
    measured = memory.peak() - held
    assert abs(found - measured) < 0.5 * UNIT, (found / UNIT, measured / UNIT)
