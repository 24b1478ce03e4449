"""What functions that are made for a name are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["called"]

F = TypeVar("F", bound=Callable[..., Any])


def called(fn: F, name: str, doc: str | None = None, module: str | None = None) -> F:
    """A function under the name that it was made for, with what it does and the module that has it where these are given."""
    fn.__name__ = fn.__qualname__ = name
    if doc is not None:
        fn.__doc__ = doc
    if module is not None:
        fn.__module__ = module
    return fn
