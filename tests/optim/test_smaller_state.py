"""Optimizers with smaller state: what they keep to the byte, their files, in backward, in budgets; and that they learn."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import datasets, memory, nn, optim
from rushlight.kernels.blockwise import dynamic_map

EIGHT = {"Adam8bit": 2, "AdamW8bit": 2, "Lion8bit": 1, "SGD8bit": 1}  # and how many states they have
every = pytest.mark.parametrize("name", EIGHT)


def model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 100), nn.Tanh(), nn.Linear(100, 70), nn.Tanh(), nn.Linear(70, 10))


def trained(net: Any, optimizer: Any, steps: int = 3) -> list[float]:
    losses = []
    for seed in range(steps):
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(seed))
        loss = nn.functional.cross_entropy(net(x), torch.arange(16) % 10)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def kept(optimizer: Any) -> int:
    """Bytes of state, what is shared counted once."""
    tensors = {id(t): t for state in optimizer.state.values() for t in state.values() if isinstance(t, torch.Tensor)}
    return sum(t.nbytes for t in tensors.values())


def same(a: Any, b: Any) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


@every
def test_state_is_a_byte_a_number(name: str) -> None:
    p = nn.Parameter(torch.randn(500, 1000))
    optimizer = getattr(optim, name)([p], lr=1e-3)
    p.grad = torch.randn(500, 1000)
    optimizer.step()
    blocks, n = -(-p.numel() // 256), EIGHT[name]
    assert kept(optimizer) == n * (p.numel() + 4 * blocks + 1024) <= 1.05 * n * p.numel()
    state = optimizer.state[p]
    assert {*state} == {"step", *(f"{what}{i}" for i in range(1, n + 1) for what in ("state", "absmax", "qmap"))}
    assert state["step"] == 1 and state["state1"].dtype is torch.uint8 and state["state1"].shape == p.shape
    assert np.array_equal(state["qmap1"].numpy(), dynamic_map(True))


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_small_parameters_keep_their_state_in_full(name: str, dtype: Any) -> None:
    full = {"Adam8bit": optim.Adam, "AdamW8bit": optim.AdamW, "Lion8bit": optim.Lion, "SGD8bit": optim.SGD}[name]
    options = {"momentum": 0.9} if name == "SGD8bit" else {}
    nets = [nn.Linear(20, 30).to(dtype) for _ in "12"]
    nets[1].load_state_dict(nets[0].state_dict())
    ours, theirs = getattr(optim, name)(nets[0].parameters(), lr=0.01), full(nets[1].parameters(), lr=0.01, **options)
    for seed in range(3):
        for net, optimizer in zip(nets, (ours, theirs)):
            for p in net.parameters():
                p.grad = torch.randn(*p.shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
            optimizer.step()
    for p, q in zip(*(net.parameters() for net in nets)):
        state = ours.state[p]
        assert (
            state["state1"].dtype is (torch.float64 if dtype is torch.float64 else torch.float32)
            and "qmap1" not in state
        )
        torch.testing.assert_close(
            p, q, rtol=0.02 if dtype is torch.bfloat16 else 0, atol=0.01 if dtype is torch.bfloat16 else 0
        )


@pytest.mark.parametrize("name", [*EIGHT, "Lion"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_estimate_is_what_is_kept(name: str, dtype: Any) -> None:
    net = model().to(dtype)
    make = getattr(optim, name)
    found = memory.estimate(net, (torch.randn(4, 64, dtype=dtype),), make).optimizer_state
    optimizer = make(net.parameters(), lr=1e-3)
    net(torch.randn(4, 64, dtype=dtype)).sum().backward()
    optimizer.step()
    assert found == kept(optimizer)


@pytest.mark.skipif(not memory.is_counted(), reason="memory is counted where native kernels are")
@pytest.mark.parametrize("name", [*EIGHT, "Lion"])
def test_the_bytes_are_those_counted(name: str) -> None:
    net = model()
    for p in net.parameters():
        p.grad = torch.randn(*p.shape)
    optimizer = getattr(optim, name)(net.parameters(), lr=1e-3)
    optimizer._layout((64, 64), np.dtype("f4"), optimizer.param_groups[0])
    torch.optim.small.eight_bit.qmap(True), torch.optim.small.eight_bit.qmap(False)
    before = memory.current()
    optimizer.step()
    shared = 1024 * EIGHT.get(name, 0)  # was there before
    assert memory.current() - before == kept(optimizer) - shared


@pytest.mark.parametrize("name", [*EIGHT, "Lion"])
@pytest.mark.parametrize("threshold", [0, 4096])
def test_in_backward_they_do_what_they_do_after_it(name: str, threshold: int) -> None:
    one, two = model(), model()
    more = {} if name == "Lion" else {"min_8bit_size": threshold}
    optimizers = [getattr(optim, name)(net.parameters(), lr=1e-3, **more) for net in (one, two)]
    losses = trained(one, optimizers[0])
    with optim.in_backward(optimizers[1]) as handle:
        assert trained(two, optimizers[1]) == losses and handle.steps == 3
    assert same(one, two) and kept(optimizers[0]) == kept(optimizers[1])


def test_one_optimizer_for_each_parameter() -> None:
    from rushlight.distributed.optim import _apply_optimizer_in_backward

    one, two = model(), model()
    trained(one, optim.AdamW8bit(one.parameters(), lr=1e-3))
    _apply_optimizer_in_backward(optim.AdamW8bit, two.parameters(), {"lr": 1e-3})
    trained(two, optim.SGD([nn.Parameter(torch.ones(1))]))
    assert same(one, two)


@every
def test_in_a_budget_they_do_what_they_do_without(name: str) -> None:
    def net() -> Any:
        torch.manual_seed(0)
        return nn.Sequential(*[nn.Linear(300, 300) for _ in range(8)])

    def learned(net: Any) -> Any:
        optimizer = getattr(optim, name)(net.parameters(), lr=1e-3)
        for seed in range(3):
            net(torch.randn(8, 300, generator=torch.Generator().manual_seed(seed))).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return optimizer

    plain = net()
    learned(plain)
    again = net()
    if not memory.is_counted():
        pytest.skip("memory is counted where native kernels are")
    with memory.budget(memory.current() + 4_000_000) as budget:
        learned(again)
        assert budget.report().moved_out
    assert same(plain, again)


# Files ---------------------------------------------------------------------------------------------------------------


@every
def test_training_goes_on_from_a_file(name: str) -> None:
    one, two = model(), model()
    optimizers = [getattr(optim, name)(net.parameters(), lr=1e-3) for net in (one, two)]
    trained(one, optimizers[0])
    file = io.BytesIO()
    torch.save({"model": one.state_dict(), "optimizer": optimizers[0].state_dict()}, file)
    file.seek(0)
    found = torch.load(file)
    two.load_state_dict(found["model"])
    optimizers[1].load_state_dict(found["optimizer"])
    assert kept(optimizers[1]) == kept(optimizers[0])  # the map is one again
    assert trained(one, optimizers[0]) == trained(two, optimizers[1]) and same(one, two)
    three = copy.deepcopy(optimizers[0])
    assert kept(three) == kept(optimizers[0]) and three.state_dict()["state"][0]["step"] == 6


def test_state_of_older_files_has_larger_blocks() -> None:
    """bitsandbytes had blocks of 2,048, and keeps SGD's momentum and dampening as betas."""
    net = model()
    optimizer = optim.SGD8bit(net.parameters(), lr=1e-3)
    trained(net, optimizer, 1)
    state = copy.deepcopy(optimizer.state_dict())
    blocks = -(-6400 // 2048)
    state["state"][0]["absmax1"] = torch.arange(1.0, 1 + blocks)
    for group in state["param_groups"]:
        group["betas"] = group.pop("momentum"), group.pop("dampening")
    optimizer.load_state_dict(state)
    scales = optimizer.state[net[0].weight]["absmax1"]
    assert scales.tolist() == [float(1 + i // 8) for i in range(25)] and optimizer.param_groups[0]["momentum"] == 0.9
    trained(net, optimizer, 1)


def test_what_is_not_such_state_is_refused() -> None:
    net = model()
    optimizer, other = optim.Adam8bit(net.parameters()), optim.Adam(net.parameters())
    trained(net, other, 1)
    with pytest.raises(ValueError, match=r"another optimizer's: it has .*exp_avg.* and no state1"):
        optimizer.load_state_dict(other.state_dict())
    trained(net, optimizer, 1)
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0]["qmap1"] = torch.linspace(-1, 1, 256)
    with pytest.raises(ValueError, match="other numbers than those of the dynamic map"):
        optimizer.load_state_dict(state)
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0]["absmax1"] = torch.ones(6)
    with pytest.raises(ValueError, match="absmax of 6 blocks does not fit a parameter of 6400"):
        optimizer.load_state_dict(state)


def test_options_are_checked() -> None:
    p = [nn.Parameter(torch.ones(3))]
    for make, wrong in ((optim.Adam8bit, {"amsgrad": True}), (optim.AdamW8bit, {"betas": (1.0, 0.9)}), (optim.Lion, {"lr": -1}),
                        (optim.SGD8bit, {"momentum": 0}), (optim.Lion8bit, {"min_8bit_size": -1}), (optim.Adam8bit, {"eps": -1})):  # fmt: skip
        with pytest.raises(ValueError):
            make(p, **wrong)
    for make in (optim.Adam8bit, optim.Lion, optim.SGD8bit):
        with pytest.raises(RuntimeError, match="cannot be `True` together"):
            make(p, foreach=True, fused=True)
        z = nn.Parameter(torch.ones(3, dtype=torch.complex64))
        z.grad = torch.ones(3, dtype=torch.complex64)
        with pytest.raises(RuntimeError, match="does not support complex"):
            make([z]).step()


# Learning ------------------------------------------------------------------------------------------------------------


def curve(make: Any, steps: int) -> Any:
    """Losses on the digits, of a net whose weights are all large enough for codes."""
    x, y = (torch.tensor(part) for part in datasets.digits())
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)
    )
    optimizer = make(net.parameters())
    losses = []
    for i in range(steps):
        at = torch.randint(0, len(x), (64,), generator=torch.Generator().manual_seed(i))
        loss = nn.functional.cross_entropy(net(x[at].flatten(1).float() / 16), y[at].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


@pytest.mark.parametrize(("name", "full", "options"), [
    ("Adam8bit", "Adam", {"lr": 1e-3}),
    pytest.param("SGD8bit", "SGD", {"lr": 0.03, "momentum": 0.9}, marks=pytest.mark.slow),
    pytest.param("Lion8bit", "Lion", {"lr": 1e-4}, marks=pytest.mark.slow),
])  # fmt: skip
def test_they_learn_as_the_full_ones_do(name: str, full: str, options: Any) -> None:
    """On real data the mean loss of a run is that of the full optimizer within a hundredth of where it began."""
    ours, theirs = (curve(lambda p, n=n: getattr(optim, n)(p, **options), 300) for n in (name, full))
    smooth = [np.convolve(losses, np.ones(30) / 30, "valid") for losses in (ours, theirs)]
    assert np.abs(smooth[0] - smooth[1]).max() < 0.01 * theirs[0] and theirs[-30:].mean() < 0.2 * theirs[0]
