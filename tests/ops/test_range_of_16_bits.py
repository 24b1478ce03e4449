"""What is computed of numbers of 16 bits on the way to a result is in float32: it neither overflows nor loses digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.memory import peak_bytes

import rushlight as torch
import rushlight.nn.functional as F

LARGE = 30_000.0  # four of them are beyond float16


def full(*shape: int) -> torch.Tensor:
    return torch.full(shape, LARGE, dtype=torch.float16)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_means_of_windows_whose_sums_are_no_float16(n: int) -> None:
    pool: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]
    x = full(1, 2, *(6,) * n).requires_grad_()
    y = pool(x, 3, stride=1, padding=1, count_include_pad=False)
    assert (y == LARGE).all()
    y.sum().backward()
    assert x.grad is not None
    assert float(x.grad.float().sum()) == pytest.approx(y.numel(), rel=2e-3)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("divisor", [None, 5])
def test_means_of_windows_are_rounded_once(include: bool, divisor: int | None) -> None:
    x = torch.randn(2, 3, 9, 8, generator=torch.Generator().manual_seed(0)).bfloat16().requires_grad_()
    wide = x.detach().double().requires_grad_()
    options: Any = {
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "count_include_pad": include,
        "divisor_override": divisor,
    }
    y, expected = F.avg_pool2d(x, **options), F.avg_pool2d(wide, **options)
    torch.testing.assert_close(y, expected.bfloat16(), rtol=2**-8, atol=0)
    y.sum().backward()
    expected.sum().backward()
    assert x.grad is not None and wide.grad is not None
    torch.testing.assert_close(x.grad, wide.grad.bfloat16(), rtol=2**-7, atol=0)


def test_means_of_windows_have_second_gradients() -> None:
    x = torch.randn(1, 1, 5, 4, dtype=torch.float64, requires_grad=True)
    for include in (True, False):
        assert torch.autograd.gradgradcheck(lambda x, i=include: F.avg_pool2d(x, 3, 1, 1, count_include_pad=i), (x,))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_points_of_a_grid_lie_where_they_are_in_float64(dtype: Any) -> None:
    ramp = torch.arange(400.0).expand(1, 1, 2, 400).div(4).to(dtype)  # whose values are about where they lie
    x = torch.linspace(-0.9, 0.9, 300)
    grid = torch.stack([x, 0 * x], -1)[None, None].to(dtype)
    found = F.grid_sample(ramp, grid, align_corners=False)
    expected = F.grid_sample(ramp.double(), grid.double(), align_corners=False)
    torch.testing.assert_close(found, expected.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-2)


def test_statistics_of_numbers_whose_squares_are_no_float16() -> None:
    x = torch.tensor([[LARGE, -LARGE, 2 * LARGE, 0.0]], dtype=torch.float16)
    _, mean, rstd = torch.native_layer_norm(x, (4,), None, None, 1e-5)
    assert mean.item() == LARGE / 2 and rstd.item() == pytest.approx(1 / 33541, rel=1e-2)
    _, mean, rstd = torch.native_group_norm(x[..., None], None, None, 1, 4, 1, 1, 1e-5)
    assert mean.item() == LARGE / 2 and rstd.item() == pytest.approx(1 / 33541, rel=1e-2)


def test_products_are_not_rounded_before_they_are_added_up() -> None:
    x, y = (torch.tensor(v, dtype=torch.float16) for v in ([300.0, 300.0, 1.0], [300.0, -300.0, 1.0]))
    assert torch.linalg.vecdot(x, y).item() == 1  # infinite - infinite in float16


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_logits_that_are_no_float16(reduction: str) -> None:
    x, w = full(3).requires_grad_(), (torch.eye(4, 3) * torch.tensor([1.0, 2.0, 3.0])).half().requires_grad_()
    loss = F.linear_cross_entropy(x, w * 100, torch.tensor(2), reduction=reduction)  # of 9,000,000, 6,000,000 ...
    assert loss.shape == () and loss.item() == 0
    loss.backward()
    assert x.grad is not None and x.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums_are_rounded_once(dtype: Any, dim: int) -> None:
    x = torch.rand(300, 37, generator=torch.Generator().manual_seed(0)).to(dtype)
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        found, wide = getattr(torch, name)(x, dim), getattr(torch, name)(x.double(), dim)
        torch.testing.assert_close(found, wide.float().to(dtype), rtol=0, atol=0)
    values, places = torch.cummax(x, dim)
    np.testing.assert_array_equal(values.float().numpy(), np.maximum.accumulate(x.float().numpy(), dim))
    assert torch.equal(x.gather(dim, places), values)


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
def test_images_that_are_pooled_are_not_copied_to_float32(pool: Any) -> None:
    x = torch.zeros(4, 16, 128, 128, dtype=torch.bfloat16, requires_grad=True)
    g = torch.ones(4, 16, 64, 64, dtype=torch.bfloat16)
    assert peak_bytes(lambda: pool(x.detach(), 2)) < 0.75 * x.nbytes
    assert peak_bytes(lambda: torch.autograd.grad(pool(x, 2), x, g)) < 2 * x.nbytes
