"""Masks that operators were given, and the sides of 0 of what they were, as bits once nobody else holds them.

Gradients and errors are as when they are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory, stores
from rushlight.dispatch.keeping import masks
from rushlight.dispatch.keeping.masks import Mask
from rushlight.engine.saved import Packed

SHAPE = (8, 16, 64, 64)
COUNT = 8 * 16 * 64 * 64

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "where": lambda x: torch.where(x > 0, x, 0.1),
    "where of two": lambda x: torch.where(x > 0, x * 2, x * x),
    "masked_fill": lambda x: x.masked_fill(x > 1, -1.0),
    "masked_fill in place": lambda x: (x * 1.0).masked_fill_(x > 1, -1.0),
    "product": lambda x: x * (x > 0),
    "selected": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x < 0.5),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x * 2),
    "set": lambda x: setting(x * 1.0),
    "of a view": lambda x: torch.where((x > 0).view(1, *SHAPE).reshape(SHAPE), x, 1.0),
    "turned": lambda x: torch.where(~(x > 0), x, 1.0),
    "for two": lambda x: (lambda m: torch.where(m, x, 1.0) + x.masked_fill(m, 2.0))(x > 0),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, x @ x.mT > 0),
}


def setting(y: Any) -> Any:
    y[y > 0] = 3.0
    return y


def leaf() -> Any:
    torch.manual_seed(0)
    x = torch.randn(*SHAPE)
    x.view(-1)[:5] = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf")])
    return x.requires_grad_()


def finite() -> Any:
    torch.manual_seed(0)
    return torch.randn(*SHAPE).requires_grad_()


def kept(y: Any) -> list[Mask]:
    """The masks that the nodes below a tensor keep."""
    found, nodes = [], [y.grad_fn]
    while nodes:
        node = nodes.pop()
        found += [x for x in getattr(node, "saved", None) or () if isinstance(x, Mask)]
        nodes += [n for n, _ in node.next_functions if n is not None]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_give_the_same_gradients(name: str) -> None:
    x = finite() if name == "attention" else leaf()
    loss = (PROGRAMS[name](x) * 1.5).sum()
    assert kept(loss)
    for mask in kept(loss):
        assert mask.array is None and mask.storage is None and mask.memory.nbytes * 8 == COUNT
    found = [torch.autograd.grad(loss, x, retain_graph=True)[0].numpy() for _ in range(2)]
    former = memory.recompute_cheap(False)
    try:
        loss = (PROGRAMS[name](x) * 1.5).sum()
    finally:
        memory.recompute_cheap(former)
    assert not kept(loss)
    (wanted,) = torch.autograd.grad(loss, x)
    for one in found:
        np.testing.assert_array_equal(one.view(np.int32), wanted.numpy().view(np.int32))


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "attention"])
def test_second_order(name: str) -> None:
    x = finite()
    found = []
    for enabled in (True, False):
        former = memory.recompute_cheap(enabled)
        (first,) = torch.autograd.grad(PROGRAMS[name](x * x - 1).square().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        memory.recompute_cheap(former)
        found.append((first.detach().numpy(), second.numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_anybody_holds_is_kept_and_shown_itself() -> None:
    x = leaf()
    holders: list[Callable[[Any], Any]] = [
        lambda m: m,
        lambda m: m.detach(),
        lambda m: m[0],
        lambda m: m.numpy(),
        lambda m: m.untyped_storage(),
        lambda m: m.view(-1),
    ]
    for hold in holders:
        m = x > 0
        y = torch.where(m, x, 0.0)
        assert y.grad_fn._saved_condition is m
        held = hold(m)
        del m
        (mask,) = kept(y)
        assert mask.array is not None and mask.bits is None
        del held
    m = x > 0
    y = torch.where(m, x, 0.0)
    alias = m.detach()
    del m
    alias.logical_not_()
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.sum().backward()


def test_a_mask_that_was_changed_is_refused_as_ever() -> None:
    x = leaf()
    for saves in (lambda m: torch.where(m, x, 0.0), lambda m: x.masked_fill(m, 1.0)):
        m = x > 0
        y, one = saves(m), saves(m)
        m.logical_not_()
        later = saves(m)  # of the mask as it is now
        del m
        later.sum().backward()
        for changed in (y, one):
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                changed.sum().backward()


def test_small_and_expanded_masks_are_kept() -> None:
    x = torch.randn(64, 64, requires_grad=True)
    assert not kept(torch.where(x > 0, x, 0.0))
    x = leaf()
    rows = (torch.randn(8, 16, 64, 1) > 0).expand(SHAPE)
    assert not kept(torch.where(rows, x, 0.0))
    assert not kept(torch.where((x > 0)[:, :8].repeat(1, 2, 1, 1).mT, x, 0.0))


def test_where_there_is_no_memory_for_bits_the_mask_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(masks, "packed", none_left)  # what is raised while a tensor is freed would be a warning here
    x = leaf()
    loss = torch.where(x > 0, x, 0.0).sum()
    assert kept(loss)[0].array is not None
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), (x > 0).float().numpy())


def test_what_is_shown_of_it_is_the_mask() -> None:
    x = leaf()
    node = torch.where(x > 0, x, 0.0).grad_fn
    assert node._saved_condition.dtype == torch.bool and node._saved_condition.equal(x > 0)
    assert node._raw_saved_condition.data.equal(x > 0)
    seen: list[Any] = []
    node._raw_saved_condition.register_hooks(lambda t: seen.append(t) or t, lambda t: t)
    assert seen[0].equal(x > 0)


def test_hooks_are_shown_the_mask() -> None:
    shown: list[Any] = []
    x = leaf()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: shown.append(t) or t, lambda t: t):
        y = torch.where(x > 0, x, 0.0)
    assert [(t.dtype, t.shape) for t in shown] == [(torch.bool, SHAPE)]
    assert isinstance(y.grad_fn.saved[0], Packed)


def test_under_vmap_and_in_stores() -> None:
    x = leaf()
    wanted = torch.autograd.grad(torch.where(x > 0, x, 0.1).sum(), x)[0]
    found = torch.vmap(torch.func.grad(lambda row: torch.where(row > 0, row, 0.1).sum()))(x.detach())
    assert found.equal(wanted)
    for store in (stores.cpu, stores.disk):
        with store():
            loss = torch.where(x > 0, x, 0.1).sum()
        assert torch.autograd.grad(loss, x)[0].equal(wanted)


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
def test_an_estimate_knows_of_it() -> None:
    class Steps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, x: Any) -> Any:
            for _ in range(6):
                x = torch.where(x > 0, x * 2.0, self.scale)
            return x

    model, x = Steps(), leaf().detach()
    model(x).sum().backward()
    model.zero_grad()
    before = memory.current() - x.nbytes
    memory.reset_peak()
    model(x).sum().backward()
    measured = memory.peak() - before
    found = memory.estimate(model, (x,), loss=lambda y, _: y.sum()).peak
    assert abs(measured - found) < 0.5 * COUNT, (found, measured)
    assert measured < 5 * x.nbytes


F = torch.nn.functional
SIDES: dict[str, Callable[[Any, Any], Any]] = {
    "abs": lambda x, y: (x - y).abs().sum(),
    "mean of abs": lambda x, y: (x - y).abs().mean(),
    "of a view": lambda x, y: (x - y).view(8, -1).abs().sum(),
    "l1_loss": lambda x, y: F.l1_loss(x * 2, y),
    "l1_loss, other way round": lambda x, y: F.l1_loss(y, x * 2, reduction="sum"),
    "l1_loss, no reduction": lambda x, y: (F.l1_loss(x * 2, y, reduction="none") * 1.5).sum(),
    "l1_loss of two": lambda x, y: F.l1_loss(x * 2, x * x + y),
}


def sides_of(y: Any) -> Any:
    """What abs or l1_loss below a tensor keeps."""
    node = y.grad_fn
    while node.plan.op.sides is None:
        node = next(n for n, _ in node.next_functions if n is not None)
    return node.saved


def pair(dtype: Any = torch.float32) -> tuple[Any, Any]:
    x = leaf().detach()
    y = x.roll(1)
    y.view(-1)[20:30] = x.view(-1)[20:30] * 2
    return x.to(dtype).requires_grad_(), y.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", SIDES)
def test_sides_of_0_give_the_same_gradients(name: str, dtype: Any) -> None:
    found = []
    for enabled in (True, False):
        x, y = pair(dtype)
        former = memory.recompute_cheap(enabled)
        loss = SIDES[name](x, y)
        memory.recompute_cheap(former)
        if enabled:
            assert sides_of(loss)[0].memory.nbytes * 4 == COUNT and sides_of(loss)[0].storage is None
        (once,) = torch.autograd.grad(loss, x, retain_graph=True)
        (again,) = torch.autograd.grad(loss, x, create_graph=True)
        found.append((once.float().numpy(), again.detach().float().numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_anybody_holds_of_abs_is_kept_and_shown_itself() -> None:
    x, y = pair()
    d = x - y
    loss = d.abs().sum()
    assert loss.grad_fn.next_functions[0][0]._saved_self is d
    array = d.detach().numpy()
    del d
    (kept,) = sides_of(loss)
    assert kept.array is not None and np.shares_memory(kept.array, array)
    (found,) = torch.autograd.grad(loss, x, create_graph=True)
    np.testing.assert_array_equal(found.detach().numpy(), np.nan_to_num(np.sign(array)))


def test_changes_of_what_abs_saved_are_found() -> None:
    x, y = pair()
    d = x - y
    loss = d.abs().sum()
    d.add_(1)
    del d
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    target = y.clone()
    loss = F.l1_loss(x * 2, target)
    target.add_(1)  # the prediction is bits by now
    loss.backward()
    target, prediction = y.clone(), x * 2
    loss = F.l1_loss(prediction, target)
    target.add_(1)
    del prediction
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_sides_of_0_in_batches_tangents_and_stores() -> None:
    x, y = pair()
    (wanted,) = torch.autograd.grad(F.l1_loss(x, y), x)
    rows = torch.vmap(torch.func.grad(lambda a, b: F.l1_loss(a * 1.0, b)))(x.detach(), y)
    np.testing.assert_array_equal(rows.numpy() / 8, wanted.numpy())
    loss = F.l1_loss(x * 1.0, y)
    (several,) = torch.autograd.grad(loss, x, torch.tensor([1.0, 2.0]), is_grads_batched=True)
    np.testing.assert_array_equal(several[1].numpy(), 2 * wanted.numpy())
    v = torch.randn(SHAPE)
    _, tangent = torch.func.jvp(lambda a: (a - y).abs(), (x.detach(),), (v,))
    np.testing.assert_array_equal(tangent.numpy(), v.numpy() * np.nan_to_num(np.sign((x - y).detach().numpy())))
    for store in (stores.cpu, stores.disk):
        with store():
            loss = F.l1_loss(x * 1.0, y)
        assert torch.autograd.grad(loss, x)[0].equal(wanted)
