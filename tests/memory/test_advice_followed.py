"""Advice where it was wrong once: what it says of loops and models of several kinds is what it gives, or it is not given."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory import test_advice_pasted as pasting
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory, nn
from rushlight.memory.recordings.recording import Recording

pytestmark = native
F = nn.functional


def recorded(step: Callable[[], Any], steps: int = 3) -> Recording:
    gc.collect()
    memory.record_history(max_entries=1 << 16)
    try:
        for _ in range(steps):
            step()
    finally:
        memory.record_history(None)
    return memory.recording()


def adversaries(frozen: bool) -> Callable[[], None]:
    """A generator and its judge; frozen: whether the judge gets no gradients by the generator's loss."""
    made, judge = nn.Linear(64, 900), nn.Sequential(nn.Linear(900, 900), nn.Tanh(), nn.Linear(900, 1))
    one, other = torch.optim.Adam(made.parameters()), torch.optim.Adam(judge.parameters())

    def step() -> None:
        fake = made(torch.randn(8, 64))
        other.zero_grad()
        (F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(torch.randn(8, 900))).mean()).backward()
        other.step()
        one.zero_grad()
        judge.requires_grad_(not frozen)
        F.softplus(-judge(fake)).mean().backward()
        judge.requires_grad_(True)
        one.step()

    return step


@pytest.mark.parametrize("frozen", [False, True])
def test_no_optimizer_is_put_into_backward_where_another_loss_reaches_its_parameters(
    frozen: bool, tmp_path: Path
) -> None:
    recording = recorded(adversaries(frozen))
    memory.save(recording, tmp_path / "a.pickle")
    for found in (recording, memory.load(tmp_path / "a.pickle")):
        assert ("in_backward" in [advice.name for advice in memory.advise(found, worth=0)]) is frozen


def test_an_optimizer_is_put_into_backward_where_gradients_of_inputs_stay() -> None:
    model, x = nn.Sequential(*(nn.Linear(600, 600) for _ in range(3))), torch.randn(8, 600, requires_grad=True)
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    assert "in_backward" in [advice.name for advice in memory.advise(recorded(step))]


def test_a_disk_is_not_advised_for_what_one_layer_needs_at_once() -> None:
    """What the layer before needs is read ahead while that of this one is in use: nothing is won."""
    model, head, x = nn.LSTM(64, 128, 2), nn.Linear(128, 20), torch.randn(60, 32, 64)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])

    def step() -> None:
        head(model(x)[0]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    assert "disk" not in [advice.name for advice in memory.advise(recorded(step))]


class Skips(nn.Module):
    """A model that does much by itself, between its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.within, self.up, self.last = (
            self.block(3, 16),
            self.block(16, 32),
            self.block(48, 16),
            nn.Conv2d(16, 2, 1),
        )

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.SiLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.SiLU())  # fmt: skip

    def forward(self, x: Any) -> Any:
        skip = self.down(x)
        x = self.within(F.max_pool2d(skip, 2))
        return self.last(self.up(torch.cat([F.interpolate(x, scale_factor=2), skip], 1)))


def skips() -> tuple[Any, Any]:
    return Skips(), torch.randn(8, 3, 64, 64)


@pytest.mark.parametrize("build", [skips, pasting.stages])
def test_what_is_computed_again_gives_what_is_said(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pasting.SCRIPTS, "this", (build, pasting.STEP))
    (advice,) = (a for a in memory.advise(pasting.run("this"), worth=0) if a.name == "checkpoint")
    given = advice.before - pasting.run("this", advice).peak()[0]
    assert "Skips" not in advice.code and 0.95 <= given / advice.saves <= 1.1


def views(images: int, batch: int) -> Recording:
    """Steps on views of a data set, which reach the model as they are."""
    data = np.ones((images, 64), np.float32)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer, places = torch.optim.SGD(model.parameters(), lr=0.1), iter(range(0, images, batch))

    def step() -> None:
        start = next(places)
        model(torch.from_numpy(data[start : start + batch])).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return recorded(step)


def test_half_a_batch_leaves_a_data_set_as_it_is_whose_views_the_model_gets(tmp_path: Path) -> None:
    whole, half = views(8000, 2000), views(8000, 1000)
    really = whole.peak()[0] - half.peak()[0]
    memory.save(whole, tmp_path / "a.pickle")
    assert memory.load(tmp_path / "a.pickle").cut == whole.cut != []
    for found in (whole, memory.load(tmp_path / "a.pickle")):
        told = sum(advice.saves for advice in memory.advise(found, worth=0) if advice.name == "batch")
        assert 0.9 * really <= told <= 1.1 * really


def test_a_batch_that_is_used_in_pieces_is_no_data_set() -> None:
    x, model = torch.randn(50, 400, 64), nn.Linear(64, 64)

    def step() -> None:
        sum(model(x[at]).relu().sum() for at in range(50)).backward()

    recording = recorded(step)
    assert recording.cut == []
