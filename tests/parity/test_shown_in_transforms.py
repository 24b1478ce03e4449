"""Tensors within transformations of functions are printed as PyTorch prints them."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")]
Show = Callable[[Any], Any]


def total(show: Show) -> Callable[[Any], Any]:
    """A function that shows its argument, and what it computes of it."""
    return lambda a: (show(a), show(a * 2), a.sum())[2]


def same(show: Show) -> Callable[[Any], Any]:
    return lambda a: (show(a), show(a + 1))[0]


def x(t: Any, **options: Any) -> Any:
    return t.tensor([1.0, 2.0, 3.0], **options)


CASES: dict[str, Callable[[Any, Show], Any]] = {
    "grad": lambda t, show: t.func.grad(total(show))(x(t)),
    "grad of grad": lambda t, show: t.func.grad(lambda a: t.func.grad(total(show))(a).sum())(x(t)),
    "what the outer one tracks": lambda t, show: t.func.grad(
        lambda a: t.func.grad(lambda b: (show(a), show(a * b), (a * b).sum())[2])(a).sum())(x(t)),
    "captured": lambda t, show: (lambda b, c: t.func.grad(lambda a: (show(b), show(c), a.sum())[2])(x(t)))(
        x(t), x(t, requires_grad=True)),
    "a leaf": lambda t, show: t.func.grad(total(show))(x(t, requires_grad=True)),
    "in a graph": lambda t, show: t.func.grad(total(show))(x(t, requires_grad=True) * 3),
    "vjp": lambda t, show: t.func.vjp(total(show), x(t)),
    "jvp": lambda t, show: t.func.jvp(total(show), (x(t),), (x(t),)),
    "jacrev": lambda t, show: t.func.jacrev(total(show))(x(t)),
    "vmap": lambda t, show: t.func.vmap(same(show))(x(t)),
    "vmap of vmap": lambda t, show: t.func.vmap(t.func.vmap(same(show)))(t.ones(2, 3)),
    "vmap of grad": lambda t, show: t.func.vmap(t.func.grad(total(show)))(t.ones(2, 3)),
    "grad of vmap": lambda t, show: t.func.grad(lambda a: t.func.vmap(same(show))(a).sum())(t.ones(2, 3)),
    "vmap of jvp": lambda t, show: t.func.vmap(lambda a: t.func.jvp(same(show), (a,), (a,)))(t.ones(2, 3)),
    "jvp of grad": lambda t, show: t.func.jvp(t.func.grad(total(show)), (x(t),), (x(t),)),
    "after": lambda t, show: show(t.func.grad(total(show))(x(t))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_is_shown_as_in_torch(name: str) -> None:
    shown: dict[str, list[str]] = {"torch": [], "rushlight": []}
    for t in (torch, rushlight):
        CASES[name](t, lambda a, t=t: (shown[t.__name__].append(repr(a)), a)[1])
    assert shown["rushlight"] == shown["torch"]
