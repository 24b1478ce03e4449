"""Derivatives, second ones too, of tensors whose class has `__torch_dispatch__` and that have no memory: those of plain tensors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.utils._pytree import tree_map


class Around(torch.Tensor):
    """A tensor around another."""

    @staticmethod
    def __new__(cls: Any, held: Any, requires_grad: bool = False) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, strides=held.stride(), requires_grad=requires_grad
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(lambda x: x.held if isinstance(x, Around) else x, (args, kwargs or {}))
        return tree_map(lambda x: Around(x) if isinstance(x, torch.Tensor) else x, func(*args, **kwargs))


def point() -> Any:
    return torch.arange(1.0, 10, dtype=torch.float64).reshape(3, 3).sin().add(1.5)


CLASSES, PLACES = torch.tensor([0, 1, 2]), torch.tensor([[0, 0, 1], [0, 2, 1], [1, 1, 1]])


def grid(x: Any, padding: str) -> Any:
    at = (x[None, :, :2, None] - 1).expand(1, 3, 2, 2)
    return F.grid_sample(x[None, None], at, padding_mode=padding, align_corners=False)


BY_VALUES = {
    "products so far": lambda x: x.cumprod(0), "sums of exponentials so far": lambda x: x.logcumsumexp(1), "the largest size": lambda x: x.norm(math.inf),
    "sizes along rows": lambda x: torch.linalg.vector_norm(x, -math.inf, dim=1), "quantiles": lambda x: x.quantile(0.3, 0), "without NaN": lambda x: x.nanquantile(0.4),
    "short rows": lambda x: x.renorm(2, 0, 1.0), "a grid": lambda x: grid(x, "zeros"), "to the border": lambda x: grid(x, "border"), "reflected": lambda x: grid(x, "reflection"),
    "scattered means": lambda x: x.scatter_reduce(0, PLACES, x * x, "mean"), "largest of scattered": lambda x: x.scatter_reduce(0, PLACES, x * x, "amax"),
    "of those alone": lambda x: x.scatter_reduce(1, PLACES, x * x, "amin", include_self=False), "rows of means": lambda x: x.index_reduce(0, PLACES[0], x, "mean"),
}  # fmt: skip
BY_OPERATORS = {
    "a slice": lambda x: x[:2], "a row": lambda x: x[1], "narrow": lambda x: x.narrow(0, 0, 2), "the diagonal": lambda x: x.diagonal(),
    "gelu": F.gelu, "silu": F.silu, "mish": F.mish, "hardsigmoid": F.hardsigmoid, "glu": lambda x: F.glu(x[:, :2]), "maxima": lambda x: F.max_pool2d(x[None], 2, 1),
    "features": lambda x: F.layer_norm(x, (3,)), "groups": lambda x: F.group_norm(x[None], 3), "channels": lambda x: F.batch_norm(x[None], None, None, training=True),
    "a table": lambda x: F.embedding(CLASSES, x), "a convolution": lambda x: F.conv2d(x[None, None], x[None, None, :2, :2]),
    "a loss of classes": lambda x: F.cross_entropy(x, CLASSES), "a loss of what depends on it": lambda x: F.mse_loss(x, x * x), "a wider one": lambda x: F.huber_loss(x, x * 3),
}  # fmt: skip


def derivatives(run: Any, x: Any) -> list[Any]:
    (first,) = torch.autograd.grad((run(x) ** 3).sum(), x, create_graph=True)
    return [getattr(g, "held", g) for g in (first, *torch.autograd.grad((first**2).sum(), x))]


@pytest.mark.parametrize("name", [*BY_VALUES, *BY_OPERATORS])
def test_first_and_second_derivatives_are_those_of_plain_tensors(name: str) -> None:
    run = (BY_VALUES | BY_OPERATORS)[name]
    plain, around = derivatives(run, point().requires_grad_()), derivatives(run, Around(point(), True))
    for one, other in zip(plain, around, strict=True):
        torch.testing.assert_close(other, one)


def test_zeros_and_infinities_on_the_way_of_sums_and_products() -> None:
    for run, values in (
        (lambda x: x.cumprod(0), [0.0, 2.0, 0.0, 3.0]),
        (lambda x: x.logcumsumexp(0), [-math.inf, 2.0, -math.inf, 3.0]),
    ):
        at, weights = torch.tensor(values), torch.tensor([0.0, -1.0, 1.0, 2.0])
        found = [
            torch.autograd.grad((run(x) * weights).sum(), x)[0] for x in (at.clone().requires_grad_(), Around(at, True))
        ]
        torch.testing.assert_close(found[1].held, found[0])


@pytest.mark.parametrize("way", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles_beside_what_is_not_a_number(way: str) -> None:
    rows = torch.tensor([[1.0, math.nan, 4.0], [2.0, 3.0, 7.0]])
    for ask in (torch.quantile, torch.nanquantile):
        for levels in (0.3, torch.tensor([0.0, 0.6])):
            plain, around = (ask(x, levels, 1, interpolation=way) for x in (rows, Around(rows)))
            torch.testing.assert_close(around.held, plain, equal_nan=True)


@pytest.mark.parametrize("run", [torch.mean, torch.sum, torch.amax, torch.nansum, torch.prod, torch.logsumexp])
def test_a_number_is_reduced_along_the_dimension_that_it_has_not(run: Any) -> None:
    x = Around(torch.tensor(2.0), True)
    assert torch.autograd.grad(run(x, 0), x)[0].held.item() == 1


def test_what_an_operator_keeps_beside_its_result_is_missed_by_name() -> None:
    x = Around(point(), True)
    found = F.embedding_bag(PLACES, x, mode="max")
    with pytest.raises(NotImplementedError, match=r"embedding_bag_max.*beside its result"):
        found.sum().backward()
