"""Saved inputs that are computed again: gradients, memory, changes in place."""

from __future__ import annotations

import contextlib
import weakref
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake

import rushlight as torch
from rushlight.dispatch.declare import OPS
from rushlight.dispatch.keeping import rebuilt
from rushlight.dispatch.keeping.remade import Rebuilt

F = torch.nn.functional


def made(kind: str, x: Any, weight: Any, bias: Any) -> Any:
    if kind == "layer_norm":
        return F.layer_norm(x, (x.shape[-1],), weight, bias)
    return F.gelu(x, approximate=kind)


@pytest.mark.parametrize("kind", ["layer_norm", "none", "tanh"])
@pytest.mark.parametrize("view", [False, True])
def test_gradients_of_any_order_are_those_of_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, kind: str, view: bool
) -> None:
    def gradients(large: int) -> list[Any]:
        monkeypatch.setattr(rebuilt, "LARGE", large)
        monkeypatch.setattr(rebuilt, "SHARE", 1000.0)
        torch.manual_seed(0)
        x, w, b, v = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 5, 8), (8,), (8,), (4, 8)))
        h = made(kind, x, w, b)
        y = F.linear(h.transpose(0, 1) if view else h, v)
        assert isinstance(y.grad_fn.saved[0], Rebuilt) == (large == 0)
        first = torch.autograd.grad(y.sin().sum(), (x, v), create_graph=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in first), (x, v))
        return [g.detach().numpy() for g in (*first, *second)]

    for kept, again in zip(gradients(1 << 30), gradients(0), strict=True):
        np.testing.assert_array_equal(kept, again)


def test_the_result_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(300, 400, requires_grad=True)
    w = torch.randn(200, 400, requires_grad=True)
    h = F.gelu(x)
    y = F.linear(h, w)
    kept = y.grad_fn.saved[0]
    assert kept.saved[0]._array is x._array
    np.testing.assert_array_equal(y.grad_fn._saved_input.detach().numpy(), h.detach().numpy())


def test_changes_in_place_are_found() -> None:
    x = torch.randn(300, 400, requires_grad=True)
    w = torch.randn(200, 400, requires_grad=True)
    h = F.gelu(x)
    y = F.linear(h, w)
    h.mul_(2)
    with pytest.raises(RuntimeError, match="LinearBackward0 saved as argument 'input', is at version 1"):
        y.sum().backward()
    h = F.gelu(x)
    y = F.linear(h, w)
    (want,) = torch.autograd.grad(y.sum(), w, retain_graph=True)
    del h
    with torch.no_grad():
        x.mul_(2)
    np.testing.assert_array_equal(torch.autograd.grad(y.sum(), w, retain_graph=True)[0].numpy(), want.numpy())
    with pytest.raises(RuntimeError, match="GeluBackward0 saved as argument 'input', is at version 1"):
        y.sum().backward()


def test_freed_by_its_own_node_alone() -> None:
    """Freeing the node of the cheap operator in another run takes nothing from the product."""
    x = torch.randn(300, 400, requires_grad=True)
    w = torch.randn(200, 400, requires_grad=True)
    h = F.gelu(x)
    y = F.linear(h, w)
    want = torch.autograd.grad(y.sum(), w, retain_graph=True)[0]
    h.sum().backward()
    np.testing.assert_array_equal(torch.autograd.grad(y.sum(), w)[0].numpy(), want.numpy())


def test_what_a_store_took_is_not_held_beside_it(tmp_path: Any) -> None:
    """The layer norm's input is on disk; computing its result again reads it from there."""
    from rushlight import stores

    w = torch.randn(200, 400, requires_grad=True)
    x = torch.randn(300, 400, requires_grad=True)
    with stores.disk(tmp_path, memory=0):
        h = x * 1.0
        seen = weakref.ref(h._array)
        y = F.linear(F.layer_norm(h, (400,)), w)
        assert isinstance(y.grad_fn.saved[0], Rebuilt)
        del h
    assert seen() is None
    y.sum().backward()
    kept = F.linear(F.layer_norm(x, (400,)), w.detach()).sum()
    np.testing.assert_array_equal(x.grad, torch.autograd.grad(kept, x)[0])


