"""Arguments of the wrong kind are told by name and place, whatever failed first; annotations are those of what is given."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from typing import Any

import pytest
from tools.calls import CALLS

import rushlight as torch
from rushlight.overrides import fitting
from rushlight.overrides.composed import Composed
from rushlight.overrides.public import PUBLIC

a = torch.ones(2, 3)
CASES: list[tuple[Callable[[], Any], str]] = [
    (lambda: torch.tril(a, a), "tril(): argument 'diagonal' (position 2) must be int, not Tensor"),
    (lambda: torch.hardshrink(a, a), "hardshrink(): argument 'lambd' (position 2) must be float, not Tensor"),
    (lambda: torch.chunk(a, a), "chunk(): argument 'chunks' (position 2) must be int, not Tensor"),
    (lambda: torch.cdist(a, 0), "cdist(): argument 'x2' (position 2) must be Tensor, not int"),
    (lambda: torch.dropout(a, "q", True), "dropout(): argument 'p' (position 2) must be float, not str"),
    (lambda: torch.histc(a, torch.tensor(0.5)), "histc(): argument 'bins' (position 2) must be int, not Tensor"),
    (lambda: torch.matrix_power(a, "q"), "'n' (position 2) must be int, not str"),
]


@pytest.mark.parametrize(("call", "words"), CASES)
def test_an_argument_of_another_kind_is_named(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        call()


def test_what_fits_fails_as_it_did() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.chunk(a, 2, 5)
    with pytest.raises(RuntimeError, match="chunk"):
        torch.chunk(a, 0)


def test_kinds() -> None:
    assert fitting.misfit("int | Sequence[int] | None", (1, 2)) is None
    assert fitting.misfit("int | Sequence[int] | None", None) is None
    assert fitting.misfit("int | Sequence[int] | None", "ab") == "tuple of ints"
    assert fitting.misfit("int", torch.tensor(3)) is None
    assert fitting.misfit("int", torch.tensor(3.5)) == "int"
    assert fitting.misfit("float", 3) is None
    assert fitting.misfit("bool", 1) == "bool"
    assert fitting.misfit("Callable[..., Any]", 1) is None
    assert fitting.misfit("None", 1) is None


def test_annotations_allow_what_is_given() -> None:
    """Otherwise an error about something else would say that a right argument is a wrong one."""
    composed = {public.twin: public for public in PUBLIC if isinstance(public, Composed)}
    wrong: set[str] = set()

    def watched(fn: Any) -> Any:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            result = fn(*args, **kwargs)
            try:
                fitting.check(fn.__name__, composed[fn].inner, args, kwargs)
            except TypeError as error:
                wrong.add(str(error))
            return result

        return run

    def room(module: Any) -> Any:
        found = {name: getattr(module, name) for name in dir(module)}
        plain = (types.FunctionType,)
        return types.SimpleNamespace(
            **{name: watched(fn) if isinstance(fn, plain) and fn in composed else fn for name, fn in found.items()}
        )

    rooms = {
        "T": room(torch),
        "F": room(torch.nn.functional),
        "L": room(torch.linalg),
        "S": room(torch.special),
        "X": room(torch.fft),
    }
    for call in CALLS:
        if call.startswith(tuple(f"{name}." for name in rooms)):
            eval(call, {**rooms, **operands()})
    assert not wrong


def operands() -> dict[str, Any]:
    """What the calls are of: see `tools.calls`."""
    torch.manual_seed(0)
    x, y, z = (torch.rand(2, 3, 4, dtype=torch.float64) * 0.7 + 0.2 for _ in range(3))
    v, w = (torch.rand(4, dtype=torch.float64) for _ in range(2))
    return {
        "x": x, "y": y, "z": z, "v": v, "w": w, "s": torch.tensor(0.5, dtype=torch.float64), "a": x[0] + 0, "b": torch.rand(4, 5).double(),
        "c": torch.rand(4, 3).double(), "p": torch.eye(3).double() * 2, "q": torch.rand(2, 3, 3).double() + torch.eye(3),
        "h": torch.rand(2, 4, 6, 6).double(), "k": torch.rand(4, 2, 3, 3).double(), "n": torch.randint(0, 3, (3, 4)),
        "r": torch.randint(0, 3, (4,)), "t": x > 0.5, "torch": torch,
    }  # fmt: skip
