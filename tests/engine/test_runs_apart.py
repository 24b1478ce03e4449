"""What one backward run leaves to the next, and runs inside each other."""

import contextlib
import threading

import pytest

import rushlight as torch
from rushlight.autograd.graph import register_multi_grad_hook, saved_tensors_hooks


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("on purpose")


class Gives(torch.autograd.Function):
    """Has no gradient for its argument."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return None


def deep(error=None):
    """A function whose backward runs another backward, as often as its argument says."""

    class Deep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, grad):
            if ctx.x < 0:
                if error is not None:
                    raise error
                return grad
            with torch.enable_grad():
                Deep.apply(ctx.x).sum().backward()
            return grad

    return Deep.apply


def test_a_failed_backward_leaves_nothing_to_hooks_on_several_gradients():
    seen = []
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    register_multi_grad_hook([a, b], lambda gs: seen.append([None if g is None else g.item() for g in gs]))
    for _ in range(3):
        failing = Fails.apply(b)
        out = (a * 2 + failing).sum()  # the gradient of a comes first
        with contextlib.suppress(ValueError):
            out.backward()
    (b * 7).sum().backward()
    (a * 3 + b).sum().backward()
    assert seen == [[None, 7.0], [3.0, 1.0]]


def test_hooks_on_several_gradients_do_not_wait_for_one_that_is_none():
    seen = []
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    c = b * 2
    register_multi_grad_hook([a, b, c], lambda gs: seen.append([None if g is None else g.item() for g in gs]))
    a.register_hook(lambda g: g * 1)
    (Gives.apply(c) + a).sum().backward()
    assert seen == [[1.0, None, None]]


def test_saved_tensor_hooks_entered_during_a_backward_end_with_it():
    packed = []

    def enter(grad):
        saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t).__enter__()

    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(enter)
    y.exp().sum().backward()
    (x * x).sum().backward()
    assert packed == []


def test_saved_tensor_hooks_around_a_backward_outlive_those_entered_within():
    names = []

    def hooks(name):
        return saved_tensors_hooks(lambda t: names.append(name) or t, lambda t: t)

    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda g: hooks("inner").__enter__())
    with hooks("outer"):
        y.exp().sum().backward()
        names.clear()
        x.exp()
    x.exp()
    assert names == ["outer"]


def test_modes_set_in_a_hook_end_with_the_backward_even_if_it_fails():
    def enter(grad):
        torch.set_grad_enabled(True)
        torch.inference_mode().__enter__()
        torch.autograd.graph.disable_saved_tensors_hooks("no").__enter__()
        raise ValueError("on purpose")

    x = torch.ones(2, requires_grad=True)
    x.register_hook(enter)
    y = x.exp().sum()
    with torch.no_grad(), pytest.raises(ValueError):
        y.backward()
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_backward_runs_inside_each_other_thousands_deep():
    v = torch.tensor(2000.0, requires_grad=True)
    threads = threading.active_count()
    deep()(v).sum().backward()
    assert v.grad.item() == 1.0 and threading.active_count() <= threads  # of other tests, one may have ended


def test_an_error_deep_inside_reaches_the_caller_with_its_type():
    error = KeyError("at the bottom")
    with pytest.raises(KeyError) as caught:
        deep(error)(torch.tensor(50.0, requires_grad=True)).sum().backward()
    assert caught.value is error


def test_modes_hold_in_runs_deep_inside():
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(threading.get_ident()) or t, lambda t: t):

        class Deep(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, left):
                ctx.x, ctx.left = x.detach().requires_grad_(), left
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                if ctx.left:
                    with torch.enable_grad():
                        (Deep.apply(ctx.x, ctx.left - 1) * ctx.x).sum().backward()
                return grad, None

        Deep.apply(torch.ones(1, requires_grad=True), 50).sum().backward()
    assert len(packed) >= 50 and len(set(packed)) > 1
