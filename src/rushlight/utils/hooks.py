"""Handles that remove a hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.handles import RemovableHandle
from rushlight.ops.create.memory import warn_of_hooks as warn_if_has_hooks

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as one that files need not have; no file has any here."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
