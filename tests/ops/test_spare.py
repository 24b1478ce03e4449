"""The gradient of cross entropy is written over the logits exactly where nobody looks at them again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import memory
from rushlight.dispatch.keeping import spare

F = torch.nn.functional
ROWS, WIDTH, CLASSES = 256, 32, 512
LOGITS = ROWS * CLASSES * 4

counted = pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")


class Head:
    """A linear layer, its input and targets."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(WIDTH, CLASSES)
        self.x = torch.randn(4, ROWS // 4, WIDTH, requires_grad=True)
        self.y = torch.randint(0, CLASSES, (ROWS,))

    def logits(self) -> Any:
        return self.layer(self.x)

    def loss(self, logits: Any) -> Any:
        return F.cross_entropy(logits.view(-1, CLASSES), self.y)

    def grads(self) -> list[Any]:
        return [p.grad.clone() for p in (self.x, *self.layer.parameters())]


@pytest.fixture
def head() -> Head:
    return Head()


def expected(head: Head) -> list[Any]:
    """Gradients of a run that may not write over anything."""
    head.loss(head.logits()).backward(retain_graph=True)
    found = head.grads()
    head.layer.zero_grad()
    head.x.grad = None
    return found


def peak_of(run: Callable[[], Any]) -> int:
    gc.collect()
    before = memory.current()
    memory.reset_peak()
    run()
    return memory.peak() - before


SHAPED: dict[str, Callable[[Head], Any]] = {
    "view": lambda head: head.loss(head.logits()),
    "flat": lambda head: F.cross_entropy(head.layer(head.x.reshape(-1, WIDTH)), head.y),
    "views of views": lambda head: F.cross_entropy(head.logits().flatten(0, 1).view(4, -1, CLASSES).flatten(0, 1), head.y),
    "matmul": lambda head: F.cross_entropy((head.x.view(-1, WIDTH) @ head.layer.weight.T) + head.layer.bias, head.y),
    "images": lambda head: F.cross_entropy(
        (head.layer.weight @ head.x.transpose(1, 2)) + head.layer.bias[:, None], head.y.view(4, -1)
    ),
    "smoothed": lambda head: F.cross_entropy(head.logits().view(-1, CLASSES), head.y, label_smoothing=0.1),
    "each": lambda head: F.cross_entropy(head.logits().view(-1, CLASSES), head.y, reduction="none").square().sum(),
}  # fmt: skip


@counted
@pytest.mark.parametrize("name", SHAPED)
def test_logits_that_nobody_holds_become_their_gradient(head: Head, name: str) -> None:
    loss = SHAPED[name](head)
    loss.backward(retain_graph=True)
    kept = head.grads()
    head.layer.zero_grad()
    head.x.grad = None
    del loss
    loss = SHAPED[name](head)
    assert peak_of(loss.backward) < 0.6 * LOGITS
    assert all(torch.equal(a, b) for a, b in zip(kept, head.grads(), strict=True))


def alias(logits: Any) -> Any:
    return logits.detach()


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "the tensor": lambda logits: logits,
    "an alias": alias,
    "a part": lambda logits: logits[0],
    "a view": lambda logits: logits.view(-1),
    "an array": lambda logits: logits.detach().numpy(),
    "a part of an array": lambda logits: logits.detach().numpy()[1:2],
    "the storage": lambda logits: logits.untyped_storage(),
    "a graph": lambda logits: logits.exp().sum() + logits.square().sum(),
    "a memoryview": lambda logits: memoryview(logits.detach().numpy()),
    "an exported tensor": lambda logits: torch.from_dlpack(logits.detach()),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_somebody_holds_is_left_alone(head: Head, name: str) -> None:
    wanted = expected(head)
    logits = head.logits()
    before = logits.detach().clone()
    loss, _holder = head.loss(logits), HOLDERS[name](logits)
    root = weakref.ref(logits._array.base if logits._array.base is not None else logits._array)
    del logits
    loss.backward()
    assert all(torch.equal(a, b) for a, b in zip(wanted, head.grads(), strict=True))
    memory_now = root()
    assert memory_now is not None and (memory_now.reshape(-1) == before.numpy().reshape(-1)).all()


def test_a_graph_that_is_kept_runs_twice(head: Head) -> None:
    wanted = expected(head)
    loss = head.loss(head.logits())
    loss.backward(retain_graph=True)
    loss.backward()
    assert all(torch.equal(2 * a, b) for a, b in zip(wanted, head.grads(), strict=True))
    loss = head.loss(head.logits())
    first = torch.autograd.grad(loss, head.layer.weight, retain_graph=True)
    second = torch.autograd.grad(loss, head.layer.weight)
    assert torch.equal(first[0], second[0]) and torch.equal(first[0], wanted[1])


def test_hooks_are_given_the_logits(head: Head) -> None:
    kept: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t), t)[1], lambda t: t):
        loss = head.loss(head.logits())
    copies = [t.detach().clone() for t in kept]
    loss.backward()
    assert all(torch.equal(a, b) for a, b in zip(kept, copies, strict=True))


