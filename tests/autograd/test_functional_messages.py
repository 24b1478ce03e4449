"""What functions of functions say of arguments that do not fit."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import functional as F
from rushlight.func import stack_module_state
from rushlight.utils.checkpoint import create_selective_checkpoint_contexts


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_one_vector_for_one_tensor(name):
    def f(x):
        return x * 2 if name in ("vjp", "jvp") else x.square().sum()

    with pytest.raises(RuntimeError, match=r"The given v should contain a single Tensor\."):
        getattr(F, name)(f, torch.ones(2), (torch.ones(2), torch.ones(2)))


def test_models_that_differ_in_what_requires_grad():
    models = [nn.Linear(1, 1), nn.Linear(1, 1)]
    models[1].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"Expected weight from each model to have the same \.requires_grad"):
        stack_module_state(models)


def test_a_policy_of_what_is_no_operator():
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload"):
        create_selective_checkpoint_contexts([print])


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_a_tuple_of_vectors_has_the_length_of_the_tuple_that_it_is_for(name):
    def f(x):
        return (x * 2,) if name in ("vjp", "jvp") else x.square().sum()

    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 1 but got 2"):
        getattr(F, name)(f, (torch.ones(2),), (torch.ones(2), torch.ones(2)))
    with pytest.raises(RuntimeError, match="Entry 0 in v has invalid size"):
        getattr(F, name)(f, (torch.ones(2),), torch.ones(3))


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_one_vector_of_another_shape(name):
    def f(x):
        return x * 2 if name in ("vjp", "jvp") else x.square().sum()

    with pytest.raises(RuntimeError, match=r"^v has invalid size"):
        getattr(F, name)(f, torch.ones(2), (torch.ones(3),))
