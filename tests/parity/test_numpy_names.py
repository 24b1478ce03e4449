"""`axis`, NumPy's name of a dimension, where programs written for both use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "squeeze": lambda t, x: t.squeeze(x, axis=1),
    "squeeze of several": lambda t, x: t.squeeze(x, axis=(0, 1)),
    "x.squeeze": lambda t, x: x.squeeze(axis=1),
    "unsqueeze": lambda t, x: t.unsqueeze(x, axis=0),
    "x.unsqueeze": lambda t, x: x.unsqueeze(axis=-1),
    "unbind": lambda t, x: t.unbind(x, axis=2)[0],
    "x.unbind": lambda t, x: x.unbind(axis=0)[1],
    "softmax": lambda t, x: t.softmax(x, axis=2),
    "x.softmax": lambda t, x: x.softmax(axis=0),
    "softmax in a dtype": lambda t, x: x.softmax(axis=0, dtype=t.float64),
    "log_softmax": lambda t, x: t.log_softmax(x, axis=2),
    "diff": lambda t, x: t.diff(x, axis=0),
    "norm": lambda t, x: t.linalg.norm(x, axis=0),
    "norm of matrices": lambda t, x: t.linalg.norm(x, axis=(0, 2)),
    "vector_norm": lambda t, x: t.linalg.vector_norm(x, axis=2, keepdim=True),
    "sum": lambda t, x: t.sum(x, axis=0, keepdims=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_axis_is_a_dimension(name: str) -> None:
    found = [CALLS[name](t, t.arange(6.0).reshape(2, 1, 3) ** 2) for t in (reference, rushlight)]
    assert tuple(found[1].shape) == tuple(found[0].shape)
    assert found[1].flatten().tolist() == pytest.approx(found[0].flatten().tolist())


@pytest.mark.parametrize("name", ["unsqueeze", "softmax", "log_softmax"])
def test_a_dimension_is_needed(name: str) -> None:
    for t in (reference, rushlight):
        with pytest.raises(TypeError, match="dim"):
            getattr(t, name)(t.ones(2))
