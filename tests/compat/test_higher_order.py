"""Operators that take functions, and what a compiler is told of tensors: what generation with caches and state spaces asks for."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.compat import aliases
from rushlight.compat.rooms._higher_order_ops import associative_scan


def scan(*args, **kwargs):
    return associative_scan(*args, combine_mode="generic", **kwargs)


@pytest.mark.parametrize("size", range(1, 10))
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_sums_is_the_running_sum_for_every_size(size: int, reverse: bool) -> None:
    x = torch.randn(3, size, 2, dtype=torch.float64)
    found = scan(lambda a, b: a + b, x, 1, reverse=reverse)
    ours = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    torch.testing.assert_close(found, ours)


def test_a_scan_of_two_tensors_is_the_recurrence_it_stands_for_with_its_gradients() -> None:
    a = (torch.rand(2, 7, 3, dtype=torch.float64) + 0.5).requires_grad_()
    b = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    held = scan(lambda l, r: {"a": l["a"] * r["a"], "b": r["a"] * l["b"] + r["b"]}, {"a": a, "b": b}, dim=-2)["b"]
    state, states = torch.zeros(2, 3, dtype=torch.float64), []
    for t in range(7):
        state = a[:, t] * state + b[:, t]
        states.append(state)
    wanted = torch.stack(states, 1)
    torch.testing.assert_close(held, wanted)
    weight = torch.from_numpy(np.cos(np.arange(42.0)).reshape(2, 7, 3))
    for ours, theirs in zip(
        torch.autograd.grad((held * weight).sum(), (a, b)),
        torch.autograd.grad((wanted * weight).sum(), (a, b)),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_the_order_of_a_function_that_does_not_commute_is_kept() -> None:
    x = torch.randn(6, 2, 2, dtype=torch.float64)
    found = scan(lambda a, b: a @ b, x, 0)
    wanted = [x[0]]
    for m in x[1:]:
        wanted.append(wanted[-1] @ m)
    torch.testing.assert_close(found, torch.stack(wanted))


def test_what_cannot_be_scanned_is_refused() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="Combine_fn must be a callable"):
        scan(3, x, 0)
    with pytest.raises(ValueError, match="one size along dim 1"):
        scan(lambda a, b: a, (x, x[:, :1]), 1)
    with pytest.raises(ValueError, match="scan dimension > 0"):
        scan(lambda a, b: a, x[:0], 0)
    with pytest.raises(ValueError, match="not 0"):
        scan(lambda a, b: a, [], 0)
    with pytest.raises(IndexError):
        scan(lambda a, b: a, x, 5)
    for mode in ("pointwise", "nonsense"):
        with pytest.raises(ValueError, match="generic"):
            associative_scan(lambda a, b: a, x, 0, combine_mode=mode)


def test_its_module_has_pytorchs_name() -> None:
    assert aliases.real_name("torch._higher_order_ops.associative_scan").endswith("_higher_order_ops.associative_scan")
    assert torch._higher_order_ops.associative_scan is associative_scan


def test_tensors_are_marked_for_a_compiler_as_pytorch_marks_them() -> None:
    x = torch.ones(2)
    for mark in (torch._dynamo.mark_static, torch._dynamo.mark_static_address):
        assert mark(x) is None
    assert torch._dynamo.mark_static(x, 0) is None and torch._dynamo.mark_static_address(x, guard=True) is None
    for mark in (torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic):
        assert mark(x, 0) is None
        with pytest.raises(TypeError):
            mark(x)
