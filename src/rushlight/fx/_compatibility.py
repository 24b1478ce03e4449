"""A mark that libraries put on functions of theirs: whether they promise to keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

_BACK_COMPAT_OBJECTS: dict[object, None] = {}  # nothing is kept in them: see `compatibility`
_MARKED_WITH_COMPATIBILITY: dict[object, None] = {}
T = TypeVar("T", bound=Callable[..., object])


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that gives back what it gets: nobody asks for the mark here."""
    return lambda fn: fn
