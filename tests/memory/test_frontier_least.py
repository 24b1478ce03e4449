"""The least budget that a frontier foretells, against what budgets can really be kept."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory, nn
from rushlight.memory.estimates.rehearsals import Setup
from rushlight.memory.planning import trials, ways

pytestmark = native
F = nn.functional


class Skips(nn.Module):
    """What it goes back to in the end stays in variables until it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([self.block(3, 16), self.block(16, 32), self.block(32, 64)])
        self.up, self.last = nn.ModuleList([self.block(96, 32), self.block(48, 16)]), nn.Conv2d(16, 2, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())  # fmt: skip

    def forward(self, x: Any) -> Any:
        kept: list[Any] = []
        for block in self.down:
            x = block(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for block, skip in zip(self.up, reversed(kept[:-1]), strict=True):
            x = block(torch.cat([F.interpolate(x, scale_factor=2), skip], 1))
        return self.last(x)


class Tied(nn.Module):
    """The gradient of a weight that is used twice is complete at the end alone."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(1000, 128), nn.Linear(128, 1000, bias=False)
        self.head.weight = self.words.weight
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(4))
        )

    def forward(self, x: Any) -> Any:
        return self.head(self.layers(self.words(x)))


def skips() -> tuple[Any, Any]:
    return Skips(), torch.randn(8, 3, 64, 64)


def tied() -> tuple[Any, Any]:
    return Tied(), torch.randint(0, 1000, (8, 64))


def perceptron() -> tuple[Any, Any]:
    return nn.Sequential(*(nn.Sequential(nn.Linear(400, 400), nn.Tanh()) for _ in range(6))), torch.randn(800, 400)


class Weighted(nn.Module):
    """Both factors of a product stay where they are until its backward has the gradients of both."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.norm = nn.Linear(200, 800), nn.Linear(800, 200), nn.BatchNorm1d(800)

    def forward(self, x: Any) -> Any:
        y = F.relu6(self.norm(self.first(x)))
        return self.last(y.softmax(-1) * y)


def weighted() -> tuple[Any, Any]:
    return Weighted(), torch.randn(2000, 200)


def can_be_kept(setup: Setup, limit: int, fused: bool) -> int:
    """0 where steps can be taken within so many bytes, else what the budget says would do."""
    gc.collect()  # what is garbage would die in the middle of a step, and count among what there was before
    try:
        trials.tried(setup, ways.within(limit, fused))
    except trials.TrialFailed as error:
        assert error.least
        return error.least
    return 0


@pytest.mark.parametrize("build", [skips, tied, perceptron, weighted])
def test_the_least_budget_of_a_frontier_can_be_kept_and_is_the_least(build: Any) -> None:
    torch.manual_seed(0)
    model, x = build()
    optimizer, loss = torch.optim.Adam(model.parameters()), lambda out: out.square().mean()
    setup = Setup(model, x, optimizer, loss, True)
    found = memory.frontier(model, x, optimizer, loss=loss, measure=False)
    least = [point for point in found.points if point.name.startswith("budget")][-1]
    assert can_be_kept(setup, least.peak, True) == 0
    assert can_be_kept(setup, int(0.92 * least.peak), True) > 0


def test_what_a_budget_says_would_do_is_hardly_more_than_what_does() -> None:
    """Where it woke in the middle of an operator, what that saved stayed; what others hold was told as if a step needed it."""
    torch.manual_seed(0)
    others = torch.ones(3_000_000)
    model, x = skips()
    setup = Setup(model, x, torch.optim.Adam(model.parameters()), lambda out: out.square().mean(), True)
    low = memory.estimate(model, x, torch.optim.Adam).peak * 3 // 4
    while can_be_kept(setup, low, False) == 0:
        low = int(0.95 * low)
    asked = can_be_kept(setup, int(0.9 * low), False)
    assert 0.95 * low < asked <= 1.15 * low < others.nbytes + low
