"""Sizes and dimensions that are no ints: TypeError, with the operator, the argument, what was got and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

X = torch.arange(6.0).reshape(2, 3)
ELEMENT = "must be tuple of ints, but found element of type {} at pos {}"

SEVERAL: dict[str, tuple[Callable[[], Any], str]] = {
    "view": (lambda: X.view(4 / 2, 3), "view(): argument 'size' " + ELEMENT.format("float", 0)),
    "view of a tuple": (lambda: X.view((3, 2.0)), "view(): argument 'size' " + ELEMENT.format("float", 1)),
    "reshape": (lambda: X.reshape(2.0, 3), "reshape(): argument 'shape' " + ELEMENT.format("float", 0)),
    "torch.reshape": (lambda: torch.reshape(X, (3, 2.0)), "reshape(): argument 'shape' " + ELEMENT.format("float", 1)),
    "permute": (lambda: X.permute(1.0, 0), "permute(): argument 'dims' " + ELEMENT.format("float", 0)),
    "torch.permute": (lambda: torch.permute(X, (1, 0.0)), "permute(): argument 'dims' " + ELEMENT.format("float", 1)),
    "expand": (lambda: X.expand(2.0, 3), "expand(): argument 'size' " + ELEMENT.format("float", 0)),
    "repeat": (lambda: X.repeat(2, 2.0), "repeat(): argument 'repeats' " + ELEMENT.format("float", 1)),
    "tile": (lambda: X.tile((2.0,)), "tile(): argument 'dims' " + ELEMENT.format("float", 0)),
    "flip": (lambda: torch.flip(X, [0.0]), "flip(): argument 'dims' " + ELEMENT.format("float", 0)),
    "broadcast_to": (lambda: X.broadcast_to((2.0, 3)), "broadcast_to(): argument 'size' " + ELEMENT.format("float", 0)),
    "as_strided": (lambda: X.as_strided((2.0,), (1,)), "as_strided(): argument 'size' " + ELEMENT.format("float", 0)),
    "a tuple among sizes": (lambda: X.reshape((3, 2), 1), "reshape(): argument 'shape' " + ELEMENT.format("tuple", 0)),
}
ALONE: dict[str, tuple[Callable[[], Any], str]] = {
    "view": (lambda: X.view(6.0), "view(): argument 'size' must be tuple of ints, not float"),
    "reshape": (lambda: X.reshape(6.0), "reshape(): argument 'shape' must be tuple of ints, not float"),
    "reshape to None": (lambda: X.reshape(None), "reshape(): argument 'shape' must be tuple of ints, not NoneType"),
    "reshape to a word": (lambda: X.reshape("ab"), "reshape(): argument 'shape' must be tuple of ints, not str"),
    "permute": (lambda: X.permute(1.0), "permute(): argument 'dims' must be tuple of ints, not float"),
    "expand": (lambda: X.expand(2.0), "expand(): argument 'size' must be tuple of ints, not float"),
    "repeat": (lambda: X.repeat(2.0), "repeat(): argument 'repeats' must be tuple of ints, not float"),
    "roll": (lambda: X.roll(1.0), "roll(): argument 'shifts' must be tuple of ints, not float"),
    "dims of roll": (lambda: X.roll(1, 0.0), "roll(): argument 'dims' must be tuple of ints, not float"),
    "select": (lambda: X.select(0, 0.0), "select(): argument 'index' must be int, not float"),
    "start of narrow": (lambda: X.narrow(0, 0.0, 1), "narrow(): argument 'start' must be int, not float"),
    "length of narrow": (lambda: X.narrow(0, 0, 1.0), "narrow(): argument 'length' must be int, not float"),
    "split": (lambda: X.split([1.0, 1]), "split_with_sizes(): argument 'split_sizes' must be int, not float"),
    "unflatten": (lambda: X.unflatten(0, (2.0, 1)), "unflatten(): argument 'sizes' must be int, not float"),
    "randperm": (lambda: torch.randperm(2.0), "randperm(): argument 'n' must be int, not float"),
    "repeat_interleave": (lambda: X.repeat_interleave(2.0), "argument 'repeats' must be int, not float"),
}


@pytest.mark.parametrize("name", list(SEVERAL))
def test_an_element_that_is_no_int(name: str) -> None:
    call, message = SEVERAL[name]
    with pytest.raises(TypeError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("name", list(ALONE))
def test_an_argument_that_is_no_int(name: str) -> None:
    call, message = ALONE[name]
    with pytest.raises(TypeError, match=re.escape(message)):
        call()


def test_the_message_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"2\.0 is no int, divide sizes with // or convert them with int\(\)"):
        X.view(4 / 2, 3)
    with pytest.raises(TypeError, match="give ints one by one or in one tuple"):
        X.reshape((3, 2), 1)


def test_what_counts_as_an_int_is_taken() -> None:
    six = torch.tensor(6)
    assert X.view(six).shape == X.reshape((six,)).shape == (6,)
    assert X.narrow(0, torch.tensor(1), 1).shape == X.select(0, torch.tensor(1)).unsqueeze(0).shape
    assert X.roll(1, ()).shape == (2, 3)


def test_a_size_made_of_tensors_has_integers() -> None:
    size = torch.Size([torch.tensor(3), 2, torch.tensor([4])])
    assert size == (3, 2, 4) and all(type(n) is int for n in size)
    for given in ([2, 1.5], [torch.tensor(1.5)], ["a"], [None]):
        with pytest.raises(TypeError, match=r"torch\.Size: expected integers, but item [01] is a"):
            torch.Size(given)
