"""In which order results lie in memory: `view` works where it works in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

EXPANDED: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "rows": (lambda: torch.arange(8.0).expand(2, 8), (8, 1)),
    "columns": (lambda: torch.ones(4, 1).expand(4, 3), (3, 1)),
    "middle": (lambda: torch.ones(4, 1, 3).expand(4, 5, 3), (15, 3, 1)),
    "transposed": (lambda: torch.ones(1, 3, 4).expand(2, 3, 4).transpose(1, 2), (12, 1, 4)),
    "with gaps": (lambda: torch.ones(6, 8).t()[::2].unsqueeze(1).expand(4, 3, 6), (1, 4, 12)),
    "permuted": (lambda: torch.ones(2, 1, 3, 1).permute(3, 2, 1, 0).expand(5, 3, 4, 2), (24, 1, 3, 12)),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_expanded_dimensions_stay_where_they_are(name: str) -> None:
    make, strides = EXPANDED[name]
    x = make()
    for made in (x.double(), x.half(), x.bool(), x.type_as(torch.ones(1, dtype=torch.int32)), x.clone(),
                 torch.empty_like(x), torch.zeros_like(x, dtype=torch.float64), torch.rand_like(x), x.long().exp(),
                 x >= torch.ones(x.shape[-1], dtype=torch.float64)):  # fmt: skip
        assert made.stride() == strides
    assert torch.equal(x.double(), x.contiguous().double()) and torch.equal(x.clone(), x.contiguous())


def test_a_mask_of_expanded_numbers_can_be_viewed() -> None:
    mask = torch.arange(8).view(1, 8).expand(2, 8).type_as(torch.ones(1)) >= torch.tensor([[3], [5]])
    assert mask.view(16, 1, 1).sum().item() == 8


REDUCED = ["sum", "mean", "nansum", "amax", "amin", "prod", "all", "any", "count_nonzero", "max", "min"]


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("size", [4, 400])
def test_reductions_can_be_viewed(name: str, size: int) -> None:
    x = torch.rand(2, 3, size).permute(2, 0, 1)
    found, again = getattr(x, name)(dim=1), getattr(x.contiguous(), name)(dim=1)
    for a, b in zip(found, again, strict=True) if isinstance(found, tuple) else [(found, again)]:
        assert a.is_contiguous() and a.view(-1).shape == (3 * size,)
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("size", [4, 400])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_results_can_be_viewed(name: str, size: int, dim: int) -> None:
    for x in (torch.rand(3, size).t(), torch.rand(size).expand(3, size)):
        found, again = getattr(x, name)(dim), getattr(x.contiguous(), name)(dim)
        pairs = zip(found, again, strict=True) if isinstance(found, tuple) else [(found, again)]
        for a, b in pairs:
            assert a.is_contiguous() and a.view(-1).shape == (3 * size,)
            torch.testing.assert_close(a, b)
