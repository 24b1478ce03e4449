"""A gradient or a state that does not fit its parameter: broadcast where PyTorch does, else refused; never misread."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import optim
from rushlight.kernels.native import loader

OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "AMSGrad": lambda p: optim.AdamW(p, lr=0.1, amsgrad=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "Adadelta": lambda p: optim.Adadelta(p, lr=0.1),
    "Adamax": lambda p: optim.Adamax(p, lr=0.1),
    "ASGD": lambda p: optim.ASGD(p, lr=0.1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: optim.RAdam(p, lr=0.1),
    "Lion": lambda p: optim.Lion(p, lr=0.1),
    "Adam8bit": lambda p: optim.Adam8bit(p, lr=0.1, min_8bit_size=0),
    "SGD8bit": lambda p: optim.SGD8bit(p, lr=0.1, min_8bit_size=0),
}
MISFITS = [(8, 4), (64, 64), (2, 8), (32,), (5,), (0, 8), (2, 4, 8)]
every = pytest.mark.parametrize("name", OPTIMIZERS)


@pytest.fixture(params=["native", "reference"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "native" and not loader.tables():
        pytest.skip("no native kernels here")
    if request.param == "reference":
        monkeypatch.setattr(loader, "_tables", {})


def stepped(name: str) -> tuple[Any, Any]:
    """A parameter (4, 8) with a gradient, and its optimizer after one step."""
    p = torch.nn.Parameter(torch.linspace(-1, 1, 32).reshape(4, 8))
    optimizer = OPTIMIZERS[name]([p])
    p.grad = torch.linspace(-1, 2, 32).reshape(4, 8)
    optimizer.step()
    return p, optimizer


@every
@pytest.mark.parametrize("shape", MISFITS)
def test_a_gradient_of_another_shape_is_refused(name: str, shape: Any) -> None:
    p, optimizer = stepped(name)
    before = p.detach().clone()
    p.grad.data = torch.ones(shape)
    with pytest.raises(RuntimeError, match=r"must match|broadcast shape"):
        optimizer.step()
    assert torch.equal(p.detach(), before)


@every
@pytest.mark.parametrize("shape", [(1,), (1, 8), (4, 1), ()])
def test_a_gradient_that_broadcasts_is_broadcast(name: str, shape: Any) -> None:
    p, optimizer = stepped(name)
    q, other = stepped(name)
    p.grad.data = torch.full(shape, 0.5)
    q.grad = torch.full((4, 8), 0.5)
    optimizer.step(), other.step()
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)


@every
@pytest.mark.parametrize("shape", [*MISFITS[:-1], (1,), (1, 8)])
def test_a_parameter_that_was_replaced_refuses_its_old_gradient_and_state(name: str, shape: Any) -> None:
    p, optimizer = stepped(name)
    p.data = torch.full(shape, 0.5)
    with pytest.raises(RuntimeError, match=r"must match|broadcast shape"):
        optimizer.step()
    if name == "SGD":
        return
    p.grad = torch.ones(shape)
    if name == "Adadelta" and not p.numel():
        return
    with pytest.raises(RuntimeError, match="must match"):
        optimizer.step()
    assert bool((p == 0.5).all())


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "SGD"])  # which has none
@pytest.mark.parametrize("shape", [*MISFITS, (1,), (2,), (1, 8)])
def test_a_state_of_another_shape_in_a_checkpoint_is_refused(name: str, shape: Any) -> None:
    p, optimizer = stepped(name)
    saved = optimizer.state_dict()
    for state in saved["state"].values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == (4, 8):
                state[key] = torch.full(shape, 0.25)
    optimizer.load_state_dict(saved)
    before = p.detach().clone()
    with pytest.raises(RuntimeError, match="must match"):
        optimizer.step()
    assert torch.equal(p.detach(), before)


def test_lbfgs_refuses_a_gradient_with_other_elements() -> None:
    p = torch.nn.Parameter(torch.ones(4, 8))
    optimizer = optim.LBFGS([p])
    p.grad = torch.ones(4, 8)
    p.data = torch.ones(2, 8)
    with pytest.raises(RuntimeError, match="LBFGS"):
        optimizer.step(lambda: torch.tensor(1.0))


def test_a_module_in_the_place_of_its_parameters_is_told_so() -> None:
    with pytest.raises(TypeError, match=r"'Linear' object is not iterable: give the optimizer its parameters"):
        torch.optim.Adam(torch.nn.Linear(2, 2))
