"""Losses of 16-bit numbers: what float32 gives, rounded once, without float32 copies of whole operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.memory import peak_bytes

import rushlight as torch
import rushlight.nn.functional as F

HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
LOSSES: dict[str, Any] = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": lambda x, t, reduction: F.smooth_l1_loss(x, t, reduction=reduction, beta=0.7),
    "huber": lambda x, t, reduction: F.huber_loss(x, t, reduction, 0.7),
    "kl": F.kl_div,
    "logits": F.binary_cross_entropy_with_logits,
    "weighted logits": lambda x, t, reduction: F.binary_cross_entropy_with_logits(x, t, t, reduction=reduction),
    "soft_margin": F.soft_margin_loss,
}


def pair(shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    draw = np.random.default_rng(5)
    return torch.tensor(draw.standard_normal(shape), dtype=dtype), torch.tensor(
        draw.uniform(0.1, 0.9, shape), dtype=dtype
    )


def numbers(x: Any) -> Any:
    return x.detach().float().numpy()


@HALVES
@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("shape", [(300, 500), (7, 3)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_in_float32_rounded_once(name: str, reduction: str, shape: tuple[int, ...], dtype: Any) -> None:
    x, t = pair(shape, dtype)
    if name == "soft_margin":
        t = torch.sign(t - 0.5)
    for a, b in ((x, t), (x.T, t.T)):
        found, want = LOSSES[name](a, b, reduction=reduction), LOSSES[name](a.float(), b.float(), reduction=reduction)
        assert found.dtype is dtype
        step = 2.0**-8 if dtype is torch.bfloat16 else 2.0**-11
        np.testing.assert_allclose(numbers(found), numbers(want.to(dtype)), rtol=2 * step if reduction != "none" else 0)


@HALVES
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("name", ["mse", "l1", "smooth_l1", "huber"])
def test_slopes(name: str, reduction: str, dtype: Any) -> None:
    x, t = pair((300, 500), dtype)
    slopes = []
    for a, b in ((x, t), (x.float(), t.float())):
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        loss = LOSSES[name](a, b, reduction=reduction)
        g = torch.ones_like(loss) * 3
        slopes.append([numbers(s.to(dtype)) for s in torch.autograd.grad(loss, [a, b], g)])
    for found, want in zip(*slopes, strict=True):
        np.testing.assert_array_equal(found, want)


@HALVES
@pytest.mark.parametrize("name", ["mse", "l1", "smooth_l1", "huber"])
def test_no_copies_in_float32(name: str, dtype: Any) -> None:
    x, t = pair((1000, 1500), dtype)
    x.requires_grad_()
    size = x.numel() * 2
    assert peak_bytes(lambda: LOSSES[name](x, t, reduction="mean")) < size
    loss = LOSSES[name](x, t, reduction="mean")
    assert peak_bytes(lambda: torch.autograd.grad(loss, x, retain_graph=True)) < 2.5 * size


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("fn", [torch.amin, torch.amax])
@pytest.mark.parametrize("dims", [{}, {"dim": 1}])
def test_gradients_of_extrema_that_are_recorded(fn: Any, dims: Any, dtype: Any) -> None:
    a = torch.tensor([[1.0, 1.0], [3.0, 2.0]], dtype=dtype).requires_grad_()
    plain, recorded = (
        torch.autograd.grad(fn(a, **dims).sum(), [a], create_graph=create)[0] for create in (False, True)
    )
    assert torch.equal(plain, recorded)


@HALVES
@pytest.mark.parametrize("wide", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["mse", "l1", "smooth_l1", "huber"])
def test_beside_wider_numbers_gradients_are_as_wide(name: str, reduction: str, dtype: Any, wide: Any) -> None:
    for first, second in ((wide, dtype), (dtype, wide)):
        x, t = (of.to(kind).requires_grad_() for of, kind in zip(pair((3, 5), wide), (first, second), strict=True))
        exact = [of.detach().double().requires_grad_() for of in (x, t)]
        found = torch.autograd.grad(LOSSES[name](x, t, reduction=reduction).sum(), (x, t))
        wanted = torch.autograd.grad(LOSSES[name](*exact, reduction=reduction).sum(), exact)
        for g, of, want in zip(found, (x, t), wanted, strict=True):
            assert g.dtype == of.dtype
            torch.testing.assert_close(g, want.to(of.dtype), rtol=4 * torch.finfo(of.dtype).eps, atol=1e-7)
