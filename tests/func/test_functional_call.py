"""What functional_call puts in place of what, and what it leaves behind."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call
from rushlight.nn.utils import parametrizations, stateless


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.scale = torch.tensor(2.0)
        self.number = 3.0
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("empty", None)
        self.names = None

    def forward(self, x):
        self.names = [name for name, _ in self.named_buffers()]
        self.count = self.count + 1
        return x * self.scale + self.count


def state_of(module):
    kept = {name: value for name, value in module.__dict__.items() if name != "names"}
    return {**kept, "_parameters": dict(module._parameters), "_buffers": dict(module._buffers)}


def called(module, given, **options):
    """The result of a call with an input of one, after which the module holds what it held, in the same order."""
    before = state_of(module)
    result = functional_call(module, given, torch.ones(1), **options)
    after = state_of(module)
    assert set(before) == set(after)
    assert list(before["_buffers"]) == list(after["_buffers"]) and list(before["_parameters"]) == list(
        after["_parameters"]
    )
    return result


def test_a_plain_tensor_attribute_is_replaced():
    module = Model()
    assert called(module, {"scale": torch.tensor(5.0)}).tolist() == [6.0]
    assert module.scale.item() == 2.0 and module.names == ["count"]


def test_a_class_attribute_is_replaced_for_the_call():
    class Shared(Model):
        scale = torch.tensor(2.0)

        def __init__(self):
            super().__init__()
            del self.scale

    module = Shared()
    assert called(module, {"scale": torch.tensor(5.0)}).tolist() == [6.0]
    assert "scale" not in module.__dict__


def test_what_the_call_assigns_is_in_the_dictionary():
    module, given = Model(), {"count": torch.tensor([7.0])}
    assert called(module, given).tolist() == [10.0]
    assert given["count"].tolist() == [8.0]


def test_so_is_what_it_assigned_before_it_failed():
    class Failing(Model):
        def forward(self, x):
            self.count = self.count + 1
            raise ValueError

    module, given = Failing(), {"count": torch.tensor([7.0])}
    with pytest.raises(ValueError):
        functional_call(module, given, torch.ones(1))
    assert given["count"].tolist() == [8.0] and module.count.tolist() == [0.0]


def test_with_several_dictionaries_they_stay_as_they_are():
    given = {"count": torch.tensor([7.0])}
    called(Model(), (given, {"scale": torch.tensor(1.0)}))
    assert given["count"].tolist() == [7.0]


def test_a_parameter_assigned_in_place_of_an_attribute_does_not_stay():
    class Registering(Model):
        def forward(self, x):
            self.scale = nn.Parameter(torch.ones(()))
            return x

    module = Registering()
    called(module, {"scale": torch.tensor(5.0)})
    assert module.scale.item() == 2.0


@pytest.mark.parametrize("name", ["other", "layer.other"])
def test_names_that_the_module_lacks_are_no_buffers(name):
    module = Model()
    called(module, {name: torch.ones(1)})
    assert module.names == ["count"] and not hasattr(module, "other") and not hasattr(module.layer, "other")


def test_a_buffer_of_none_is_replaced():
    module = Model()
    called(module, {"empty": torch.ones(1)})
    assert module.names == ["count", "empty"] and module.empty is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("number", r"attribute `number`: 3\.0 is not an instance of torch\.Tensor"),
        ("layer", r"attribute `layer`: Linear\(.*\) is not an instance of torch\.Tensor"),
        ("forward", r"attribute `forward`: <bound method Model.forward"),
        ("number.x", r"submodule `number`: 3\.0 is not an instance of torch\.nn\.Module"),
    ],
)
def test_what_is_no_tensor_is_not_replaced(name, message):
    with pytest.raises(TypeError, match=message):
        called(Model(), {name: torch.ones(1)})


def test_a_computed_tensor_is_not_replaced():
    layer = parametrizations.weight_norm(nn.Linear(1, 1))
    with pytest.raises(AttributeError, match="attribute `weight` of ParametrizedLinear is computed when it is read"):
        functional_call(layer, {"weight": torch.ones(1, 1)}, torch.ones(1))
    original = {"parametrizations.weight.original0": torch.full((1, 1), 3.0), "bias": torch.zeros(1)}
    assert abs(functional_call(layer, original, torch.ones(1)).item()) == pytest.approx(3.0)


def test_the_context_that_libraries_enter_does_the_same():
    layer, given = nn.Linear(1, 1), {"weight": torch.full((1, 1), 5.0)}
    before = layer.weight
    with stateless._reparametrize_module(layer, given):
        assert layer.weight is given["weight"]
        layer.weight = torch.nn.Parameter(torch.ones(1, 1))
    assert layer.weight is before and given["weight"].item() == 1.0