def test_what_a_store_took_may_be_changed_unseen(tmp_path: Any) -> None:
    from rushlight import stores

    def gradient(stored: bool, change: bool) -> Any:
        torch.manual_seed(0)
        w, x = torch.randn(200, 400, requires_grad=True), torch.randn(300, 400, requires_grad=True)
        with stores.disk(tmp_path, memory=0) if stored else nullcontext():
            h = x * 1.0
            y = F.linear(F.layer_norm(h, (400,)), w)
            if change:
                h.data.mul_(3)
        return torch.autograd.grad(y.sum(), w)[0].numpy()

    np.testing.assert_array_equal(gradient(True, True), gradient(False, False))


def scale_data(x: Any, h: Any, weight: Any) -> None:
    x.data.mul_(3)


def scale_result_data(x: Any, h: Any, weight: Any) -> None:
    h.data.mul_(3)


def scale_alias(x: Any, h: Any, weight: Any) -> None:
    x.detach().mul_(3)


def scale_result(x: Any, h: Any, weight: Any) -> None:
    with torch.no_grad():
        h.mul_(3)


def scale_weight(x: Any, h: Any, weight: Any) -> None:
    with torch.no_grad():
        weight.mul_(3)


@pytest.mark.parametrize("around", [contextlib.nullcontext, torch.stores.recompute, awake])
@pytest.mark.parametrize("change", [scale_data, scale_result_data, scale_alias, scale_result, scale_weight])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.filterwarnings("ignore::rushlight.stores.StoreWarning")
def test_what_changed_before_the_layer_was_called_is_not_computed_from(norm: bool, change: Any, around: Any) -> None:
    torch.manual_seed(0)
    layer, base = torch.nn.Linear(256, 8), torch.randn(512, 256)
    results = []
    for kept in (True, False):
        weight, bias = torch.nn.Parameter(torch.full((256,), 0.5)), torch.nn.Parameter(torch.zeros(256))
        with around():
            x = base.clone().requires_grad_() * 1.0
            h = torch.nn.functional.layer_norm(x, (256,), weight, bias) if norm else torch.nn.functional.gelu(x)
            change(x, h, weight)
            (grad,) = torch.autograd.grad(layer(h if kept else h.detach().clone()).pow(2).sum(), layer.weight)
        results.append(grad.numpy())
    np.testing.assert_array_equal(*results)


class Adapted:
    """A frozen product with an adapter of rank 4 beside it, behind a layer norm or GELU and perhaps a dropout."""

    def __init__(self, kind: str, dropout: bool = False, view: bool = False):
        torch.manual_seed(0)
        self.kind, self.dropout, self.view = kind, dropout, view
        self.x, self.w, self.b = (torch.randn(s, requires_grad=True) for s in ((300, 400), (400,), (400,)))
        self.frozen, self.a = torch.randn(400, 400), torch.randn(4, 400, requires_grad=True)

    def __call__(self, with_frozen: bool = True) -> tuple[Any, Any, Any]:
        """The input of both, the adapter's result, and a loss."""
        h = made(self.kind, self.x * 1.0, self.w, self.b)
        h = h.reshape(30, 10, 400) if self.view else h
        beside = F.linear(h, self.frozen).cos().sum() if with_frozen else 0.0
        torch.manual_seed(1)
        y = F.linear(F.dropout(h, 0.25) if self.dropout else h, self.a)
        return h, y, y.sin().sum() + beside


@pytest.fixture
def keeping_all() -> Any:
    """For runs in which everything is kept."""

    @contextlib.contextmanager
    def off() -> Any:
        former = rebuilt.recompute_cheap(False)
        try:
            yield
        finally:
            rebuilt.recompute_cheap(former)

    return off


