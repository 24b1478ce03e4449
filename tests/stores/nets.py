"""Random small nets, and random ways to save what they save: what the compositions are tested on."""

import contextlib
import time
from pathlib import Path
from typing import Any

import numpy as np

import rushlight as torch
from rushlight import nn, stores
from rushlight.autograd.graph import save_on_cpu, saved_tensors_hooks
from rushlight.utils.checkpoint import checkpoint

F = nn.functional


class Residual(nn.Module):
    """x + f(x), the sum perhaps in place, then relu in place."""

    def __init__(self, inner: Any, inplace: bool):
        super().__init__()
        self.inner, self.inplace = inner, inplace

    def forward(self, x: Any) -> Any:
        y = self.inner(x)
        if self.inplace:
            y += x
            return F.relu(y, inplace=True)
        return (y + x).relu()


class Attention(nn.Module):
    """Self-attention whose queries, keys and values are views of one projection."""

    def __init__(self, width: int):
        super().__init__()
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        q, k, v = self.project(x.view(4, -1, x.shape[-1])).chunk(3, -1)
        weights = F.softmax(q @ k.transpose(1, 2) / 4, -1)
        return self.out(F.dropout(weights, 0.2, self.training) @ v).reshape(x.shape)


class Wavy(nn.Module):
    """Elementwise operators, constants and broadcasting."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Any) -> Any:
        a, b = x.tanh().split([x.shape[-1] // 2, x.shape[-1] - x.shape[-1] // 2], -1)
        y = torch.cat([b.exp() * 0.1, a.sigmoid() - 0.5], -1) * self.scale
        return torch.where(x > 0, y, -y).t().contiguous().t() + F.silu(x)


class Gated(torch.autograd.Function):
    """A custom function that saves an input, a result and something between."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        gate = torch.sigmoid(x)
        out = x * gate
        ctx.save_for_backward(x, gate, out)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, gate, out = ctx.saved_tensors
        return g * (gate + out * (1 - gate)) + 0 * x


class Custom(nn.Module):
    def forward(self, x: Any) -> Any:
        return Gated.apply(x)


