"""Hooks around forward and backward, and their order."""

from collections import OrderedDict
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.base import hooks as shared_hooks
from rushlight.nn.modules import module as module_hooks


def test_forward_hooks_run_in_order_and_replace() -> None:
    layer, log = nn.Identity(), []
    layer.register_forward_pre_hook(lambda m, args: log.append("pre"))
    layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,), prepend=True)
    layer.register_forward_hook(lambda m, args, out: log.append(("post", args[0], out)))
    layer.register_forward_hook(lambda m, args, out: out * 10)
    assert layer(1) == 20
    assert log == ["pre", ("post", 2, 2)]


def test_hooks_with_kwargs() -> None:
    class Scale(nn.Module):
        def forward(self, x: int, factor: int = 1) -> int:
            return x * factor

    layer, seen = Scale(), []
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, out: seen.append((args, kwargs, out)), with_kwargs=True)
    assert layer(2, factor=4) == 10
    assert seen == [((2,), {"factor": 5}, 10)]


def test_handles_remove() -> None:
    layer, log = nn.Identity(), []
    first = layer.register_forward_hook(lambda *_: log.append(1), with_kwargs=True, always_call=True)
    with layer.register_forward_hook(lambda *_: log.append(2)):
        layer(0)
    first.remove()
    layer(0)
    assert log == [1, 2]
    assert not layer._forward_hooks and not layer._forward_hooks_with_kwargs and not layer._forward_hooks_always_called


def test_always_called_hooks_run_after_an_exception() -> None:
    class Fails(nn.Module):
        def forward(self) -> None:
            raise KeyError("here")

    layer, log = Fails(), []
    layer.register_forward_hook(lambda m, args, out: log.append("never"))
    layer.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
    with pytest.raises(KeyError, match="here"):
        layer()
    assert log == [None]


def test_errors_of_always_called_hooks_are_warnings() -> None:
    class Fails(nn.Module):
        def forward(self) -> None:
            raise KeyError("here")

    def raises(*_: Any) -> None:
        raise ValueError("there")

    layer = Fails()
    layer.register_forward_hook(raises, always_call=True)
    with pytest.warns(UserWarning, match="there"), pytest.raises(KeyError, match="here"):
        layer()


def test_global_hooks_come_first_and_leave_nothing_behind() -> None:
    layer, log = nn.Identity(), []
    layer.register_forward_hook(lambda *_: log.append("own"))
    handle = module_hooks.register_module_forward_hook(lambda *_: log.append("global"))
    layer(1)
    handle.remove()
    layer(1)
    assert log == ["global", "own", "own"]
    assert not shared_hooks.shared.used


def test_full_backward_hooks() -> None:
    layer, log = nn.Linear(2, 1, bias=False), []
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
    layer.register_full_backward_pre_hook(lambda m, grad_output: log.append(("pre", grad_output[0].tolist())))
    layer.register_full_backward_hook(lambda m, gi, go: log.append((gi[0].tolist(), go[0].tolist())))
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert log == [("pre", [[1.0]]), ([[2.0, 3.0]], [[1.0]])]
    assert x.grad.tolist() == [[20.0, 30.0]]
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_backward_pre_hook_replaces() -> None:
    layer = nn.Linear(1, 1)
    layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 5,))
    layer(torch.ones(1, 1)).sum().backward()
    assert layer.weight.grad.item() == 5


def test_backward_hook_without_differentiable_inputs_warns() -> None:
    layer, log = nn.Linear(1, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: log.append((gi, go[0].item())))
    y = layer(torch.ones(1, 1))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        y.backward(torch.full((1, 1), 2.0))
    assert log == [((None,), 2.0)]


def test_backward_hooks_see_each_call_of_a_shared_module() -> None:
    layer, log = nn.Tanh(), []
    layer.register_full_backward_hook(lambda m, gi, go: log.append(go[0].item()))
    x = torch.zeros(1, requires_grad=True)
    (3 * layer(2 * layer(x))).sum().backward()
    assert log == [3.0, 6.0]


def test_wrong_number_of_gradients_is_refused() -> None:
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        layer(torch.ones(1, requires_grad=True)).sum().backward()


def test_kinds_of_backward_hooks_do_not_mix() -> None:
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="Cannot use both"):
        layer.register_backward_hook(lambda *_: None)


