"""Callbacks at the end of a backward."""

import contextlib

import pytest

import rushlight as torch

ENGINE = torch.autograd.Variable._execution_engine


def leaf():
    return torch.ones(1, requires_grad=True)


def test_callbacks_run_in_order_at_the_end_and_may_queue_more():
    seen, x = [], leaf()
    y = x.exp()

    def first():
        seen.append(("first", x.grad is not None, torch.is_grad_enabled()))
        ENGINE.queue_callback(lambda: seen.append("more"))

    def hook(grad):
        ENGINE.queue_callback(first)
        ENGINE.queue_callback(lambda: seen.append("second"))

    y.register_hook(hook)
    y.sum().backward()
    assert seen == [("first", True, False), "second", "more"]


def test_callbacks_of_a_run_that_is_recorded_are_recorded():
    seen, x = [], leaf()
    x.register_hook(lambda g: ENGINE.queue_callback(lambda: seen.append(torch.is_grad_enabled())))
    torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    assert seen == [True]


def test_an_error_in_a_callback_is_the_backwards():
    seen, x = [], leaf()

    def fail():
        raise ValueError("in the callback")

    def hook(grad):
        ENGINE.queue_callback(fail)
        ENGINE.queue_callback(lambda: seen.append("not reached"))

    handle = x.register_hook(hook)
    with pytest.raises(ValueError, match="in the callback"):
        x.exp().sum().backward()
    assert seen == [] and x.grad is not None and torch.is_grad_enabled()
    handle.remove()
    x.exp().sum().backward()
    assert seen == []


def test_callbacks_of_a_backward_that_fails_do_not_run():
    seen, x = [], leaf()

    def hook(grad):
        ENGINE.queue_callback(lambda: seen.append("callback"))
        raise ValueError

    x.register_hook(hook)
    with contextlib.suppress(ValueError):
        x.exp().sum().backward()
    assert seen == []


def test_nested_backwards_keep_theirs_apart():
    seen = []

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach()
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            ENGINE.queue_callback(lambda: seen.append("outer"))
            with torch.enable_grad():
                z = ctx.x.requires_grad_()
                z.register_hook(lambda g: ENGINE.queue_callback(lambda: seen.append("inner")))
                (z * 2).sum().backward()
            seen.append("inner done")
            return grad * 2

    Nested.apply(leaf()).sum().backward()
    assert seen == ["inner", "inner done", "outer"]


def test_outside_of_a_backward_there_is_nothing_to_wait_for():
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        ENGINE.queue_callback(print)
