"""Advice on recordings of real training, against the same training with the technique: recorded, not made up."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory, nn, optim
from rushlight.kernels.native import loader
from rushlight.memory.advice import snippets, techniques
from rushlight.memory.advice.whatif import Run
from rushlight.memory.recordings.recording import Recording
from rushlight.utils.checkpoint import checkpoint

pytestmark = pytest.mark.skipif(not loader.tables(), reason="the figures are those of the native kernels")


class Block(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)

    def forward(self, x: Any) -> Any:
        return x + self.down(self.act(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, d: int, depth: int, checkpointed: bool):
        super().__init__()
        self.inp, self.out = nn.Linear(64, d), nn.Linear(d, 10)
        self.layers = nn.ModuleList(Block(d) for _ in range(depth))
        self.checkpointed = checkpointed

    def forward(self, x: Any) -> Any:
        x = self.inp(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointed else layer(x)
        return self.out(x)


def trained(batch: int, fused: bool = False, checkpointed: bool = False, clip: float | None = None) -> Recording:
    torch.manual_seed(0)
    model = Net(256, 6, checkpointed)
    optimizer = torch.optim.Adam(model.parameters())
    if fused:
        optim.in_backward(optimizer, clip_grad_norm=clip)
    x, y = torch.randn(batch, 64), torch.randint(0, 10, (batch,))
    gc.collect()
    memory.record_history()
    try:
        for _ in range(3):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            if clip is not None and not fused:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()
            del loss
        return memory.recording()
    finally:
        memory.record_history(enabled=None)


def test_gradients_from_before_the_recording_are_not_accumulated_ones() -> None:
    kept = torch.ones(3, requires_grad=True)
    kept.sum().backward()
    run = Run(trained(64))
    assert techniques.optimizer_in_backward(run) is not None and kept.grad is not None


@pytest.mark.parametrize("batch", [64, 512])
def test_predictions_come_true(batch: int) -> None:
    run = Run(trained(batch))
    fused = techniques.optimizer_in_backward(run)
    assert fused is not None
    assert run.replay(fused.changes).peak == pytest.approx(trained(batch, fused=True).peak()[0], rel=0.01)
    half = techniques.half_the_batch(run)
    assert half is not None
    assert run.replay(half.changes).peak == pytest.approx(trained(batch // 2).peak()[0], rel=0.02)
    blocks = techniques.saved(run)
    again = techniques.recomputed(run, blocks, techniques.patterns(run, blocks)["layers.*"], "layers.*")
    assert run.replay(again.changes).peak == pytest.approx(trained(batch, checkpointed=True).peak()[0], rel=0.03)


@pytest.mark.parametrize("batch", [64, 512])
def test_where_gradients_are_clipped_the_advice_clips_too(batch: int, tmp_path: Any) -> None:
    recording = trained(batch, clip=1.0)
    memory.save(recording, tmp_path / "a.pickle")
    run = Run(memory.load(tmp_path / "a.pickle"))
    fused = techniques.optimizer_in_backward(run)
    assert fused is not None
    real = trained(batch, fused=True, clip=1.0)
    assert run.replay(fused.changes).peak == pytest.approx(real.peak()[0], rel=0.01)
    code = snippets.in_backward(fused, 0)
    assert "optim.in_backward(optimizer, clip_grad_norm=1.0)" in code and "in place of clip_grad_norm_:" in code


def test_an_optimizer_whose_gradients_are_scaled_is_not_put_into_backward() -> None:
    model = nn.Linear(64, 64)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    memory.record_history()
    for _ in range(2):
        scaler.scale(model(torch.ones(8, 64)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    memory.record_history(enabled=None)
    run = Run(memory.recording())
    assert run.recording.treatments == ["GradScaler"] and techniques.optimizer_in_backward(run) is None


def test_the_best_part_of_a_real_model_is_its_layers() -> None:
    run = Run(trained(1024))
    applied = techniques.checkpointed(run)
    assert applied is not None and applied.what == "layers.*" and applied.number == 6
    names = [advice.name for advice in memory.advise(run.recording)]
    assert "checkpoint" in names and "batch" in names


def test_a_real_recording_goes_through_a_file(tmp_path: Any) -> None:
    recording = trained(64)
    memory.save(recording, tmp_path / "a.pickle")
    found = memory.validate(memory.load_snapshot(tmp_path / "a.pickle"))
    assert abs(found.peak - recording.peak()[0]) <= 1
    assert memory.load(tmp_path / "a.pickle").peak() == recording.peak()


def cut_from(images: int, batch: int) -> Recording:
    """Steps on batches that are cut from a data set."""
    gc.collect()
    memory.record_history()
    data = torch.from_numpy(np.ones((images, 64), np.float32))
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    for step in range(3):
        rows = torch.arange(step * batch, (step + 1) * batch)
        model(data[rows]).square().mean().backward()
        model.zero_grad()
    memory.record_history(None)
    return memory.recording()


@pytest.mark.parametrize("images", [8000, 60_000])
def test_half_a_batch_leaves_the_data_set_as_large_as_it_is(images: int) -> None:
    whole, half = cut_from(images, 2000), cut_from(images, 1000)
    really = whole.peak()[0] - half.peak()[0]
    told = sum(advice.saves for advice in memory.advise(whole, worth=0) if advice.name == "batch")
    assert 0.9 * really <= told <= 1.1 * really


def test_where_data_is_prepared_a_batch_tells_nothing() -> None:
    gc.collect()
    memory.record_history()
    data = torch.from_numpy(np.ones((50_000, 64), np.uint8)).double().float()
    model = nn.Linear(64, 10)
    for step in range(3):
        model(data[step * 100 : (step + 1) * 100]).square().mean().backward()
    memory.record_history(None)
    assert "batch" not in [advice.name for advice in memory.advise(memory.recording(), worth=0)]
