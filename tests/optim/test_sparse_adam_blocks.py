"""SparseAdam goes over rows in blocks: each place once, in order, as of a coalesced gradient."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.optim import sparse_adam


@pytest.mark.parametrize("block", [1, 48, 1 << 16])
@pytest.mark.parametrize("maximize", [False, True])
def test_blocks_of_any_size_give_the_same_steps(block: int, maximize: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for whole in (True, False):
        monkeypatch.setattr(sparse_adam, "BLOCK", 1 << 30 if whole else block)
        torch.manual_seed(0)
        table = nn.Embedding(40, 16, sparse=True)
        optimizer = torch.optim.SparseAdam(table.parameters(), maximize=maximize)
        for _ in range(3):
            rows = table(torch.randint(0, 40, (100,)))
            optimizer.zero_grad()
            (rows * torch.randn(rows.shape)).sum().backward()
            if whole:
                table.weight.grad = table.weight.grad.coalesce()
            optimizer.step()
        found.append(table.weight.detach().numpy())
    np.testing.assert_array_equal(*found)


def test_a_gradient_without_rows_changes_nothing() -> None:
    table = nn.Embedding(4, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = torch.optim.SparseAdam(table.parameters())
    table(torch.zeros(0, dtype=torch.long)).sum().backward()
    optimizer.step()
    assert table.weight.equal(before)
