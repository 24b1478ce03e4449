"""Results of rectifiers changed in place: PyTorch's nodes keep the input, ours the result, until that is to change."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import rushlight as torch
from rushlight import memory, stores
from rushlight.storage import dependents
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
    "detached": lambda lib, y: y.detach().mul_(2.0),
    "detached and itself": lambda lib, y: (y.detach().mul_(2.0), y.mul_(1.5)),
    "part of data": lambda lib, y: y.data[0].mul_(2.0),
    "data and itself": lambda lib, y: (y.data.mul_(2.0), y.mul_(1.5)),
    "by numpy": lambda lib, y: y.detach().numpy().__imul__(2.0),
    "storage": lambda lib, y: y.untyped_storage().fill_(0),
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


@pytest.mark.parametrize("name", ["relu6", "hardsigmoid", "elu"])
def test_result_of_out(name: str) -> None:
    leaves = []
    for lib in (torch, pytorch):
        x = lib.linspace(-4, 4, 12).reshape(3, 4).requires_grad_()
        y = getattr(lib.nn.functional, name)(x)
        with lib.no_grad():
            lib.mul(y, 2.0, out=y)
            lib.exp(y, out=y)
        y.sum().backward()
        leaves.append(x.grad.numpy())
    np.testing.assert_allclose(*leaves, rtol=1e-5, atol=1e-6)


WAYS: dict[str, Callable[[], Any]] = {
    "none": contextlib.nullcontext,
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "disk": lambda: stores.disk(min_bytes=0),
    "recompute": lambda: stores.recompute(min_bytes=0),
}


@pytest.mark.parametrize("within", WAYS)
@pytest.mark.parametrize("name", ["relu6", "hardsigmoid", "hardtanh", "elu_", "leaky_relu_"])
@pytest.mark.parametrize("part", [False, True])
@pytest.mark.filterwarnings("ignore:.*stored nothing")
def test_results_that_are_made_in_place(part: bool, name: str, within: str) -> None:
    def step(inplace: bool) -> Any:
        x = torch.linspace(-4, 4, 120).reshape(12, 10).requires_grad_()
        h = x * 1.5
        act = getattr(torch.nn.functional, name if inplace else name.rstrip("_"))
        options = {"inplace": True} if inplace and name[-1] != "_" else {}
        if not part:
            h = act(h, **options)
        elif inplace:
            act(h[1:], **options)
        else:
            h = torch.cat([h[:1], act(h[1:])])
        h.mul_(3)
        h[2:].add_(1)
        (h * torch.arange(10.0)).sum().backward()
        return x.grad

    with WAYS[within]():
        found = step(True)
    assert torch.allclose(found, step(False))


def test_nobody_watches_over_results_of_the_past() -> None:
    for name in RECTIFIERS:
        y = getattr(torch.nn.functional, name)(torch.ones(3, requires_grad=True))
        shown = y.detach()
        y.sum().backward()
        del y
        assert not [who for entries in dependents.values() for _, who in entries if who.__class__.__name__ == "Watch"]
        assert shown.shape == (3,)


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
