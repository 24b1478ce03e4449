"""``torch._compile``: functions that a compiler would leave alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []


def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> object:
    """The function as it is, for nothing is compiled; a decorator without it."""
    return fn if fn is not None else lambda function: function
