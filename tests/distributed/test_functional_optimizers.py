"""Optimizers that are given gradients, beside those that find them at parameters."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.distributed.optim import utils
from rushlight.onnx.symbolic_opset9 import _prepare_onnx_paddings


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.01, "lr": 0.02}])
@pytest.mark.parametrize("kind", sorted((k for k in utils.functional_optim_map), key=lambda k: k.__name__))
def test_they_step_as_the_others_do(kind, options) -> None:
    options = {k: v for k, v in options.items() if k != "weight_decay" or kind is not torch.optim.Rprop}
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    other.load_state_dict(one.state_dict())
    usual, given = kind(one.parameters(), **options), utils.as_functional_optim(kind, **options)
    whole = utils.functional_optim_map[kind](list(other.parameters()), **options)
    for i in range(4):
        x = torch.randn(4, 3)
        for module in (one, other):
            module.zero_grad()
            module(x).square().sum().backward()
        usual.step()
        gradients = [param.grad for param in other.parameters()]
        for param in other.parameters():
            param.grad = None
        if i:
            for param, grad in zip(other.parameters(), gradients, strict=True):
                given.step_param(param, grad)
                assert param.grad is None
        else:  # the first one by all, from which the others do not know
            whole.step(gradients)
            given._steps = whole._steps
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)
    assert len(given.state) == 2


def test_what_does_not_fit_is_refused_and_others_are_registered() -> None:
    with pytest.raises(ValueError, match="empty parameter list"):
        utils.functional_optim_map[torch.optim.SGD]([])
    with pytest.raises(ValueError, match="does not equal"):
        utils.as_functional_optim(torch.optim.SGD).step([torch.ones(1)])
    with pytest.raises(ValueError, match="functional counterpart"):
        utils.as_functional_optim(torch.optim.LBFGS)
    utils.register_functional_optim("own", object)
    assert utils.functional_optim_map.pop("own") is object


def test_paddings_as_onnx_orders_them() -> None:
    assert _prepare_onnx_paddings(3, [1, 2, 3, 4]) == [0, 3, 1, 0, 4, 2] and _prepare_onnx_paddings(1, [1, 2]) == [1, 2]
