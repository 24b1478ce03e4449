"""Operators where recording alone is unusual: the quick way gives what the general one gives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tools.calls import CALLS
from tools.replaying import notes
from tools.replaying.cases import Case, called

import rushlight as torch
from rushlight.basics.state import INFERENCE, RECORDED, UNRECORDED, modes, special
from rushlight.dispatch import call, quick

DTYPES = ("float32", "float64", "int64", "bfloat16")


@contextmanager
def another_thread_without_gradients() -> Iterator[None]:
    begun, ended = threading.Event(), threading.Event()

    def other() -> None:
        with torch.no_grad():
            begun.set()
            ended.wait()

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


WAYS: dict[int, Callable[[], Any]] = {
    RECORDED: another_thread_without_gradients, UNRECORDED: torch.no_grad, INFERENCE: torch.inference_mode,
}  # fmt: skip


def told(case: Case, way: int, general: bool) -> list[Any]:
    """What a call gives; general: by the general path alone."""
    torch.manual_seed(0)
    given = [t.requires_grad_() if t.is_floating_point() else t for t in case.tensors()]
    with WAYS[way]():
        assert special.count and modes.way == way
        modes.way = 0 if general else way
        try:
            results = case.run(*given)
        except Exception as raised:
            return notes.error(raised)
        finally:
            modes.way = way
        values = [notes.digest(notes.values(t)) for t in results if isinstance(t, torch.Tensor)]
        return [
            values,
            [notes.tensor(t) for t in results],
            notes.graph([t for t in results if isinstance(t, torch.Tensor)]),
        ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_each_call_gives_what_it_gives_in_general(way: int, dtype: str) -> None:
    for each in CALLS:
        case = called(each, dtype)
        assert told(case, way, False) == told(case, way, True), case.name


def test_the_quick_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.ones(3), torch.ones(3)
    monkeypatch.setattr(quick, "apply", None)
    for way in WAYS.values():
        with way():
            assert (x + y).exp().sum().item() == pytest.approx(3 * 2.718281828**2)
            assert x[1:].shape == (2,) and torch.cat([x, y]).shape == (6,)


def test_what_matters_to_operators_takes_the_general_path() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert modes.way == UNRECORDED
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert modes.way == 0 and (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
        with torch.enable_grad():
            assert modes.way == RECORDED and (x * 2).requires_grad
        assert not (x * 2).requires_grad
    with torch.inference_mode(), torch.enable_grad():
        assert not (x * 2).requires_grad and (x * 2).is_inference()
    assert modes.way == RECORDED and modes.odd == 0


@pytest.mark.parametrize("way", [UNRECORDED, INFERENCE])
def test_a_view_whose_history_must_not_be_used_is_an_operand_like_any_where_nothing_is_recorded(way: int) -> None:
    x = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        v = x.view(2)
    x.mul_(2)
    with WAYS[way]():
        assert (v * 3).tolist() == (3 * v).tolist() == [6, 6] and (-v).tolist() == [-2, -2]
        assert torch.where(v > 0, v, v).sum().item() == 4


INTEGERS: list[Callable[[Any], Any]] = [
    lambda a: a + 1, lambda a: a - a, lambda a: a * 2.5, lambda a: a * True, lambda a: a + 2**63, lambda a: a < 2**63,
    lambda a: a == 1.5, lambda a: a & 1, lambda a: a | a, lambda a: (a > 1) & (a < 3), lambda a: (a > 1) ^ True,
    lambda a: (a > 1) & a, lambda a: a + a.int(), lambda a: a[:2] + a[:, None], lambda a: a.float() < a, lambda a: a != a[0],
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(INTEGERS)))
def test_integers_and_bools_give_what_they_give_in_general(number: int) -> None:
    fn, a = INTEGERS[number], torch.tensor([0, 1, 2, 3])
    quick_way = fn(a)
    with torch.autocast("cpu", enabled=True):  # anything unusual: the general path
        general = fn(a)
    assert quick_way.dtype is general.dtype and quick_way.tolist() == general.tolist()


def test_integers_that_do_not_fit_raise_what_they_raise_in_general() -> None:
    a = torch.arange(3)
    for fn in (lambda: a + torch.arange(4), lambda: a & torch.arange(4)):
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            fn()
    with pytest.raises(RuntimeError, match="Subtraction"):
        (a > 0) - (a > 1)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.ones(2) & torch.ones(2)
    for way in (lambda: a + 2**70, lambda: a < 2**70, lambda: 2**70 - a):
        with pytest.raises(OverflowError, match="int too big to convert"):
            way()
        with torch.autocast("cpu", enabled=True), pytest.raises(OverflowError, match="int too big to convert"):
            way()
    assert a.__and__("x") is NotImplemented and a.__add__(object()) is NotImplemented


def test_a_foreign_operand_is_asked_where_nothing_is_recorded() -> None:
    class Foreign:
        def __radd__(self, other: Any) -> str:
            return "asked"

    with torch.no_grad():
        assert torch.ones(2) + Foreign() == "asked"


@pytest.mark.parametrize("fn", [lambda x: x.add_(2), lambda x: x.mul_(torch.tensor([2.0])), lambda x: x[0].sub_(x[1]),
                                lambda x: x.div_(x), lambda x: x.t().mul_(3), lambda x: x.pow_(2)])  # fmt: skip
def test_what_is_changed_at_once_gives_what_it_gives_in_general(
    fn: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = (torch.arange(1.0, 7).reshape(2, 3) for _ in range(2))
    fn(x)
    monkeypatch.setattr(call, "changed_at_once", lambda *_: False)
    fn(y)
    assert x.tolist() == y.tolist() and x._version == y._version == 1
    assert x.untyped_storage().writer == y.untyped_storage().writer


IN_PLACE: list[Callable[[Any, Any], Any]] = [
    lambda x, c: x.mul_(0.5), lambda x, c: x.add_(c), lambda x, c: x[1].mul_(c[0]), lambda x, c: x.t().div_(2).sub_(c.t()),
    lambda x, c: (x[0].mul_(2), x[:, 1].mul_(3), x.mul_(c)), lambda x, c: (x.view(-1)[1:4].mul_(c[0]), x.exp_(), x.mul_(0.1)),
    lambda x, c: x.mul_(c[0, 0]), lambda x, c: x.pow_(2), lambda x, c: x.mul_(x.detach()), lambda x, c: (x.mul_(c), c.add_(1)),
]  # fmt: skip


@pytest.mark.parametrize("fn", IN_PLACE)
def test_what_is_changed_at_once_is_recorded_as_in_general(
    fn: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def graph(node: Any) -> Any:
        return node and (node.name(), [graph(n) for n, _ in node.next_functions])

    def found() -> Any:
        leaf = torch.arange(1.0, 7).reshape(2, 3).requires_grad_()
        x, c = leaf * 1, torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        view = x[0]
        fn(x, c)
        error = ""
        try:
            (x.sum() + view.sum()).backward()
        except RuntimeError as raised:
            error = str(raised)
        return (
            x.tolist(),
            x._version,
            graph(x.grad_fn),
            graph(view.grad_fn),
            error,
            None if leaf.grad is None else leaf.grad.tolist(),
        )

    quickly = found()
    monkeypatch.setattr(call, "changed_at_once", lambda *_: False)
    assert quickly == found()


def test_nothing_is_changed_at_once_that_must_not_be() -> None:
    with pytest.raises(RuntimeError, match="leaf Variable"):
        torch.ones(2, requires_grad=True).add_(1)
    with pytest.raises(RuntimeError, match="broadcast shape"):
        torch.ones(2).add_(torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.ones(1).expand(3).add_(1)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2).add_(1j)
    with torch.inference_mode():
        frozen = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        frozen.add_(1)
