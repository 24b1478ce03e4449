"""Sums of no elements are 0, whatever lies in memory where the empty arrays begin."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.kernels.dispatch import summed

F = torch.nn.functional
EINSUM = np.einsum


@pytest.mark.parametrize(("subscripts", "shape"), [("rc,rc->c", (0, 3)), ("...c,...c->...", (3, 0))])
def test_sums_of_nothing_are_zero_in_all_strides(subscripts: str, shape: tuple[int, int]) -> None:
    memory = np.full(1, np.nan, np.float32)
    for strides in itertools.product((0, 4, 8, 12), repeat=4):
        a, b = (np.lib.stride_tricks.as_strided(memory, shape, s) for s in (strides[:2], strides[2:]))
        assert np.array_equal(summed(subscripts, a, b), np.zeros(3)), strides


def unlucky(subscripts: str, *arrays: Any) -> Any:
    """As NumPy where NaN lies in the memory of empty arrays."""
    made = EINSUM(subscripts, *arrays)
    return made if arrays[0].size else np.full_like(made, np.nan)


@pytest.mark.parametrize("norm", [F.layer_norm, F.rms_norm])
def test_the_weight_of_no_rows_has_a_gradient_of_zero(
    norm: Callable[..., Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "einsum", unlucky)
    x, weight = torch.ones(0, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    (found,) = torch.autograd.grad(norm(x, (3,), weight).sum(), weight)
    assert found.tolist() == [0.0] * 3


def test_distances_of_no_features_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "einsum", unlucky)
    x = torch.ones(3, 0)
    assert torch.cdist(x, x).tolist() == [[0.0] * 3] * 3
    assert F.pairwise_distance(x, x, eps=0.0).tolist() == [0.0] * 3
    monkeypatch.undo()
    assert F.bilinear(x, x, torch.ones(2, 0, 0)).tolist() == [[0.0] * 2] * 3