def layer(rng: Any, width: int, depth: int = 0) -> Any:
    """A layer (N, width) -> (N, width)."""
    kinds = ["linear", "act", "act", "norm", "drop", "attention", "wavy", "custom", "conv"] + ["residual"] * (depth < 2)
    kind = rng.choice(kinds)
    if kind == "linear":
        return nn.Linear(width, width)
    if kind == "act":
        flag = bool(rng.integers(2))
        return [
            nn.ReLU(flag),
            nn.GELU(),
            nn.Softmax(-1),
            nn.LeakyReLU(0.1, flag),
            nn.ELU(),
            nn.Hardtanh(),
            nn.SiLU(flag),
        ][rng.integers(7)]
    if kind == "norm":
        return [nn.LayerNorm(width), nn.BatchNorm1d(width), nn.RMSNorm(width)][rng.integers(3)]
    if kind == "drop":
        return nn.Dropout(0.3)
    if kind == "conv":
        parts = [nn.Unflatten(1, (2, width // 2)), nn.Conv1d(2, 3, 3, padding=1), nn.BatchNorm1d(3), nn.ReLU(True),
                 nn.Conv1d(3, 2, 1), nn.MaxPool1d(3, 1, 1), nn.Flatten()]  # fmt: skip
        return nn.Sequential(*parts)
    if kind == "residual":
        return Residual(nn.Sequential(nn.Linear(width, width), layer(rng, width, depth + 1)), bool(rng.integers(2)))
    return {"attention": Attention, "wavy": Wavy}[kind](width) if kind != "custom" else Custom()


class Net(nn.Module):
    """Layers one after the other; `around[i]` says in what the i-th runs."""

    def __init__(self, rng: Any):
        super().__init__()
        width = 2 * int(rng.integers(4, 12))
        self.layers = nn.ModuleList([nn.Linear(width, width), *(layer(rng, width) for _ in range(rng.integers(3, 8)))])
        self.width = width
        self.around: list[Any] = [None] * len(self.layers)

    def forward(self, x: Any) -> Any:
        for part, around in zip(self.layers, self.around, strict=True):
            x = part(x) if around is None else around(part, x)
        return x


class Checked(stores.compress):
    """Compares what comes back with what was stored, and counts."""

    checks = 0

    def encode(self, array: Any, guard: Any) -> Any:
        parts, note = super().encode(array, guard)
        return parts, (note, array.copy(), [part.copy() for part in parts])

    def decode(self, parts: Any, note: Any, count: int, dtype: Any) -> Any:
        note, before, made = note
        found = super().decode(parts, note, count, dtype)
        if all(a.tobytes() == b.tobytes() for a, b in zip(parts, made, strict=True)):  # no other store lost something
            Checked.checks += 1
            within(self.how, before, found)
        return found


def within(how: str, before: Any, found: Any) -> None:
    """Whether a compressed array came back as the docstring declares."""
    assert found.dtype == before.dtype and found.shape == before.shape
    if how == "lossless" or before.dtype.kind in "biu":
        assert found.tobytes() == before.tobytes()
        return
    a, b = before.astype(np.float64), found.astype(np.float64)
    if how == "bf16":
        assert (np.abs(a - b) <= np.abs(a) * 2.0**-8 + 1e-40).all()
        return
    padded = np.pad(np.abs(a), (0, -a.size % 256)).reshape(-1, 256)
    bound = np.repeat(padded.max(1), 256)[: a.size] / 254
    assert (
        np.abs(a - b) <= bound * (1 + 4e-5) + 1e-45
    ).all()  # float32 rounds the quotient and the product: 508 / 2^24


def numbers() -> Any:
    """A hook of the user's that packs into something that is no tensor."""
    return saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy)


def doubled() -> Any:
    """A hook of the user's that packs into tensors in a dictionary."""
    return saved_tensors_hooks(lambda t: {"half": t * 0.5, "rest": [3]} if t.dtype.is_floating_point else t,
                               lambda d: d["half"] * 2 if isinstance(d, dict) else d)  # fmt: skip


def context(rng: Any, dir: Path, lossy: bool) -> Any:
    """A random store or hook."""
    small = int(rng.choice([0, 1, 200, 1024]))
    choice = str(
        rng.choice(
            ["cpu", "disk", "disk", "lossless", "recompute", "recompute", "numbers", "doubled", "host", "bf16", "int8"]
        )
    )
    if choice in ("bf16", "int8") and not lossy:
        choice = "lossless"
    if choice == "cpu":
        return stores.cpu(min_bytes=small)
    if choice == "disk":
        return stores.disk(
            dir, min_bytes=small, memory=int(rng.choice([0, 3000, 1 << 20])), threads=int(rng.integers(1, 3))
        )
    if choice == "recompute":
        return stores.recompute(min_bytes=small, limit=int(rng.integers(1, 12)))
    if choice in ("lossless", "bf16", "int8"):
        operator = ["*", "*linear*", lambda name: "norm" not in name][rng.integers(3)]
        return Checked(choice, min_bytes=small, operator=operator)
    return {"numbers": numbers, "doubled": doubled, "host": save_on_cpu}[choice]()


def checkpointed(part: Any, x: Any, run: Any = None) -> Any:
    """A layer in a checkpoint, unless it changes its input in place, which a checkpoint refuses."""
    return (run or part)(x) if changes(part) else checkpoint(run or part, x, use_reentrant=False)


def changes(part: Any) -> bool:
    """Whether a layer may change its input in place."""
    return any(getattr(m, "inplace", False) for m in part.modules())


def around(rng: Any, made: Any) -> Any:
    """How one layer is called: in a checkpoint, in a context, as a wrapped module."""
    choice = rng.integers(5)
    if choice == 0:
        return checkpointed
    if choice == 1 and isinstance(made, stores.Store):
        return lambda part, x: part(x) if made.recomputes and changes(part) else made(part)(x)
    if choice == 2 and isinstance(made, stores.Store):
        return lambda part, x: part(x) if made.recomputes and changes(part) else checkpointed(part, x, made(part))
    if choice == 3:

        def inside(part: Any, x: Any) -> Any:
            with made:
                return part(x)

        return inside
    return None


def gradients(net: Any, x: Any, contexts: Any, seed: int, twice: bool = False) -> list[Any]:
    """Gradients of a step; `twice`: of two backward runs through one graph."""
    net.zero_grad()
    torch.manual_seed(seed)
    with contextlib.ExitStack() as stack:
        for c in contexts:
            stack.enter_context(c)
        loss = (net(x) * torch.linspace(-1, 1, net.width)).square().sum()
    if twice:
        loss.backward(retain_graph=True)
    loss.backward()
    return [None if p.grad is None else p.grad.numpy().copy() for p in net.parameters()]


def compose(seed: int, dir: Path, lossy: bool) -> int:
    """One random net in one random composition; how many stores it had."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    net = Net(rng)
    x = torch.randn(8, net.width)
    twice = bool(rng.integers(4) == 0)
    state = {k: v.clone() for k, v in net.state_dict().items()}
    try:
        plain = gradients(net, x, [], seed, twice)
    except RuntimeError as error:  # a layer changed in place what another had saved
        assert "modified by an inplace operation" in str(error)
        for module in net.modules():
            module.inplace = False
        net.load_state_dict(state)
        plain = gradients(net, x, [], seed, twice)
    contexts = [context(rng, dir, lossy) for _ in range(rng.integers(0, 4))]
    net.around = [around(rng, context(rng, dir, lossy)) for _ in net.layers]
    for _ in range(2):
        net.load_state_dict(state)
        for a, b in zip(plain, gradients(net, x, contexts, seed, twice), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert np.isfinite(b).all() if lossy else a.tobytes() == b.tobytes(), seed
    for store in contexts:
        if isinstance(store, stores.disk):
            while store.spill.active:  # a thread may still read what nobody waits for any more
                time.sleep(0.001)
            assert store.stats()["disk"] == 0
    return sum(isinstance(c, stores.Store) for c in contexts)
