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


# Low rank ------------------------------------------------------------------------------------------------------------


def galore(w: Any, grads: list[Any], rank: int, lr: float, kind: str) -> Any:
    """The steps of the paper, in float64, with singular vectors of the first gradient."""
    u, _, v = np.linalg.svd(grads[0], full_matrices=False)
    left, right = u[:, :rank], v[:rank].T
    wide = w.shape[0] < w.shape[1]
    sides = {"full": (1, 1), "std": (wide, not wide), "reverse_std": (not wide, wide), "left": (1, 0), "right": (0, 1)}[
        kind
    ]
    mean = square = 0
    for t, g in enumerate(grads, 1):
        low = left.T @ g if sides[0] else g
        low = low @ right if sides[1] else low
        mean, square = 0.9 * mean + 0.1 * low, 0.999 * square + 0.001 * low**2
        step = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-4)
        step = left @ step if sides[0] else step
        w = w * (1 - lr * 0.1) - lr * 0.25 * (step @ right.T if sides[1] else step)
    return w


@pytest.mark.parametrize("kind", ["std", "reverse_std", "left", "right", "full"])
@pytest.mark.parametrize("shape", [(30, 50), (50, 30)])
def test_galore_is_the_algorithm_of_its_paper(kind: str, shape: Any) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(shape)
    grads = [rng.standard_normal((shape[0], 8)) @ rng.standard_normal((8, shape[1])) for _ in range(4)]
    p = nn.Parameter(torch.tensor(w))
    # Projected onto its own singular vectors the first gradient is rounding off the diagonal: an eps above that hides it.
    optimizer = optim.GaLore([p], lr=0.01, eps=1e-4, weight_decay=0.1, rank=6, proj_type=kind)
    for g in grads:
        p.grad = torch.tensor(g)
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), galore(w, grads, 6, 0.01, kind), atol=1e-9)


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
@pytest.mark.parametrize("kind", ["channel", "tensor"])
def test_apollo_scales_channels_of_the_gradient(shape: Any, kind: str) -> None:
    """With a rank of the whole side and a space that is orthogonal nothing would be lost; here: what a step consists of."""
    rng = np.random.default_rng(0)
    w, g = rng.standard_normal((2, *shape))
    p = nn.Parameter(torch.tensor(w))
    p.grad = torch.tensor(g)
    optimizer = optim.APOLLO([p], lr=0.01, rank=4, scale_type=kind)
    optimizer.step()
    rates = (w - p.detach().numpy()) / g / 0.01  # of the first step, in which Adam's direction is the sign
    assert (rates > 0).all() and optimizer.state[p]["exp_avg"].shape == ((4, 50) if shape[0] == 20 else (50, 4))
    along = 0 if shape[0] == 20 else 1
    assert np.ptp(rates, axis=along).max() < 1e-6 and (np.ptp(rates) < 1e-6) == (kind == "tensor")
    low = optimizer.state[p]["exp_avg"].numpy() / 0.1
    axis = None if kind == "tensor" else along
    want = np.sqrt(low.size if axis is None else 4) / np.sqrt((low**2).sum(axis=axis))
    np.testing.assert_allclose(
        np.broadcast_to(want, rates.shape) if axis in (None, 0) else want[:, None] + 0 * rates, rates, rtol=1e-4
    )
    norm = optimizer.state[p]["norm"]
    p.grad = torch.tensor(100 * g)
    optimizer.step()
    assert optimizer.state[p]["norm"] <= 1.01 * norm * 1.0001


def came(w: Any, grads: list[Any], lr: float) -> Any:
    """The steps of the paper, in float64."""
    rows = columns = res_rows = res_columns = mean = 0
    for g in grads:
        square = g**2 + 1e-30
        rows, columns = 0.999 * rows + 0.001 * square.mean(1), 0.999 * columns + 0.001 * square.mean(0)
        u = g / np.sqrt(np.outer(rows, columns) / rows.mean())
        u /= max(1, np.sqrt((u**2).mean()))
        mean = 0.9 * mean + 0.1 * u
        off = (u - mean) ** 2 + 1e-16
        res_rows, res_columns = 0.9999 * res_rows + 0.0001 * off.mean(1), 0.9999 * res_columns + 0.0001 * off.mean(0)
        w = w * (1 - lr * 0.1) - lr * mean / np.sqrt(np.outer(res_rows, res_columns) / res_rows.mean())
    return w


