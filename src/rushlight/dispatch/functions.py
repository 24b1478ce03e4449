"""The public functions by name, for rooms above: ``ops.empty``, ``ops.where``."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.registry import NAMESPACES


def __getattr__(name: str) -> Any:
    try:
        return NAMESPACES[""][name]
    except KeyError:
        raise AttributeError(f"module 'rushlight.dispatch.functions' has no attribute {name!r}") from None
