"""Gradients of kernels of rows that are written over the copy of a gradient that has to be made."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory

F = torch.nn.functional
ROWS: dict[str, Any] = {
    "layer norm": lambda x, w: F.layer_norm(x, (256,), w, w),
    "layer norm without weights": lambda x, w: F.layer_norm(x, (256,)) * w,
    "rms norm": lambda x, w: F.rms_norm(x, (256,), w),
    "softmax": lambda x, w: x.softmax(-1) * w,
    "log softmax of columns": lambda x, w: x.log_softmax(1),
}


def gradients(rows: Any, dtype: Any, broadcast: bool) -> list[Any]:
    torch.manual_seed(0)
    x = torch.randn(8, 40, 256).to(dtype).requires_grad_()
    w = torch.rand(256).to(dtype).requires_grad_()
    y = rows(x, w)
    g = torch.rand(8, 1, 256).to(dtype).expand(8, 40, 256)
    y.backward(g if broadcast else g.clone())
    return [t.grad for t in (x, w) if t.grad is not None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", ROWS)
def test_gradients_are_those_of_a_gradient_that_is_not_broadcast(rows: str, dtype: Any) -> None:
    both = zip(*(gradients(ROWS[rows], dtype, broadcast) for broadcast in (True, False)), strict=True)
    assert all(torch.equal(a, b) for a, b in both)


@native
@pytest.mark.parametrize("rows", ["layer norm", "rms norm", "log softmax of columns"])
def test_a_broadcast_gradient_takes_one_array(rows: str) -> None:
    x, w = torch.randn(64, 40, 256, requires_grad=True), torch.rand(256, requires_grad=True)
    loss = ROWS[rows](x, w).mean(1).sum()
    before = memory.current()
    memory.reset_peak()
    loss.backward()
    assert memory.peak() - before < 1.2 * x.nbytes