def test_a_leaf_of_logits_is_left_alone() -> None:
    leaf = torch.randn(ROWS, CLASSES, requires_grad=True)
    before = leaf.detach().clone()
    F.cross_entropy(leaf, torch.randint(0, CLASSES, (ROWS,))).backward()
    assert torch.equal(leaf, before)


def test_a_part_of_a_larger_tensor_is_left_alone(head: Head) -> None:
    def loss() -> Any:
        return F.cross_entropy(head.logits().view(-1, CLASSES)[: ROWS // 2], head.y[: ROWS // 2])

    loss().backward(retain_graph=True)
    wanted = head.grads()
    head.layer.zero_grad()
    head.x.grad = None
    loss().backward()
    assert all(torch.equal(a, b) for a, b in zip(wanted, head.grads(), strict=True))


def test_the_norm_of_gradients_is_found_before_anything_is_written(head: Head) -> None:
    def train(fused: bool) -> Any:
        torch.manual_seed(1)
        layer = torch.nn.Linear(WIDTH, CLASSES)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        x = head.x.detach().view(-1, WIDTH)
        if fused:
            with torch.optim.in_backward(optimizer, clip_grad_norm=0.01):
                F.cross_entropy(layer(x), head.y).backward()
        else:
            F.cross_entropy(layer(x), head.y).backward()
            torch.nn.utils.clip_grad_norm_(layer.parameters(), 0.01)
            optimizer.step()
        return layer.weight

    assert torch.allclose(train(True), train(False), rtol=1e-6, atol=1e-8)


def test_second_order_and_tangents(head: Head) -> None:
    x = head.x.detach().view(-1, WIDTH)[:64].requires_grad_()
    y, layer = head.y[:64], head.layer
    loss = F.cross_entropy(layer(x) * 2, y)
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert torch.isfinite(second).all() and second.abs().sum() > 0
    _, tangent = torch.func.jvp(lambda x: F.cross_entropy(layer(x), y), (x.detach(),), (torch.ones_like(x),))
    (plain,) = torch.autograd.grad(F.cross_entropy(layer(x), y), x)
    assert torch.allclose(tangent, plain.sum(), atol=1e-5)


def test_what_is_alone_is_told_by_examples() -> None:
    assert len(spare.ALONE) >= 4 and all(isinstance(n, int) and 0 <= n < 10 for found in spare.ALONE for n in found)


@counted
def test_an_estimate_knows_of_it(head: Head) -> None:
    for held in (False, True):
        kept: list[Any] = []

        def loss(out: Any, kept: Any = kept, held: bool = held) -> Any:
            if held:
                kept[:] = [out]
            return head.loss(out)

        found = memory.estimate(head.layer, (head.x.detach(),), loss=loss).peak
        kept.clear()
        head.layer.zero_grad()
        measured = peak_of(lambda loss=loss: loss(head.layer(head.x.detach())).backward())
        kept.clear()
        own = sum(t.nbytes for t in (*head.layer.parameters(), head.x))
        assert abs(found - measured - own) < 0.1 * LOGITS, (held, found, measured + own)
