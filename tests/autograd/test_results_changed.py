"""Results of rectifiers changed in place: PyTorch's nodes keep the input, ours the result, until that is to change."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import rushlight as torch
from rushlight import memory, stores
from rushlight.utils.checkpoint import checkpoint

RECTIFIERS = [
    "leaky_relu",
    "hardtanh",
    "relu6",
    "elu",
    "selu",
    "celu",
    "hardsigmoid",
    "softshrink",
    "hardshrink",
    "rrelu",
]
CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda lib, y: y.mul_(3.0),
    "plus": lambda lib, y: y.add_(lib.ones_like(y)),
    "of a view": lambda lib, y: y[0].mul_(2.0),
    "twice": lambda lib, y: y.mul_(2.0).add_(1.0),
    "by another": lambda lib, y: lib.sigmoid_(y),
    "limited": lambda lib, y: y.clamp_(min=0.1),
    "put": lambda lib, y: y.__setitem__(0, 1.0),
}


def step(lib: Any, name: str, change: str, x: np.ndarray, last: bool, grad: bool = True) -> Any:
    leaf = lib.tensor(x, requires_grad=True)
    h = leaf * 1.5
    y = getattr(lib.nn.functional, name)(h.contiguous(memory_format=lib.channels_last) if last else h)
    with lib.set_grad_enabled(grad):
        CHANGES[change](lib, y)
    (y * lib.tensor(np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape))).sum().backward()
    return leaf.grad.numpy()


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 8, 60, 100)])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", RECTIFIERS)
def test_gradients_are_those_of_the_result_as_it_was(name: str, change: str, shape: tuple[int, ...]) -> None:
    x = 2 * np.random.default_rng(0).standard_normal(shape).astype("f")
    for last in (False, True):
        found, wanted = (step(lib, name, change, x, last) for lib in (torch, pytorch))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    found, wanted = (step(lib, name, change, x, False, grad=False) for lib in (torch, pytorch))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(6, 7), (300, 400)])
@pytest.mark.parametrize("within", ["checkpoint", "checkpoints", "hooks", "save_on_cpu", "recompute", "disk", "budget"])
@pytest.mark.filterwarnings("ignore:.*stored nothing")
def test_within_what_packs_results(within: str, shape: tuple[int, ...]) -> None:
    def loss(h: Any) -> Any:
        for _ in range(3):
            h = torch.nn.functional.leaky_relu(h * 1.1 + 0.1)
            h.mul_(1.01)
            r = torch.nn.functional.relu6(h)
            r += h
            h = torch.nn.functional.elu(r)
            h[2:] *= 0.9
        return h.square().mean()

    ways: dict[str, Callable[[], Any]] = {
        "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        "save_on_cpu": torch.autograd.graph.save_on_cpu, "recompute": stores.recompute, "disk": stores.disk,
        "budget": lambda: memory.budget(memory.current() + 5_000_000),
    }  # fmt: skip
    x = torch.randn(*shape, requires_grad=True)
    (wanted,) = torch.autograd.grad(loss(x), x)
    if within in ways:
        with ways[within]():
            loss(x).backward()
    elif within == "checkpoint":
        checkpoint(loss, x, use_reentrant=False).backward()
    else:
        checkpoint(lambda y: checkpoint(loss, y, use_reentrant=False), x, use_reentrant=False).backward()
    assert torch.equal(x.grad, wanted)


def test_nothing_stays() -> None:
    def run() -> None:
        x = torch.randn(300, 400, requires_grad=True)
        y = torch.nn.functional.elu(x)
        y.mul_(2)
        torch.nn.functional.leaky_relu(y).add_(1).sum().backward()

    gc.collect()
    gc.disable()
    try:
        run()
        before = memory.current()
        run()
        assert memory.current() <= before
    finally:
        gc.enable()


def test_results_of_relu_are_not_to_change_as_in_pytorch() -> None:
    for lib in (torch, pytorch):
        y = lib.relu(lib.ones(3, requires_grad=True))
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
