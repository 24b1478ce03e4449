"""Saved tensors that `.data` changes, or gives other memory, are for backward what they are without stores and budgets."""

from __future__ import annotations

import warnings
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest
from tests.memory.awake import awake

import rushlight as torch
from rushlight import stores
from rushlight.memory.budgets import pages


def within_a_budget() -> ExitStack:
    both = ExitStack()
    both.enter_context(awake())
    both.enter_context(stores.disk(min_bytes=0))
    return both


AROUND: dict[str, Any] = {
    "disk": lambda: stores.disk(min_bytes=0),
    "recompute": lambda: stores.recompute(min_bytes=0),
    "lossless": lambda: stores.compress("lossless", min_bytes=0),
    "cpu": lambda: stores.cpu(min_bytes=0),
    "budget": awake,
    "disk in a budget": within_a_budget,
}
SAVED: dict[str, Any] = {
    "a result": lambda x: x * 1,
    "a view of a result": lambda x: (x * 1)[:, 1:],
    "a narrow view": lambda x: x.detach()[:, 3:5],
    "a narrow view from the end": lambda x: x.detach().flip(0)[:, 3:5],
    "a result whose axes lie in another order": lambda x: x.view(60, 8, 5).permute(2, 0, 1) * 1,
}


def multiplied(v: Any, x: Any) -> None:
    v.data.mul_(3)


def other_memory(v: Any, x: Any) -> None:
    v.data = v.data * 3


def other_memory_changed(v: Any, x: Any) -> None:
    v.data = v.data * 3
    v.data.add_(1)
    v.data = v.data * 2
    v.data.add_(1)


def the_whole(v: Any, x: Any) -> None:
    x.data.mul_(3)
    x.data.mul_(2)


CHANGES = (multiplied, other_memory, other_memory_changed, the_whole)


def gradient(around: Any, saved: Any, change: Any, kept: bool, through: Any) -> Any:
    x = torch.arange(2400.0).view(60, 40).sin().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stores.StoreWarning)
        with around():
            v = saved(x)
            w = torch.ones_like(v).requires_grad_()
            loss = through(v * w)
        change(v, x)
        if not kept:
            del v
        loss.backward()
    return w.grad


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("saved", SAVED)
@pytest.mark.parametrize("around", AROUND)
def test_a_change_past_the_graph_is_seen_as_without(
    around: str, saved: str, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "SMALL", 1)
    for kept in (True, False):
        plain = gradient(nullcontext, SAVED[saved], change, kept, torch.sum)
        assert torch.equal(gradient(AROUND[around], SAVED[saved], change, kept, torch.sum), plain)


@pytest.mark.parametrize("around", AROUND)
def test_an_input_of_a_checkpoint_that_was_given_other_memory_runs_as_without(
    around: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "SMALL", 1)

    def checkpointed(y: Any) -> Any:
        loss = torch.utils.checkpoint.checkpoint(lambda t: t.sin().square().sum(), y, use_reentrant=False)
        y.data = y.data * 2
        return loss

    plain, found = (
        gradient(a, SAVED["a result"], other_memory, True, checkpointed) for a in (nullcontext, AROUND[around])
    )
    assert torch.equal(plain, found)


@pytest.mark.parametrize("around", ["recompute", "budget"])
def test_a_result_that_was_given_its_own_memory_again_dies_with_its_name(around: str) -> None:
    """What its own node keeps of it must not keep the tensor."""
    import gc
    import weakref

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stores.StoreWarning)
        with AROUND[around]():
            h = torch.ones(300, 300, requires_grad=True).exp()
            h.data = h.data * 1
            seen = weakref.ref(h)
            gc.disable()
            try:
                del h
                assert seen() is None
            finally:
                gc.enable()


def shown_to_numpy(around: Any, size: int, when: str) -> tuple[Any, Any]:
    """The gradients where a saved tensor, and what a sigmoid made of it, are changed by an array that shows the former."""
    x = torch.arange(2.0 * size).view(2, size).sin().requires_grad_()
    w = torch.ones(2, size, requires_grad=True)
    with around():
        h = x * 1
        array = h.detach().numpy() if when == "before" else None
        loss = ((h * w).sum() + (h.sigmoid() * w).sum()) * 2
        if when == "inside":
            array = h.detach().numpy()
    array = h.detach().numpy() if array is None else array
    array *= 3
    loss.backward()
    return x.grad, w.grad


@pytest.mark.filterwarnings("ignore::rushlight.stores.StoreWarning")
@pytest.mark.parametrize("when", ["before", "inside", "after"])
@pytest.mark.parametrize("size", [150, 500, 50_000])
@pytest.mark.parametrize("around", AROUND)
def test_a_change_through_an_array_of_numpy_is_seen_as_without(around: str, size: int, when: str) -> None:
    plain, found = (shown_to_numpy(a, size, when) for a in (nullcontext, AROUND[around]))
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))


def test_what_others_hold_still_is_not_read_from_disk() -> None:
    with stores.disk(min_bytes=0, memory="1 MiB") as store:
        held = [torch.randn(100, 100, requires_grad=True)]
        for _ in range(3):
            held.append(held[-1].exp())
    store.spill.flush()
    held[-1].sum().backward()
    assert store.stats()["put"] == 120_000 and store.stats()["read"] == 0


@pytest.mark.parametrize("around", ["nothing", *AROUND])
@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.t().mul_(v.t()),
        lambda v: v[0].mul_(v[0]),
        lambda v: v.t().mul_(v),
        lambda v: v[1:].addcmul_(v[:-1], v[:-1]),
    ],
)
def test_an_operand_that_lies_on_the_memory_that_changes_is_refused_as_without(around: str, change: Any) -> None:
    """It is saved when whoever keeps that memory has been told of the change: its gradient was that of changed numbers."""
    x = torch.arange(1.0, 400 * 400 + 1).view(400, 400).requires_grad_()
    with warnings.catch_warnings(), AROUND.get(around, nullcontext)():
        warnings.simplefilter("ignore", stores.StoreWarning)  # what is refused may be all that was saved
        v = x * 1
        change(v)
        loss = v.sum()
        del v
        with pytest.raises(RuntimeError, match="modified by"):
            loss.backward()
