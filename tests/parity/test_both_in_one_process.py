"""PyTorch and rushlight in one process: a tensor of the one is no tensor for the other, which says what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

GIVEN_TO_PYTORCH: dict[str, Callable[[Any, Any], Any]] = {
    "function": lambda ours, theirs: torch.sin(ours),
    "two operands": lambda ours, theirs: torch.add(theirs, ours),
    "written in Python": lambda ours, theirs: torch.nn.functional.softmax(ours, 0),
    "layer": lambda ours, theirs: torch.nn.Linear(3, 2)(ours),
    "list": lambda ours, theirs: torch.cat([theirs, ours]),
    "method": lambda ours, theirs: theirs.copy_(ours),
    "in place": lambda ours, theirs: theirs.mul_(ours),
    "index": lambda ours, theirs: theirs[(rushlight.tensor([1]),)],
    "assigned": lambda ours, theirs: theirs.__setitem__(0, ours[0]),
    "operator": lambda ours, theirs: torch.ops.aten.sin.default(ours),
    "parameter": lambda ours, theirs: torch.nn.functional.relu(rushlight.nn.Parameter(ours)),
}

GIVEN_TO_US: dict[str, Callable[[Any, Any], Any]] = {
    "function": lambda ours, theirs: rushlight.sin(theirs),
    "two operands": lambda ours, theirs: rushlight.add(ours, theirs),
    "operator on the left": lambda ours, theirs: ours + theirs,
    "operator on the right": lambda ours, theirs: theirs + ours,
    "equal": lambda ours, theirs: ours == theirs,
    "composed": lambda ours, theirs: rushlight.nn.functional.relu(theirs),
    "view": lambda ours, theirs: rushlight.reshape(theirs, (3, 1)),
    "layer": lambda ours, theirs: rushlight.nn.Linear(3, 2)(theirs),
    "list": lambda ours, theirs: rushlight.cat([ours, theirs]),
    "loss": lambda ours, theirs: rushlight.nn.functional.mse_loss(ours, theirs),
    "in place": lambda ours, theirs: ours.mul_(theirs),
    "copied": lambda ours, theirs: ours.copy_(theirs),
    "index": lambda ours, theirs: ours[torch.tensor([1])],
    "assigned": lambda ours, theirs: ours.__setitem__(slice(None), theirs),
    "made of it": lambda ours, theirs: rushlight.tensor(theirs),
    "as_tensor": lambda ours, theirs: rushlight.as_tensor(theirs),
    "full": lambda ours, theirs: rushlight.full((2,), theirs[0]),
    "gradient": lambda ours, theirs: ours.clone().requires_grad_().backward(theirs),
    "optimizer": lambda ours, theirs: rushlight.optim.SGD([torch.nn.Parameter(theirs)], lr=0.1),
    "reduction": lambda ours, theirs: rushlight.sum(theirs),
    "where": lambda ours, theirs: rushlight.where(ours > 0, ours, theirs),
    "condition": lambda ours, theirs: rushlight.where(theirs > 0, ours, ours),
    "as": lambda ours, theirs: ours.to(theirs),
    "batch": lambda ours, theirs: rushlight.utils.data.default_collate([theirs, theirs]),
    "list of numbers": lambda ours, theirs: rushlight.tensor([theirs[0], theirs[1]]),
}


@pytest.mark.parametrize("way", GIVEN_TO_PYTORCH)
def test_pytorch_refuses_our_tensor_and_says_what_to_give(way: str) -> None:
    with pytest.raises(TypeError, match=r"torch\.from_numpy\(x\.numpy\(\)\)"):
        GIVEN_TO_PYTORCH[way](rushlight.ones(3), torch.ones(3))


@pytest.mark.parametrize("way", GIVEN_TO_US)
def test_we_refuse_pytorchs_tensor_and_say_what_to_give(way: str) -> None:
    from rushlight.overrides.public import state

    armed = state["armed"]
    with pytest.raises(TypeError, match=r"of PyTorch: give rushlight\.from_numpy\(x\.numpy\(\)\)"):
        GIVEN_TO_US[way](rushlight.ones(3), torch.ones(3))
    assert state["armed"] == armed, "functions would look at all their arguments from now on, for a mistake"


@pytest.mark.parametrize(
    "way, said",
    [
        (lambda: rushlight.ones(2, dtype=torch.float64), "dtype of PyTorch: give rushlight.float64$"),
        (lambda: rushlight.ones(2).to(torch.int8), "dtype of PyTorch: give rushlight.int8 "),
        (lambda: rushlight.ones(2).sum(dtype=torch.float64), "dtype of PyTorch: give rushlight.float64$"),
        (lambda: rushlight.device(torch.device("cpu")), r"device of PyTorch: give 'cpu'\)"),
    ],
)
def test_dtypes_and_devices_of_pytorch_are_named(way: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        way()


def test_weights_of_pytorch_are_refused_by_a_module() -> None:
    with pytest.raises(RuntimeError, match=r"of PyTorch: give rushlight\.from_numpy\(x\.numpy\(\)\)"):
        rushlight.nn.Linear(3, 2).load_state_dict(torch.nn.Linear(3, 2).state_dict())


def test_what_the_errors_say_to_do_works() -> None:
    ours, theirs = rushlight.arange(3.0), torch.arange(3.0)
    assert torch.sin(torch.from_numpy(ours.numpy())).tolist() == torch.sin(theirs).tolist()
    assert np.array_equal(rushlight.cos(rushlight.from_numpy(theirs.numpy())).numpy(), np.cos(theirs.numpy()))
    assert rushlight.from_dlpack(theirs).tolist() == theirs.tolist()


def test_subclasses_of_each_still_override_in_their_own_library() -> None:
    class Ours(rushlight.Tensor):  # type: ignore[misc]
        pass

    class Theirs(torch.Tensor):  # type: ignore[misc]
        pass

    assert type(rushlight.ones(2).as_subclass(Ours) + 1) is Ours
    assert type(torch.ones(2).as_subclass(Theirs) + 1) is Theirs
    with pytest.raises(TypeError, match="from_numpy"):
        torch.sin(rushlight.ones(2).as_subclass(Ours))
    with pytest.raises(TypeError, match="from_numpy"):
        rushlight.sin(torch.ones(2).as_subclass(Theirs))
