"""vmap and the derivatives nested in every order of three give what PyTorch gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:vmap", "ignore::DeprecationWarning"),
]


def written_out(T: Any, a: Any) -> Any:
    """Layer norm by operators: PyTorch's own has wrong derivatives of tangents."""
    centred = a - a.mean()
    return (centred * T.rsqrt((centred * centred).mean() + 1e-5)).sin().sum()


def in_place(a: Any) -> Any:
    b = a.clone()
    b[0] = b[1] * 2
    return b.mul_(a).sum()


def functions(T: Any) -> dict[str, Any]:
    F, w = T.nn.functional, T.tensor(np.arange(12.0).reshape(4, 3) / 10)
    return {
        "product": lambda a: ((a @ w) ** 3).sum(),
        "softmax": lambda a: (F.softmax(a, -1) * a).sum(),
        "norm": (lambda a: written_out(T, a)) if T is torch else (lambda a: F.layer_norm(a, (4,)).sin().sum()),
        "indices": lambda a: a[T.tensor([0, 2, 2])].prod() + a[1:].cumsum(0).exp().sum(),
        "in place": in_place,
        "extrema": lambda a: a.max() * a.min() + T.logsumexp(a, 0),
        "convolution": lambda a: F.conv1d(a.reshape(1, 1, 4), w[:2].reshape(2, 1, 3)).tanh().sum(),
        "deviation": lambda a: a.std() * a.norm(),
    }


def transformed(T: Any, f: Any, step: str) -> Any:
    if step.startswith("vmap"):
        return T.func.vmap(f, -1 if step == "vmap of the last" else 0)
    if step == "grad":
        return T.func.grad(lambda a: f(a).sum())
    if step == "jvp":
        return lambda a: T.func.jvp(f, (a,), (T.cos(a),))[1]
    return getattr(T.func, step)(f)


def outcome(T: Any, f: Any, steps: Any, x: Any) -> Any:
    for step in steps:
        f = transformed(T, f, step)
    return f(T.tensor(x)).detach().numpy()


STEPS = ("grad", "jacrev", "jacfwd", "jvp", "vmap", "vmap of the last")
CHAINS = [c for n in (1, 2, 3) for c in itertools.product(STEPS, repeat=n) if any(s.startswith("vmap") for s in c)]


@pytest.mark.parametrize("name", functions(rushlight))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_as_in_torch(name: str, depth: int) -> None:
    ours, theirs, compared = functions(rushlight)[name], functions(torch)[name], 0
    for steps in CHAINS:
        if len(steps) != depth:
            continue
        batches = sum(step.startswith("vmap") for step in steps)
        x = np.random.default_rng(batches).uniform(0.2, 0.9, (4,) * (batches + 1) if "vmap of the last" in steps
                                                   else (*(2,) * batches, 4))  # fmt: skip
        try:
            want = outcome(torch, theirs, steps, x)
        except RuntimeError:
            continue
        np.testing.assert_allclose(
            outcome(rushlight, ours, steps, x), want, rtol=1e-6, atol=1e-8, err_msg=f"{name}: {steps}"
        )
        compared += 1
    assert compared
