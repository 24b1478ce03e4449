"""What programs do with parameters and state inside of a budget leaves them such that they can be moved."""

from __future__ import annotations

import copy
import io
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake
from tests.processes import printed

import rushlight as torch
from rushlight import memory, nn
from rushlight.memory.budgets.paged import PagedParameter, PagedTensor

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")

WIDTH, COUNT = 512, 12  # a weight is 1 MiB
ROOM = (
    12_000_000  # a step of Adam on one weight has four of its size in use, a gradient on its way, and BLAS its buffers
)


def model_of() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(COUNT)])


def room_for(model: Any, optimizer: Any = None) -> int:
    """A limit far below parameters and state together."""
    state = [v for kept in optimizer.state.values() for v in kept.values()] if optimizer is not None else []
    return memory.current() - sum(t.nbytes for t in (*model.parameters(), *state)) + ROOM


def step(model: Any, optimizer: Any) -> float:
    torch.manual_seed(1)
    loss = model(torch.randn(16, WIDTH)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def values(model: Any, optimizer: Any = None) -> list[Any]:
    kept = [v for state in optimizer.state.values() for v in state.values()] if optimizer is not None else []
    return [t.detach().numpy().copy() for t in (*model.parameters(), *kept)]


def assert_equal(found: list[Any], want: list[Any]) -> None:
    for one, another in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, another)


def test_a_checkpoint_that_is_larger_than_the_budget_is_saved_and_loaded(tmp_path: Path) -> None:
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters())
    with memory.budget(room_for(model)) as b:
        step(model, optimizer)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "state.pt")
        torch.save(model, tmp_path / "model.pt")
        step(model, optimizer)
        found = torch.load(tmp_path / "state.pt")
        whole = torch.load(tmp_path / "model.pt", weights_only=False)
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        del found
        step(model, optimizer)
    assert b.report().peak <= b.limit < 3 * sum(p.nbytes for p in model.parameters())
    again = model_of()
    other = torch.optim.Adam(again.parameters())
    step(again, other)
    assert_equal(values(whole), values(again))
    step(again, other)
    assert_equal(values(model, optimizer), values(again, other))


def test_a_file_written_inside_is_the_one_written_outside() -> None:
    model = model_of()
    model.tied, model.turned = model[0].weight, nn.Parameter(model[1].weight.detach().t())
    model.register_buffer("part", model[2].weight.detach()[3:9])
    want, got = io.BytesIO(), io.BytesIO()
    state = model.state_dict()
    torch.save(state, want)
    del state
    limit = memory.current() - sum(p.nbytes for p in model.parameters()) + ROOM
    with memory.budget(limit + model.turned.nbytes):
        torch.zeros(1_500_000)
        torch.save(model.state_dict(), got)
    assert got.getvalue() == want.getvalue()
    limit = memory.current() + ROOM
    with memory.budget(limit):
        found = torch.load(io.BytesIO(want.getvalue()))
        assert found["tied"].data_ptr() == found["0.weight"].data_ptr()
        assert found["part"].untyped_storage() is found["2.weight"].untyped_storage()
        for name, value in model.state_dict().items():
            np.testing.assert_array_equal(found[name].numpy(), value.numpy())


def test_a_second_budget_of_the_same_size_holds_too() -> None:
    plain = model_of()
    other = torch.optim.Adam(plain.parameters())
    want = [step(plain, other) for _ in range(4)]
    expected = values(plain, other)
    del plain, other
    model, found = model_of(), []
    optimizer = torch.optim.Adam(model.parameters())
    limit = room_for(model)
    for _ in range(4):
        with memory.budget(limit) as b:
            found.append(step(model, optimizer))
        assert b.report().peak <= limit
    assert found == want
    assert_equal(values(model, optimizer), expected)
    assert type(model[0].weight) is nn.Parameter


