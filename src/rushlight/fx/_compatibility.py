"""A mark that libraries put on functions of theirs: whether they promise to keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

T = TypeVar("T", bound=Callable[..., object])


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that gives back what it gets: nobody asks for the mark here."""
    return lambda fn: fn
