"""Masks and codes that operators keep for backward take a bit or two an element, with the same gradients."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory, stores
from rushlight.ops.elementwise import clamp, rectifier, shared
from rushlight.utils.checkpoint import checkpoint

SIDE = 800
ELEMENTS = SIDE * SIDE


def operands(dtype: Any = torch.float32) -> list[Any]:
    torch.manual_seed(0)
    a, b, low = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE), torch.full((SIDE,), -0.5)
    b[0] = a[0]  # the gradient is shared
    a[1, :5] = float("nan")
    b[1, 3:7] = float("nan")
    return [x.to(dtype).requires_grad_() for x in (a, b, low)]


OPERATORS = {
    "clamp": (lambda a, b, low: a.clamp(-1, 0.5), 1),
    "clamp_min": (lambda a, b, low: a.clamp_min(0.1), 1),
    "clamp_": (lambda a, b, low: (a * 1).clamp_(-1, 1), 1),
    "clamp to tensors": (lambda a, b, low: a.clamp(low, b), 2),
    "maximum": (lambda a, b, low: torch.maximum(a, b), 2),
    "minimum, broadcast": (lambda a, b, low: torch.minimum(a, low), 2),
    "fmax": (lambda a, b, low: torch.fmax(a, b), 1),
    "fmin": (lambda a, b, low: torch.fmin(a, b), 1),
    "nan_to_num": (lambda a, b, low: a.nan_to_num(), 1),
    "threshold": (lambda a, b, low: torch.nn.functional.threshold(a, 0.1, 20.0), 1),
    "threshold_": (lambda a, b, low: torch.nn.functional.threshold_(a * 1, 0.1, 20.0), 1),
}


@pytest.fixture
def bytes_kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Switches to keeping a byte for each."""

    def switched(on: bool) -> None:
        memory.recompute_cheap(not on)

    yield switched
    memory.recompute_cheap(True)


def gradients(name: str, around: Any = nullcontext, dtype: Any = torch.float32, order: str = "C") -> list[Any]:
    a, b, low = operands(dtype)
    with around():
        made = OPERATORS[name][0](a.T if order == "F" else a, b.T if order == "F" else b, low)
        made.backward(torch.linspace(-1, 1, ELEMENTS).reshape(SIDE, SIDE).to(dtype))
    return [None if x.grad is None else (x.grad.float().numpy(), x.grad.stride()) for x in (a, b, low)]


def same(one: list[Any], other: list[Any]) -> None:
    for x, y in zip(one, other, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_array_equal(x[0], y[0])
            assert x[1] == y[1]


@pytest.mark.parametrize("name", OPERATORS)
def test_so_many_bits_are_kept(name: str) -> None:
    make, planes = OPERATORS[name]
    a, b, low = operands()
    before = memory.current()
    made = make(a, b, low)
    kept = memory.current() - before - made.nbytes
    assert planes * ELEMENTS / 8 <= kept <= planes * ELEMENTS / 8 + 4000


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_are_those_of_bytes(bytes_kept: Any, name: str, dtype: Any, order: str) -> None:
    narrow = gradients(name, dtype=dtype, order=order)
    bytes_kept(True)
    same(narrow, gradients(name, dtype=dtype, order=order))


AROUND: dict[str, Any] = {
    "disk": stores.disk, "lossless": lambda: stores.compress("lossless"),
    "budget": lambda: memory.budget(memory.current() + 60 * ELEMENTS),
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
}  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", OPERATORS)
def test_stores_budgets_and_hooks_are_given_bits(name: str, around: str) -> None:
    same(gradients(name, AROUND[around]), gradients(name))


def test_hooks_see_what_is_kept() -> None:
    sizes = []
    a, b, _ = operands()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.nbytes) or t, lambda t: t):
        torch.maximum(a, b).clamp(-1, 1)
    assert sizes == [2 * ELEMENTS // 8, ELEMENTS // 8]


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_kept_serves_several_backwards(bytes_kept: Any, name: str) -> None:
    def run() -> list[Any]:
        a, b, low = operands()
        made = OPERATORS[name][0](a, b, low)
        g = torch.full_like(made, 2.0).requires_grad_()
        found = torch.autograd.grad(made, a, g, create_graph=True)[0]
        (second,) = torch.autograd.grad(found, g, torch.ones_like(found), retain_graph=True)
        batch = torch.stack([torch.ones_like(made), torch.arange(float(ELEMENTS)).reshape(SIDE, SIDE)])
        (rows,) = torch.autograd.grad(made, a, batch, is_grads_batched=True)
        return [(x.detach().numpy(), x.stride()) for x in (found, second, rows)]

    narrow = run()
    bytes_kept(True)
    same(narrow, run())


def test_checkpoints_and_vmap() -> None:
    a, b, _ = operands()

    def f(a: Any, b: Any) -> Any:
        return torch.maximum(a, b).clamp(-1, 1).sum()

    checkpoint(f, a, b, use_reentrant=False).backward()
    plain = operands()
    f(*plain[:2]).backward()
    np.testing.assert_array_equal(a.grad.numpy(), plain[0].grad.numpy())
    rows = torch.func.vmap(torch.func.grad(f))(a.detach(), b.detach())
    np.testing.assert_array_equal(rows.numpy(), plain[0].grad.numpy())


def test_estimates_know() -> None:
    class Limited(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.maximum(x, x * 2).clamp(-1, 1).cos()

    found = memory.estimate(Limited(), torch.randn(SIDE, SIDE, requires_grad=True))
    assert found.activations == 4 * ELEMENTS + 3 * ELEMENTS // 8


CHOICES = {
    "maximum": lambda x, y: torch.maximum(x, y),
    "fmin": lambda x, y: torch.fmin(x, y),
    "clamp between numbers": lambda x, y: x.clamp(0.2, 0.5),
    "clamp between tensors": lambda x, y: x.clamp(y - 1, y),
    "clamp in place": lambda x, y: x.clone().clamp_(min=y),
    "nan_to_num": lambda x, y: x.nan_to_num(),
    "threshold": lambda x, y: torch.nn.functional.threshold(x, 0.5, 0.0),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CHOICES)
def test_what_nothing_goes_back_through_is_not_kept(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def recording() -> bool:
        asked.append(shared.recording())
        return asked[-1]

    monkeypatch.setattr(clamp, "recording", recording)
    monkeypatch.setattr(rectifier, "recording", recording)
    x, y = torch.rand(40, 30).to(dtype), torch.rand(40, 30).to(dtype)
    plain = CHOICES[name](x, y)
    assert asked == [False]
    recorded = CHOICES[name](x.requires_grad_(), y)
    assert asked[1:] == [True] and recorded.equal(plain)