@pytest.mark.parametrize("kind", ["layer_norm", "none"])
@pytest.mark.parametrize(("dropout", "view"), [(False, False), (True, False), (False, True)])
def test_an_adapter_beside_a_frozen_product_keeps_no_input(
    kind: str, dropout: bool, view: bool, keeping_all: Any
) -> None:
    """A product of rank 4 alone would not pay for its input; the frozen one beside it, which keeps none, does."""
    net = Adapted(kind, dropout, view)
    assert not isinstance(net(False)[1].grad_fn.saved[0], Rebuilt)
    _, y, loss = net()
    assert isinstance(y.grad_fn.saved[0], Rebuilt)
    found = torch.autograd.grad(loss, (net.x, net.a))
    with keeping_all():
        _, y, loss = net()
        assert not isinstance(y.grad_fn.saved[0], Rebuilt)
        wanted = torch.autograd.grad(loss, (net.x, net.a))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


AROUND = {
    "plain": contextlib.nullcontext,
    "recompute": torch.stores.recompute,
    "budget": awake,
    "tight budget": lambda: torch.memory.budget(torch.memory.current() + 2_500_000),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.filterwarnings("ignore::rushlight.stores.StoreWarning")
def test_adapters_inside_budgets_and_stores(around: str, keeping_all: Any) -> None:
    net = Adapted("layer_norm")
    with AROUND[around]():
        assert isinstance(net()[1].grad_fn.saved[0], Rebuilt)
        found = torch.autograd.grad(net()[2], (net.x, net.a))
    with keeping_all():
        wanted = torch.autograd.grad(net()[2], (net.x, net.a))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_adapters_in_checkpoints_and_second_order(keeping_all: Any) -> None:
    def gradients() -> list[Any]:
        net = Adapted("layer_norm")
        loss = torch.utils.checkpoint.checkpoint(lambda: net()[2], use_reentrant=False)
        once = torch.autograd.grad(loss, (net.x, net.a))
        first = torch.autograd.grad(net()[2], (net.x, net.a), create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), (net.x, net.a))
        return [g.detach().numpy() for g in (*once, *first, *second)]

    found = gradients()
    with keeping_all():
        wanted = gradients()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_an_adapter_takes_cannot_be_changed() -> None:
    h, _, loss = Adapted("layer_norm")()
    with torch.no_grad():
        h.mul_(2)
    with pytest.raises(RuntimeError, match="LinearBackward0 saved as argument 'input'"):
        loss.backward()


def test_what_adapters_take_is_paid_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One frozen product pays for the input of one adapter, not of ten."""
    net = Adapted("layer_norm")
    monkeypatch.setattr(rebuilt, "SHARE", 1.2 * OPS["native_layer_norm"].again / (2 * 2 * 400 + 3 * 2 * 4))
    h, y, _ = net()
    assert isinstance(y.grad_fn.saved[0], Rebuilt)
    assert not isinstance(F.linear(h, net.a).grad_fn.saved[0], Rebuilt)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_what_a_checkpoint_packed_is_not_asked_for_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of gradients are products of what it saved: each would have it run once more."""

    def runs(large: int) -> int:
        monkeypatch.setattr(rebuilt, "LARGE", large)
        monkeypatch.setattr(rebuilt, "SHARE", 1000.0)
        torch.manual_seed(0)
        norm = torch.nn.BatchNorm1d(8)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), norm, torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
        y = torch.utils.checkpoint.checkpoint(model, torch.randn(4, 8), use_reentrant=False)
        first = torch.autograd.grad(y.mean(), model.parameters(), create_graph=True)
        sum(g.square().sum() for g in first).backward()
        return int(norm.num_batches_tracked.item())

    assert runs(1) == runs(1 << 30)


def test_a_norm_and_the_relu_behind_it_are_made_again_in_one_pass(monkeypatch, keeping_all):
    from rushlight.ops.norm.batch_norm import batch_norm_eval_op

    calls, then = [], batch_norm_eval_op.op.then["relu"]
    monkeypatch.setitem(batch_norm_eval_op.op.then, "relu", lambda *given: calls.append(1) or then(*given))
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3)
    )
    x = torch.randn(4, 3, 34, 34)

    def gradients():
        net.zero_grad()
        net(x).square().sum().backward()
        return [p.grad.numpy().copy() for p in net.parameters()]

    found = gradients()
    assert len(calls) == 1
    with keeping_all():
        want = gradients()
    assert len(calls) == 1
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, other)
