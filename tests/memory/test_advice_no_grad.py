"""Advice to evaluate under no_grad, against the same evaluation under no_grad."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import memory, nn
from rushlight.kernels.native import loader
from rushlight.memory.recordings.recording import Recording

F: Any = nn.functional
pytestmark = pytest.mark.skipif(not loader.tables(), reason="the figures are those of the native kernels")


class Loop(nn.Module):
    """Layers in a loop, whose results lie in variables."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 if i == 0 else 16, 16, 3, padding=1) for i in range(5))
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(5))

    def forward(self, x: Any) -> Any:
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            y = F.relu(norm(layer(x)))
            x = y if i == 0 else x + y
        return x.mean((2, 3))


class Bridges(nn.Module):
    """A network whose late parts use what the early ones made."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = self.part(3, 16), self.part(16, 32), self.part(32, 32)
        self.up2, self.up1 = self.part(64, 16), self.part(32, 8)

    def part(self, a: int, b: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    def forward(self, x: Any) -> Any:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.bottom(F.max_pool2d(b, 2))
        y = self.up2(torch.cat([F.interpolate(y, scale_factor=2), b], 1))
        return self.up1(torch.cat([F.interpolate(y, scale_factor=2), a], 1)).mean((2, 3))


class Blocks(nn.Module):
    """A transformer's blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.inp = nn.Linear(3, 64)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(64, 2, 256, batch_first=True) for _ in range(4))

    def forward(self, x: Any) -> Any:
        x = self.inp(x.flatten(2).mT[:, :64])
        for block in self.blocks:
            x = block(x)
        return x.mean(1)


def row() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(0, 2), nn.Linear(32, 512), *(part for _ in range(5) for part in (nn.Linear(512, 512), nn.Tanh()))
    )


def evaluated(make: Callable[[], nn.Module], recorded: bool, backward: bool = False) -> Recording:
    torch.manual_seed(0)
    model = make()
    model.train(backward)
    x = torch.randn(16, 3, 32, 32)
    gc.collect()
    memory.record_history()
    try:
        with contextlib.nullcontext() if recorded else torch.no_grad():
            for _ in range(2):
                found = model(x)
                if backward:
                    found.square().mean().backward()
                del found
        return memory.recording()
    finally:
        memory.record_history(enabled=None)


@pytest.mark.parametrize("make", [Loop, Bridges, Blocks, row])
def test_the_advice_promises_what_no_grad_gives(make: Callable[[], nn.Module]) -> None:
    recording = evaluated(make, True)
    saved = recording.peak()[0] - evaluated(make, False).peak()[0]
    (advice,) = (a for a in memory.advise(recording) if a.name == "no_grad")
    assert 0.4 * saved < advice.saves <= 1.01 * saved + 4096  # the loop's own small arrays
    assert "with torch.no_grad():" in advice.code and "test_advice_no_grad.py" in advice.text


@pytest.mark.parametrize("make", [Loop, Bridges, Blocks, row])
def test_where_backward_follows_it_is_not_given(make: Callable[[], nn.Module]) -> None:
    assert "no_grad" not in [a.name for a in memory.advise(evaluated(make, True, backward=True))]


def trained(recorded: bool, retain: bool = False) -> Recording:
    """Steps, and after each an evaluation whose loss a variable keeps while the next one is taken."""
    torch.manual_seed(0)
    model = row()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(512, 3, 32, 32)
    gc.collect()
    memory.record_history()
    try:
        for _ in range(3):
            loss = model(x).square().mean()
            loss.backward(retain_graph=retain)
            optimizer.step()
            optimizer.zero_grad()
            if not retain:
                with contextlib.nullcontext() if recorded else torch.no_grad():
                    validation = model(x).square().mean()
                validation.item()
        return memory.recording()
    finally:
        memory.record_history(enabled=None)


def test_an_evaluation_that_a_variable_keeps_is_found() -> None:
    recording = trained(True)
    saved = recording.peak()[0] - trained(False).peak()[0]
    (advice,) = (a for a in memory.advise(recording) if a.name == "no_grad")
    assert 0.4 * saved < advice.saves <= 1.01 * saved + 4096


def test_a_graph_that_is_retained_was_used() -> None:
    assert "no_grad" not in [a.name for a in memory.advise(trained(True, retain=True))]