def test_a_graph_of_one_budget_is_moved_by_the_next() -> None:
    x = torch.randn(512, 512, requires_grad=True)
    h = x
    for _ in range(8):
        h = (h * 1.5).sin()
    (want,) = torch.autograd.grad(h.sum(), x)
    del h
    limit = memory.current() + 7 * x.nbytes
    with memory.budget(limit):
        h = x
        for _ in range(8):
            h = (h * 1.5).sin()
        loss = h.sum()
        del h
    with memory.budget(limit) as b:
        other = [torch.ones(512, 512) for _ in range(2)]
        (got,) = torch.autograd.grad(loss, x)
    assert b.report().moved_in["activation"] + b.report().again > 0
    np.testing.assert_array_equal(got.numpy(), want.numpy())
    del other


@pytest.mark.parametrize("through", [copy.deepcopy, lambda x: copy.deepcopy({"here": x})["here"]])
def test_deep_copies_are_movable(through: Any) -> None:
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters())
    with memory.budget(room_for(model)) as b:
        step(model, optimizer)
        other, state = through(model), through(optimizer.state_dict())
        both = copy.deepcopy((model, optimizer))
        step(model, optimizer)
        step(*both)
    assert b.report().peak <= b.limit
    assert_equal(values(*both), values(model, optimizer))
    again = model_of()
    plain = torch.optim.Adam(again.parameters())
    step(again, plain)
    assert_equal(values(other), values(again))
    for number, kept in plain.state_dict()["state"].items():
        for name, value in kept.items():
            np.testing.assert_array_equal(state["state"][number][name].numpy(), value.numpy())


def minus(p: Any) -> None:
    p.data -= 0.1 * p.grad


def other_data(p: Any) -> None:
    p.data = p.data - 0.1 * p.grad


def set_other(p: Any) -> None:
    with torch.no_grad():
        p.set_(p - 0.1 * p.grad)


def add(p: Any) -> None:
    p.data.add_(p.grad, alpha=-0.1)


@pytest.mark.parametrize("change", [minus, other_data, set_other, add])
def test_parameters_that_are_given_other_memory_are_movable(change: Any) -> None:
    def steps(model: Any) -> list[Any]:
        for _ in range(3):
            torch.manual_seed(1)
            model(torch.randn(16, WIDTH)).pow(2).mean().backward()
            for p in model.parameters():
                change(p)
                p.grad = None
        return [p._version for p in model.parameters()]

    plain = model_of()
    versions, want = steps(plain), values(plain)
    del plain
    model = model_of()
    model.state = model[0].weight.detach()  # who shares the memory and the version counter
    shares = change in (minus, add)
    with memory.budget(room_for(model)) as b:
        assert steps(model) == versions
        assert all(type(p) is PagedParameter for p in model.parameters() if p.ndim == 2)
        assert (model.state.data_ptr() == model[0].weight.data_ptr()) == shares
        assert model.state._version == versions[0]
    assert b.report().peak <= b.limit
    assert_equal(values(model), want)
    np.testing.assert_array_equal(model.state.numpy(), want[0] if shares else model_of()[0].weight.detach().numpy())


def test_what_is_detached_holds_nothing() -> None:
    model = model_of()
    with memory.budget(room_for(model)) as b:
        parts = [f(p) for p in model.parameters() for f in (lambda p: p.detach(), lambda p: p.data, nn.Parameter)]
        torch.zeros(1_500_000)
        assert b.report().moved_out["parameter"] >= (COUNT - 2) * model[0].weight.nbytes
        assert type(parts[0]) is PagedTensor and type(parts[2]) is PagedParameter and not parts[0].requires_grad
        version = model[0].weight._version
        parts[0].mul_(2)
        assert parts[0]._version == model[0].weight._version == version + 1
        parts[1].mul_(2)
        assert model[0].weight._version == version + 1 and parts[1]._version == 1
    want = model_of()[0].weight.detach().numpy() * 4
    for tensor in (model[0].weight, *parts[:3]):
        np.testing.assert_array_equal(tensor.detach().numpy(), want)


def test_turned_weights_come_back_as_they_were() -> None:
    model = model_of()
    for layer in model:
        layer.weight = nn.Parameter(torch.from_numpy(layer.weight.detach().numpy().copy(order="F")))
    want = [p.detach().numpy().copy() for p in model.parameters()]
    with memory.budget(room_for(model)):
        torch.zeros(1_500_000)
        for p, value in zip(model.parameters(), want, strict=True):
            np.testing.assert_array_equal(p.detach().numpy(), value)
            assert p.ndim == 1 or (p.stride() == (1, WIDTH) and p.untyped_storage().root is p._held)


