"""Custom functions by their attributes and keywords, and older functions of gradcheck: beside PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def raised(call: Callable[[], Any], *phrases: str) -> Any:
    try:
        return call()
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, [phrase in str(error) for phrase in phrases]


def scaled(t: Any, **attributes: Any) -> Any:
    def forward(ctx: Any, x: Any, by: Any = 2) -> Any:
        ctx.save_for_backward(x)
        return x * by

    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0], None

    return type("Scaled", (t.autograd.Function,),
                {"forward": staticmethod(forward), "backward": staticmethod(backward), **attributes})  # fmt: skip


def keywords(t: Any) -> Any:
    found = []
    for args, named in (((), {"x": 1}), ((1,), {"by": 3}), ((), {"by": 3, "x": 1})):
        x = t.full((2,), 3.0, requires_grad=True)
        y = scaled(t).apply(*[x for _ in args], **{k: x if v == 1 else v for k, v in named.items()})
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist(), y.grad_fn.needs_input_grad))
    return found, raised(lambda: scaled(t).apply(x, z=3), "unexpected keyword argument 'z'")


def given_away(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    y = scaled(t, clear_saved_tensors_on_access=True).apply(x)
    y.sum().backward(retain_graph=True)
    return (
        x.grad.tolist(),
        raised(y.sum().backward, "can only be accessed once"),
        raised(lambda: y.grad_fn.saved_tensors),
    )


def in_a_box(t: Any) -> Any:
    def backward(ctx: Any, *boxes: Any) -> Any:
        (box,) = boxes
        grads = list(box)
        box.clear()
        return grads[0] * 5, None

    x = t.ones(2, requires_grad=True)
    scaled(t, boxed_grads_call=True, backward=staticmethod(backward)).apply(x).sum().backward()
    return x.grad.tolist()


def jacobians(t: Any) -> Any:
    older = importlib.import_module(f"{t.__name__}.autograd.gradcheck")
    a = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
    b = t.tensor([3.0, 4.0], dtype=t.float64, requires_grad=True)
    product = lambda xs: 2 * xs[0] * xs[1]
    with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
        numerical = older.get_numerical_jacobian(product, (a, b), target=a, eps=1e-6)
    with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
        analytical = older.get_analytical_jacobian((a, b), product((a, b)))
    rounded = [[[round(v, 4) for v in row] for row in j.tolist()] for j in (*numerical, *analytical[0])]
    with pytest.warns(FutureWarning):
        refused = raised(
            lambda: older.get_numerical_jacobian(product, (a, b), grad_out=2.0), "Expected grad_out to be 1.0"
        )
    return rounded, analytical[1:], refused


def numbers_of_nodes(t: Any) -> Any:
    node = (t.ones(2, requires_grad=True) * 2).grad_fn
    node._set_sequence_nr(7)
    return node._sequence_nr()


@pytest.mark.parametrize("told", [keywords, given_away, in_a_box, jacobians, numbers_of_nodes])
def test_told_alike(told: Callable[[Any], Any]) -> None:
    assert told(rushlight) == told(reference)


def test_a_tensor_by_keyword_alone_keeps_its_gradient_or_is_refused() -> None:
    def forward(ctx: Any, x: Any, *, by: Any) -> Any:
        return x * by

    function = type("Older", (rushlight.autograd.Function,), {"forward": staticmethod(forward)})
    assert function.apply(rushlight.ones(2), by=rushlight.tensor(3.0)).tolist() == [3, 3]
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        function.apply(rushlight.ones(2), by=rushlight.tensor(3.0, requires_grad=True))


def test_only_inputs_is_told_to_be_ignored() -> None:
    x = rushlight.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        rushlight.autograd.grad((x * 2).sum(), x, only_inputs=False)
