"""Setting requires_grad, and numbers as sources of copy_."""

import pytest

import rushlight as torch


def test_the_flag_of_a_computed_tensor_cannot_be_assigned() -> None:
    computed = torch.ones(2, requires_grad=True) * 2
    for value in (True, False):
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
            computed.requires_grad = value
    assert computed.requires_grad_().requires_grad


def test_a_tensor_made_in_inference_mode_may_require_grad_there_alone() -> None:
    with torch.inference_mode():
        inside = torch.ones(2).requires_grad_()
        other = torch.ones(2)
    assert inside.requires_grad and inside.is_leaf
    with pytest.raises(RuntimeError, match="outside InferenceMode"):
        other.requires_grad_()


@pytest.mark.parametrize("number", [2.5, 3, True])
def test_a_number_is_copied_into_a_tensor(number) -> None:
    x = torch.ones(2, requires_grad=True)
    doubled = x * 2
    assert doubled.copy_(number).tolist() == [float(number)] * 2
    doubled.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_a_gradient_is_on_the_device_of_its_tensor() -> None:
    x, there = torch.ones(2, requires_grad=True), torch.ones(2, device="meta", requires_grad=True)
    with pytest.raises(RuntimeError, match="device type 'meta' to a tensor with device type 'cpu'"):
        x.grad = torch.ones(2, device="meta")
    with pytest.raises(RuntimeError, match="device type 'cpu' to a tensor with device type 'meta'"):
        there.grad = torch.ones(2)
    there.grad = torch.ones(2, device="meta")
    assert there.grad.is_meta and x.grad is None