def test_a_conjugate_of_paged_memory_is_one_afterwards() -> None:
    z = torch.randn(400, 400, dtype=torch.complex64)
    w = nn.Parameter(z)
    with memory.budget(memory.current() + 4_000_000):
        turned = w.detach().conj()
        torch.zeros(500_000)
    np.testing.assert_array_equal(turned.resolve_conj().numpy(), z.numpy().conj())
    assert turned.is_conj()


@pytest.mark.parametrize("look", [memory.live, memory.memory_summary, lambda: memory.record_history()])
def test_looking_at_memory_brings_nothing_back(look: Any) -> None:
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters())
    with memory.budget(room_for(model)) as b:
        step(model, optimizer)
        before, current = b.report().moved_in, memory.current()
        try:
            look()
        finally:
            memory.record_history(None)
        assert b.report().moved_in == before and memory.current() <= current + 100_000


FROZEN = """
import gc
import rushlight as torch
from rushlight import memory, nn
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(12)])
optimizer = torch.optim.Adam(model.parameters())
limit = memory.current() - sum(t.nbytes for t in model.parameters()) + 12_000_000
gc.collect()
gc.freeze()
with memory.budget(limit) as b:
    model(torch.randn(16, 512)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
assert b.report().moved_out["parameter"] > 0
assert any(block.category == "parameter" for block in memory.live().blocks)
"""


def test_what_the_collector_was_told_to_leave_alone_is_found() -> None:
    """In a process of its own, for all objects of this one would be looked at."""
    printed("-c", FROZEN)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_needs_small_parameters_one_after_the_other(momentum: float) -> None:
    def train() -> tuple[Any, Any]:
        torch.manual_seed(0)
        model = nn.Sequential(*[nn.Linear(200, 200) for _ in range(40)])  # 160 kB each
        return model, torch.optim.SGD(model.parameters(), 0.1, momentum=momentum)

    def steps(model: Any, optimizer: Any) -> None:
        for _ in range(3):
            model(torch.ones(4, 200)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    model, optimizer = train()
    with memory.budget(memory.current() - sum(p.nbytes for p in model.parameters()) + 2_500_000) as b:
        steps(model, optimizer)
    assert b.report().peak <= b.limit
    plain = train()
    steps(*plain)
    assert_equal(values(model, optimizer), values(*plain))


def test_the_pager_forgets_tensors_that_died() -> None:
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters())
    with awake("10 GB") as b:
        counts = []
        for _ in range(4):
            step(model, optimizer)
            b.pager.scan()
            counts.append(len(b.pager.tensors))
        assert counts[-1] <= counts[0]


def test_what_lies_in_another_order_of_axes_is_movable() -> None:
    """Weights with channels last and their state; results of what was transposed."""

    def trained(around: Any) -> tuple[Any, list[Any], int]:
        torch.manual_seed(0)
        model = nn.Conv2d(64, 128, 3).to(memory_format=torch.channels_last)
        optimizer = torch.optim.Adam(model.parameters())
        x = torch.randn(2, 64, 12, 12)
        with around or nullcontext() as b:
            for _ in range(2):
                y = (model(x).flatten(2).view(2, 4, 32, 100).transpose(1, 2) * 1.5).sin().mean()
                y.backward()
                before = memory.current()
                if b is not None:
                    b.pager.scan()
                    b.pager.free(0, False)
                    b.pager.spill.flush()
                sent = before - memory.current()
                optimizer.step()
                optimizer.zero_grad()
        return model.weight.stride(), values(model, optimizer), sent

    plain, found = trained(None), trained(awake())
    assert found[0] == plain[0] == (576, 1, 192, 64)
    assert_equal(found[1], plain[1])
    weight = 64 * 128 * 9 * 4
    assert found[2] >= 4 * weight  # its gradient and both moments too
