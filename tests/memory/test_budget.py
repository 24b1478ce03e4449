"""A budget in bytes: kept, with the results that there are without; refused where it cannot be."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake

import rushlight as torch
from rushlight import memory
from rushlight.dispatch.keeping import rebuilt
from rushlight.kernels.native import loader
from rushlight.memory.budgets import pager
from rushlight.memory.budgets.paged import PagedTensor
from rushlight.stores.errors import StoreError
from rushlight.stores.files import Spill, spills

native = pytest.mark.skipif(not loader.tables(), reason="the figures are those of the native kernels")
pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")


def model_of(kind: str) -> Any:
    nn = torch.nn
    torch.manual_seed(0)
    if kind == "convolution":
        layers = [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(6)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 32 * 32, 8)), torch.randn(12, 16, 32, 32)
    if kind == "attention":
        layer = [nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.1) for _ in range(4)]
        return nn.Sequential(*layer), torch.randn(4, 128, 256)
    blocks = [nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512)) for _ in range(6)]
    return nn.Sequential(*blocks), torch.randn(512, 512)


def steps_of(kind: str) -> tuple[Callable[[], None], int]:
    """A step of training without an optimizer, and the bytes at its peak."""
    gc.collect()  # what budgets before left on disk counts among what there would be without
    for spill in list(spills):
        with suppress(StoreError):  # which a test before made
            spill.flush()  # what they still write counts among what there is
    model, x = model_of(kind)

    def step() -> None:
        model(x).pow(2).mean().backward()
        model.zero_grad()

    step()
    memory.reset_peak()
    step()
    return step, memory.peak()


def train(kind: str, limit: int | None, make: Any) -> tuple[list[float], dict[str, Any], Any, int]:
    model, x = model_of(kind)
    optimizer = make(model.parameters())
    losses: list[float] = []

    def steps() -> None:
        torch.manual_seed(1)
        for _ in range(3):
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())

    memory.reset_peak()
    gc.collect()  # what others left would go meanwhile, and count for less growth
    start, report = memory.current(), None
    if limit is None:
        steps()
    else:
        with memory.budget(limit) as b:
            steps()
        report = b.report()
    return losses, model.state_dict(), report, memory.peak() - start


@native
@pytest.mark.parametrize("kind", ["linear", "convolution", "attention"])
@pytest.mark.parametrize("make", [torch.optim.Adam, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)])
def test_half_of_the_memory_gives_the_same_results(kind: str, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    losses, state, _, growth = train(kind, None, make)
    limit = memory.current() + growth // 2
    again, other, report, _ = train(kind, limit, make)
    assert again == losses
    assert report.peak <= limit and report.without > limit and sum(report.moved_out.values()) > 0
    for name, value in state.items():
        np.testing.assert_array_equal(value.numpy(), other[name].numpy())
    assert "peak without the budget" in str(report)


@native
def test_memory_that_was_freed_and_kept_for_the_next_counts_for_the_limit() -> None:
    with memory.budget(memory.current() + 1_000_000) as b:
        np.empty(600_000, np.uint8)
        other = np.empty(8, np.uint8)
        other.resize(900_000)  # not of what was freed
        with pytest.raises(MemoryError):
            np.empty(600_000, np.uint8)
        assert len(other) == 900_000
    assert b.report().peak <= b.limit


@native
def test_what_a_kernel_works_with_is_within_the_limit_or_refused() -> None:
    x, w = torch.randn(8, 64, 16, 16), torch.randn(64, 64, 3, 3)
    whole = torch.nn.functional.conv2d(x, w, padding=1)
    limit = memory.current() + whole.nbytes + 200_000  # the result fits, the kernel's buffers do not
    with pytest.raises(memory.BudgetError, match="too few") as error, memory.budget(limit) as b:
        torch.nn.functional.conv2d(x, w, padding=1)
    least = error.value.least
    assert b.report().peak <= limit < least
    del error  # its frames hold the result
    with memory.budget(least + 1000) as b:
        again = torch.nn.functional.conv2d(x, w, padding=1)
    assert torch.equal(again, whole) and b.report().peak <= b.limit


@pytest.mark.parametrize("kind", ["linear", "convolution", "attention"])
@pytest.mark.parametrize("guess", [0.0, 1.0])
def test_what_is_quick_to_compute_again_is_not_written(
    kind: str, guess: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilt.switch, "on", False)  # else there is nothing left to choose
    losses, state, _, growth = train(kind, None, torch.optim.SGD)
    monkeypatch.setattr(pager, "DISK", guess)  # seconds a byte: a disk that takes no time, or for ever
    monkeypatch.setattr(Spill, "seconds_per_byte", lambda spill, guess: guess)
    again, other, report, _ = train(kind, memory.current() + growth // 2, torch.optim.SGD)
    assert again == losses
    for name, value in state.items():
        np.testing.assert_array_equal(value.numpy(), other[name].numpy())
    assert (report.again > 0) == (guess > 0) == ("computed again" in str(report))


@pytest.mark.parametrize("guess", [0.0, 1.0])
def test_computing_again_needs_no_more_memory_than_the_disk(guess: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spill, "seconds_per_byte", lambda spill, _: guess)
    x, w = torch.ones(4096, 64), torch.ones(64, requires_grad=True)
    with memory.budget(memory.current() + 6_400_000) as b:  # six such arrays; backward of a product needs five
        h = x
        for _ in range(8):
            h = (((h * w).tanh() * 0.9).exp() * 0.5).sigmoid()
        h.square().mean().backward()
    assert (b.report().again > 8_000_000) == (guess > 0)
    assert b.report().without > 25_000_000


def test_memory_that_changes_between_two_saves_is_two_pages() -> None:
    w = torch.randn(64, 512, requires_grad=True)
    with awake(memory.current() + 4_000_000) as b:
        x = torch.randn(64, 512)
        before = (x * w).sum()
        page = next(iter(b.pager.saved.values()))()
        page.piece = b.pager.spill.put(page.data)  # as is done ahead of need
        b.pager.spill.flush()
        x += 1
        after = (x * w).sum()
        want = x.numpy().copy()
        del x, page
        b.pager.free(0, False)
        assert all(reference().data is None for reference in b.pager.saved.values())
        after.backward()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            before.backward()
    np.testing.assert_array_equal(w.grad.numpy(), want)


def test_what_is_computed_from_memory_that_changes_is_computed_before() -> None:
    w = torch.randn(64, 512, requires_grad=True)
    with awake(memory.current() + 4_000_000) as b:
        b.pager.spill.seconds_per_byte = lambda guess: 1.0
        x = torch.randn(64, 512)
        unused = (x * w).sum()
        y = x * 2.0
        loss = (y * w).sum()
        want = y.clone().numpy()  # y itself, shown to NumPy, could change unseen
        del y
        b.pager.free(0, True)
        page = next(p for p in (reference() for reference in b.pager.saved.values()) if p.again is not None)
        assert page.data is None and page.piece is None
        x.zero_()
        assert page.data is not None
        loss.backward()
    del unused
    np.testing.assert_array_equal(w.grad.numpy(), want)


def test_what_nobody_will_get_is_not_computed_before_a_change() -> None:
    w = torch.randn(64, 512, requires_grad=True)
    with awake():
        x = torch.randn(64, 512)
        unused = (x * w).sum()
        y = x * 2.0
        outdated = (y * w).sum()  # keeps y, which x gives again
        y.relu_()
        loss = (y * w).sum()
        want = y.clone().numpy()
        x.zero_()
        loss.backward()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            outdated.backward()
    del unused
    np.testing.assert_array_equal(w.grad.numpy(), want)


def test_too_little_says_how_much_would_do() -> None:
    model, x = model_of("linear")
    limit = memory.current() - 4_000_000
    with pytest.raises(memory.BudgetError, match=r"at least .* are needed") as caught, memory.budget(limit):
        model(x).sum().backward()
    assert caught.value.least > limit and isinstance(caught.value, MemoryError)
    model(x).sum().backward()  # the library is as it was
    assert model[0][0].weight.grad is not None and type(model[0][0].weight) is torch.nn.Parameter


def test_tensors_are_ordinary_to_their_users() -> None:
    model, x = model_of("linear")
    weight = model[0][0].weight
    before = weight.detach().numpy().copy()
    with memory.budget(memory.current() + 5_000_000) as b:
        model(x).sum().backward()
        assert isinstance(weight, PagedTensor.__mro__[1]) and sum(b.report().moved_out.values()) > 0
        assert isinstance(weight, torch.nn.Parameter) and weight.shape == (512, 512)
        np.testing.assert_array_equal(weight.detach().numpy(), before)
        for other in (copy.deepcopy(weight), pickle.loads(pickle.dumps(weight))):
            assert isinstance(other, torch.nn.Parameter) and other.data_ptr() != weight.data_ptr()
            np.testing.assert_array_equal(other.detach().numpy(), before)
        with torch.no_grad():
            weight.mul_(2)
        state = model.state_dict()
    np.testing.assert_array_equal(weight.detach().numpy(), before * 2)
    np.testing.assert_array_equal(state["0.0.weight"].numpy(), before * 2)
    assert np.isfinite(weight.grad.numpy()).all()
    assert type(weight) is torch.nn.Parameter and type(weight.grad) is torch.Tensor


def test_changes_in_place_of_what_was_saved_are_found() -> None:
    for when in range(4):
        with memory.budget(memory.current() + 50_000_000) as b:
            x = torch.randn(300, 300, requires_grad=True)
            if when == 0:
                b.pager.wake()
            y = x.exp()
            z = y * y
            if when == 1:
                b.pager.wake()
            y.add_(1)
            if when == 2:
                b.pager.wake()
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                z.sum().backward()


def test_views_of_one_array_are_one_page() -> None:
    x = torch.randn(400, 1200, requires_grad=True)
    want = torch.autograd.grad(sum((p * p).sum() for p in (x * 1).chunk(3, 1)), x)[0].numpy()
    with memory.budget(memory.current() + 7_000_000):
        parts = (x * 1).chunk(3, 1)
        loss = sum((p * p).sum() for p in parts)
        del parts
        others = [torch.zeros(400, 400) for _ in range(4)]
        got = torch.autograd.grad(loss, x)[0]
    np.testing.assert_array_equal(got.numpy(), want)
    del others


def test_the_end_takes_no_memory() -> None:
    model, x = model_of("linear")
    optimizer = torch.optim.Adam(model.parameters())
    limit = memory.current() + 6_000_000
    with memory.budget(limit):
        model(x).sum().backward()
        optimizer.step()
    memory.reset_peak()
    assert memory.current() <= limit < sum(4 * p.nbytes for p in model.parameters()) + limit - 6_000_000
    state = optimizer.state_dict()["state"][0]["exp_avg"]  # comes back when it is asked for
    assert float(state.abs().sum()) > 0 and type(state) is torch.Tensor
    optimizer.step()
    assert all(type(p) is torch.nn.Parameter for p in model.parameters())


def test_what_the_user_holds_stays() -> None:
    with memory.budget(memory.current() + 4_000_000):
        held = torch.ones(500, 500)
        view = held[10:]
        for _ in range(20):
            torch.ones(500, 500).exp()
        assert float(view.sum()) == 490 * 500


def test_nothing_is_left_on_disk(tmp_path: Any) -> None:
    model, x = model_of("linear")
    with memory.budget(memory.current() + 5_000_000, spill=tmp_path):
        model(x).sum().backward()
        assert os.listdir(tmp_path) == []  # files without a name
    assert os.listdir(tmp_path) == []


def test_a_directory_that_is_none_and_bytes_that_are_none() -> None:
    with pytest.raises(ValueError, match="expected bytes"):
        memory.budget("many")
    with pytest.raises(RuntimeError, match="is no directory"), memory.budget("1 GiB", spill="/no/such/place"):
        pass
    torch.ones(10)


def test_a_disk_without_room_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    def full(*args: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    model, x = model_of("linear")
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(memory.BudgetError, match="No space left"), memory.budget(memory.current() + 4_000_000):
        model(x).sum().backward()
    monkeypatch.undo()
    model(x).sum().backward()
    assert all(np.isfinite(p.grad.numpy()).all() for p in model.parameters())


def test_a_disk_that_failed_holds_nobodys_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    def full(*args: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fails() -> memory.budget:
        model, x = model_of("linear")
        budget = memory.budget(memory.current() + 4_000_000)
        with pytest.raises(memory.BudgetError, match="No space left"), budget:
            model(x).sum().backward()
        return budget

    gc.collect()
    before = memory.current()
    monkeypatch.setattr(os, "pwrite", full)
    gc.disable()
    try:
        budget = fails()  # which still can tell
        assert memory.current() - before < 100_000 and budget.report().peak
    finally:
        gc.enable()


def test_exceptions_pass() -> None:
    with pytest.raises(KeyError), memory.budget("1 GiB"):
        raise KeyError("mine")


@native
def test_a_budget_that_does_not_bind_changes_no_peak_and_predicts_the_one_without() -> None:
    step, peak = steps_of("linear")
    with memory.budget("10 GB") as b:
        step()
    assert abs(b.report().peak - peak) < 300_000 and b.report().without == b.report().peak
    assert not any(b.report().moved_out.values())
    with memory.budget(peak - 3_000_000) as b:
        step()
    assert b.report().peak <= b.limit and abs(b.report().without - peak) < 300_000


@native
def test_a_disk_that_is_slow_changes_neither_what_is_saved_nor_what_is_predicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (step, peak), write = steps_of("linear"), os.pwrite
    for seconds in (0, 0.001, 0.01):
        monkeypatch.setattr(os, "pwrite", lambda *args, seconds=seconds: (time.sleep(seconds), write(*args))[1])
        for _ in range(3):
            with memory.budget(peak - 3_000_000) as b:
                step()
            # who asks for room may get a page and the slack more: growing into that, nobody is asked
            assert abs(b.report().without - peak) < (1 << 20) + b.limit // 64


def test_what_was_read_ahead_goes_where_its_memory_is_needed() -> None:
    gc.collect()
    x = torch.randn(512, 512, requires_grad=True)
    seen: list[tuple[int, int]] = []

    def need(gradient: Any) -> None:
        spill = b.pager.spill
        while spill.active:
            time.sleep(0.001)
        ahead = spill.ahead
        b.pager.make_room(b.limit)
        seen.append((ahead, spill.ahead))

    with memory.budget(memory.current() + 8_000_000) as b:
        y = x
        for _ in range(16):
            y = y.tanh() * y.detach().sin()
            y.register_hook(need)
        y.sum().backward()
    assert max(ahead for ahead, _ in seen) > 0 and all(after == 0 for _, after in seen)


def test_what_need_not_leave_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilt.switch, "on", False)  # else little may leave
    (step, peak), over = steps_of("linear"), 4_000_000
    with memory.budget(peak - over) as b:
        b.pager.spill.seconds_per_byte = lambda guess: 0.0  # so that nothing is computed again
        written = [0]
        for _ in range(3):
            step()
            written.append(b.pager.spill.counts["put"])
    assert all(0 < after - before < 2 * over for before, after in pairwise(written))
    assert sum(b.report().moved_out.values()) == written[-1]


def test_arrays_of_a_step_are_used_again_in_the_next() -> None:
    resource = pytest.importorskip("resource")
    model, x = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(30)]), torch.randn(512, 64)
    with awake("10 GB"):
        for _ in range(2):
            model(x).sum().backward()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        model(x).sum().backward()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 500  # a step makes 60 arrays of 32 pages


def test_parameters_that_did_not_change_are_written_once() -> None:
    base = torch.nn.Sequential(*[torch.nn.Linear(256, 256, bias=False) for _ in range(12)]).requires_grad_(False)
    x = torch.randn(4, 256, requires_grad=True)
    with memory.budget(memory.current() - 1_500_000) as b:
        written = []
        for _ in range(4):
            base(x).sum().backward()
            written.append(b.pager.moved_out["parameter"])
        held = [p.sum().item() for p in base.parameters()]
    assert b.pager.moved_in["parameter"] > 4 * 1_000_000
    assert written[0] > 1_000_000 and written[-1] <= 12 * 256 * 256 * 4
    assert held == [p.sum().item() for p in base.parameters()]


def test_a_parameter_that_changed_without_a_word_is_written_again() -> None:
    base = torch.nn.ParameterList(torch.zeros(256, 256) for _ in range(12))
    with memory.budget(memory.current() - 1_500_000):
        for _ in range(3):
            for p in base:
                p.detach().numpy()[...] += 1  # counted by no version
    assert all((p == 3).all() for p in base)


def test_the_state_that_an_optimizer_asks_for_next_is_read_ahead() -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256, bias=False) for _ in range(12)])
    optimizer, x = torch.optim.Adam(model.parameters()), torch.randn(64, 256)

    def step() -> None:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    with memory.budget(memory.current() - 1_500_000) as b:
        for _ in range(6):
            step()
    assert b.pager.spill.counts["read_ahead"] > 0
