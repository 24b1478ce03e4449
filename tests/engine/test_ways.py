"""An operator is run in one of several ways, by the state of the process; what comes of it is the same in all.

The usual one is source written for the operator; beside a thread in other modes a second such function is asked; where
observers, hooks or a budget want to know, the general path is taken.  Of each operator's call in `tools/calls.py`: results,
graph, what is saved, versions, gradients of two orders, and what is raised after a change in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tools.calls import CALLS
from tools.replaying import cases, modes, states

import rushlight as torch
from rushlight.basics.state import special
from rushlight.dispatch import variants
from rushlight.ops.linear.unmade_products import limits

SAME = ("grad", "first order", "second order", "no_grad", "inference", "forward mode", "vmap",
        "vmap of gradients", "changed")  # fmt: skip
STATES = [name for name in states.STATES if name != "nothing"]


def alike(found: Any) -> Any:
    """What was found, but for what depends on the way: an error's words after its first, and which tensor it is that hooks keep."""
    if isinstance(found, dict):
        once = found.get("mode", "").startswith("vmap")  # it warns once of an operator without a batching rule
        return {name: alike(value) for name, value in found.items() if not (once and name == "warned")}
    if not isinstance(found, (list, tuple)):
        return found
    if len(found) == 2 and isinstance(found[0], str) and found[0].endswith("Error"):
        return [found[0], found[1].partition(":")[0]]
    return [alike(value) for value in found if value != "_is_view"]


def outcomes(call: str, state: str) -> dict[str, Any]:
    case = cases.called(call, "float64")
    # Of what hooks of the user's keep nobody knows whether it was changed: as in PyTorch.
    wanted = [mode for mode in SAME if (state, mode) != ("hooks", "changed")]
    with states.STATES[state]():
        return {mode: alike(modes.replayed(case, mode)) for mode in wanted}


@pytest.mark.parametrize("call", CALLS)
def test_every_way_gives_the_same(call: str) -> None:
    usual = outcomes(call, "nothing")
    for state in STATES:
        found = outcomes(call, state)
        assert found == {mode: usual[mode] for mode in found}, state


def test_a_way_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    true = torch.Tensor.cumsum
    monkeypatch.setattr(torch.Tensor, "cumsum", lambda x, dim: true(x, dim) + (0.5 if special.count else 0))
    with pytest.raises(AssertionError, match="meta"):
        test_every_way_gives_the_same("x.cumsum(1)")


@pytest.mark.parametrize("state", ["profiler", "thread"])
@pytest.mark.parametrize(
    "call", ["T.maximum(x, v)", "F.max_pool2d(h, 2)", "F.cross_entropy(c, r)", "x.clamp(0.3, 0.6)"]
)
def test_what_is_made_of_an_operator_is_made_alike_in_every_state(
    call: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vmap asks for an operator that gives what is kept, too: first asked for while a profiler listened, it gave less."""
    usual = outcomes(call, "nothing")
    monkeypatch.setattr(variants, "_MADE", {})
    assert outcomes(call, state) == usual


def step(model: Any, x: Any) -> list[Any]:
    """A result, the gradients of its sum of squares by `x` and the parameters, those gradients clipped, and the buffers."""
    torch.manual_seed(1)
    y = model(x)
    y = y[0] if isinstance(y, tuple) else y
    wanted = [x, *model.parameters()]
    gradients = torch.autograd.grad((y * y).sum(), wanted, retain_graph=True)
    (y * y).sum().backward()
    torch.nn.utils.clip_grad_norm_(wanted, 0.5)
    return [t.detach().clone() for t in (y, *gradients, *(t.grad for t in wanted), *model.buffers())]


class Attention(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return F.scaled_dot_product_attention(x, x * 2, x.cos(), dropout_p=0.3)


class Logits(torch.nn.Linear):
    def forward(self, x: Any) -> Any:
        return F.cross_entropy(super().forward(x).view(-1, self.out_features), torch.arange(x.shape[0]) % 5)


F = torch.nn.functional
MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "RNN": (lambda: torch.nn.RNN(3, 4), (5, 2, 3)),
    "LSTM": (lambda: torch.nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2, dropout=0.4), (5, 2, 3)),
    "GRU": (lambda: torch.nn.GRU(3, 4), (5, 2, 3)),
    "attention": (Attention, (2, 3, 40, 8)),
    "instance norm": (lambda: torch.nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (4, 3, 7, 9)),
    "batch norm": (lambda: torch.nn.BatchNorm2d(3), (4, 3, 7, 9)),
    "softmax": (lambda: torch.nn.Softmax(-1), (7, 50)),
    "logits": (lambda: Logits(8, 50), (60, 8)),
}  # fmt: skip


@pytest.mark.parametrize(
    "state", [name for name in STATES if name != "hooks"]
)  # which are given logits, and so have them made
@pytest.mark.parametrize("model", MODELS)
def test_no_state_changes_the_last_bits(model: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An RNN ran step by step, and attention drew another mask, in a level of forward mode; a mode, of another thread too, had
    logits made."""
    monkeypatch.setattr(limits, "nbytes", 0)
    monkeypatch.setattr(limits, "classes", 1)
    found = []
    for name in ("nothing", state):
        torch.manual_seed(0)
        make, shape = MODELS[model]
        made, x = make(), torch.randn(*shape, requires_grad=True)
        with states.STATES[name]():
            found.append(step(made, x))
    assert all(a.equal(b) for a, b in zip(*found, strict=True))
