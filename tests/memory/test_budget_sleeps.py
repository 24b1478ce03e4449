"""A budget that is not reached changes nothing; one that is, moves what was saved before it was."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake, waking
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory, nn
from rushlight.basics.state import modes, special
from rushlight.engine.node import Node
from rushlight.memory.budgets import waking as module
from rushlight.utils.checkpoint import checkpoint

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")
F = nn.functional


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(32), nn.BatchNorm2d(32)])
        self.convolutions = nn.ModuleList([nn.Conv2d(32, 32, 3, padding=1, bias=False) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        y = F.relu(self.norms[0](self.convolutions[0](x)), inplace=True)
        return F.relu(self.norms[1](self.convolutions[1](y)) + x, inplace=True)


class Language(nn.Module):
    """Tokens (B, T) to the loss of predicting each from those before it."""

    def __init__(self, classes: int = 12_000, d: int = 32):
        super().__init__()
        self.table = nn.Embedding(classes, d)
        self.layer = nn.TransformerEncoderLayer(d, 4, 4 * d, 0.1, F.gelu, batch_first=True, norm_first=True)
        self.head = nn.Linear(d, classes, bias=False)
        self.head.weight = self.table.weight
        self.mask = nn.Transformer.generate_square_subsequent_mask(256)

    def forward(self, x: Any) -> Any:
        hidden = self.layer(self.table(x[:, :-1]), self.mask[: x.shape[1] - 1, : x.shape[1] - 1], is_causal=True)
        logits = self.head(hidden)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), x[:, 1:].reshape(-1))


class U(nn.Module):
    def __init__(self, c: int = 8):
        super().__init__()
        self.down, self.deep, self.up = block(3, c), block(c, 2 * c), block(3 * c, c)
        self.last = nn.Conv2d(c, 3, 1)

    def forward(self, x: Any) -> Any:
        across = self.down(x)
        deep = F.interpolate(self.deep(F.max_pool2d(across, 2)), scale_factor=2)
        return self.last(self.up(torch.cat([deep, across], 1)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.layers, self.head = nn.Embedding(500, 64), nn.LSTM(64, 128, 2), nn.Linear(128, 500)

    def forward(self, x: Any) -> Any:
        return F.cross_entropy(self.head(self.layers(self.table(x))[0]).flatten(0, 1), x.flatten())


def block(a: int, b: int) -> Any:
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())  # fmt: skip


def pooled() -> Any:
    return nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1))  # fmt: skip


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "relu before a pool": (pooled, lambda: torch.randn(4, 3, 64, 64)),
    "residual": (lambda: nn.Sequential(Residual(), Residual()), lambda: torch.randn(4, 32, 32, 32)),
    "language": (Language, lambda: torch.randint(0, 12_000, (8, 128))),
    "u-net": (U, lambda: torch.randn(2, 3, 64, 64)),
    "recurrent": (Recurrent, lambda: torch.randint(0, 500, (32, 16))),
}


def trained(kind: str, around: Callable[[], Any], steps: int = 2) -> tuple[list[float], dict[str, Any], int, Any]:
    """Losses, the model's state, the peak above the start, and what `around` gave."""
    torch.manual_seed(0)
    make, sample = MODELS[kind]
    model, x = make(), sample()
    optimizer, losses = torch.optim.AdamW(model.parameters()), []
    gc.collect()
    memory.reset_peak()
    start = memory.current()
    with around() as entered:
        for _ in range(steps):
            loss = model(x)
            loss = loss if loss.ndim == 0 else loss.square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        peak = memory.peak() - start
    return losses, {k: v.numpy().copy() for k, v in model.state_dict().items()}, peak, entered


class Nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


@native
@pytest.mark.parametrize("kind", MODELS)
def test_a_budget_that_is_not_reached_has_the_peak_of_none(kind: str) -> None:
    losses, state, peak, _ = trained(kind, Nothing)
    again, other, within, budget = trained(kind, lambda: memory.budget("10 GB"))
    assert again == losses and abs(within - peak) <= peak / 100
    same(state, other)
    assert budget.report().without == budget.report().peak


