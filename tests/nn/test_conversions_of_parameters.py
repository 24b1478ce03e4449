"""``torch.__future__``: what becomes of parameters when a module is converted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rushlight as torch
from rushlight import nn

future = torch.__future__


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    future.set_overwrite_module_params_on_conversion(False)
    future.set_swap_module_params_on_conversion(False)


def layer() -> nn.Linear:
    made = nn.Linear(2, 3)
    made.weight.grad = torch.ones(3, 2)
    return made


def test_a_gradient_stays_the_same_object() -> None:
    m = layer()
    weight, gradient = m.weight, m.weight.grad
    m.double()
    assert m.weight is weight and m.weight.grad is gradient and gradient.dtype == torch.float64


def test_parameters_are_overwritten() -> None:
    future.set_overwrite_module_params_on_conversion(True)
    m = layer()
    weight, gradient = m.weight, m.weight.grad
    m.double()
    assert future.get_overwrite_module_params_on_conversion()
    assert m.weight is not weight and weight.dtype == torch.float32 and weight.grad is gradient
    assert m.weight.dtype == m.weight.grad.dtype == torch.float64 and m.weight.requires_grad


def test_parameters_are_exchanged() -> None:
    future.set_swap_module_params_on_conversion(True)
    m = layer()
    weight, gradient = m.weight, m.weight.grad
    m.double()
    assert m.weight is weight and weight.dtype == torch.float64 and isinstance(weight, nn.Parameter)
    assert weight.grad is gradient and gradient.dtype == torch.float64


def test_what_cannot_be_exchanged_stays_as_it_was() -> None:
    future.set_swap_module_params_on_conversion(True)
    m = layer()
    kept, gradient = m(torch.ones(1, 2)), m.weight.grad
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        m.double()
    assert kept.requires_grad and m.weight.dtype == torch.float32 and m.weight.grad is gradient


@pytest.mark.parametrize("assign", [False, True])
def test_loading_exchanges(assign: bool) -> None:
    future.set_swap_module_params_on_conversion(True)
    m, n = nn.Linear(2, 3), nn.Linear(2, 3)
    weight, state = m.weight, n.state_dict()
    m.load_state_dict(state, assign=assign)
    assert m.weight is weight and isinstance(weight, nn.Parameter) and weight.requires_grad
    assert torch.equal(weight, n.weight) and (weight.data_ptr() == n.weight.data_ptr()) is assign


def test_a_class_of_tensors_says_what_is_loaded() -> None:
    class Halved(torch.Tensor):
        def module_load(self, other: torch.Tensor, assign: bool = False) -> torch.Tensor:
            return other / 2

    future.set_swap_module_params_on_conversion(True)
    m = nn.Linear(1, 1, bias=False)
    m.weight = nn.Parameter(torch.ones(1, 1).as_subclass(Halved))
    m.load_state_dict({"weight": torch.full((1, 1), 6.0)})
    assert m.weight.item() == 3


def test_what_loads_itself_is_refused() -> None:
    class Same(torch.Tensor):
        def module_load(self, other: torch.Tensor, assign: bool = False) -> torch.Tensor:
            return other

    future.set_swap_module_params_on_conversion(True)
    m = nn.Linear(1, 1, bias=False)
    m.weight = nn.Parameter(torch.ones(1, 1).as_subclass(Same))
    with pytest.raises(RuntimeError, match="module_load returned one of self or other"):
        m.load_state_dict({"weight": torch.ones(1, 1)})


def test_a_parameter_of_one_number_prints_as_one_unless_digits_are_asked_for() -> None:
    one = nn.Parameter(torch.tensor(1.5))
    assert f"{one}" == repr(one) and f"{one.detach()}" == "1.5" and f"{one:.2f}" == "1.50"
