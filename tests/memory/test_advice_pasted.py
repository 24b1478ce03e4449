"""Each piece of advice on real scripts, pasted as it is printed, and measured: what it promises is what it gives."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import memory, nn
from rushlight.kernels.native import loader
from rushlight.memory.advice.advisor import Advice
from rushlight.memory.recordings.recording import Recording

pytestmark = pytest.mark.skipif(not loader.tables(), reason="the figures are those of the native kernels")

STEP = """
loss = loss_of(model(x))
loss.backward()
optimizer.step()
optimizer.zero_grad()
"""
LATE = """
optimizer.zero_grad()
loss = loss_of(model(x))
loss.backward()
optimizer.step()
"""


class Block(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.norm, self.mix, self.mlp = nn.LayerNorm(d), nn.Linear(d, d), nn.Sequential(
            nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))  # fmt: skip

    def forward(self, x: Any) -> Any:
        x = x + self.mix(torch.softmax(self.norm(x), -1))
        return x + self.mlp(self.norm(x))


class Body(nn.Module):
    def __init__(self, d: int, depth: int):
        super().__init__()
        self.embedding, self.head = nn.Embedding(2000, d), nn.Linear(d, 20)
        self.layers = nn.ModuleList(Block(d) for _ in range(depth))

    def forward(self, x: Any) -> Any:
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Stages(nn.Module):
    """Lists of blocks, which run none as a whole, and what joins them as a U-Net does."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(self.block(i, o) for i, o in ((3, 16), (16, 32), (32, 32)))
        self.up = nn.ModuleList(self.block(i, o) for i, o in ((64, 32), (48, 16)))
        self.head = nn.Conv2d(16, 5, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.GELU()
        )

    def forward(self, x: Any) -> Any:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.interpolate(kept.pop(), scale_factor=1)
        for block in self.up:
            x = block(torch.cat([nn.functional.interpolate(x, scale_factor=2), kept.pop()], 1))
        return self.head(x)


def stages() -> tuple[Any, Any]:
    return Stages(), torch.randn(4, 3, 64, 64)


def perceptron() -> tuple[Any, Any]:
    layers = [m for _ in range(8) for m in (nn.Linear(256, 256), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(256, 10)), torch.randn(2048, 256)


def wide() -> tuple[Any, Any]:
    return nn.Sequential(*(nn.Linear(700, 700) for _ in range(6))), torch.randn(16, 700)


def images() -> tuple[Any, Any]:
    layers = [m for _ in range(5) for m in (nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())]
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), *layers), torch.randn(16, 3, 32, 32)


def text() -> tuple[Any, Any]:
    return Body(96, 5), torch.randint(0, 2000, (32, 64))


SCRIPTS: dict[str, tuple[Callable[[], tuple[Any, Any]], str]] = {
    "perceptron": (perceptron, STEP), "wide": (wide, STEP), "wide, cleared late": (wide, LATE), "images": (images, STEP),
    "text": (text, STEP), "stages": (stages, STEP),
}  # fmt: skip


def run(script: str, advice: Advice | None = None) -> Recording:
    """Three steps of a script, with the code of an advice pasted into it."""
    build, step = SCRIPTS[script]
    torch.manual_seed(0)
    model, x = build()
    names: dict[str, Any] = {"model": model, "x": x, "optimizer": torch.optim.Adam(model.parameters())}
    names["loss_of"] = lambda out: out.square().mean()
    once, step, around = pasted(advice.code if advice else "", step)
    if "loader" in around:
        names["loader"], names["x"] = [x[: len(x) // 2].clone()] * 6, None
    del model, x
    names["train"] = lambda: [exec(step, names) for _ in range(3)]
    gc.collect()
    memory.record_history(max_entries=1 << 16)
    try:
        exec(once, names)
        exec(around, names)
    finally:
        memory.record_history(None)
    return memory.recording()


def pasted(code: str, step: str) -> tuple[str, str, str]:
    """What runs once, the step, and what runs the steps: the code stands where it says what it stands for."""
    once, _, loop = code.rpartition("\n\n")
    if "train()" in loop or "loader" in loop:
        return once, step, loop
    if "optimizer.zero_grad()" in loop:
        return once, step.replace("optimizer.zero_grad()\n", "").replace("optimizer.step()", loop), "train()"
    if "loss.backward()" in loop:
        return once, step.replace("loss = loss_of(model(x))\nloss.backward()", loop), "train()"
    if "loss = loss_of(model(x))" in loop:
        return once, step.replace("loss = loss_of(model(x))", loop), "train()"
    return code, step, "train()"


def test_nothing_pasted_changes_nothing() -> None:
    assert pasted("", STEP) == ("", STEP, "train()")


def given_by_advice(script: str) -> dict[str, float]:
    """What each advice to a script saves when it is followed, as a part of what it promised."""
    found = [advice for advice in memory.advise(run(script)) if advice.code]
    assert found
    return {a.name: (a.before - run(script, a).peak()[0]) / (a.before - a.after) for a in found}


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script != "stages"])
def test_each_advice_gives_what_it_says(script: str) -> None:
    given = given_by_advice(script)
    assert min(given.values()) >= 0.95, given
    # On disk goes also what makes again what was not kept: how much of that backward holds at once, a replay cannot know.
    given.pop("disk", None)
    assert max(given.values(), default=1) <= 1.2, given


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script != "stages"])
def test_each_advice_gives_little_more_where_everything_is_kept(script: str) -> None:
    former = memory.recompute_cheap(False)
    try:
        given = given_by_advice(script)
    finally:
        memory.recompute_cheap(former)
    assert 0.95 <= min(given.values()) and max(given.values()) <= 1.2, given


