"""`torch.cond`, `while_loop`, `scan` and `map` beside PyTorch's, and what these refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def plain(x: Any) -> Any:
    """Tensors as lists."""
    if isinstance(x, (tuple, list)):
        return [plain(item) for item in x]
    return x.tolist() if hasattr(x, "tolist") else x


def gradient(t: Any, fn: Callable[[Any], Any]) -> Any:
    """The gradient of the last result's sum."""
    x = t.arange(6.0).reshape(2, 3).requires_grad_()
    made = fn(x)
    (made[-1] if isinstance(made, (tuple, list)) else made).sum().backward()
    return x.grad.tolist()


def x(t: Any) -> Any:
    return t.arange(6.0).reshape(2, 3)


def add(carry: Any, item: Any) -> Any:
    return carry + item, carry * item


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "yes": lambda t: t.cond(True, lambda x: x + 1, lambda x: x - 1, (x(t),)),
    "no": lambda t: t.cond(t.tensor([False]), lambda x: (x + 1, x * 2), lambda x: (x - 1, x * 3), [x(t)]),
    "a number": lambda t: t.cond(1, lambda: t.ones(2), lambda: t.zeros(2)),
    "two": lambda t: t.cond(t.tensor([True, False]), lambda x: x + 1, lambda x: x - 1, (x(t),)),
    "a word": lambda t: t.cond("a", lambda x: x + 1, lambda x: x - 1, (x(t),)),
    "a branch for each sample": lambda t: t.vmap(lambda p, x: t.cond(p, lambda x: x + 1, lambda x: x - 1, (x,)))(t.tensor([True, False]), x(t)),
    "through a branch": lambda t: gradient(t, lambda y: t.cond(y.sum() > 3, lambda x: x * x, lambda x: x * 3, (y,))),
    "three times": lambda t: t.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (t.tensor(0), x(t))),
    "a counter": lambda t: t.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x(t))),
    "never": lambda t: t.while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x * 2), (t.tensor(0), x(t))),
    "one alone": lambda t: t.while_loop(lambda x: x.sum() < 10, lambda x: x + 1, (t.ones(1),)),
    "in a list": lambda t: t.while_loop(lambda x: x.sum() < 10, lambda x: [x + 1], (t.ones(1),)),
    "no function": lambda t: t.while_loop(3, lambda i: (i + 1,), (t.tensor(0),)),
    "through a loop": lambda t: gradient(t, lambda y: t.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (t.tensor(0), y))),
    "scan": lambda t: t._higher_order_ops.scan(add, t.zeros(3), x(t)),
    "scan of columns": lambda t: t._higher_order_ops.scan(add, t.zeros(2), x(t), dim=1),
    "scan from the end": lambda t: t._higher_order_ops.scan(add, t.zeros(3), x(t), reverse=True),
    "scan of nothing": lambda t: t._higher_order_ops.scan(add, t.zeros(3), t.zeros(0, 3)),
    "scan without a function": lambda t: t._higher_order_ops.scan(3, t.zeros(3), x(t)),
}  # fmt: skip


