"""Subclasses of Tensor: what differs from PyTorch is refused or said, never silent."""

import warnings

import pytest

import rushlight as torch


class Wrapper(torch.Tensor):
    """Keeps its tensor in an attribute, and forwards operators to it."""

    @staticmethod
    def __new__(cls, x):
        return torch.Tensor.__new__(cls)

    def __init__(self, x):
        self.value = x

    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        return f(*(a.value if isinstance(a, cls) else a for a in args), **(kwargs or {}))


OPERATORS = {
    "+": lambda w: w + 1,
    "sum": lambda w: torch.sum(w),
    "a method": lambda w: w.exp(),
    "a list": lambda w: torch.stack([torch.ones(3), w]),
    "a composed function": lambda w: torch.nn.functional.normalize(w, dim=0),
    "in place": lambda w: w.add_(1),
    "an index": lambda w: w[0],
    "backward": lambda w: w.backward(),
    "a shape": lambda w: w.shape,
    "numpy": lambda w: w.numpy(),
    "on the right": lambda w: torch.ones(3) * w,
    "out": lambda w: torch.add(torch.ones(3), 1, out=w),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_on_a_wrapper_without_memory_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"Wrapper.__torch_function__ is not called"):
        OPERATORS[name](Wrapper(torch.arange(3.0)))


def test_a_wrapper_itself_can_be_made_and_asked_for_its_value() -> None:
    assert Wrapper(torch.arange(3.0)).value.tolist() == [0, 1, 2]


def test_a_subclass_is_told_once_that_results_are_plain() -> None:
    class Own(torch.Tensor):
        pass

    with pytest.warns(UserWarning, match=r"Own is a subclass of Tensor: results of operators on it are plain") as seen:
        own = torch.ones(2).as_subclass(Own)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(torch.ones(1).as_subclass(Own)) is Own and type(own + 1) is torch.Tensor


def test_a_subclass_on_memory_is_told_that_its_override_is_not_called() -> None:
    class Celsius(torch.Tensor):
        @classmethod
        def __torch_function__(cls, f, types, args=(), kwargs=None):
            raise AssertionError

    with pytest.warns(UserWarning, match=r"its __torch_function__ is not called"):
        assert (Celsius([1.0]) + 1).item() == 2


def test_parameters_give_plain_results_in_pytorch_too() -> None:
    class Scale(torch.nn.Parameter):
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(Scale(torch.ones(1)) * 2) is torch.Tensor
        assert type(torch.nn.Buffer(torch.ones(1)) * 2) is torch.Tensor
