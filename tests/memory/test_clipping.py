"""Clipping by norm gives the same bits whatever store, budget or observer is around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.memory.awake import awake
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory, stores

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")


@contextmanager
def recorded() -> Iterator[None]:
    memory.record_history()
    try:
        yield
    finally:
        memory.record_history(enabled=None)


AROUND: dict[str, Any] = {
    "disk": lambda: stores.disk(memory="1 MB"),
    "lossless": lambda: stores.compress("lossless"),
    "recompute": stores.recompute,
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "awake": awake,
    "short of memory": lambda: memory.budget(memory.current() + 5_000_000),
    "recorded": recorded,
}


def clipped() -> list[float]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        *[layer for _ in range(4) for layer in (torch.nn.Linear(300, 300), torch.nn.LayerNorm(300), torch.nn.GELU())]
    )
    found = []
    for scale in (0.3, 1.0, 1.7, 2.3, 3.1):
        (model(torch.randn(400, 300)) * scale).square().mean().backward()
        found.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01).item())
        found += [p.grad.double().sum().item() for p in model.parameters()]
    return found


@pytest.mark.parametrize("around", [pytest.param(k, marks=native) if k == "short of memory" else k for k in AROUND])
def test_clipping_by_norm_gives_the_same_bits(around: str) -> None:
    plain = clipped()
    with AROUND[around]():
        assert clipped() == plain


@native
def test_gradients_that_are_on_disk_have_the_same_norm() -> None:
    """So tight that gradients leave, and are such as a budget moves when they are clipped."""
    plain = many_clipped()
    with memory.budget(memory.current() + 2_500_000) as budget:
        assert many_clipped() == plain
    assert budget.report().moved_out["gradient"]


def many_clipped() -> list[float]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[layer for _ in range(12) for layer in (torch.nn.Linear(300, 300), torch.nn.GELU())])
    found = []
    for scale in (0.3, 1.0, 1.7):
        (model(torch.randn(20, 300)) * scale).square().mean().backward()
        for limit in (0.01, 0.001):
            found.append(torch.nn.utils.clip_grad_norm_(model.parameters(), limit).item())
        found += [p.grad.double().sum().item() for p in model.parameters()]
    return found


def test_a_tensor_without_memory_elsewhere_changes_nothing() -> None:
    """Once there was one, operators ask whether theirs are such: another question, the same norm."""
    torch.empty(3, device="meta")
    plain = clipped()
    with AROUND["hooks"]():
        assert clipped() == plain
