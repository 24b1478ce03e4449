"""Logits that are changed after their loss: the gradient is that of what they were, as in PyTorch, and none is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from tests.memory.awake import awake

import rushlight as torch
from rushlight import stores
from rushlight.nn import functional as F

SIZES = [(8, 5), (300, 70), (2000, 3000)]  # copied at once, watched over, not made
CHANGES: dict[str, Callable[[Any], object]] = {
    "in place": lambda z: z.mul_(3.0),
    "data": lambda z: z.data.mul_(3.0),
    "other data": lambda z: setattr(z, "data", torch.zeros_like(z)),
    "a view": lambda z: z.view(-1)[:30].fill_(1.0),
    "NumPy": lambda z: z.detach().numpy().fill(0.0),
    "copy_": lambda z: z.copy_(torch.ones_like(z)),
}
AROUND: dict[str, Callable[[], Any]] = {
    "nothing": nullcontext,
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "a budget": lambda: torch.memory.budget("500MB"),
}


def gradients(size: tuple[int, int], change: Callable[[Any], object] | None, around: Callable[[], Any]) -> list[Any]:
    """The gradient by the weight, and that of its square by the input."""
    torch.manual_seed(0)
    rows, classes = size
    x, w = torch.randn(rows, 16, requires_grad=True), torch.randn(classes, 16, requires_grad=True)
    with around():
        z = F.linear(x, w)
        loss = F.cross_entropy(z, torch.arange(rows) % classes)
        if change is not None:
            change(z)
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        (second,) = torch.autograd.grad((g * g).sum(), x)
    return [g.detach(), second]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("size", SIZES)
def test_logits_changed_after_their_loss(size: tuple[int, int], how: str, around: str) -> None:
    if how == "NumPy" and around == "hooks":
        return  # hooks are shown the tensor itself: what they keep of it is theirs
    expected = gradients(size, None, nullcontext)
    for ours, same in zip(gradients(size, CHANGES[how], AROUND[around]), expected, strict=True):
        torch.testing.assert_close(ours, same)


def test_first_order_alone_is_what_it_was() -> None:
    for size in SIZES:
        torch.manual_seed(0)
        x, w = torch.randn(size[0], 16), torch.randn(size[1], 16, requires_grad=True)
        found = []
        for change in (None, *CHANGES.values()):
            w.grad = None
            z = F.linear(x, w)
            loss = F.cross_entropy(z, torch.arange(size[0]) % size[1])
            if change is not None:
                change(z)
            loss.backward()
            found.append(w.grad)
        for g in found[1:]:
            torch.testing.assert_close(g, found[0])


@pytest.mark.parametrize(
    "around", [awake, lambda: stores.recompute(min_bytes=0), lambda: stores.disk(min_bytes=0), stores.disk]
)
def test_small_ones_within_budgets_and_stores(around: Callable[[], Any]) -> None:
    # Changes of small arrays by NumPy are not seen: what watches over memory has nothing to go by.
    def gradient(change: Callable[[Any], object] | None, around: Callable[[], Any]) -> Any:
        torch.manual_seed(0)
        x, w = torch.randn(8, 16), torch.randn(5, 16, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stores.StoreWarning)
            with around():
                z = F.linear(x, w)
                loss = F.cross_entropy(z, torch.arange(8) % 5)
                if change is not None:
                    change(z)
                loss.backward()
        return w.grad

    expected = gradient(None, nullcontext)
    for change in CHANGES.values():
        assert torch.equal(gradient(change, around), expected)


def test_nothing_is_left_of_the_watch() -> None:
    from rushlight.dispatch.keeping import steady
    from rushlight.storage import dependents

    x, w = torch.randn(300, 16), torch.randn(70, 16, requires_grad=True)
    before = len(steady.kept), len(dependents)
    for _ in range(3):
        z = F.linear(x, w)
        loss = F.cross_entropy(z, torch.arange(300) % 70)
        loss.backward()
        del loss
        assert len(steady.kept) == before[0]
        del z
    assert (len(steady.kept), len(dependents)) == before


def test_probabilities_and_weights_that_are_changed_after_their_loss_are_those_of_backward() -> None:
    """As in PyTorch, which keeps both as they are and not their product."""
    torch.manual_seed(0)
    z, target, weight = torch.randn(4, 3, requires_grad=True), torch.rand(4, 3), torch.rand(3)
    loss = F.cross_entropy(z, target, weight)
    target.data.mul_(2)
    weight.data.mul_(3)
    loss.backward()
    (expected,) = torch.autograd.grad(F.cross_entropy(z, target, weight), z)
    torch.testing.assert_close(z.grad, expected)
