"""What a declared difference is, and what tells one from another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .comparing import Difference


@dataclass(frozen=True)
class Declared:
    """A declared difference: ``row`` is how its row of the page begins, ``applies`` recognizes it."""

    row: str
    applies: Callable[[Difference], bool]


def text(difference: Difference) -> str:
    """The program's text up to the difference."""
    last = len(difference.statements) if difference.step is None else difference.step + 1
    return "\n".join(difference.statements[:last])


def statement(difference: Difference) -> str:
    """The statement whose outcome differs, or nothing."""
    return "" if difference.step is None else difference.statements[difference.step]


def refused_by(difference: Difference, *phrases: str, by: str = "subject") -> bool:
    """Whether an outcome differs because one side alone refuses in these words."""
    message = getattr(getattr(difference, by), "message", "")
    return difference.step is not None and any(phrase in message for phrase in phrases)