@native
@pytest.mark.parametrize("kind", MODELS)
def test_one_that_is_awake_keeps_what_is_kept_without(kind: str) -> None:
    losses, state, peak, _ = trained(kind, Nothing)
    again, other, within, _ = trained(kind, awake)
    assert again == losses and within <= peak * 1.01
    same(state, other)


def test_a_budget_that_is_not_reached_is_no_mode() -> None:
    before = special.count, modes.odd
    with memory.budget("10 GB") as budget:
        assert (special.count, modes.odd) == before and modes.saved_hooks == () == modes.observers
        model = nn.Linear(512, 512)
        assert model(torch.randn(512, 512)).grad_fn._saved_input.__class__ is torch.Tensor
        assert type(model.weight) is nn.Parameter
        budget.pager.wake()
        assert special.count > before[0]
    assert (special.count, modes.odd) == before and modes.sleeper is None


@native
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "relu before a pool"])
def test_what_was_saved_before_memory_was_short_is_moved(kind: str) -> None:
    losses, state, peak, _ = trained(kind, Nothing, 1)
    saved = 0.97 if kind == "language" else 0.7
    again, other, within, budget = trained(kind, lambda: memory.budget(memory.current() + int(peak * saved)), 1)
    assert again == losses and within <= peak * saved and sum(budget.report().moved_out.values()) > 0
    same(state, other)


@native
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("part", range(4))
def test_it_may_wake_anywhere(kind: str, part: int) -> None:
    losses, state, peak, _ = trained(kind, Nothing)
    again, other, _, budget = trained(kind, lambda: waking(peak * (1 + 2 * part) // 9))
    assert again == losses and not budget.pager.asleep
    same(state, other)


def test_inputs_of_checkpoints_are_moved() -> None:
    layers = [nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(12)]
    x = torch.randn(2048, 256, requires_grad=True)

    def gradient() -> Any:
        y = x
        for layer in layers:
            y = checkpoint(layer, y, use_reentrant=False)
        return torch.autograd.grad(y.sum(), x)[0]

    want = gradient()
    with memory.budget(memory.current() + 10 * x.nbytes) as budget:
        found = gradient()
    np.testing.assert_array_equal(found.numpy(), want.numpy())
    assert budget.report().moved_out["activation"] > 0


def test_it_wakes_where_hooks_are_entered() -> None:
    seen: list[int] = []

    def pack(t: Any) -> Any:
        seen.append(t.nbytes)
        return t * 1

    with memory.budget(memory.current() + 3_000_000) as budget:
        x = torch.randn(256, 256, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = x
            for _ in range(20):
                y = y.exp().log()
        y.sum().backward()
    assert len(seen) == 40 and budget.report().moved_out["activation"] > 0
    np.testing.assert_allclose(x.grad.numpy(), 1, rtol=1e-4)
    assert modes.saved_hooks == ()


def test_nothing_of_it_is_left() -> None:
    def nodes() -> int:  # by type: what other libraries have made may run code when asked for its class
        return sum(issubclass(type(x), Node) for x in gc.get_objects())

    gc.collect()
    before = nodes()
    x = torch.randn(256, 256, requires_grad=True)
    gc.disable()
    try:
        with memory.budget(memory.current() + 1_200_000) as budget:
            y = x
            for _ in range(20):
                y = y.exp().log()
            y.sum().backward()
            del y
        assert nodes() == before
        assert budget.pager.wake is None and math.isfinite(budget.report().seconds)
    finally:
        gc.enable()


def test_the_limit_ends_before_the_pager_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may be short of memory just then."""
    end = module.Waking.end

    def ended(self: module.Waking) -> None:
        end(self)
        torch.empty(1 << 22)

    monkeypatch.setattr(module.Waking, "end", ended)
    with memory.budget(1 << 22):
        pass


def test_a_budget_that_cannot_begin_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr(module, "adopt_saved", broken)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        with pytest.raises(OSError, match="broken"), memory.budget(1 << 24):
            pass
        assert modes.sleeper is None
    monkeypatch.undo()
    with memory.budget(1 << 24):
        pass
