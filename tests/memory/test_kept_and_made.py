"""What operators keep from forward to backward, and make on the way in both, in bytes beside their inputs and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory

F = torch.nn.functional
MIB = 1 << 20


def images() -> Any:
    return torch.randn(4, 16, 128, 128).requires_grad_()


def eight_of(classes: int) -> Any:
    """Eight labels for each of as many rows."""
    target = torch.full((classes, classes), -1)
    target[:, :8] = torch.arange(8 * classes).view(classes, 8) % classes
    return target


def spread(x: Any) -> Any:
    """A positive definite matrix, as a result of which nothing is kept."""
    return x + 2048 * torch.eye(1024)


FACTORS = (2.0 * torch.eye(512), torch.arange(1, 513, dtype=torch.int32), 2.0 * torch.eye(512))


def signals() -> Any:
    return torch.randn(4, 1 << 18).requires_grad_()


def probabilities() -> Any:
    return torch.rand(1024, 1024).requires_grad_()


def points() -> Any:
    return torch.randn(1 << 18, 3).requires_grad_()


def where() -> Any:
    return (torch.rand(4, 128, 128, 2) * 2 - 1).requires_grad_()


# What it is called with, and MiB: kept; made in forward beside the result; made in backward, gradients among them.
CASES: dict[str, tuple[Callable[..., Any], tuple[Callable[[], Any], ...], float, float, float]] = {
    "binary_cross_entropy": (lambda p: F.binary_cross_entropy(p, torch.rand(1024, 1024)), (probabilities,), 4.1, 5.5, 6),
    "soft_margin_loss": (lambda p: F.soft_margin_loss(p, torch.rand(1024, 1024)), (probabilities,), 4.1, 5.5, 6),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (images,), 0.1, 10, 12.5),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), (images,), 0.1, 10, 12.5),
    "abs": (lambda x: (x * 2).abs(), (images,), 0.3, 5.5, 8),
    "l1_loss": (lambda x: F.l1_loss(x * 2, torch.zeros(4, 16, 128, 128)), (images,), 0.3, 9.5, 8),
    "threshold": (lambda x: F.threshold(x * 2, 0.1, 20.0), (images,), 0.2, 5.5, 9.3),
    "local_response_norm": (lambda x: F.local_response_norm(x, 5), (images,), 0.1, 3, 8),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), (probabilities,), 0.1, 1.5, 6.5),
    "multilabel_margin_loss": (lambda x: F.multilabel_margin_loss(x, eight_of(1024)), (probabilities,), 8.2, 17, 8.5),
    "qr": (lambda x: torch.linalg.qr(x * 2)[0], (probabilities,), 4.3, 48, 24),
    "cholesky": (lambda x: torch.linalg.cholesky(spread(x)), (probabilities,), 0.1, 25, 17),
    "slogdet of many": (lambda x: torch.linalg.slogdet(x.view(16, 256, 256))[1], (probabilities,), 0.1, 9, 8.5),
    "lu_solve": (lambda b: torch.linalg.lu_solve(*FACTORS[:2], b.view(512, -1)), (probabilities,), 0.1, 21, 21),
    "lu_solve, of the factor": (lambda b: torch.linalg.lu_solve(FACTORS[0] * 1.0, FACTORS[1], b.view(512, -1)), (probabilities,), 4.1, 25, 42),
    "cholesky_solve": (lambda b: torch.cholesky_solve(b.view(512, -1), FACTORS[2]), (probabilities,), 0.1, 11, 15),
    "stft": (lambda x: torch.stft(x, 512, 128, window=torch.hann_window(512), return_complex=True), (signals,), 2.2, 7.5, 11),
    "cross": (lambda a, b: torch.linalg.cross(a, b), (points, points), 0.1, 1.5, 7.5),
    "greatest of bags": (
        lambda w: F.embedding_bag(torch.randint(0, 1024, (1024, 32)), w, mode="max"), (lambda: torch.randn(1024, 1024).requires_grad_(),), 4.5, 5.5, 9
    ),
    "grid_sample": (lambda x, grid: F.grid_sample(x, grid, align_corners=False), (images, where), 6, 20, 28),
}  # fmt: skip


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
@native
@pytest.mark.parametrize("name", CASES)
def test_no_more_is_kept_and_made_than(name: str) -> None:
    call, makers, kept, forward, backward = CASES[name]
    for _ in range(2):
        y = None  # and what its graph holds
        inputs = [make() for make in makers]
        before = memory.current()
        memory.reset_peak()
        y = call(*inputs)
        found = [memory.current() - before - y.nbytes, memory.peak() - before - y.nbytes]
        g = torch.ones_like(y)
        before = memory.current()
        memory.reset_peak()
        y.backward(g)
        found.append(memory.peak() - before)
    assert found[0] <= kept * MIB and found[1] <= forward * MIB and found[2] <= backward * MIB, [x / MIB for x in found]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_long_signals_are_resized_and_back_without_a_matrix_of_both_lengths(mode: str) -> None:
    x = torch.randn(2, 2, 60_000, dtype=torch.float64).requires_grad_()
    y = F.interpolate(x, scale_factor=1.5, mode=mode)
    g = torch.randn(y.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad(y, x, g)
    v = torch.randn(x.shape, dtype=torch.float64)
    ahead = (F.interpolate(v, scale_factor=1.5, mode=mode) * g).sum()
    np.testing.assert_allclose((found * v).sum().item(), ahead.item(), rtol=1e-9)


def test_cross_products_are_one_operator_with_pytorchs_name() -> None:
    a, b = (torch.randn(5, 3, dtype=torch.float64).requires_grad_() for _ in range(2))
    y = torch.linalg.cross(a, b)
    assert y.grad_fn.name() == "LinalgCrossBackward0" and y.grad_fn.saved[0] is a and y.grad_fn.saved[1] is b
    np.testing.assert_array_equal(y.detach().numpy(), np.cross(a.detach().numpy(), b.detach().numpy()))
    torch.autograd.gradcheck(torch.linalg.cross, (a, b))
    torch.autograd.gradgradcheck(torch.linalg.cross, (a, b))
    many = torch.randn(2, 5, 3, dtype=torch.float64)
    rows = torch.vmap(torch.linalg.cross, in_dims=(0, None))(many, b.detach())
    assert rows.shape == (2, 5, 3) and rows[1].equal(torch.linalg.cross(many[1], b.detach()))
    z = torch.randn(4, 3, dtype=torch.complex128).requires_grad_()
    torch.autograd.gradcheck(torch.linalg.cross, (z, torch.randn(4, 3, dtype=torch.complex128)))
