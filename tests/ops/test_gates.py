"""Results of relu and its like as one bit an element once nobody else holds them: gradients and errors as when they are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory, nn, stores
from rushlight.dispatch.keeping import gates
from rushlight.dispatch.keeping.gates import Gates
from rushlight.engine.saved import Packed, SavedOutput

F = torch.nn.functional
SHAPE = (4, 8, 64, 64)
BYTES = 4 * 4 * 8 * 64 * 64


def leaf(dtype: Any = torch.float32) -> Any:
    torch.manual_seed(0)
    x = torch.randn(*SHAPE).to(dtype)
    x.view(-1)[:5] = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf")])
    return x.requires_grad_()


def node_of(y: Any) -> Any:
    """The node of relu, or of its like, below a tensor."""
    node = y.grad_fn
    while node.plan.op.gates is None:
        node = getattr(node.edges[0], "node", node.edges[0])
    return node


LOSSES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: F.relu(x).sum(),
    "in place": lambda x: F.relu_(x * 1.0).sum(),
    "pool": lambda x: F.max_pool2d(F.relu(x), 2).sum(),
    "method": lambda x: x.relu().mean(),
    "reshaped": lambda x: F.relu((x * 1.0).reshape(4, -1)).sum(),
    "leaky": lambda x: (F.leaky_relu(x, 0.2) * 1.5).sum(),
    "leaky in place": lambda x: F.leaky_relu_(x * 1.0).mean(),
    "of slope 0": lambda x: F.leaky_relu(x, 0.0).sum(),
    "relu6": lambda x: (F.relu6(x * 6) * 1.5).sum(),
    "hardtanh": lambda x: F.hardtanh(x, -0.1, 0.7).mean(),
    "hardsigmoid": lambda x: F.hardsigmoid(x * 4).mean(),
    "hardsigmoid in place": lambda x: F.hardsigmoid(x * 4, inplace=True).sum(),
    "softshrink": lambda x: (F.softshrink(x, 0.4) * 1.5).sum(),
    "hardshrink": lambda x: (F.hardshrink(x, 0.4) * 1.5).sum(),
    "hardtanh in place": lambda x: F.hardtanh_(x * 1.0).mean(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_bits_give_the_same_gradients(name: str, dtype: Any) -> None:
    x = leaf(dtype)
    loss = LOSSES[name](x)
    kept = node_of(loss).outs[0]
    assert isinstance(kept, Gates) and kept.array.nbytes * 32 == BYTES
    found = [torch.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(2)]
    former = memory.recompute_cheap(False)
    try:
        loss = LOSSES[name](x)
    finally:
        memory.recompute_cheap(former)
    assert isinstance(node_of(loss).outs[0], SavedOutput)
    (wanted,) = torch.autograd.grad(loss, x)
    for one in found:
        assert torch.equal(one.view(torch.uint8), wanted.view(torch.uint8))


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize(
    "rectifier", [F.relu, F.leaky_relu, F.relu6, F.hardtanh, F.hardsigmoid, F.softshrink, F.hardshrink]
)
def test_second_order(rectifier: Callable[[Any], Any]) -> None:
    x = torch.randn(*SHAPE, requires_grad=True)
    found = []
    for enabled in (True, False):
        former = memory.recompute_cheap(enabled)
        (first,) = torch.autograd.grad(rectifier(x * x - 1).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        memory.recompute_cheap(former)
        found.append((first.detach().numpy(), second.numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_anybody_holds_is_kept() -> None:
    x, conv = leaf(), nn.Conv2d(8, 8, 1)
    holders: list[Callable[[Any], Any]] = [
        lambda y: y,
        lambda y: y.detach(),
        lambda y: y[0],
        lambda y: y.detach().numpy(),
        lambda y: y.untyped_storage(),
        lambda y: conv(y),
        lambda y: y * y,
    ]
    for hold in holders:
        y = F.relu(x)
        node, held = y.grad_fn, hold(y)
        del y
        assert isinstance(node.outs[0], SavedOutput)
        del held
    y = F.relu(x)
    loss, alias = y.sum(), y.detach()
    del y
    alias.mul_(2)
    with pytest.raises(RuntimeError, match="ReluBackward0 saved as its result"):
        loss.backward()


def test_a_result_that_was_changed_is_refused_as_ever() -> None:
    y = F.relu(leaf())
    loss = y.sum()
    with torch.no_grad():
        y.mul_(2)
    del y
    with pytest.raises(RuntimeError, match="ReluBackward0 saved as its result"):
        loss.backward()


def test_nothing_is_looked_at_in_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that kept the result lets go of it just before relu's own turn."""
    x, layer = torch.randn(512, 512, requires_grad=True), nn.Linear(512, 8)
    loss = layer(F.relu(x)).sum()
    monkeypatch.setattr(gates, "packed", lambda *_: pytest.fail("looked at"))
    loss.backward()


