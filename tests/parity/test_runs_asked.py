"""What hooks ask of the run that they are called in, and functions that let no gradient through: beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")


def leaf(t: Any, *shape: int) -> Any:
    return t.ones(*shape, requires_grad=True)


def refused(call: Callable[[], Any], words: str) -> bool:
    with pytest.raises(RuntimeError, match=words):
        call()
    return True


def no_gradient(t: Any) -> Any:
    x = leaf(t, 2)
    y = t._C._functions.UndefinedGrad()(x)
    y.sum().backward()
    return x.grad, y is x, y.requires_grad, y.tolist()


def zeros_where_none_came(t: Any) -> Any:
    got: list[Any] = []

    class Twice(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            got.append(g.tolist())
            return g

    x = leaf(t, 2)
    t._C._functions.UndefinedGrad()(Twice.apply(x)).sum().backward()
    return got, x.grad.tolist()


def error_in_backward(t: Any) -> Any:
    y = t._C._functions.DelayedError("later", 1)(leaf(t, 2))
    return y.tolist(), refused(y.sum().backward, "later")


def numbers_of_runs(t: Any) -> Any:
    seen: list[int] = []
    y = leaf(t, 1) * 2
    y.register_hook(lambda g: seen.append(t._C._current_graph_task_id()))
    y.backward(retain_graph=True)
    y.backward()
    return 0 <= seen[0] < seen[1], t._C._current_graph_task_id()


def what_will_run(t: Any) -> Any:
    seen: list[list[bool]] = []
    a, b = leaf(t, 1), leaf(t, 1)
    c, d = a * 2, b * 3
    e = c + d
    nodes = c.grad_fn, d.grad_fn
    e.register_hook(lambda g: seen.append([t._C._will_engine_execute_node(node) for node in nodes]))
    e.backward(retain_graph=True)
    t.autograd.grad(e, a, retain_graph=True)
    t.autograd.grad(e, c)
    ask = t._C._will_engine_execute_node
    return (
        seen,
        refused(lambda: ask(e.grad_fn), "only be called during the backward pass"),
        refused(lambda: ask(e), "expects an grad_fn"),
    )


def order_of_a_run(t: Any) -> Any:
    seen: list[list[str]] = []
    y = leaf(t, 1).sin().exp() * 2
    y.register_hook(lambda g: seen.append([node.name() for node in t._C._current_graph_task_execution_order()]))
    with t.autograd.set_multithreading_enabled(False):
        y.backward()
    return seen, refused(t._C._current_graph_task_execution_order, "only be called during the backward pass")


CASES = [no_gradient, zeros_where_none_came, error_in_backward, numbers_of_runs, what_will_run, order_of_a_run]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_they_say_the_same(case: Callable[[Any], Any]) -> None:
    __import__("rushlight._C")
    assert case(rushlight) == case(torch)
