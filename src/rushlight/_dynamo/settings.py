"""Settings of what compiles in PyTorch, a module of them each: what is written is read again, and nothing else follows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["patcher"]


def patcher(room: dict[str, Any]) -> Callable[..., Any]:
    """`patch` of a module, given by its `globals()`: a context, or a decorator, in which settings are others."""

    @contextlib.contextmanager
    def patch(arg1: str | dict[str, Any] | None = None, arg2: object = None, **kwargs: object) -> Iterator[None]:
        """A context or a decorator with other settings: of a name and a value, a dictionary, or keywords.

        Raises AttributeError for a setting that is not there.
        """
        changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
        for name in changes:
            if name not in room:
                raise AttributeError(f"{room['__name__'].replace('rushlight', 'torch', 1)}.{name} does not exist")
        before = {name: room[name] for name in changes}
        room.update(changes)
        try:
            yield
        finally:
            room.update(before)

    return patch