def test_where_there_is_no_memory_for_bits_the_result_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf()
    (wanted,) = torch.autograd.grad(F.relu(x).sum(), x)

    def none_left(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(gates, "packed", none_left)  # what is raised while a tensor is freed would be a warning here
    loss = F.relu(x).sum()
    assert isinstance(node_of(loss).outs[0], SavedOutput)
    (found,) = torch.autograd.grad(loss, x)
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_small_results_and_other_layouts_are_kept() -> None:
    small = F.relu(torch.randn(10, requires_grad=True)).sum()
    assert isinstance(node_of(small).outs[0], SavedOutput)
    x = leaf()
    last = F.relu(x.contiguous(memory_format=torch.channels_last)).sum()
    assert isinstance(node_of(last).outs[0], SavedOutput)
    last.backward()
    assert x.grad is not None


def test_what_is_shown_of_it_is_a_mask() -> None:
    x = leaf()
    node = node_of(F.relu(x).sum())
    shown = node._saved_result
    assert shown.dtype == torch.bool
    np.testing.assert_array_equal(shown.numpy(), ~(x.detach().numpy() <= 0))


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
def test_an_estimate_knows_of_it() -> None:
    layers = [layer for _ in range(4) for layer in (nn.Conv2d(8, 8, 1), nn.ReLU(), nn.AvgPool2d(3, 1, 1))]
    model, x = nn.Sequential(*layers, nn.Flatten(0)), torch.randn(*SHAPE)
    found = memory.estimate(model, (x,), loss=lambda y, _: y.sum()).peak
    model(x).sum().backward()
    model.zero_grad()
    before = memory.current() - sum(t.nbytes for t in (*model.parameters(), x))
    memory.reset_peak()
    model(x).sum().backward()
    assert abs(memory.peak() - before - found) < 0.5 * BYTES, (found, memory.peak() - before)


STORES: dict[str, Callable[[], Any]] = {
    "cpu": stores.cpu,
    "bf16": lambda: stores.compress("bf16"),
    "int8": lambda: stores.compress("int8"),
    "lossless": lambda: stores.compress("lossless"),
    "recompute": stores.recompute,
    "two": lambda: stack(stores.cpu(), stores.compress("bf16")),
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
}


@contextlib.contextmanager
def stack(*contexts: Any) -> Any:
    with contextlib.ExitStack() as entered:
        for context in contexts:
            entered.enter_context(context)
        yield


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "recompute"])
@pytest.mark.parametrize("name", LOSSES)
def test_stores_and_copies_keep_bits(name: str, kind: str) -> None:
    x = leaf()
    with STORES[kind]():
        loss = LOSSES[name](x)
    assert isinstance(node_of(loss).outs[0], Gates)
    found = torch.autograd.grad(loss, x)[0].numpy()
    wanted = torch.autograd.grad(LOSSES[name](x), x)[0].numpy()
    np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


@pytest.mark.filterwarnings("ignore:.*stored nothing")
def test_what_cannot_be_recomputed_is_kept_as_bits() -> None:
    x, conv = leaf(), nn.Conv2d(8, 8, 3, padding=1)
    with stores.recompute():
        loss = F.relu(conv(x)).sum()
    assert isinstance(node_of(loss).outs[0], Gates)
    found, wanted = (torch.autograd.grad(y, x)[0].numpy() for y in (loss, F.relu(conv(x)).sum()))
    np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


def test_on_disk_it_stays_as_it_is_which_takes_no_memory() -> None:
    x = leaf()
    with stores.disk():
        loss = F.relu(x).sum()
    assert isinstance(node_of(loss).outs[0], Packed)


@pytest.mark.filterwarnings("ignore:.*stored nothing")
@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "save_on_cpu"])
def test_stores_keep_what_anybody_holds(kind: str) -> None:
    x, conv = leaf(), nn.Conv2d(8, 8, 1)
    holders: list[Callable[[Any], Any]] = [
        lambda y: y.detach(),
        lambda y: y.data,
        lambda y: y[0],
        lambda y: y.detach().numpy(),
        lambda y: y.untyped_storage(),
        lambda y: conv(y),
    ]
    for hold in holders:
        with STORES[kind]():
            y = F.relu(x)
            node, held = node_of(y), hold(y)
        del y
        assert isinstance(node.outs[0], Packed)
        del held


@pytest.mark.filterwarnings("ignore:.*stored nothing")
@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "save_on_cpu"])
def test_stores_refuse_a_changed_result_as_ever(kind: str) -> None:
    for alias in (lambda y: y.detach(), lambda y: None):
        with STORES[kind]():
            y = F.relu(leaf())
            loss, other = y.sum(), alias(y)
        changed = y if other is None else other
        del y
        with torch.no_grad():
            changed.mul_(2)
        del changed, other
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            loss.backward()


def test_a_copy_may_outlive_a_change_as_in_pytorch() -> None:
    x = leaf()
    with torch.autograd.graph.save_on_cpu():
        y = F.relu(x)
    (wanted,) = torch.autograd.grad(F.relu(x).sum(), x)
    loss = y.sum()
    with torch.no_grad():
        y.zero_()
    (found,) = torch.autograd.grad(loss, x)
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_hooks_of_others_are_shown_the_result() -> None:
    shown: list[Any] = []

    def pack(t: Any) -> Any:
        shown.append(t)
        return t

    class Own(torch.autograd.graph.save_on_cpu):
        def __init__(self) -> None:
            super().__init__()
            self.pack_hook, self.unpack_hook = pack, lambda t: t

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
    for around in (stack(hooks), Own(), stack(hooks, stores.cpu()), stack(hooks, torch.autograd.graph.save_on_cpu())):
        shown.clear()
        with around:
            y = F.relu(leaf())
        assert [t.dtype for t in shown] == [torch.float32]
        assert [t.numel() for t in shown] == [y.numel()]
