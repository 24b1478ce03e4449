"""`torch.optim.adam.adam` and its like: steps on lists of tensors, which are changed in place as PyTorch's functions change them."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytest.importorskip("torch.optim")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:Sparse invariant")]

List = Callable[[Any], list[Any]]
BETAS = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.01, "eps": 1e-8}


def params(t: Any) -> list[Any]:
    return [t.tensor([1.0, -2.0, 3.0]), t.tensor([[0.5, -0.5]])]


def grads(t: Any, step: int) -> list[Any]:
    return [t.tensor([0.1, 0.2, -0.35]) * (step + 1), t.tensor([[-0.4, 0.5]])]


def zeros(t: Any) -> list[Any]:
    return [t.zeros(3), t.zeros(1, 2)]


def counts(t: Any) -> list[Any]:
    return [t.tensor(0.0), t.tensor(0.0)]


def ones(t: Any) -> list[Any]:
    return [t.ones(()), t.ones(())]


def tenths(t: Any) -> list[Any]:
    return [t.full((3,), 0.1), t.full((1, 2), 0.1)]


def nothing(t: Any) -> list[Any]:
    return []


CASES: list[tuple[str, list[List], dict[str, Any]]] = [
    ("sgd", [lambda t: [None, None]], {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.1, "dampening": 0.0, "nesterov": True, "maximize": False}),
    ("sgd", [lambda t: [None, None]], {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": True}),
    ("adam", [zeros, zeros, zeros, counts], {"amsgrad": True, "maximize": False, **BETAS}),
    ("adam", [zeros, zeros, nothing, counts], {"amsgrad": False, "maximize": True, "foreach": False, **BETAS}),
    ("adamw", [zeros, zeros, nothing, counts], {"amsgrad": False, "maximize": False, **BETAS}),
    ("adamax", [zeros, zeros, counts], BETAS),
    ("adagrad", [zeros, counts], {"lr": 0.1, "weight_decay": 0.2, "lr_decay": 0.1, "eps": 1e-8, "maximize": False}),
    ("adadelta", [zeros, zeros, counts], {"lr": 0.1, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.2, "maximize": False}),
    ("rmsprop", [zeros, zeros, zeros, counts],
     {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0.2, "momentum": 0.9, "centered": True}),
    ("rmsprop", [zeros, nothing, nothing, counts],
     {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0, "centered": False}),
    ("rprop", [zeros, tenths, counts], {"step_size_min": 1e-6, "step_size_max": 50.0, "etaminus": 0.5, "etaplus": 1.2}),
    ("asgd", [zeros, ones, lambda t: [t.tensor(0.1), t.tensor(0.1)], counts],
     {"lambd": 1e-4, "lr": 0.1, "t0": 1e6, "alpha": 0.75, "weight_decay": 0.2}),
    ("nadam", [zeros, zeros, ones, counts], {"momentum_decay": 4e-3, **BETAS}),
    ("radam", [zeros, zeros, counts], BETAS),
]  # fmt: skip


@pytest.mark.parametrize(("name", "states", "options"), CASES)
def test_a_step_changes_parameters_and_states(name: str, states: list[List], options: dict[str, Any]) -> None:
    found = []
    for t in (rushlight, torch):
        function = getattr(
            importlib.import_module(f"{t.__name__}.optim.{name if name != 'adamw' or t is torch else 'adam'}"), name
        )
        own, kept = params(t), [make(t) for make in states]
        for step in range(3):
            function(own, grads(t, step), *kept, **options)
        found.append([[None if x is None else x.flatten().tolist() for x in values] for values in (own, *kept)])
    for ours, theirs in zip(*found, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a == b if a is None or b is None else a == pytest.approx(b, rel=1e-5, abs=1e-6)


def test_rows_of_sparse_gradients() -> None:
    found = []
    for t in (rushlight, torch):
        step = importlib.import_module(f"{t.__name__}.optim._functional").sparse_adam
        own, first, second = [t.ones(4, 2)], [t.zeros(4, 2)], [t.zeros(4, 2)]
        grad = t.sparse_coo_tensor(t.tensor([[0, 2]]), t.ones(2, 2), (4, 2)).coalesce()
        for count in (1, 2):
            step(own, [grad], first, second, [count], eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1, maximize=False)
        found.append([x.flatten().tolist() for x in (own[0], first[0], second[0])])
    for ours, theirs in zip(*found, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_parameters_keep_their_own_gradients_and_scaled_ones_may_be_skipped() -> None:
    t = rushlight
    p = t.nn.Parameter(t.ones(2))
    options = {"amsgrad": False, "maximize": False, **BETAS}

    def states() -> list[list[Any]]:
        return [[t.zeros(2)], [t.zeros(2)], [], [t.tensor(0.0)]]

    t.optim.adam.adam([p], [t.ones(2)], *states(), found_inf=t.tensor(1.0), **options)
    assert p.tolist() == [1, 1]
    t.optim.adam.adam([p], [t.ones(2) * 8], *states(), grad_scale=t.tensor(8.0), **options)
    assert p.tolist() == pytest.approx([0.9, 0.9], abs=1e-3) and p.grad is None and p.is_leaf
    with pytest.raises(ValueError, match="1 parameters, and 2 of exp_avg"):
        t.optim.adam.adam([p], [t.ones(2)], [t.zeros(2)] * 2, *states()[1:], **options)
    t.optim.adam.adam([], [], [], [], [], [], **options)
