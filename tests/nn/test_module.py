"""Module: attributes, walking, conversions, printing."""

import gc
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 3), nn.Linear(3, 2)
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("passing", torch.ones(1), persistent=False)
        self.count = 3

    def forward(self, x: Any) -> Any:
        return self.second(torch.relu(self.first(x))) * self.scale


def test_assigned_parts_are_found() -> None:
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert [n for n, _ in net.named_buffers()] == ["scale", "passing"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "second"]
    assert [n for n, _ in net.named_children()] == ["first", "second"]
    assert net.get_submodule("first") is net.first
    assert net.get_parameter("second.bias") is net.second.bias
    assert net.get_buffer("scale") is net.scale


def test_shared_parts_are_listed_once() -> None:
    net = Net()
    net.third = net.first
    assert len(list(net.parameters())) == 4
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    assert len(list(net.modules())) == 3


def test_attributes_move_between_registers() -> None:
    net = Net()
    net.count = nn.Parameter(torch.ones(1))
    assert "count" not in vars(net) and "count" in net._parameters
    del net.count
    net.count = nn.Buffer(torch.ones(1), persistent=False)
    assert net._non_persistent_buffers_set == {"passing", "count"}
    net.count = nn.ReLU()
    assert "count" not in net._buffers and "count" in net._modules and net._non_persistent_buffers_set == {"passing"}
    net.count = nn.Parameter(torch.ones(1))
    assert "count" not in net._modules and "count" in net._parameters
    del net.count
    assert not hasattr(net, "count") and net._non_persistent_buffers_set == {"passing"}
    net.second = None
    assert net.second is None and [n for n, _ in net.named_children()] == ["first"]


def test_wrong_assignments_are_refused() -> None:
    net = Net()
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'first'"):
        net.first = 3
    with pytest.raises(TypeError, match="as parameter 'weight'"):
        net.first.weight = torch.ones(3, 2)
    with pytest.raises(TypeError, match="as buffer 'scale'"):
        net.scale = 3
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        net.nothing


def test_properties_work() -> None:
    class Doubled(nn.Linear):
        @property
        def doubled(self) -> Any:
            return self.weight * 2

        @doubled.setter
        def doubled(self, value: Any) -> None:
            self.weight.data = value / 2

    layer = Doubled(1, 1)
    layer.doubled = torch.full((1, 1), 6.0)
    assert layer.weight.item() == 3 and layer.doubled.item() == 6


def test_conversion_keeps_parameters() -> None:
    net = Net()
    net.register_buffer("number", torch.tensor(3))
    weight = net.first.weight
    net(torch.ones(1, 2)).sum().backward()
    assert net.double() is net and net.first.weight is weight
    assert weight.dtype is torch.float64 and weight.grad.dtype is torch.float64
    assert net.scale.dtype is torch.float64 and net.number.dtype is torch.int64
    assert weight.requires_grad and weight.is_leaf
    assert net.to(torch.float16).scale.dtype is torch.float16
    assert net.float()(torch.ones(1, 2)).dtype is torch.float32
    with pytest.raises(TypeError, match="floating point or complex"):
        net.to(torch.int64)
    with pytest.raises(TypeError, match="invalid combination"):
        net.to(1, 2, 3)


def test_training_mode_and_gradients() -> None:
    net = Net()
    assert not net.eval().first.training and net.train().first.training
    net(torch.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(p.grad.sum().item() == 0 for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.first.requires_grad_(False)
    assert [p.requires_grad for p in net.parameters()] == [False, False, True, True]


def test_repr() -> None:
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (second): Linear(in_features=3, out_features=2, bias=True)\n"
        ")"
    )
    assert repr(nn.Sequential(nn.Sequential(nn.ReLU()))) == "Sequential(\n  (0): Sequential(\n    (0): ReLU()\n  )\n)"


def test_apply_visits_children_first() -> None:
    seen: list[str] = []
    net = Net()
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Linear", "Net"]


def test_compile_and_share_memory_are_accepted() -> None:
    net = Net()
    assert net.compile(mode="max-autotune") is None and net.share_memory() is net


def test_arguments_reach_nobody() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        nn.Module(size=3)
    with pytest.raises(NotImplementedError, match=r"Module \[Module\] is missing"):
        nn.Module()(1)


def test_modules_are_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        net = nn.Sequential(Net(), nn.LazyLinear(2), nn.BatchNorm1d(2), nn.LSTM(2, 2))
        net[0].register_forward_hook(lambda *_: None)
        net[0].register_full_backward_hook(lambda *_: None)
        x = torch.ones(3, 2, requires_grad=True)
        net(x)[0].sum().backward()
        refs = [weakref.ref(m) for m in net.modules()] + [weakref.ref(p) for p in net.parameters()]
        del net
        assert not [r for r in refs if r() is not None]
    finally:
        gc.enable()


def test_modules_without_hooks_carry_none() -> None:
    layer = nn.ReLU()
    assert set(vars(layer)) == {
        "training", "_parameters", "_buffers", "_non_persistent_buffers_set", "_modules", "inplace",
    }  # fmt: skip
    assert len(layer._forward_hooks) == 0 and len(layer._backward_hooks) == 0


def test_operators_as_attributes_of_a_class_are_no_methods() -> None:
    class Layer(nn.Module):
        act, similar = torch.relu, nn.functional.cosine_similarity

        def forward(self, x: Any) -> Any:
            return self.act(x) + self.similar(x, x, dim=0)

    class Another(Layer):
        act = torch.tanh

    x = torch.tensor([-1.0, 1.0])
    assert Layer()(x).tolist() == pytest.approx([1, 2]) and Layer.act is torch.relu
    torch.testing.assert_close(Another()(x), x.tanh() + 1)


def test_classes_of_parameters_say_what_becomes_of_them():
    asked = []

    class Packed(torch.nn.Parameter):
        def __new__(cls, data=None, requires_grad=True):
            return torch.Tensor._make_subclass(cls, data, requires_grad)

        def to(self, *args, **kwargs):
            asked.append(args)
            return self

        def half(self):
            asked.append("half")
            return super().half()

    net = torch.nn.Module()
    net.weight = weight = Packed(torch.ones(2))
    net.to("cpu").to(torch.float64).half()
    assert asked == [(torch.device("cpu"), None, False), (None, torch.float64, False), "half"]
    assert net.weight is weight and weight.dtype is torch.float16


def test_layers_that_wait_for_their_sizes_are_converted():
    layer = torch.nn.LazyConv1d(5, 3).double()
    assert layer(torch.ones(2, 4, 6, dtype=torch.float64)).dtype is torch.float64


@pytest.mark.parametrize("value", [nn.Linear(1, 1), nn.Buffer(torch.ones(1)), torch.ones(1)])
def test_a_parameter_gives_way_to_parameters_and_none_alone(value):
    net = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="as parameter 'weight'"):
        net.weight = value
    net.bias = None
    with pytest.raises(TypeError, match="as parameter 'bias'"):
        net.bias = value
    assert list(net.state_dict()) == ["weight"]


def test_a_child_gives_way_to_no_buffer():
    net = Net()
    with pytest.raises(TypeError, match="as child module 'first'"):
        net.first = nn.Buffer(torch.ones(1))
    net.first = nn.Parameter(torch.ones(1))
    assert [name for name, _ in net.named_parameters()] == ["first", "second.weight", "second.bias"]
