"""State of an optimizer that stepped inside backward goes to PyTorch, and PyTorch's comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CASES: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"lr": 0.05, "amsgrad": True},
    "AdamW": {"lr": 0.05},
    "RMSprop": {"lr": 0.05, "centered": True},
    "NAdam": {"lr": 0.05},
    "Adafactor": {"lr": 0.05},
}
START = np.random.default_rng(0).standard_normal((4, 3))


def train(lib: Any, start: Any, name: str, state: Any, steps: int, fused: bool) -> tuple[Any, Any]:
    """`steps` steps on a fixed problem from parameters and state; the parameters and state after them, as arrays."""
    make = torch.tensor if lib is torch else lambda a: wrap(np.array(a))
    p, q = (lib.nn.Parameter(make(a)) for a in start)
    o = getattr(lib.optim, name)([{"params": [p]}, {"params": [q], "lr": 0.02}], **CASES[name])
    if state is not None:
        o.load_state_dict(state)
    handle = lib.optim.in_backward(o, clip_grad_norm=0.5) if fused else None
    schedule = lib.optim.lr_scheduler.StepLR(o, 2, 0.5)
    for _ in range(steps):
        ((p @ q - 1) ** 2).sum().backward()
        if not fused:
            lib.nn.utils.clip_grad_norm_([p, q], 0.5)
        o.step()
        o.zero_grad()
        schedule.step()
    if handle is not None:
        handle.remove()
    return [p.detach().numpy(), q.detach().numpy()], o.state_dict()


def passed(state: Any, make: Any) -> Any:
    """A state dictionary with the tensors of the other library."""
    if isinstance(state, dict):
        return {k: passed(v, make) for k, v in state.items()}
    return make(state.detach().numpy().copy()) if hasattr(state, "detach") else state


@pytest.mark.parametrize("name", CASES)
def test_state_passes_to_pytorch_and_back(name: str) -> None:
    start = [START, np.ones(3)]
    ours, state = train(rushlight, start, name, None, 4, True)
    theirs, want = train(torch, start, name, None, 4, False)
    assert all(np.allclose(a, b, rtol=1e-6) for a, b in zip(ours, theirs, strict=True))
    ours, state = train(torch, ours, name, passed(state, torch.tensor), 4, False)
    ours, state = train(rushlight, ours, name, passed(state, lambda a: wrap(np.asarray(a))), 4, True)
    for _ in range(2):
        theirs, want = train(torch, theirs, name, want, 4, False)
    assert all(np.allclose(a, b, rtol=1e-5) for a, b in zip(ours, theirs, strict=True))
    assert [g["lr"] for g in state["param_groups"]] == pytest.approx([g["lr"] for g in want["param_groups"]])
