"""`resize_(0)` of a storage frees memory under tensors, which raise until they have memory again."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

Run = Callable[[Any], Any]


def freed(*shape: int) -> torch.Tensor:
    x = torch.randn(*shape)
    x.untyped_storage().resize_(0)
    return x


def test_the_memory_goes_and_the_shape_stays() -> None:
    tracemalloc.start()
    try:
        x = torch.ones(1000, 1000)
        part, alias = x[1:, 2:], x.detach()
        before = tracemalloc.get_traced_memory()[0]
        x.untyped_storage().resize_(0)
        assert before - tracemalloc.get_traced_memory()[0] > 3_900_000
    finally:
        tracemalloc.stop()
    storage = x.storage()
    assert storage.nbytes() == len(storage) == storage.data_ptr() == x.untyped_storage().size() == 0
    assert x.shape == alias.shape == (1000, 1000) and part.shape == (999, 998) and x.numel() == 1_000_000
    assert x.dtype is torch.float32 and part.stride() == (1000, 1) and part.storage_offset() == 1002


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x + 1, lambda x: torch.ones(4, 4) * x, lambda x: x @ x, lambda x: torch.einsum("ij->j", x), lambda x: x.sum(),
        lambda x: x.numpy(), lambda x: x[0, 0].item(), lambda x: repr(x), lambda x: x.fill_(0), lambda x: torch.zeros(4, 4).copy_(x),
        lambda x: torch.cat([x, x]), lambda x: x.tolist(), lambda x: x.double(), lambda x: torch.softmax(x, 0), lambda x: torch.equal(x, x),
        lambda x: torch.nn.functional.conv1d(x, torch.ones(1, 4, 1)), lambda x: torch.nn.functional.layer_norm(x, (4,)),
        lambda x: torch.nn.Linear(4, 2)(x), lambda x: torch.relu_(x), lambda x: x.requires_grad_().exp(),
    ],
)  # fmt: skip
def test_whatever_asks_for_elements_says_where_they_went(run: Run) -> None:
    with pytest.raises(RuntimeError, match=r"resize_\(0\) of its storage freed its 64 bytes"):
        run(freed(4, 4))


def test_memory_comes_back_for_all_tensors_that_lay_on_it() -> None:
    x = torch.ones(3, 4)
    part, turned = x[1:], x.t()
    storage = x.untyped_storage()
    storage.resize_(0)
    with pytest.raises(RuntimeError, match="would read beyond 8: give back all"):
        storage.resize_(8)
    storage.resize_(48)
    x.copy_(torch.arange(12.0).view(3, 4))
    assert part[0].tolist() == turned[:, 1].tolist() == [4.0, 5.0, 6.0, 7.0]
    storage.resize_(0)
    assert storage.resize_(64).nbytes() == 64 and part.tolist() == [[0.0] * 4] * 2
    assert x.untyped_storage() is storage


def test_other_memory_can_be_given_instead() -> None:
    first, second = freed(2, 3), freed(2, 3)
    first.data = torch.ones(2, 3)
    with torch.no_grad():
        second.set_(torch.ones(2, 3))
    assert first.sum() == second.sum() == 6


def test_a_view_made_before_is_changed_in_the_graph_as_ever() -> None:
    a = torch.ones(3, requires_grad=True)
    b = a * 2  # saves a number alone
    part = b[1:]
    b.untyped_storage().resize_(0)
    b.untyped_storage().resize_(12)
    part.mul_(3)
    b.sum().backward()
    assert a.grad is not None and a.grad.tolist() == [2.0, 6.0, 6.0]


@pytest.mark.parametrize(
    "hold", [lambda x: x.requires_grad_().exp(), lambda x: x.numpy(), lambda x: x.data], ids=["graph", "numpy", "data"]
)
def test_memory_that_something_else_holds_is_kept(hold: Run) -> None:
    x = torch.ones(4)
    held = hold(x)
    storage = (held if isinstance(held, torch.Tensor) and held.requires_grad else x).untyped_storage()
    with pytest.raises(RuntimeError, match="tensors lie on this storage, and something else would keep its 16 bytes"):
        storage.resize_(0)
    assert x.tolist() == [1.0] * 4
    del held, storage
    x = x.detach()
    gc.collect()
    assert x.untyped_storage().resize_(0).nbytes() == 0


class Invertible(torch.autograd.Function):
    """3 x + 1, which keeps its output alone and has its input's memory freed, as reversible networks do."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = x.detach() * 3 + 1
        x.storage().resize_(0)
        ctx.x, ctx.y = x, y.detach_()
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        ctx.x.storage().resize_(ctx.x.numel())
        ctx.x.set_((ctx.y - 1) / 3)
        return 3 * g


def test_a_reversible_function_computes_its_input_again() -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = Invertible.apply(x)
    with pytest.raises(RuntimeError, match="has no elements"):
        x.sum()
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0] * 4 and x.tolist() == [0.0, 1.0, 2.0, 3.0]
