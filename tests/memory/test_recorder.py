"""Recordings of real runs: categories, phases, operators, modules, lines, and that the numbers add up."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.processes import printed

import rushlight as torch
from rushlight import memory
from rushlight.kernels.native import loader
from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, CATEGORY, FREE, MARK, PHASE, PHASES, Recording
from rushlight.memory.recordings.replay import most_telling

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 256)
        self.second = torch.nn.Linear(256, 64)

    def forward(self, x: Any) -> Any:
        return self.second(torch.tanh(self.first(x)))


def replayed(r: Recording) -> Iterator[tuple[int, Any, Any]]:
    """(event, which blocks are alive after it, their categories)."""
    alive, category = np.zeros(len(r.size), bool), np.zeros(len(r.size), np.int64)
    alive[: r.initial], category[: r.initial] = True, r.initial_category
    for i in range(len(r.time)):
        block = r.block[i]
        if r.action[i] == ALLOC:
            assert not alive[block]
            alive[block], category[block] = True, r.value[i]
        elif r.action[i] == FREE:
            assert alive[block]
            alive[block] = False
        elif r.action[i] == CATEGORY:
            assert alive[block]
            category[block] = r.value[i]
        yield i, alive, category


@pytest.fixture
def trained() -> Iterator[tuple[Any, Any, Recording, int]]:
    """A model trained for two steps while recording, and how far the allocator's own peak was above the start."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(200, 64)
    gc.collect()
    memory.record_history()
    memory.reset_peak()
    start = memory.current()
    for _ in range(2):
        model(x).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    peak = memory.peak() - start
    memory.mark("trained")
    memory.record_history(None)
    yield model, optimizer, memory.recording(), peak


def test_bytes_add_up_at_every_event(trained: Any) -> None:
    _, _, r, peak = trained
    live = r.live()
    for i, alive, category in replayed(r):
        sums = [int(r.size[alive & (category == c)].sum()) for c in range(len(CATEGORIES))]
        assert sum(sums) == live[i] >= 0
    assert r.peak()[0] - r.initial_bytes() == peak


def test_categories_at_the_peak(trained: Any) -> None:
    model, _, r, _ = trained
    size = sum(p.nbytes for p in model.parameters())
    _, at = r.peak()
    alive, category = next((a.copy(), c.copy()) for i, a, c in replayed(r) if i == at)
    sums = {name: int(r.size[alive & (category == c)].sum()) for c, name in enumerate(CATEGORIES)}
    assert sums["parameter"] >= size and sums["input"] == 200 * 64 * 4
    assert sums["activation"] >= 200 * 256 * 4
    last, categories = [(a.copy(), c.copy()) for _, a, c in replayed(r)][-1]
    last[: r.initial] = False  # state of optimizers that live on from elsewhere
    blocks = np.flatnonzero(last & (categories == CATEGORIES.index("optimizer_state")))
    state, moments = Counter(r.size[blocks].tolist()), Counter(2 * [p.nbytes for p in model.parameters()])
    assert moments <= state
    rest = state - moments  # numbers of steps, and what a first use in this process may leave
    where = [(r.size[b], r.operators[r.operator[b]], r.stacks[r.stack[b]][:3]) for b in blocks if r.size[b] in rest]
    assert rest.total() <= 6 and sum(rest.elements()) < 1000, where
    gradients = {int(b) for i, _, c in replayed(r) for b in [r.block[i]]
                 if b >= 0 and c[b] == CATEGORIES.index("gradient")}  # fmt: skip
    assert sum(int(r.size[b]) for b in gradients) >= 2 * size


def test_phases_and_marks(trained: Any) -> None:
    r = trained[2]
    phases = [PHASES[v] for v, a in zip(r.value, r.action, strict=True) if a == PHASE]
    assert phases == ["", *["forward", "backward", "optimizer"] * 2, "forward"]
    assert [r.marks[v] for v, a in zip(r.value, r.action, strict=True) if a == MARK] == ["trained"]
    assert (np.diff(r.time) >= 0).all()


def test_operators_modules_and_lines(trained: Any) -> None:
    r = trained[2]
    made = {(r.operators[o], r.modules[m]) for o, m in zip(r.operator, r.module, strict=True) if o >= 0 and m >= 0}
    assert {("linear", "first"), ("linear", "second"), ("tanh", "Net"), ("LinearBackward0", "second")} <= made
    big = int(np.flatnonzero(r.size == 200 * 256 * 4)[0])
    frame = r.stacks[r.stack[big]][0]
    assert frame.filename == __file__ and frame.name == "forward"


def test_a_ring_that_is_too_small_keeps_the_end() -> None:
    memory.record_history(max_entries=50)
    for _ in range(100):
        torch.ones(300).exp()
    kept = torch.ones(7777)
    memory.record_history(None)
    r = memory.recording()
    assert len(r.time) == 50 and r.dropped > 100
    assert [int(a.sum()) for _, a, _ in replayed(r)]  # every death has its birth, or was there before
    assert kept.nbytes in r.size.tolist()


def test_threads_are_told_apart() -> None:
    def work() -> None:
        model = Net()
        for _ in range(20):
            model(torch.randn(8, 64)).sum().backward()

    memory.record_history()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    memory.record_history(None)
    r = memory.recording()
    live = r.live()
    assert live.min() >= 0 and sum(1 for _ in replayed(r)) == len(r.time)


def test_stacks_can_be_left_out_and_arguments_are_checked() -> None:
    memory.record_history(context=None)
    torch.ones(300)
    memory.record_history(None)
    assert set(memory.recording().stack.tolist()) == {-1}
    with pytest.raises(ValueError, match="max_entries must be a positive int"):
        memory.record_history(max_entries=0)
    with pytest.raises(ValueError, match="expected enabled in"):
        memory.record_history("some")