def answer(t: Any, program: str) -> Any:
    try:
        return plain(PROGRAMS[program](t))
    except (RuntimeError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_and_gradients_are_pytorchs(program: str) -> None:
    import torch._higher_order_ops

    assert answer(rushlight, program) == answer(torch, program)


def test_gradients_through_scans_and_maps() -> None:
    from rushlight.compat.rooms._higher_order_ops import map as map_
    from rushlight.compat.rooms._higher_order_ops import scan

    x = rushlight.randn(4, 3, dtype=rushlight.float64, requires_grad=True)
    step = lambda carry, item: ((carry[0] * item, carry[1]), carry[0].sin())
    init = rushlight.ones(3, dtype=rushlight.float64), rushlight.zeros(1)
    assert rushlight.autograd.gradcheck(lambda x: scan(step, init, x)[1], (x,))
    assert rushlight.autograd.gradcheck(lambda x: map_(lambda row, k: (row * k, row.sum()), x, 2.0), (x,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, ops: t.while_loop(lambda i: i < 3, lambda i: (i, i), (t.tensor(0),)), "Expected body_fn_output and carried_inputs to have same number of outputs but got lhs:2 and rhs:1"),
        (lambda t, ops: t.while_loop(lambda i: i, lambda i: i, (t.tensor(0),)), "cond_fn must give a bool or a tensor of one bool"),
        (lambda t, ops: ops.scan(lambda c, x: c, t.zeros(3), t.ones(2, 3)), "must give a carry and a result, got Tensor"),
        (lambda t, ops: ops.scan(lambda c, x: ((c, c), x), t.zeros(3), t.ones(2, 3)), "Expected init and carry to have same number of outputs"),
        (lambda t, ops: ops.scan(lambda c, x: ({"a": c}, x), t.zeros(3), t.ones(2, 3)), "a carry of init's structure"),
        (lambda t, ops: ops.scan(lambda c, x: (c.double(), x), t.zeros(3), t.ones(2, 3)), "init and carry to have same metadata.*dtype: torch.float32 vs torch.float64"),
        (lambda t, ops: ops.scan(lambda c, x: (c.repeat(2), x), t.zeros(3), t.ones(2, 3)), "init and carry to have same metadata.*shape"),
        (lambda t, ops: t.while_loop(lambda i: i.sum() < 3, lambda i: i.repeat(2), (t.ones(1),)), "body_fn_output and carried_inputs to have same metadata"),
        (lambda t, ops: ops.map(lambda x: x, (t.ones(2), t.ones(3))), r"Leading dimensions of mapped xs must be consistent. Got shapes \[torch.Size\(\[2\]\), torch.Size\(\[3\]\)\]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(rushlight, rushlight._higher_order_ops)


WORDS = {
    "branches": ("Expect both branches to be callable", lambda t, ops: t.cond(t.tensor(True), 3, t.neg, (t.ones(2),))),
    "operands": ("Expect operands to be a tuple of possibly nested dict/list/tuple", lambda t, ops: t.cond(t.tensor(True), t.neg, t.neg, t.ones(2))),
    "numbers": ("only consists of tensor leaves", lambda t, ops: t.cond(t.tensor(True), t.neg, t.neg, (3,))),
    "a condition of two": ("Expected pred to be bool or single-element tensor", lambda t, ops: t.cond(t.tensor([True, True]), t.neg, t.neg, (t.ones(2),))),
    "no condition": ("Expected pred to be bool or tensor", lambda t, ops: t.cond("a", t.neg, t.neg, (t.ones(2),))),
    "no function to scan by": ("Combine_fn must be a callable", lambda t, ops: ops.scan(3, t.zeros(2), t.ones(3, 2))),
    "no direction": ("Reverse must be a bool", lambda t, ops: ops.scan(t.add, t.zeros(2), t.ones(3, 2), reverse=3)),
    "a number to begin with": ("All init leaves must be a Tensor", lambda t, ops: ops.scan(t.add, 3, t.ones(3, 2))),
    "nothing to begin with": (r"scan\(\) operator requires init leaves", lambda t, ops: ops.scan(t.add, [], t.ones(3, 2))),
    "numbers to scan": ("All xs leaves must be a Tensor", lambda t, ops: ops.scan(t.add, t.zeros(2), [t.ones(3, 2), 3])),
    "nothing to scan": ("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0", lambda t, ops: ops.scan(t.add, t.zeros(2), t.ones(0, 2))),
    "a mode": ("Combine_mode must either 'pointwise' or 'generic'", lambda t, ops: ops.associative_scan(t.add, t.ones(3), 0, combine_mode="a")),
    "numbers to combine": ("xs leaves must be a Tensor", lambda t, ops: ops.associative_scan(t.add, [t.ones(3), 3], 0, combine_mode="generic")),
    "no dimension": ("number of dimensions and scan dimension > 0", lambda t, ops: ops.associative_scan(t.add, t.tensor(3.0), 0, combine_mode="generic")),
    "numbers to map": ("Mapped xs can only consist of tensors", lambda t, ops: ops.map(t.neg, 3)),
    "nothing to map": ("Leading dimensions of mapped xs cannot be 0", lambda t, ops: ops.map(t.neg, t.ones(0, 2))),
    "no loop": ("Expect cond_fn and body_fn to be callable", lambda t, ops: ops.while_loop(3, t.neg, (t.ones(1),))),
}  # fmt: skip


@pytest.mark.parametrize("words", WORDS)
def test_refusals_have_pytorchs_words(words: str) -> None:
    import torch._higher_order_ops

    message, call = WORDS[words]
    for t in (rushlight, torch):
        with pytest.raises((RuntimeError, ValueError), match=message):
            call(t, t._higher_order_ops)
