"""Gradients by sample that libraries ask `torch.nn.utils._per_sample_grad` for."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads

MODULES = {
    "linear": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), (4, 3)),
    "convolution": (lambda: nn.Sequential(nn.Conv1d(3, 4, 2), nn.GroupNorm(2, 4)), (4, 3, 5)),
    "shared": (lambda: nn.Sequential(*[nn.Linear(3, 3)] * 2), (4, 3)),
    "rnn": (lambda: nn.GRU(3, 2, batch_first=True), (4, 5, 3)),
}


def value(out: Any) -> Any:
    return (out[0] if isinstance(out, tuple) else out).pow(2).flatten(1).sum(1)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", MODULES)
def test_they_are_those_of_one_sample_after_the_other(name: str, reduction: str) -> None:
    make, shape = MODULES[name]
    torch.manual_seed(0)
    module, x = make().double(), torch.randn(*shape, dtype=torch.float64)
    loss = value(call_for_per_sample_grads(module, loss_reduction=reduction)(x))
    getattr(loss, reduction)().backward()
    for i in range(4):
        alone = torch.autograd.grad(value(module(x[i : i + 1])).sum(), list(module.parameters()))
        for p, g in zip(module.parameters(), alone, strict=True):
            assert p.grad is None and p.grad_sample.shape == (4, *p.shape)
            torch.testing.assert_close(p.grad_sample[i], g)


def test_time_first() -> None:
    rnn, x, h = nn.LSTM(3, 2), torch.randn(5, 4, 3), (torch.randn(1, 4, 2), torch.randn(1, 4, 2))
    out, state = call_for_per_sample_grads(rnn, batch_first=False)(x, h)
    torch.testing.assert_close((out, *state), (rnn(x, h)[0], *rnn(x, h)[1]))


def test_what_is_refused() -> None:
    linear, x = nn.Linear(3, 2), torch.ones(4, 3)
    for make, words in ((lambda: call_for_per_sample_grads(linear, loss_reduction="none"), "to be sum or mean, got none"),
                        (lambda: call_for_per_sample_grads(torch.sin), "must be nn.Module"),
                        (lambda: call_for_per_sample_grads(linear, batch_size=0), "Batch size must be positive"),
                        (lambda: call_for_per_sample_grads(linear, batch_size=3)(x), r"batch size, 3, got \[4\]"),
                        (lambda: call_for_per_sample_grads(linear)(3), "Unable to find a tensor"),
                        (lambda: call_for_per_sample_grads(nn.BatchNorm1d(3)), "cannot handle function batch_norm")):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            make()
    call_for_per_sample_grads(linear)(x).sum().backward()
    with pytest.raises(RuntimeError, match="accumulates the gradients"):
        call_for_per_sample_grads(linear)
