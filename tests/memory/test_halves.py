"""Training in 16 bits: float32 copies are made of blocks, so it takes less memory than training in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory, nn
from rushlight.kernels.native import loader

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")


def peak(dtype: Any, make: Any) -> int:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), make()) for _ in range(4)]).to(dtype)
    x = torch.randn(2048, 512).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        before = memory.current()
        memory.reset_peak()
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return memory.peak() - before


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("make", [nn.GELU, nn.Tanh, nn.ReLU, lambda: nn.LayerNorm(512), lambda: nn.Softmax(-1)])
def test_a_step_takes_less_than_in_float32(dtype: Any, make: Any) -> None:
    assert peak(dtype, make) < 0.75 * peak(torch.float32, make)


@pytest.mark.parametrize("shape", [(0, 6), (3, 0), (0, 0)])
def test_of_nothing(shape: tuple[int, int]) -> None:
    F = torch.nn.functional
    weight = torch.ones(shape[1], dtype=torch.bfloat16, requires_grad=True)
    x = torch.zeros(shape, dtype=torch.bfloat16, requires_grad=True)
    for y in (F.softmax(x, 1), F.log_softmax(x, 0), F.layer_norm(x, shape[1:], weight), F.rms_norm(x, shape[1:], weight),
              F.gelu(x), F.linear(x, torch.ones(4, shape[1], dtype=torch.bfloat16))):  # fmt: skip
        y.sum().backward()
    assert x.grad.shape == x.shape and weight.grad.tolist() == [0] * shape[1]
    assert torch.stack([x] * 2).transpose(1, 2).matmul(x).shape == (2, shape[1], shape[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(300, 400), (7, 50_000)])
def test_blocks_give_what_the_whole_gives(dtype: Any, shape: tuple[int, ...]) -> None:
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(shape)).to(dtype)
    y, w = x.flip(0).contiguous(), x[:3].mean(0)
    wide = x.float(), y.float(), w.float()
    for fn in (
        lambda x, y, w: x * y + w,
        lambda x, y, w: torch.nn.functional.gelu(x),
        lambda x, y, w: torch.exp(x.T),
        lambda x, y, w: torch.pow(y, 2),
        lambda x, y, w: torch.softmax(x, 0),
        lambda x, y, w: torch.log_softmax(x, 1),
        lambda x, y, w: torch.nn.functional.layer_norm(x, x.shape[1:], w),
        lambda x, y, w: torch.nn.functional.linear(x, y[:5], w[:5]),
        lambda x, y, w: x[:100, :100] @ y.T[:100],
        lambda x, y, w: torch.stack([x[:, :70]] * 4) @ y.T[:70],
    ):
        found, want = fn(x, y, w), fn(*wide)
        assert found.dtype is dtype
        close = {torch.bfloat16: 2e-2, torch.float16: 3e-3}[dtype]
        np.testing.assert_allclose(found.float().numpy(), want.numpy(), rtol=close, atol=close)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_in_a_wider_dtype_lies_in_the_memory_of_the_converted_input(name: str) -> None:
    fn, x = getattr(torch, name), torch.randn(300, 500).bfloat16().requires_grad_()
    wide = x.detach().float().requires_grad_()
    fn(x, -1, dtype=torch.float32)  # what is made once is there
    memory.reset_peak()
    before = memory.current()
    found = fn(x, -1, dtype=torch.float32)
    assert memory.peak() - before < 1.1 * 4 * x.numel() or not loader.tables()  # the reference makes a copy
    want, g = fn(wide, -1), torch.randn(300, 500)
    assert torch.equal(found, want)
    found.backward(g)
    want.backward(g)
    assert torch.equal(x.grad, wide.grad.bfloat16())
    assert torch.equal(fn(wide.detach(), 0, dtype=torch.float64), fn(wide.detach().double(), 0))
    assert wide.detach().equal(x.detach().float())  # an input of the same dtype is not written to
    assert torch.equal(fn(wide, -1, dtype=torch.float32), want)
