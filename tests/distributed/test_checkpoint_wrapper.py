"""Modules in wrappers that compute activations again, or keep them elsewhere."""

import copy
import functools
import pickle

import pytest

import rushlight as torch
from rushlight.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from rushlight.distributed.fsdp.wrap import size_based_auto_wrap_policy, transformer_auto_wrap_policy
from rushlight.nn import Linear, Sequential


def net() -> Sequential:
    torch.manual_seed(0)
    return Sequential(Linear(3, 4), torch.nn.Tanh(), Sequential(Linear(4, 4), torch.nn.Dropout(0.5), Linear(4, 2)))


def gradients(model: torch.nn.Module) -> list[list[float]]:
    model.zero_grad()
    torch.manual_seed(1)
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    model(x).square().sum().backward()
    return [p.grad.tolist() for p in (x, *model.parameters())]


@pytest.mark.parametrize("impl", wrappers.CheckpointImpl)
def test_gradients_are_those_without(impl: wrappers.CheckpointImpl) -> None:
    model = net()
    expected = gradients(model)
    wrap = functools.partial(wrappers.checkpoint_wrapper, checkpoint_impl=impl)
    assert gradients(wrap(model)) == expected
    wrappers.apply_activation_checkpointing(model, wrap, lambda module: isinstance(module, Sequential))
    assert isinstance(model[2], wrappers.CheckpointWrapper) and gradients(model) == expected
    assert gradients(wrappers.offload_wrapper(net())) == expected


def test_the_module_runs_again() -> None:
    calls = []
    model = net()
    model[0].register_forward_hook(lambda *args: calls.append(1))
    wrappers.checkpoint_wrapper(model)(torch.ones(1, 3)).sum().backward()
    assert len(calls) == 2


def test_names_are_those_without() -> None:
    model, plain = net(), net()
    wrappers.apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Linear | Sequential))
    assert list(model.state_dict()) == list(plain.state_dict())
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    model.load_state_dict(plain.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True))
    assert [name for name, _ in model[2].named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert next(iter(dict(model.named_parameters()))) == "0._checkpoint_wrapped_module.weight"


def test_a_wrapper_answers_for_its_module() -> None:
    wrapped = wrappers.checkpoint_wrapper(net())
    assert wrapped[0].in_features == 3 and wrappers.checkpoint_wrapper(Linear(3, 2)).out_features == 2
    with pytest.raises(AttributeError, match="nonesuch"):
        wrapped.nonesuch
    for again in (copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
        assert gradients(again) == gradients(wrapped)
    with pytest.raises(ValueError, match="forward"):
        wrappers.ActivationWrapper(net())(torch.ones(1, 3))


@pytest.mark.parametrize("impl", wrappers.CheckpointImpl)
def test_arguments_by_keyword_get_gradients(impl: wrappers.CheckpointImpl) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor, *, by: torch.Tensor) -> torch.Tensor:
            return x * by

    by = torch.tensor(3.0, requires_grad=True)
    wrappers.checkpoint_wrapper(Scaled(), impl)(torch.ones(2), by=by).sum().backward()
    assert by.grad.item() == 2


def test_other_functions_that_run_again() -> None:
    seen = []

    def run(module: torch.nn.Module, *args: torch.Tensor, tag: str) -> torch.Tensor:
        seen.append(tag)
        return module(*args)

    assert wrappers.checkpoint_wrapper(Linear(3, 2), checkpoint_fn=run, tag="a")(torch.ones(1, 3)).shape == (1, 2)
    assert seen == ["a"]


def test_what_policies_choose() -> None:
    model = net()
    large = functools.partial(size_based_auto_wrap_policy, min_num_params=20)
    wrappers.apply_activation_checkpointing(model, auto_wrap_policy=large)
    kinds = [isinstance(module, wrappers.CheckpointWrapper) for module in (model[0], model[1], model[2])]
    assert kinds == [False, False, False] and isinstance(model[2][0], wrappers.CheckpointWrapper)
    model = net()
    blocks = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Sequential})
    wrappers.apply_activation_checkpointing(model, wrappers.offload_wrapper, auto_wrap_policy=blocks)
    assert isinstance(model[2], wrappers.OffloadWrapper) and not isinstance(model[0], wrappers.OffloadWrapper)
    layer = Linear(2, 2)
    wrappers.apply_activation_checkpointing(layer)
    assert type(layer) is Linear