def test_a_function_that_raises_leaves_the_recorder_in_order() -> None:
    model = Net()
    memory.record_history()
    with pytest.raises(RuntimeError):
        model(torch.randn(3, 5))
    model(torch.randn(3, 64))
    memory.record_history(None)
    r = memory.recording()
    made = {(r.operators[o], r.modules[m]) for o, m in zip(r.operator, r.module, strict=True) if o >= 0 and m >= 0}
    assert ("linear", "first") in made and ("linear", "second") in made


def test_the_peak_is_that_of_the_operating_system() -> None:
    program = """
import rushlight as torch
from rushlight import memory
base = memory.stats().process
model = torch.nn.Sequential(*[torch.nn.Linear(2000, 2000) for _ in range(8)])
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(500, 2000)
memory.record_history()
for _ in range(2):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
stats = memory.stats()
print(stats.peak, stats.process_peak - base, memory.recording().peak()[0])
"""
    # As the C library is used without settings: blocks go back to the system when they are freed.
    exact = {"RUSHLIGHT_KEEP_FREED": "0", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    run = printed("-c", program, env=os.environ | exact)
    peak, resident, recorded = map(int, run.split())
    assert recorded == peak and abs(resident - peak) <= 0.05 * peak


def test_what_a_custom_function_calls_its_attributes_does_not_matter() -> None:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.saved, ctx.outs, ctx.aux = 1, 2.0, "three"
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(1000, requires_grad=True)
    memory.record_history()
    try:
        Odd.apply(x).sum().backward()
        memory.live()
    finally:
        memory.record_history(None)
    assert float(x.grad[0]) == 2


def test_a_long_recording_does_not_count_itself() -> None:
    """Nor what is made after it: events are read into 44 MB here, and the program used 1."""
    gc.collect()  # what other tests left: if it goes between these two lines, the recording alone has seen it
    memory.record_history()
    memory.reset_peak()
    held = [np.empty(1000) for _ in range(100)]
    times = 250_000 if loader.tables() else 2_500
    for i in range(times):
        held[i % 100] = np.empty(1000)
    assert memory.recording().peak()[0] == memory.peak()  # also while it still records
    memory.record_history(None)
    first = memory.recording()
    assert len(first.time) >= 2 * times and first.peak()[0] == memory.peak()
    later = np.ones(10_000_000)
    r = memory.recording()
    assert r.peak()[0] == first.peak()[0] < memory.peak() and len(r.time) == len(first.time)
    assert r.live()[-1] == first.live()[-1] and later.nbytes not in r.size


def test_what_is_freed_after_a_recording_was_alive_at_its_end() -> None:
    x = torch.ones(2_000_000)
    memory.record_history()
    y = np.ones(1_000_001)
    memory.record_history(None)
    before = memory.recording()
    del x, y
    assert memory.recording().live()[-1] == before.live()[-1]
    assert {8_000_000, 8_000_008} <= set(memory.recording().size.tolist())


def test_a_module_has_its_parameters_and_their_state_and_building_it_is_no_forward() -> None:
    memory.record_history()
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 64), torch.nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters())
    built = memory.recording()
    for _ in range(2):
        model(torch.arange(10)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    memory.record_history(None)
    r = memory.recording()
    assert not (built.value[built.action == PHASE]).any()
    alive = r.live()[-1] and np.setdiff1d(np.arange(len(r.size)), r.block[r.action == FREE])
    of_embedding = [b for b in alive if r.module[b] >= 0 and r.modules[r.module[b]] == "0"]
    assert (
        sorted(n for n in r.size[of_embedding].tolist() if n > 4) == [256_000] * 3
    )  # the table, and Adam's two moments of it


def test_the_launcher_is_no_part_of_a_stack(tmp_path: Any) -> None:
    (tmp_path / "train.py").write_text("import torch\nx = torch.ones(70_000)\n")
    command = [sys.executable, "-m", "rushlight", "memory", "report", "--save", "x.pickle", "train.py"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    r = memory.load(tmp_path / "x.pickle")
    (block,) = np.flatnonzero(r.size == 280_000)
    assert os.path.basename(r.stacks[r.stack[block]][-1].filename) == "train.py"


def test_a_snapshot_that_is_taken_meanwhile_does_not_find_itself() -> None:
    memory.record_history()
    try:
        x = torch.ones(100)
        found = memory.snapshot()["device_traces"]
    finally:
        memory.record_history(None)
    del x
    assert [event["size"] for trace in found for event in trace if event["size"] >= 16] == [400]


def test_within_a_budget_what_is_kept_for_backward_and_what_comes_back_has_its_category() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(6)])
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(2048, 256)
    with memory.budget(memory.current() + 11_500_000) as budget:  # whatever other tests have left
        memory.record_history()
        for _ in range(3):
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        found = memory.recording()
        memory.record_history(None)
    assert budget.report().moved_in["activation"] > 2**21
    kinds, operators = most_telling(found), {name: k for k, name in enumerate(found.operators)}
    large = found.size >= 2**21
    kept = kinds[large & (found.operator == operators["relu"])]
    assert (kept == CATEGORIES.index("activation")).sum() == 18  # without native kernels relu makes others on its way
    back = kinds[large & (found.operator == operators["LinearBackward0"])]  # read within its backward
    assert (back == CATEGORIES.index("activation")).any()


def test_the_line_is_the_users_where_numpy_made_the_array_for_them() -> None:
    arrays = [np.ones(10_000) for _ in range(8)]
    memory.record_history()
    kept = np.stack(arrays)
    found = memory.recording()
    memory.record_history(None)
    (block,) = np.flatnonzero(found.size == kept.nbytes)
    assert found.stacks[found.stack[block]][0].filename == __file__
