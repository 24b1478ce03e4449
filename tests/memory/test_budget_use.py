"""What users do inside a budget: copy, save, interrupt, differentiate twice, start threads, nest, load, evaluate."""

from __future__ import annotations

import copy
import gc
import io
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory, nn, stores
from rushlight.basics.state import modes
from rushlight.memory.budgets.paged import PagedTensor
from rushlight.memory.budgets.pager import Pager
from rushlight.optim.optimizer import _global_optimizer_post_hooks

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")


@pytest.fixture(autouse=True)
def nothing_remains() -> Iterator[None]:
    yield
    assert modes.observers == () and modes.saved_hooks == () and not _global_optimizer_post_hooks
    torch.zeros(50_000_000)  # no limit is left


def layers(count: int, width: int = 512, act: Any = nn.GELU) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), act()) for _ in range(count)])


def step(model: Any, optimizer: Any, x: Any) -> float:
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss)


def test_deep_copies_are_as_many_as_their_originals() -> None:
    model = layers(4, 256)
    optimizer = torch.optim.Adam(model.parameters())
    step(model, optimizer, torch.randn(4, 256))
    with awake():
        other, state = copy.deepcopy(model), copy.deepcopy(optimizer.state_dict())
        averaged = torch.optim.swa_utils.AveragedModel(model)
    assert len(set(map(id, other.parameters()))) == 8
    for model_again in (other, averaged.module):
        for one, another in zip(model.parameters(), model_again.parameters(), strict=True):
            np.testing.assert_array_equal(one.detach().numpy(), another.detach().numpy())
            assert one.data_ptr() != another.data_ptr()
    for number, kept in optimizer.state_dict()["state"].items():
        for name, value in kept.items():
            np.testing.assert_array_equal(state["state"][number][name].numpy(), value.numpy())


def test_files_that_are_written_can_be_read_anywhere() -> None:
    model = layers(2, 256)
    optimizer = torch.optim.Adam(model.parameters())
    step(model, optimizer, torch.randn(4, 256))
    model[0][0].weight.note = "kept"
    file = io.BytesIO()
    with awake():
        assert any(isinstance(p, PagedTensor.__mro__[1]) for p in model.parameters())
        torch.save({"state": optimizer.state_dict(), "list": list(model.parameters())}, file)
    assert b"pages" not in file.getvalue()
    found = torch.load(io.BytesIO(file.getvalue()))
    assert [type(p) for p in found["list"]] == [nn.Parameter] * 4 and found["list"][0].note == "kept"
    np.testing.assert_array_equal(
        found["state"]["state"][0]["exp_avg"].numpy(), optimizer.state_dict()["state"][0]["exp_avg"].numpy()
    )


def test_an_interrupt_while_memory_is_made_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    model = layers(8, 1024)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(256, 1024)
    send, sent = Pager.send, []

    def interrupted(pager: Any, page: Any) -> int:
        sent.append(page.nbytes)
        if len(sent) == 5:
            signal.raise_signal(signal.SIGINT)
        return send(pager, page)

    monkeypatch.setattr(Pager, "send", interrupted)
    with pytest.raises(KeyboardInterrupt), memory.budget(memory.current() + 12_000_000):
        for _ in range(5):
            step(model, optimizer, x)
    assert len(sent) >= 5
    monkeypatch.undo()
    step(model, optimizer, x)


