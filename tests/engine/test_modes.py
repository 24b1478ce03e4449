"""Grad modes: contexts, decorators, generators, coroutines; inference mode."""

import asyncio
import threading

import pytest

import rushlight as torch
from rushlight.basics.state import special


def tracked():
    return (torch.ones(1, requires_grad=True) * 2).requires_grad


def test_contexts_nest_and_restore():
    with torch.no_grad():
        assert not tracked()
        with torch.enable_grad():
            assert tracked()
        assert not tracked()
    assert tracked()


def test_an_exception_restores():
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0
    assert tracked()


def test_set_grad_enabled_as_function_and_context():
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not tracked()
    assert tracked()

    @torch.set_grad_enabled(False)
    def f():
        return tracked()

    assert not f() and tracked()


@pytest.mark.parametrize("decorator", [torch.no_grad, torch.no_grad(), torch.inference_mode(), torch.inference_mode])
def test_decorators(decorator):
    @decorator
    def f():
        return tracked()

    assert not f() and f.__name__ == "f" and tracked()


def test_decorated_generator_is_in_its_mode_only_while_it_runs():
    @torch.no_grad()
    def numbers():
        try:
            received = yield torch.is_grad_enabled()
            yield received, torch.is_grad_enabled()
        except KeyError:
            yield "caught", torch.is_grad_enabled()

    g = numbers()
    assert next(g) is False and torch.is_grad_enabled()
    assert g.send("sent") == ("sent", False) and torch.is_grad_enabled()
    g = numbers()
    next(g)
    assert g.throw(KeyError()) == ("caught", False)
    g.close()
    assert torch.is_grad_enabled()


def test_decorated_coroutine():
    @torch.no_grad()
    async def work():
        before = torch.is_grad_enabled()
        await asyncio.sleep(0)
        return before, torch.is_grad_enabled()

    async def other():
        return torch.is_grad_enabled()

    async def both():
        return await asyncio.gather(work(), other())

    assert asyncio.run(both()) == [(False, False), True]


def test_inference_tensors_stay_outside_graphs():
    with torch.inference_mode():
        t = torch.ones(2) * 2
    assert t.is_inference() and not t.requires_grad
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        x * t
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        t.add_(1)
    assert (x * t.clone()).requires_grad


def test_nothing_is_recorded_in_inference_mode_though_gradients_are_switched_on():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        for switch in (torch.enable_grad, lambda: torch.set_grad_enabled(True)):
            with switch():
                assert torch.is_grad_enabled() and torch.is_inference_mode_enabled()
                y = x * 2
                assert y.is_inference() and not y.requires_grad and y.grad_fn is None
            assert not torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        assert torch.is_grad_enabled() and not (x * 2).requires_grad
        with torch.inference_mode(False):
            assert torch.is_grad_enabled() and (x * 2).requires_grad
        with torch.inference_mode():
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled()
    assert torch.is_grad_enabled() and (x * 2).requires_grad


def test_a_gradient_that_is_an_inference_tensor_is_added_to_in_inference_mode_alone():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        x.backward(torch.ones(2))
    assert x.grad.tolist() == [1.0, 1.0]


def test_what_requires_grad_is_shown_to_numpy_where_gradients_are_off_alone():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert x.numpy().tolist() == [1.0, 1.0]
        with torch.enable_grad(), pytest.raises(RuntimeError, match="requires grad"):
            x.numpy()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_view_that_was_not_recorded_can_become_a_leaf_of_its_own(mode):
    x = torch.ones(2, requires_grad=True)
    with mode():
        v = x.view(2)
    assert v.requires_grad and v.is_leaf
    with pytest.raises(RuntimeError, match="does not have a grad_fn"):
        v.sum(), v.backward(torch.ones(2))
    v.requires_grad_()
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3, 3] and x.grad is None


def test_what_reshape_copies_outside_of_inference_mode_is_a_normal_tensor():
    with torch.inference_mode():
        x = torch.ones(2, 3).t()
    assert x.t().reshape(-1).is_inference()
    assert not x.reshape(-1).is_inference() and not x.flatten().is_inference()
    x.reshape(-1).mul_(2)


def test_tensors_of_inference_mode_count_no_versions():
    with torch.inference_mode():
        x = torch.ones(2)
        y = torch.ones(2).add_(1)
    for t in (x, y, x[0]):
        with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
            _ = t._version
    with torch.inference_mode():
        assert (torch.ones(2) * x).is_inference()


def test_outputs_outside_of_the_graph_are_told_of_before_inputs():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.autograd.grad(x.sum(), x)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(torch.ones((), requires_grad=True), x)


def run_in_a_thread(do):
    thread = threading.Thread(target=do)
    thread.start()
    thread.join()


@pytest.mark.parametrize("leave", [lambda: torch.set_grad_enabled(False), lambda: torch.no_grad().__enter__(),
                                   lambda: torch.inference_mode().__enter__(), lambda: torch.set_default_device("cpu")])  # fmt: skip
def test_modes_of_a_thread_that_has_ended_cost_others_nothing(leave):
    before = special.count
    run_in_a_thread(leave)
    assert special.count == before
    assert tracked()


def test_tensors_of_asked_classes_in_a_thread_that_has_ended_cost_others_nothing():
    class Asked(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(torch.ones(2))

    kept, before = [], special.count
    run_in_a_thread(lambda: kept.append(torch.Tensor._make_wrapper_subclass(Asked, (2,)).sin()))
    assert special.count == before
    assert torch.equal(kept[0], torch.ones(2).sin())


def test_a_decorated_function_may_call_itself_raise_and_run_in_several_threads() -> None:
    seen: list[bool] = []

    @torch.no_grad()
    def down(n: int) -> None:
        seen.append(torch.is_grad_enabled())
        with torch.enable_grad():
            seen.append(torch.is_grad_enabled())
            if n:
                down(n - 1)
        if not n:
            raise ValueError("at the bottom")

    with pytest.raises(ValueError, match="bottom"):
        down(2)
    assert seen == [False, True] * 3 and torch.is_grad_enabled()
    with torch.inference_mode(), pytest.raises(ValueError, match="bottom"):
        down(0)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    raised: list[type[BaseException]] = []

    def run() -> None:
        try:
            down(50)
        except ValueError as error:
            raised.append(type(error))
        seen.append(torch.is_grad_enabled())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == [ValueError] * 4 and seen[-1] and torch.is_grad_enabled()
