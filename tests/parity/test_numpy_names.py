"""`axis`, NumPy's name of a dimension, and other names of keywords, where programs written for both use it."""

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
    "norm of keepdims": lambda t, x: t.linalg.norm(x, axis=0, keepdims=True),
    "norm of an input": lambda t, x: t.linalg.norm(input=x),
    "matrix_norm": lambda t, x: t.linalg.matrix_norm(input=x, axis=(0, 2)),
    "matrix_power": lambda t, x: t.linalg.matrix_power(input=x[:, 0, :2], n=2),
    "sum": lambda t, x: t.sum(x, axis=0, keepdims=True),
    "chunk": lambda t, x: t.chunk(x, 3, axis=2)[1],
    "tensor_split": lambda t, x: t.tensor_split(x, [1], axis=0)[1],
    "split_with_sizes": lambda t, x: t.split_with_sizes(x, [1, 2], axis=2)[1],
    "repeat_interleave": lambda t, x: t.repeat_interleave(x, 2, axis=0),
    "take_along_dim": lambda t, x: t.take_along_dim(x, x.argsort(0), axis=0),
    "gather": lambda t, x: x.gather(axis=2, index=x.argsort(0)),
    "index_select": lambda t, x: t.index_select(x, axis=2, index=t.tensor([2, 0])),
    "scatter_add": lambda t, x: t.scatter_add(x, axis=0, index=x.argsort(0), src=x),
    "index_add": lambda t, x: x.index_add(axis=0, index=t.tensor([1]), source=x[:1], alpha=2),
    "slice_scatter": lambda t, x: x.slice_scatter(x[:1], axis=0, start=1),
    "unflatten": lambda t, x: t.unflatten(x, axis=2, sizes=(3, 1)),
    "renorm": lambda t, x: t.renorm(x, 2, axis=2, maxnorm=1.0),
    "cross": lambda t, x: t.linalg.cross(x, x.flip(2), axis=2) + t.cross(x, x.flip(2), axis=2),
    "trapezoid": lambda t, x: t.trapezoid(x, axis=2),
    "cosine_similarity": lambda t, x: t.cosine_similarity(x, x + 1, axis=2),
    "rfft": lambda t, x: t.fft.rfft(x, axis=0).real,
    "fftshift": lambda t, x: t.fft.fftshift(x, axis=2),
    "one_hot": lambda t, x: t.nn.functional.one_hot(input=x.long()),
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


def test_operands_that_override_are_asked_all_the_same() -> None:
    class Index(rushlight.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> str:
            return func.__name__

    x, index = rushlight.ones(2, 2), rushlight.zeros(1, 2, dtype=rushlight.int64).as_subclass(Index)
    assert x.gather(0, index) == rushlight.gather(x, axis=0, index=index) == "gather"


def test_a_product_of_all_keeps_no_dimensions() -> None:
    for t in (reference, rushlight):
        with pytest.raises(TypeError, match="prod"):
            t.prod(t.ones(2, 3), keepdims=True)
