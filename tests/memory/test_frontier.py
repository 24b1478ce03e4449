"""The curve of bytes against seconds: its points are those of real steps, and choosing keeps its word."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
import time
import weakref
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory, stores
from rushlight.dispatch.keeping import rebuilt
from rushlight.kernels.native import loader
from rushlight.memory.estimates.rehearsals import Setup, blocks
from rushlight.memory.planning import costs, machine, paging, pictures, scripts, trials, ways
from rushlight.memory.planning.frontier import Frontier, Point, best
from rushlight.memory.planning.machine import Machine
from rushlight.memory.planning.trials import TrialFailed
from rushlight.memory.planning.ways import Way
from rushlight.models.language import GPT

nn, F = torch.nn, torch.nn.functional
counted = pytest.mark.skipif(
    not memory.is_counted() or not hasattr(os, "fork"), reason="steps are taken in a forked process and counted"
)
native = pytest.mark.skipif(not loader.tables(), reason="the figures are those of the native kernels")
HERE = Machine("a processor", 1, 1e-11, 1e-10, 1e-6, 5e-10, 4e-10)


@pytest.fixture(autouse=True)
def _a_machine_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rushlight.memory.planning.frontier.machine", lambda dir=None: HERE)


def convolutional() -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)

    def block(a: int, b: int) -> Any:
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1))

    model = nn.Sequential(
        block(3, 16), block(16, 16), block(16, 16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
    )
    y = torch.randint(0, 5, (4,))
    return (
        model,
        (torch.randn(4, 3, 64, 64),),
        torch.optim.Adam(model.parameters()),
        lambda out: F.cross_entropy(out, y),
    )


def language() -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    text, model = torch.randint(0, 500, (4, 129)), GPT(500, 128, 2, 128, 4)
    sample = (text[:, :-1].clone(), text[:, 1:].clone())
    return model, sample, torch.optim.AdamW(model.parameters()), lambda out: out[1]


def small() -> tuple[Any, Any, Any]:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(128, 128), nn.Tanh()) for _ in range(4)])
    return model, (torch.randn(256, 128),), torch.optim.Adam(model.parameters())


@native
@counted
@pytest.mark.parametrize("make", [convolutional, pytest.param(language, marks=pytest.mark.slow)])
def test_every_way_takes_the_bytes_that_were_predicted(make: Any) -> None:
    model, sample, optimizer, loss = make()
    setup = Setup(model, sample, optimizer, loss, True)
    for way in ways.ways_of(setup, exact=True):
        predicted, taken = setup.rehearse(way.rehearse).tally.peak, trials.tried(setup, way).peak
        # what waits to be written depends on the disk's speed
        room = ways.WINDOW if "disk" in way.name else 0.05 * taken
        assert abs(predicted - taken) <= room, (way.name, predicted, taken)


@native
@counted
def test_a_budget_moves_the_bytes_that_were_predicted() -> None:
    model, sample, optimizer, loss = language()
    setup = Setup(model, sample, optimizer, loss, True)
    tally = setup.rehearse(ways.FUSED.rehearse).tally
    limit = tally.peak * 6 // 10
    moved = paging.play(tally, limit, costs.Costs(HERE))
    assert moved is not None
    gc.collect()
    base = memory.current() - trials.held(model, sample, optimizer)
    with memory.budget(limit + base, optimizer=optimizer) as budget:
        for _ in range(3):
            before = dict(budget.pager.moved_out)
            trials.one_step(model, sample, optimizer, loss)
    out = budget.pager.moved_out["activation"] - before["activation"]
    # a quick machine drops what a slow one writes
    assert abs(moved.saved_out - out) <= 0.25 * moved.saved_out + budget.pager.again, (moved, out)
    assert moved.rest_out > 0 and moved.total(costs.Costs(HERE)) > sum(moved.seconds)


@counted
def test_the_curve_is_measured_in_steps_that_change_nothing() -> None:
    model, sample, optimizer = small()
    before = [p.detach().clone() for p in model.parameters()]
    state = torch.get_rng_state()
    found = memory.frontier(model, sample, optimizer, measure=True)
    assert found.plain is found.points[0] and all(point.measured for point in found.points)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    assert not optimizer.state and all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    peaks = [point.peak for point in found]
    share = 0.5 if loader.tables() else 0.75  # operators on NumPy alone need more at once
    assert peaks == sorted(peaks, reverse=True) and found.least.peak < found.plain.peak * share
    assert {"optimizer in backward", "checkpoint each block"} <= {point.name for point in found.points}


def test_without_measuring_nothing_is_computed() -> None:
    found = memory.frontier(lambda: nn.Sequential(*[nn.Linear(30_000, 30_000) for _ in range(4)]), (10, 30_000),
                            torch.optim.Adam, measure=False)  # fmt: skip
    assert found.plain.peak > 4 * 4 * 30_000**2 * 4 > 3 * found.least.peak
    assert not any(point.measured for point in found.points)
    assert found.least.seconds > found.plain.seconds


def test_what_fails_is_said() -> None:
    model = nn.Linear(64, 64)

    def loss(out: Any) -> Any:
        if not modes_are_dry():
            raise RuntimeError("only in earnest")
        return out.sum()

    found = memory.frontier(model, (8, 64), torch.optim.SGD(model.parameters()), loss=loss, measure=True)
    assert "only in earnest" in found.failed["plain"] and "only in earnest" in " ".join(repr(found).split())


def modes_are_dry() -> bool:
    from rushlight.basics.state import modes

    return any(level.dry for level in modes.levels)


def points() -> Frontier:
    return Frontier([Point("plain", "", 100, 1.0), Point("a", "a()", 60, 1.2), Point("b", "b()", 70, 1.4),
                     Point("c", "c()", 20, 3.0, exact=False)], HERE, {"d": "no <room>"})  # fmt: skip


def test_points_are_chosen_from_the_curve() -> None:
    found = points()
    assert [point.name for point in found] == ["plain", "a", "c"] and len(found) == 3
    assert found.slowdown(1.3).name == "a" and found.slowdown(1.1) is found.plain and found.slowdown(9) is found.least
    assert found.within(65).name == "a" and found.within("100 B").name == "plain"
    with pytest.raises(ValueError, match="the least is c"):
        found.within(10)
    quicker = best([Point("plain", "", 100, 2.0), Point("other", "", 100, 1.0), Point("less", "", 50, 3.0)])
    assert [point.name for point in quicker] == ["plain", "less"]


def test_ways_that_fail_for_one_reason_are_one_line() -> None:
    failed = {"a": "clipping <gradients>", "b": "too few bytes", "c": "clipping <gradients>"}
    found = Frontier([Point("plain", "", 100, 1.0)], HERE, failed)
    text = pictures.text(found, 100)
    assert text.count("not possible") == 2 and "not possible: a; c: clipping <gradients>" in text
    assert "<li>a; c: clipping &lt;gradients&gt;</li><li>b: too few bytes</li>" in pictures.page(found)


def test_pictures(tmp_path: Path) -> None:
    found = points()
    text = found.text(90)
    assert "100 B" in text and "3.00x" in text and "c()" in text and "not on the curve" in text and "no <room>" in text
    assert max(map(len, found.text(60).splitlines())) <= 60 and repr(found)
    assert found.save(tmp_path / "curve.svg", "a < b") == str(tmp_path / "curve.svg")
    drawing = ET.parse(tmp_path / "curve.svg").getroot()
    circles = [x for x in drawing.iter() if x.tag.endswith("circle")]
    assert len(circles) == len(found.points) and all(0 < float(c.get("cx", "0")) < pictures.WIDTH for c in circles)
    found.save(tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text()
    assert "<svg" in page and "c (other gradients)" in page and "no &lt;room&gt;" in page
    assert "prefers-color-scheme:dark" in page and page.count("not on the curve") == bool(
        len(found.points) - len(found.curve)
    )
    assert "<svg" in found._repr_html_()


def test_one_point_has_a_picture() -> None:
    alone = Frontier([Point("plain", "", 0, 0.0)], HERE)
    assert "plain" in repr(alone) and "<svg" in alone._repr_html_()


def test_the_largest_batch_in_a_way() -> None:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 200)) for _ in range(6)])
    plain = memory.max_batch(model, (64, 200), torch.optim.Adam, "12 MB")
    more = memory.max_batch(model, (64, 200), torch.optim.Adam, "12 MB", way="checkpoint each block")
    assert more > plain
    assert memory.estimate(model, (plain, 200), torch.optim.Adam).peak <= 12_000_000
    assert memory.estimate(model, (plain + 1, 200), torch.optim.Adam).peak > 12_000_000
    with pytest.raises(TypeError, match="max_batch: expected a budget"):
        memory.max_batch(model, (64, 200))
    with pytest.raises(ValueError, match="expected way= to be one of"):
        memory.max_batch(model, (64, 200), None, "12 MB", way="magic")
    with pytest.raises(ValueError, match="one sample"):
        memory.max_batch(model, (64, 200), torch.optim.Adam, "10 kB")


def test_a_machine_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(machine, "_known", {})
    calls: list[str] = []
    monkeypatch.setattr(machine, "measured", lambda name, dir: calls.append(name) or HERE)
    assert machine.machine() == machine.machine() == HERE and len(calls) == 1
    monkeypatch.setattr(machine, "_known", {})
    assert machine.machine() == HERE and len(calls) == 1  # from the file
    machine.file().write_text("{broken")
    monkeypatch.setattr(machine, "_known", {})
    assert machine.machine() == HERE and len(calls) == 2
    assert machine.machine(again=True) == HERE and len(calls) == 3
    assert len(json.loads(machine.file().read_text())) == 1


def test_blocks_of_a_sequence() -> None:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)])
    assert blocks(model) == list(model)
    assert blocks(nn.Sequential(nn.Linear(4, 4), nn.Tanh())) == []


def test_a_rehearsal_computes_again_what_a_store_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilt.switch, "on", False)  # else it is not kept in the first place
    model, sample, _, loss = convolutional()
    setup = Setup(model, sample, None, loss, True)
    plain = setup.rehearse().tally
    store = stores.recompute()
    again = setup.rehearse(lambda rehearsal: store).tally
    assert store.stats()["dropped_bytes"] > 0 and again.peak < plain.peak
    assert sum(w.operator == "relu" for w in again.works) > sum(w.operator == "relu" for w in plain.works)


SCRIPT = """
import sys
import weakref
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.Tanh()) for _ in range(6)])
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(256, 128)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def command(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    return subprocess.run([sys.executable, "-m", "rushlight", *(str(script) if w == "SCRIPT" else w for w in words)],
                          capture_output=True, text=True, cwd=tmp_path)  # fmt: skip


@pytest.mark.slow
@counted
def test_the_curve_of_a_script(tmp_path: Path) -> None:
    done = command(tmp_path, "memory", "frontier", "-o", "curve.svg", "--width", "120", "SCRIPT", "9")
    assert done.returncode == 0, done.stderr
    assert "plain" in done.stdout and "budget of" in done.stdout and "loss" not in done.stdout
    assert (tmp_path / "curve.svg").exists()
    plain = command(tmp_path, "run", "SCRIPT", "3")
    for words in (("--slowdown", "1.5x"), ("--memory-budget", "min")):
        chosen = command(tmp_path, "run", *words, "SCRIPT", "3")
        assert chosen.stdout == plain.stdout and "times the plain" in chosen.stderr


def test_a_budget_that_is_too_small_says_what_is_tried_next() -> None:
    tried = list[int]()

    def measured(way: Way) -> Point:
        tried.append(way.limit)
        if way.limit < 430:
            failure = TrialFailed("too few")
            failure.least = {350: 420, 420: 430}[way.limit]
            raise failure
        return Point(way.name, way.code, way.limit, 1.0)

    failed: dict[str, str] = {}
    found = scripts.bounded(measured, 1000, True, failed)
    assert tried == [750, 500, 350, 420, 430] and [point.peak for point in found] == [750, 500, 430]
    assert set(failed) == {"budget of 420 B"}  # and not the one before, which said that this was to be tried


def changes_gradients() -> None:
    """A program that does with gradients what an optimizer in backward does not see."""
    torch.manual_seed(0)
    model = torch.nn.Linear(300, 300)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 300)).square().mean().backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad.sign_().add_(0.1)
        optimizer.step()