def test_came_is_the_algorithm_of_its_paper() -> None:
    rng = np.random.default_rng(0)
    w, grads = rng.standard_normal((300, 400)), [rng.standard_normal((300, 400)) for _ in range(4)]
    p = nn.Parameter(torch.tensor(w))
    optimizer = optim.CAME([p], lr=0.001, weight_decay=0.1)
    for g in grads:
        p.grad = torch.tensor(g)
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), came(w, grads, 0.001), atol=1e-9)


LOW: dict[str, dict[str, Any]] = {
    "GaLore": {"rank": 8, "update_proj_gap": 2},
    "APOLLO": {"rank": 8, "update_proj_gap": 2},
    "CAME": {},
}


@pytest.mark.parametrize("name", LOW)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_of_low_rank_too_the_estimate_is_what_is_kept(name: str, dtype: Any) -> None:
    net = model().to(dtype)

    def make(params: Any) -> Any:
        return getattr(optim, name)(params, **LOW[name])

    found = memory.estimate(net, (torch.randn(4, 64, dtype=dtype),), make).optimizer_state
    optimizer = make(net.parameters())
    net(torch.randn(4, 64, dtype=dtype)).sum().backward()
    optimizer.step()
    assert found == kept(optimizer)
    assert name == "CAME" or kept(optimizer) < 0.5 * sum(p.numel() for p in net.parameters()) * 8


@pytest.mark.parametrize("name", LOW)
def test_of_low_rank_in_backward_and_from_a_file(name: str) -> None:
    one, two = model(), model()
    optimizers = [getattr(optim, name)(net.parameters(), lr=1e-3, **LOW[name]) for net in (one, two)]
    losses = trained(one, optimizers[0])
    with optim.in_backward(optimizers[1]):
        assert trained(two, optimizers[1]) == losses
    assert same(one, two)
    three = model()
    again = getattr(optim, name)(three.parameters(), lr=0.1)
    file = io.BytesIO()
    torch.save(optimizers[0].state_dict(), file)
    file.seek(0)
    again.load_state_dict(torch.load(file))
    three.load_state_dict(one.state_dict())
    assert trained(three, again) == trained(one, optimizers[0]) and same(one, three)


@pytest.mark.skipif(not memory.is_counted(), reason="memory is counted where native kernels are")
@pytest.mark.parametrize("name", LOW)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_second_matrix_of_the_gradients_size(name: str, dtype: Any) -> None:
    """A step needs what it keeps, a few times, a square of the smaller side, and some rows."""
    p = nn.Parameter(torch.randn(4000, 300, dtype=dtype))
    optimizer = getattr(optim, name)([p], **LOW[name])
    p.grad = torch.randn(4000, 300, dtype=dtype)
    memory.reset_peak()
    before = memory.current()
    optimizer.step()
    work = 6 * 4 * 4000 * 8 + 6 * 4 * 300 * 300 + 4 * 4 * (1 << 18 if name != "CAME" else 3 << 16)
    assert memory.peak() - before - kept(optimizer) < min(work, 4 * p.numel() * 1.25)


@pytest.mark.parametrize("name", LOW)
def test_of_low_rank_maximize_and_options(name: str) -> None:
    p, q = (nn.Parameter(torch.ones(20, 30)) for _ in "pq")
    for x, sign in ((p, 1), (q, -1)):
        optimizer = getattr(optim, name)([x], maximize=sign < 0, **LOW[name])
        for seed in range(3):
            x.grad = sign * torch.randn(20, 30, generator=torch.Generator().manual_seed(seed))
            optimizer.step()
    torch.testing.assert_close(p, q)
    wrong: list[dict[str, Any]] = [{"lr": -1}, {"weight_decay": -1}]
    wrong += [{"clip_threshold": 0}, {"betas": (0.9, 0.9)}] if name == "CAME" else [{"rank": 0}, {"update_proj_gap": 0}]
    wrong += (
        [{"proj_type": "up"}]
        if name == "GaLore"
        else [{"growth": 0.5}, {"scale_type": "up"}]
        if name == "APOLLO"
        else []
    )
    for options in wrong:
        with pytest.raises(ValueError):
            getattr(optim, name)([p], **options)
    z = nn.Parameter(torch.ones(3, 3, dtype=torch.complex64))
    z.grad = torch.ones_like(z)
    with pytest.raises(RuntimeError, match="complex"):
        getattr(optim, name)([z]).step()


def test_small_parameters_and_groups_without_rank_are_stepped_by_adamw() -> None:
    one, two = model(), model()
    ours = optim.GaLore(
        [{"params": one[0].parameters(), "rank": None}, {"params": one[2:].parameters(), "rank": 100}], lr=1e-3
    )
    theirs = optim.AdamW(two.parameters(), lr=1e-3, weight_decay=0)
    assert trained(one, ours) == trained(two, theirs) and same(one, two)