def test_lists_of_modules_are_not_advised_to_be_computed_again(tmp_path: Path) -> None:
    recording = run("stages")
    assert {"down", "up"} == {*recording.idle}
    memory.save(recording, tmp_path / "stages.pickle")
    read = memory.load(tmp_path / "stages.pickle")
    assert read.idle == recording.idle
    code = "".join(advice.code for advice in memory.advise(read, worth=0))
    assert "stores.recompute()" in code and "(model.down)" not in code and "(model.up)" not in code
    assert min(given_by_advice("stages").values()) >= 0.9  # computing a list again gave nothing


def test_a_leak_comes_first_in_bytes_of_a_step() -> None:
    model, kept = nn.Linear(900, 900), []
    optimizer = torch.optim.Adam(model.parameters())
    memory.record_history(max_entries=1 << 16)
    for _ in range(6):
        loss = model(torch.randn(64, 900)).tanh().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(torch.ones(30_000))
    memory.record_history(None)
    first, *others = memory.advise(memory.recording())
    assert first.name == "leak" and first.each_step == 120_000 and "+120 kB every step" in str(first)
    assert others and max(a.saves for a in others) > first.saves and not any(a.each_step for a in others)


def names_of_advice(model: Any, optimizer: Any, step: Callable[[], object]) -> list[str]:
    """Which advice is given to a loop."""
    memory.record_history(max_entries=1 << 16)
    try:
        for _ in range(2):
            step()
            optimizer.step()
            optimizer.zero_grad()
    finally:
        memory.record_history(None)
    return [advice.name for advice in memory.advise(memory.recording())]


def two_backward_calls(model: Any) -> None:
    x = torch.ones(16, 600)
    one, other = model(x).square().mean(), model(x).abs().mean()
    one.backward()
    other.backward()


def one_of_two_losses(model: Any) -> None:
    out = model(torch.ones(16, 600))
    torch.autograd.backward([out.square().mean(), out.abs().mean()])


@pytest.mark.parametrize(
    ("step", "options", "refused"),
    [
        (two_backward_calls, {}, {"in_backward"}),
        (one_of_two_losses, {"amsgrad": True}, {"eight_bit"}),
        (one_of_two_losses, {}, set()),
    ],
)
def test_what_would_be_refused_is_not_advised(step: Any, options: dict[str, Any], refused: set[str]) -> None:
    model = nn.Sequential(*(nn.Linear(600, 600) for _ in range(3)))
    names = names_of_advice(model, torch.optim.AdamW(model.parameters(), **options), lambda: step(model))
    assert {"in_backward", "eight_bit"} - set(names) == refused


def test_what_one_node_needs_at_once_is_not_advised_to_be_computed_again() -> None:
    """All that a recurrent layer saved is there again when its backward begins."""
    model = nn.LSTM(64, 128, 2)
    x = torch.randn(40, 32, 64)
    optimizer = torch.optim.Adam(model.parameters())
    assert "checkpoint" not in names_of_advice(model, optimizer, lambda: model(x)[0].square().mean().backward())