def clips(*limits: float) -> None:
    """A program that limits the norm of its gradients, to these numbers in turn."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(300, 300) for _ in range(4)))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 300)).square().sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limits[step % len(limits)])
        assert norm > 1
        optimizer.step()


class Counts(torch.nn.Module):
    """A block that counts its calls in a buffer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(100, 100)
        self.register_buffer("count", torch.zeros(size))

    def forward(self, x: Any) -> Any:
        self.count += 1
        return self.inner(x).tanh()


def counts_calls(size: int) -> None:
    """A program that runs no part again."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Counts(size) for _ in range(4)))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 100)).square().mean().backward()
        optimizer.step()


def draws() -> None:
    """A program that is another each time."""
    model = torch.nn.Linear(300, 300)
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(np.random.default_rng().random((300, 300))))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 300)).square().mean().backward()
        optimizer.step()


def looks_first() -> None:
    """A program whose model, and parts of it, run before there is an optimizer."""
    torch.manual_seed(0)
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(300, 300))
    model = torch.nn.Sequential(layer, torch.nn.Tanh(), torch.nn.LazyLinear(10))
    with contextlib.suppress(RuntimeError):
        model(torch.ones(2, 3))
    model(torch.ones(2, 300))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 300)).square().mean().backward()
        optimizer.step()


@counted
def test_a_way_begins_once_there_is_an_optimizer() -> None:
    plain = scripts.Plain(looks_first, 4, str)
    assert 0 < plain.measured(ways.FUSED).peak < plain.found.peak
    with scripts.taken(ways.FUSED) as models:
        looks_first()
    assert [type(model).__name__ for model in models] == ["Sequential"]


def forks() -> None:
    """A program that steps in processes of its own too, one of which fails, and one of which comes to the end of the program."""
    for number in range(2):
        if not os.fork():
            for _ in range(9):
                looks_first()
            if number:
                raise OSError
            return
        os.wait()
    looks_first()


@counted
def test_processes_that_a_program_forks_do_not_answer_for_it() -> None:
    found = scripts.Plain(forks, 4, str).found
    assert found.peak > 0 and found.digest is not None


def test_threads_that_begin_to_train_at_once_begin_a_way_once(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [torch.nn.Linear(3, 3) for _ in range(3)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    together, find, applied = threading.Barrier(3), scripts.optimizers_of, list[Any]()

    def slowly(module: Any) -> Any:
        time.sleep(0.02)
        return find(module)

    def train(model: Any) -> None:
        together.wait()
        model(torch.ones(1, 3))

    monkeypatch.setattr(scripts, "optimizers_of", slowly)
    way = replace(ways.PLAIN, apply=lambda model, found: contextlib.nullcontext(applied.append(found)))
    with scripts.taken(way) as begun:
        threads = [threading.Thread(target=train, args=(model,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(begun) == len(applied) == 1 and applied[0][0] in optimizers


@pytest.mark.parametrize("way", [ways.FUSED, ways.both(ways.FUSED, ways.SAVING[0]), ways.within(1 << 40, True)])
def test_optimizers_that_a_program_drops_step_no_more(way: Way) -> None:
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with scripts.taken(way):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        assert model.weight.grad is None
        del optimizer
        model(torch.ones(1, 3)).sum().backward()
        assert model.weight.grad is not None


@counted
def test_a_way_that_trains_something_else_is_not_taken() -> None:
    plain = scripts.Plain(changes_gradients, 4, str)
    assert plain.measured(ways.CHECKPOINT).peak > 0
    with pytest.raises(TrialFailed, match=r"other parameters or buffers .*: the program uses gradients"):
        plain.measured(ways.FUSED)
    counting = scripts.Plain(partial(counts_calls, 1), 4, str)
    assert counting.measured(ways.FUSED).peak > 0
    assert counting.measured(ways.CHECKPOINT).peak > 0  # second runs leave small buffers as they were
    counting = scripts.Plain(partial(counts_calls, 1 + (1 << 18)), 4, str)
    with pytest.raises(TrialFailed, match="running a part of the program again"):
        counting.measured(ways.CHECKPOINT)
    other = scripts.Plain(draws, 4, str)
    assert other.measured(ways.FUSED).peak > 0 and other.repeats is False


@counted
def test_a_program_that_clips_may_have_its_optimizer_in_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "machine", lambda: HERE)
    held = memory.current()  # by other tests
    found = scripts.frontier_of(partial(clips, 0.5))
    fused = {point.name: point for point in found.points if "in_backward" in point.code}
    assert "optimizer in backward, recompute what is cheap" in fused and not any(
        "clipping" in x for x in found.failed.values()
    )
    assert fused["optimizer in backward"].code == "optim.in_backward(optimizer, clip_grad_norm=0.5)"
    assert fused["optimizer in backward"].peak - held < 0.85 * (found.plain.peak - held)
    assert "clip_grad_norm=0.5); with memory.budget(" in found.least.code
    for point in fused.values():
        way = scripts.way_of(point)
        assert (way.name, way.code) == (point.name, point.code)
    plain = scripts.tried(partial(clips, 0.5), ways.PLAIN).digest
    assert scripts.tried(partial(clips, 0.5), scripts.way_of(found.least)).digest == plain


@counted
def test_a_program_that_clips_otherwise_each_step_steps_after_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "machine", lambda: HERE)
    found = scripts.frontier_of(partial(clips, 0.5, 0.25))
    assert "clipping the gradients" in found.failed["optimizer in backward"]
    assert any(point.name.startswith("budget") for point in found.points)
    assert not any("in_backward" in point.code for point in found.points)


@counted
def test_budgets_are_tried_without_an_optimizer_in_backward_where_that_cannot_be() -> None:
    class Alternating(torch.nn.Module):
        """Runs a backward of its own before the one that is asked for."""

        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = torch.nn.Linear(300, 300), torch.nn.Linear(300, 300)

        def forward(self, x: Any) -> Any:
            self.two(self.one(x).detach()).sum().backward()
            return self.two(self.one(x)).sum()

    model = Alternating()
    optimizer = torch.optim.Adam(model.parameters())
    found = memory.frontier(model, torch.ones(4, 300), optimizer, measure=True)
    assert "2 backward calls" in found.failed["optimizer in backward"]
    bounded = [point for point in found.points if point.name.startswith("budget")]
    assert bounded and not any("optimizer=" in point.code for point in bounded)
    assert len({point.name for point in found.points}) == len(found.points)


@pytest.mark.slow
@counted
def test_a_script_without_steps_is_told(tmp_path: Path) -> None:
    done = command(tmp_path, "memory", "frontier", "SCRIPT", "1")
    assert done.returncode == 1 and "1 steps of an optimizer" in done.stderr
    missing = command(tmp_path, "memory", "frontier", "nowhere.py")
    assert missing.returncode == 2 and "no such script" in missing.stderr
    for words in (("--slowdown", "0.5"), ("--memory-budget", "many")):
        assert command(tmp_path, "run", *words, "SCRIPT", "3").returncode == 2
    both = command(tmp_path, "run", "--slowdown", "2", "--memory-budget", "1GiB", "SCRIPT", "3")
    assert both.returncode == 2 and "two ways to choose" in both.stderr


def test_a_model_ends_with_its_last_reference_though_ways_failed() -> None:
    def search() -> Any:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        memory.frontier(model, torch.ones(3, 4), torch.optim.Adam(model.parameters()))
        return weakref.ref(model)

    gc.collect()
    gc.disable()
    try:
        assert search()() is None
    finally:
        gc.enable()
