"""The public functions by name, for rooms above: ``ops.empty``, ``ops.where``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.dispatch.registry import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.stubs.functions import *  # noqa: F403


def __getattr__(name: str) -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = NAMESPACES[""][name]
    except KeyError:
        raise AttributeError(f"module 'rushlight.dispatch.functions' has no attribute {name!r}") from None
    return found