@pytest.mark.parametrize("act", [nn.Tanh, nn.ReLU, lambda: nn.ReLU(inplace=True)])
@pytest.mark.parametrize("tight", [False, True])
def test_a_gradient_penalty(act: Any, tight: bool) -> None:
    model, x = layers(3, 512, act), torch.randn(512, 512)

    def penalty() -> list[Any]:
        model.zero_grad()
        inputs = (x + 0).requires_grad_()
        y = inputs * 2
        y += 1
        (slope,) = torch.autograd.grad((model(y) * y).mean(), inputs, create_graph=True)
        (slope.norm(2, dim=1) - 1).pow(2).mean().backward()
        return [p.grad.numpy().copy() for p in model.parameters()]

    memory.reset_peak()
    want, grown = penalty(), memory.peak() - memory.current()
    with memory.budget(memory.current() + (grown * 3 // 4 if tight else 10**9)):
        found = penalty()
    for one, another in zip(want, found, strict=True):
        np.testing.assert_array_equal(one, another)


def test_threads_that_share_a_model() -> None:
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).requires_grad_(False)
    x = torch.randn(8, 1024)
    want, wrong = model(x).numpy().copy(), []
    gc.collect()

    def serve() -> None:
        try:
            for _ in range(6):
                np.testing.assert_array_equal(model(x).numpy(), want)
        except BaseException as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with memory.budget(memory.current() - 6_000_000) as b:
            threads = [threading.Thread(target=serve) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong and b.report().moved_in["parameter"] > 0


def test_a_budget_that_is_refused_leaves_nothing() -> None:
    model, x = layers(4), torch.randn(256, 512)
    with (
        pytest.raises(RuntimeError, match="L-BFGS"),
        memory.budget("1 GB", optimizer=torch.optim.LBFGS([nn.Parameter(torch.zeros(3))])),
    ):
        pass
    optimizer = torch.optim.Adam(model.parameters())
    with memory.budget("1 GB"):
        step(model, optimizer, x)


def test_one_budget_at_a_time() -> None:
    with memory.budget(memory.current() + 20_000_000):
        with pytest.raises(RuntimeError, match="another budget is active"), memory.budget("10 GB"):
            pass
        with pytest.raises(MemoryError):
            torch.zeros(100_000_000)
    with pytest.raises(ValueError, match="0 bytes"):
        memory.budget(0)


def test_state_that_is_loaded_is_moved_too() -> None:
    x = torch.randn(4, 1024)
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)])
    optimizer = torch.optim.Adam(model.parameters())
    step(model, optimizer, x)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    with awake():
        step(model, optimizer, x)
        optimizer.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
        step(model, optimizer, x)
        assert type(optimizer.state[model[0].weight]["exp_avg"]) is PagedTensor


@pytest.mark.filterwarnings("ignore::rushlight.stores.StoreWarning")
@pytest.mark.parametrize("around", [stores.recompute, awake])
def test_evaluation_in_inference_mode(around: Any) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 1024))
    with around():
        with torch.inference_mode():
            assert model(torch.zeros(4, 8)).shape == (4, 1024)
        model(torch.zeros(4, 8)).exp().sum().backward()


def test_only_what_the_budget_refused_becomes_its_error() -> None:
    with pytest.raises(MemoryError, match="mine") as caught, memory.budget(memory.current() + 10_000_000):
        with pytest.raises(MemoryError):
            torch.zeros(100_000_000)
        raise MemoryError("mine")
    assert type(caught.value) is MemoryError


@native
def test_what_it_says_would_do_is_soon_enough() -> None:
    model, x = layers(6), torch.randn(256, 512)
    optimizer = torch.optim.Adam(model.parameters())
    limit = memory.current() // 2
    refused = 0
    while True:
        try:
            with memory.budget(limit):
                step(model, optimizer, x)
            break
        except memory.BudgetError as error:
            assert error.least >= limit * 1.03
            refused, limit = refused + 1, error.least
    assert 0 < refused < 8


def test_a_report_before_and_between() -> None:
    budget = memory.budget("1 GB")
    with pytest.raises(RuntimeError, match="before it is entered"):
        budget.report()
    model, x = layers(4), torch.randn(256, 512)
    before = memory.current()
    budget = memory.budget(before - 2_000_000)
    for _ in range(2):
        with budget:
            start = budget.report().seconds
            model[0](x[:8])
        assert start < budget.report().seconds and budget.report().peak <= budget.limit


def test_a_thread_that_found_no_room_is_told_of_at_the_end() -> None:
    met: list[str] = []

    def work() -> None:
        try:
            torch.ones(3_000_000)
        except MemoryError as error:
            met.append(str(error))

    thread = threading.Thread(target=work, name="the other")
    with (
        pytest.warns(UserWarning, match=r"are too few: at least .* no room in the other") as told,
        memory.budget(memory.current() + 5_000_000),
    ):
        thread.start()
        thread.join()
    assert len(met) == len(told) == 1
    least = int(str(told[0].message).partition("at least")[2].partition("(")[2].partition(" bytes")[0])
    again = threading.Thread(target=work)
    with memory.budget(least):
        again.start()
        again.join()
    assert len(met) == 1
