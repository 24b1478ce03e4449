"""Formulas write in place by themselves what they make on the way.

NumPy does so for them with large arrays on some versions of Python only ("temporary elision"), and with arrays below 256 KiB on none:
with those here the peaks are the same on all versions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory

F = torch.nn.functional
N = 200  # 156 KiB


def square(seed: int) -> Any:
    return torch.rand(N, N, generator=torch.Generator().manual_seed(seed)) * 0.9 + 0.05


def factor(x: Any) -> Any:
    return x.tril() + N * torch.eye(N)


# What it is called with, and in units of a matrix, the result's included: made in forward, in backward.
CASES: dict[str, tuple[Callable[..., Any], int, float, float]] = {
    "binary_cross_entropy_with_logits": (lambda x: F.binary_cross_entropy_with_logits(x, square(9)), 1, 3, 1),
    "binary_cross_entropy_with_logits, both": (F.binary_cross_entropy_with_logits, 2, 2, 2),
    "binary_cross_entropy_with_logits, weighted": (
        lambda x: F.binary_cross_entropy_with_logits(x, square(9), square(8), pos_weight=square(7)), 1, 5, 2
    ),
    "multilabel_soft_margin_loss": (F.multilabel_soft_margin_loss, 2, 2, 3),
    "kl_div": (lambda x, y: F.kl_div(x, y, reduction="none"), 2, 2, 4),
    "l1_loss, of the target": (lambda x: F.l1_loss(square(9), x), 1, 2, 1),
    "entr": (torch.special.entr, 1, 1.25, 2),
    "alpha_dropout": (lambda x: F.alpha_dropout(x, 0.5, True), 1, 2.25, 1),
    "native_dropout": (lambda x: torch.native_dropout(x, 0.5, True)[0], 1, 2.25, 1),
    "solve": (lambda x, y: torch.linalg.solve(factor(x), y), 2, 3, 2),
    "solve_triangular": (lambda x, y: torch.linalg.solve_triangular(factor(x), y, upper=False), 2, 3, 2),
    "cholesky_inverse": (lambda x: torch.cholesky_inverse(factor(x)), 1, 4, 2),
    "cholesky_solve": (lambda x, y: torch.cholesky_solve(y, factor(x)), 2, 3, 3),
    "max_pool2d with positions": (lambda x: F.max_pool2d(x[None, None], 1, return_indices=True)[0], 1, 5.5, 1.75),
}  # fmt: skip


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
@native
@pytest.mark.parametrize("name", CASES)
def test_no_more_arrays_are_made_than(name: str) -> None:
    call, count, forward, backward = CASES[name]
    inputs = [square(seed).requires_grad_() for seed in range(count)]
    for _ in range(2):
        y = None  # and what its graph holds
        for x in inputs:
            x.grad = None
        before = memory.current()
        memory.reset_peak()
        y = call(*inputs)
        found = [memory.peak() - before]
        g = torch.ones_like(y)
        before = memory.current()
        memory.reset_peak()
        y.backward(g)
        found.append(memory.peak() - before)
    made = [bytes / inputs[0].nbytes for bytes in found]
    assert made[0] <= forward + 0.05 and made[1] <= backward + 0.05, made


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
@native
@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_gradients_of_slopes_go_block_by_block(name: str) -> None:
    x = (torch.rand(700, 700) * 4 - 2).requires_grad_()
    y = getattr(torch, name)(x)
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    ones = torch.ones_like(g)
    before = memory.current()
    memory.reset_peak()
    g.backward(ones)
    assert memory.peak() - before < 1.5 * x.nbytes
