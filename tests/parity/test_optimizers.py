"""Every optimizer steps as PyTorch's does, and keeps the same state under the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

DECAY = {"weight_decay": 0.1}
CASES: dict[str, list[dict[str, Any]]] = {
    "SGD": [{}, {"momentum": 0.9, "dampening": 0.3}, {"momentum": 0.9, "nesterov": True, **DECAY}, {"maximize": True}],
    "Adam": [{}, {"amsgrad": True, **DECAY}, {"maximize": True, "betas": (0.5, 0.9)}, {"decoupled_weight_decay": True}],
    "AdamW": [{}, {"amsgrad": True}, {"maximize": True, "eps": 1e-2}],
    "Adagrad": [{}, {"lr_decay": 0.2, **DECAY, "initial_accumulator_value": 0.5}, {"maximize": True}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, **DECAY}, {"centered": True}, {"momentum": 0.5}],
    "Adadelta": [{}, {"rho": 0.5, **DECAY}, {"maximize": True}],
    "NAdam": [{}, {"decoupled_weight_decay": True, **DECAY}, {"momentum_decay": 0.1, **DECAY}],
    "RAdam": [{}, {"decoupled_weight_decay": True, **DECAY}, {"betas": (0.9, 0.9), **DECAY}],
    "Adamax": [{}, {**DECAY, "maximize": True}],
    "ASGD": [{}, {"t0": 2, "lambd": 0.1, "alpha": 0.5, **DECAY}],
    "Rprop": [{}, {"etas": (0.3, 1.5), "step_sizes": (0.01, 0.2)}],
    "Adafactor": [{}, {"d": 1.5, "beta2_decay": -0.5, **DECAY}, {"eps": (1e-8, 0.1), "maximize": True}],
    "Muon": [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}],
    "LBFGS": [{"lr": 0.5}, {"line_search_fn": "strong_wolfe"}, {"history_size": 2, "max_iter": 4}],
}
EACH = [(name, options) for name, sets in CASES.items() for options in sets]


def there(array: Any) -> Any:
    """An array as a tensor of PyTorch, which takes no negative strides."""
    return torch.from_numpy(np.array(array, order="K", copy=True))


def values(x: Any) -> Any:
    """What a state dict holds, as NumPy has it."""
    if isinstance(x, dict):
        return {str(k): values(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [values(v) for v in x]
    if isinstance(x, torch.Tensor):
        return x.detach().numpy()
    return x._array if isinstance(x, rushlight.Tensor) else x


def same(a: Any, b: Any, rtol: float, path: str = "") -> None:
    if isinstance(b, dict):
        assert list(a) == list(b), path
        for key in b:
            same(a[key], b[key], rtol, f"{path}.{key}")
    elif isinstance(b, list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, rtol, f"{path}[{i}]")
    elif isinstance(b, (np.ndarray, float)):
        assert np.shape(a) == np.shape(b) and getattr(a, "dtype", 0) == getattr(b, "dtype", 0), path
        assert np.allclose(a, b, rtol=rtol, atol=rtol / 10), f"{path}: {a} instead of {b}"
    else:
        assert a == b and type(a) is type(b), f"{path}: {a!r} instead of {b!r}"


def train(api: Any, name: str, options: dict[str, Any], dtype: str, layout: str = "C", steps: int = 6) -> Any:
    """Parameters after each step, and the state dict after the last."""
    rng = np.random.default_rng(0)
    shapes = [(4, 3), (3, 3)] if name in ("Muon", "LBFGS") else [(4, 3), (2, 3, 4), (5,), ()]
    starts = [np.asarray(rng.standard_normal(s), order=layout).astype(dtype, order="K") for s in shapes]
    if dtype.startswith("complex"):
        starts = [s + 1j * rng.standard_normal(s.shape) for s in starts]
    params = [api.nn.Parameter(there(s) if api is torch else wrap(np.array(s, order="K"))) for s in starts]
    optimizer = getattr(api.optim, name)(params, **{"lr": 0.05, **options})
    seen = []
    for _ in range(steps):
        noise = [0.1 * rng.standard_normal(s.shape) for s in starts] if name != "LBFGS" else [0.0] * len(starts)

        def closure(noise: Any = noise) -> float:
            loss = 0.0
            for p, n, s in zip(params, noise, starts, strict=True):
                array = values(p)
                grad = (2 * array - 1 + n).astype(array.dtype)
                loss += float((abs(array - 0.5) ** 2).sum())
                p.grad = there(grad) if api is torch else wrap(grad)
                assert grad.shape == s.shape
            return loss

        optimizer.step(closure)
        seen.append([np.array(values(p)) for p in params])
    return seen, values(optimizer.state_dict())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options"), EACH)
def test_steps_and_state(name: str, options: dict[str, Any]) -> None:
    ours, theirs = (train(api, name, options, "float64") for api in (rushlight, torch))
    same(list(ours[0]), list(theirs[0]), 1e-7)
    same(ours[1], theirs[1], 1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o in EACH if n != "LBFGS"])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(name: str, options: dict[str, Any], dtype: str) -> None:
    if dtype.startswith("complex") and name in ("Adafactor", "Muon"):
        pytest.skip("refused")
    ours, theirs = (train(api, name, options, dtype) for api in (rushlight, torch))
    tolerance = 1e-4 if dtype == "float32" else 1e-7
    same(list(ours[0]), list(theirs[0]), tolerance)
    same(ours[1], theirs[1], tolerance)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in CASES if n != "LBFGS"])  # PyTorch's refuses them
def test_transposed_parameters(name: str) -> None:
    ours, theirs = (train(api, name, CASES[name][1], "float64", "F") for api in (rushlight, torch))
    same(list(ours[0]), list(theirs[0]), 1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("implementation", ["foreach", "fused"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_implementations(name: str, implementation: str) -> None:
    options = {**CASES[name][1], implementation: True}
    ours, theirs = (train(api, name, options, "float64") for api in (rushlight, torch))
    same(list(ours[0]), list(theirs[0]), 1e-7)
    same(ours[1], theirs[1], 1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options"), EACH)
def test_a_checkpoint_in_memory(name: str, options: dict[str, Any]) -> None:
    """Options of a state dict, and their order, are PyTorch's before any step too."""
    states = []
    for api in (rushlight, torch):
        p = api.nn.Parameter(api.ones(2, 2, dtype=api.float64))
        states.append(values(getattr(api.optim, name)([("w", p)], **options).state_dict()))
    same(states[0], states[1], 0.0)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("Adafactor", "Muon", "LBFGS")])
def test_differentiable_steps(name: str) -> None:
    """Gradients of one step with respect to parameters and gradients."""

    def through(api: Any) -> Any:
        make = there if api is torch else wrap
        leaf = make(np.array([1.0, -2.0, 0.5])).requires_grad_()
        grad = make(np.array([0.3, -1.0, 2.0])).requires_grad_()
        p = leaf.clone()
        p.retain_grad()
        p.grad = grad
        getattr(api.optim, name)([p], lr=0.1, differentiable=True).step()
        found = api.autograd.grad((p * p).sum(), [leaf, grad], allow_unused=True)
        return [np.zeros(3) if g is None else values(g) for g in found]

    same(through(rushlight), through(torch), 1e-5)  # PyTorch corrects the bias in float32 here
