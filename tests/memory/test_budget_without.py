"""What a budget says of the peak that there would have been without it, against that peak as it is measured."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory, nn
from rushlight.kernels import allocator

pytestmark = native
F = nn.functional


def perceptron() -> Callable[[], Any]:
    model, x = nn.Sequential(*(nn.Linear(700, 700) for _ in range(4))), torch.randn(64, 700)
    return trained(model, lambda: model(x).square().mean())


def images() -> Callable[[], Any]:
    """Its peak is in backward, where nothing has to leave any more."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32),
        nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    x = torch.randn(32, 3, 32, 32)
    return trained(model, lambda: model(x).square().mean())


def recurrent() -> Callable[[], Any]:
    model, head, x = nn.LSTM(64, 128, 2), nn.Linear(128, 200), torch.randn(60, 32, 64)
    y = torch.randint(0, 200, (1920,))
    return trained(nn.ModuleList([model, head]), lambda: F.cross_entropy(head(model(x)[0]).view(-1, 200), y))


def words() -> Callable[[], Any]:
    """Cross entropy writes its gradient over the logits."""
    model, x = nn.Sequential(nn.Embedding(2000, 64), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2000)), torch.randint(
        0, 2000, (800,))  # fmt: skip
    return trained(model, lambda: F.cross_entropy(model(x), x))


def adversaries() -> Callable[[], Any]:
    made = nn.Sequential(nn.Linear(64, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1024), nn.Tanh())
    judge = nn.Sequential(nn.Linear(1024, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))
    one, other = torch.optim.Adam(made.parameters()), torch.optim.Adam(judge.parameters())
    real = torch.randn(256, 1024)

    def step() -> None:
        fake = made(torch.randn(256, 64))
        other.zero_grad()
        (F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(real)).mean()).backward()
        other.step()
        one.zero_grad()
        F.softplus(-judge(fake)).mean().backward()
        one.step()

    return step


def trained(model: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def peak_of(build: Callable[[], Callable[[], Any]]) -> int:
    """That of three steps, beyond what there was before."""
    torch.manual_seed(0)
    gc.collect()
    before = memory.current()
    step = build()
    memory.reset_peak()
    for _ in range(3):
        step()
    return memory.peak() - before


PROGRAMS = (
    (perceptron, 0.9),
    (perceptron, 0.5),
    (images, 0.9),
    (recurrent, 0.9),
    (recurrent, 0.75),
    (words, 0.8),
    (adversaries, 0.75),
)


@pytest.mark.parametrize(("build", "share"), PROGRAMS)
def test_what_there_would_be_without_it_is_what_there_is_without_it(build: Any, share: float) -> None:
    peak = peak_of(build)
    torch.manual_seed(0)
    gc.collect()
    before = memory.current()
    step = build()
    with memory.budget(before + int(share * peak)) as budget:
        for _ in range(3):
            step()
    report = budget.report()
    assert report.peak <= budget.limit < report.without
    assert abs(report.without - before - peak) < 0.005 * peak


def test_peaks_of_parts_leave_the_peak_of_all_as_it_is() -> None:
    allocator.reset_peak()
    before = memory.current()
    torch.ones(1_000_000)
    assert allocator.peak_since() - before >= 4_000_000 > allocator.peak_since() - before
    _, taken = allocator.taken(lambda: (torch.ones(500_000), allocator.peak_since()), lambda _: None)
    assert memory.peak() - before >= 4_000_000 > taken >= 2_000_000
    memory.reset_peak()
    assert memory.peak() - before < 2_000_000


# Cross entropy within a budget --------------------------------------------------------------------------


def gradients(limit: int, hold: bool) -> tuple[Any, int, Any]:
    """The gradient by the weight of a cross entropy, the most bytes, and the logits where a variable holds them.

    What is saved beforehand can leave, so that a low limit is felt.
    """
    torch.manual_seed(0)
    weight, x, y = nn.Parameter(torch.randn(1000, 32)), torch.randn(1000, 32), torch.randint(0, 1000, (1000,))
    leaf = torch.ones(1_000_000, requires_grad=True)
    gc.collect()
    before = memory.current()
    with memory.budget(before + limit) as budget:
        saved = leaf.exp().sum()
        out = F.linear(x, weight)
        loss = F.cross_entropy(out, y)
        held = out if hold else None
        del out
        loss.backward()
        del saved
    return weight.grad, budget.report().peak - before, held


def test_a_budget_writes_the_gradient_of_cross_entropy_over_logits_that_nobody_holds() -> None:
    plain, peak, _ = gradients(100_000_000, False)
    again, bounded, _ = gradients(5_000_000, False)
    assert torch.equal(plain, again) and peak > 8_000_000 > 5_000_000 >= bounded


def test_a_budget_leaves_logits_that_somebody_holds_as_they_are() -> None:
    plain, _, logits = gradients(100_000_000, True)
    again, bounded, held = gradients(9_000_000, True)
    assert torch.equal(plain, again) and torch.equal(logits, held) and 8_000_000 < bounded <= 9_000_000
