"""What a kind of programs is, and the sides that kinds compare."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import rushlight

from ..program import Side, Writer

Draw = Callable[[Writer], None]


@dataclass(frozen=True)
class Kind:
    """A family of programs: how one is drawn, and the two sides that run it."""

    name: str
    draw: Draw
    sides: Callable[[], tuple[Side, Side]]
    ignored: tuple[str, ...] = ()  # facts that are not compared


@cache
def with_torch(prelude: str = "") -> tuple[Side, Side]:
    """PyTorch as the reference, rushlight as the subject.  Raises ImportError without PyTorch."""
    import torch

    torch.set_num_threads(1)
    return Side("torch", torch, prelude), Side("rushlight", rushlight, prelude)


def writer(kind: Kind, seed: str) -> Writer:
    """A program of the kind, drawn from the seed, and already run on the reference side."""
    reference, _ = kind.sides()
    made = Writer(random.Random(seed), reference)
    with (
        reference.around(),
        suppress(RuntimeError),
    ):  # what is looked at to go on may be refused: the program ends there
        kind.draw(made)
    return made