def test_legacy_backward_hook() -> None:
    layer, log = nn.Tanh(), []
    layer.register_backward_hook(lambda m, gi, go: log.append(go[0].item()))
    layer(torch.zeros(1, requires_grad=True) * 1).backward(torch.tensor([4.0]))
    assert log == [4.0]


def test_hooked_modules_work_without_gradients() -> None:
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda *_: None)
    with torch.no_grad():
        assert not layer(torch.ones(1, 1)).requires_grad


def test_registration_hooks_of_buffers_are_told_of_none() -> None:
    def filled(module: nn.Module, name: str, buffer: torch.Tensor | None) -> torch.Tensor | None:
        return torch.zeros(1) if buffer is None else None

    handle = nn.modules.module.register_module_buffer_registration_hook(filled)
    try:
        module = nn.Module()
        module.register_buffer("empty", None)
        module.register_buffer("one", torch.ones(1))
        assert module.empty.tolist() == [0]
        assert module.one.tolist() == [1]
        module.one = None
        assert module.one.tolist() == [0]
    finally:
        handle.remove()


def test_a_backward_pre_hook_may_return_a_list() -> None:
    layer, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
    layer.register_full_backward_pre_hook(lambda module, grads: [2 * grads[0]])
    layer(x).sum().backward()
    assert layer.bias.grad.tolist() == [2, 2]


def test_a_class_with_attributes_of_its_own_has_hooks() -> None:
    """Packages override `__getattr__` and do not ask the one above."""

    class Bridge(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def __getattr__(self, name: str) -> Any:
            if name in self.__dict__.get("_modules", {}):
                return self._modules[name]
            raise AttributeError(name)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    bridge, seen = Bridge(), []
    bridge.register_forward_pre_hook(lambda *given: seen.append("before"))
    bridge.register_forward_hook(lambda *given, **named: seen.append("after"), with_kwargs=True)
    bridge.register_full_backward_hook(lambda *given: seen.append("backward"))
    bridge._register_state_dict_hook(lambda *given: seen.append("state"))
    bridge.register_state_dict_post_hook(lambda *given: seen.append("state, too"))
    bridge.register_load_state_dict_post_hook(lambda *given: seen.append("loaded"))
    bridge(torch.ones(1, 2, requires_grad=True)).sum().backward()
    bridge.load_state_dict(bridge.state_dict())
    assert seen == ["before", "after", "backward", "state", "state, too", "loaded"]
    assert len(bridge._forward_hooks) == 1 and not hasattr(nn.Module, "_forward_hooks")


def test_modules_that_pytorch_pickled_run_their_hooks_and_new_ones() -> None:
    """They have a collection for each kind of hook, which are plain dictionaries, and do not know whether to look there."""
    seen: list[str] = []
    kinds = ("forward", "forward_pre", "backward", "state_dict", "load_state_dict_pre")
    state = vars(nn.Linear(2, 2)) | {f"_{kind}_hooks": OrderedDict() for kind in kinds}
    del state["_non_persistent_buffers_set"]  # which PyTorch 1.5 has not
    state["_forward_hooks"] |= {12: lambda *rest: seen.append("its own")}
    module = nn.Linear.__new__(nn.Linear)
    module.__setstate__(state)
    module(torch.ones(1, 2))
    assert seen == ["its own"]

    other = nn.Linear.__new__(nn.Linear)
    other.__dict__ = state | {"_forward_hooks": OrderedDict()}  # by a `__setstate__` of its class
    other.register_forward_pre_hook(lambda *rest: seen.append("before"), prepend=True)
    other.register_forward_hook(lambda *rest: seen.append("after"))
    other.register_full_backward_hook(lambda *rest: seen.append("backward"))
    other._register_state_dict_hook(lambda *rest: seen.append("state"))
    other._register_load_state_dict_pre_hook(lambda *rest: seen.append("load"))
    other(torch.ones(1, 2, requires_grad=True)).sum().backward()
    other.load_state_dict(other.state_dict())
    assert seen == ["its own", "before", "after", "backward", "state", "load"]


def test_collections_of_hooks_are_assigned_and_deleted() -> None:
    module, hooks = nn.Identity(), OrderedDict()
    object.__setattr__(module, "_forward_hooks", hooks)
    module.register_forward_hook(lambda *rest: torch.ones(3))
    assert module._forward_hooks is hooks and module(torch.ones(1)).shape == (3,)
    del module._forward_hooks
    assert module(torch.ones(1)).shape == (1,)
    with pytest.raises(AttributeError, match="no attribute '_forward_pre_hooks'"):
        del module._forward_pre_hooks
