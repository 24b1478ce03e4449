"""What formulas keep, and values that they look at, where operators are handed to a mode or to a class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map

Case = Callable[[Any, Any], Any]
GRADIENTS: dict[str, Case] = {
    "bounds": lambda x, y: x.clamp(y - 1, y),
    "the larger": torch.maximum,
    "the smaller but NaN": torch.fmin,
    "numbers": lambda x, y: torch.nan_to_num(x / y),
    "a threshold": lambda x, y: F.threshold(x, 0.1, 0.0),
    "a margin": lambda x, y: F.hinge_embedding_loss(x, torch.tensor([1.0, -1.0, 1.0]), 2.0),
    "correlations": lambda x, y: torch.corrcoef(torch.stack([x, y])),
    "attention of two dimensions": lambda x, y: F.scaled_dot_product_attention(x[:, None], y[:, None], y[:, None], is_causal=True),
    "groups of heads": lambda x, y: F.scaled_dot_product_attention(*[t.expand(1, n, 2, 3) for t, n in ((x, 4), (y, 2), (y, 2))], enable_gqa=True),
}  # fmt: skip
SEEN_BY_CLASSES: dict[str, Case] = GRADIENTS | {
    "the exponential of a matrix": lambda x, y: torch.matrix_exp(9 * torch.outer(x, y)),
    "a product of one number": lambda x, y: torch.prod(x[0], 0),
    "a mean but NaN": lambda x, y: (x / y).nanmean(),
    "windows of a row": lambda x, y: F.max_pool1d(x[None, None], 2),
    "windows and where": lambda x, y: F.max_pool2d(x.expand(1, 1, 3, 3), 2, return_indices=True)[0],
    "a norm": lambda x, y: x.norm(3), "elements where a mask of all is": lambda x, y: (x * 1).masked_scatter_(torch.tensor(True), y * y),
}  # fmt: skip
FOUND: dict[str, Callable[[Any], Any]] = {
    "where not 0": torch.argwhere, "equal neighbours": lambda i: torch.unique_consecutive(i, return_counts=True),
    "among others": lambda i: torch.isin(i, i[:1]), "among numbers": lambda i: torch.isin(i, 2), "as often": torch.repeat_interleave,
    "slices as often": lambda i: torch.repeat_interleave(i, i, 0), "some that are not 0": lambda i: torch.nonzero_static(i, size=2),
    "a number at a number": lambda i: i[2].gather(0, i[0] * 0),
    "a tensor among those of a class": lambda i: torch.isin(torch.tensor([2, 5]), i), "numbers between": lambda i: torch.linspace(0, i[2], 3),
    "powers between": lambda i: torch.logspace(i[0], i[2], 2), "coins": lambda i: torch.bernoulli(i.sub(i).double()),
    "slopes": lambda i: F.rrelu(-i.double(), 0.5, 0.5, training=True), "counts and edges": lambda i: torch.histogram(i.float(), 2),
}  # fmt: skip


class Passing(TorchDispatchMode):
    """Passes on what it is handed."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Around(torch.Tensor):
    """A tensor around another."""

    @staticmethod
    def __new__(cls: Any, elem: Any, requires_grad: bool = False) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype, requires_grad=requires_grad)
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = tree_map(inside, (args, kwargs or {}))
        return tree_map(lambda x: Around(x) if isinstance(x, torch.Tensor) else x, func(*given[0], **given[1]))


def inside(x: Any) -> Any:
    """What such a tensor is around."""
    while isinstance(x, Around):
        x = x.elem
    return x


def numbers() -> list[Any]:
    return [torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64), torch.tensor([1.0, -0.75, 3.0], dtype=torch.float64)]


def gradients(case: Case, operands: list[Any]) -> list[Any]:
    found = torch.autograd.grad(case(*operands).sum(), operands, allow_unused=True)
    return [None if g is None else inside(g).tolist() for g in found]


def same(found: list[Any], expected: list[Any]) -> None:
    for g, e in zip(found, expected, strict=True):
        assert g is None if e is None else g == pytest.approx(e)


@pytest.mark.parametrize("case", GRADIENTS.values(), ids=list(GRADIENTS))
def test_a_mode_that_passes_operators_on_changes_no_gradient(case: Case) -> None:
    expected = gradients(case, [x.requires_grad_() for x in numbers()])
    with Passing():
        same(gradients(case, [x.requires_grad_() for x in numbers()]), expected)
    with Passing(), Passing():
        same(gradients(case, [x.requires_grad_() for x in numbers()]), expected)


@pytest.mark.parametrize("case", SEEN_BY_CLASSES.values(), ids=list(SEEN_BY_CLASSES))
def test_a_class_that_holds_a_tensor_has_its_gradients(case: Case) -> None:
    expected = gradients(case, [x.requires_grad_() for x in numbers()])
    same(gradients(case, [Around(x, True) for x in numbers()]), expected)


@pytest.mark.parametrize("find", FOUND.values(), ids=list(FOUND))
def test_a_class_is_asked_for_what_depends_on_values(find: Callable[[Any], Any]) -> None:
    given = torch.tensor([1, 1, 2])
    found, expected = find(Around(given)), find(given)
    assert tree_map(lambda x: inside(x).tolist(), found) == tree_map(lambda x: x.tolist(), expected)


def test_classes_are_asked_wherever_they_stand_among_arguments() -> None:
    given = torch.tensor([1.0, 2.0])
    assert torch.equal(given, Around(given.clone())) and torch.allclose(given, Around(given + 1e-9))
    fresh = Around(given).new_tensor([3])
    assert type(fresh) is torch.Tensor and fresh.dtype is torch.float32


def test_gradients_that_look_at_values_are_refused_and_not_made_up() -> None:
    x, index = Around(numbers()[0], True), torch.tensor([0, 0, 1])
    with pytest.raises((NotImplementedError, RuntimeError), match="__torch_dispatch__"):
        x.scatter_reduce(0, index, x, "prod").sum().backward()


def test_dropout_within_a_mode_is_a_product_with_what_is_drawn() -> None:
    x = torch.ones(64, requires_grad=True)
    torch.manual_seed(0)
    expected = F.dropout(x, 0.25)
    torch.manual_seed(0)
    with Passing():
        found = F.dropout(x, 0.25)
    assert torch.equal(found, expected)
    assert torch.equal(torch.autograd.grad(found.sum(), x)[0], expected.detach())


@pytest.mark.parametrize(
    "reduce", [lambda x: torch.prod(x, 0), lambda x: torch.logsumexp(x, 0), lambda x: torch.prod(x[:0], 0)]
)
def test_gradients_of_complex_numbers_are_conjugate(reduce: Callable[[Any], Any]) -> None:
    x = torch.tensor([1 + 2j, 3 - 1j, -0.5j], requires_grad=True)
    held = Around(x.detach(), True)
    for loss in (lambda x: reduce(x).real, lambda x: reduce(x).imag):
        found, expected = torch.autograd.grad(loss(held), held)[0], torch.autograd.grad(loss(x), x)[0]
        assert torch.allclose(inside(found), expected)
