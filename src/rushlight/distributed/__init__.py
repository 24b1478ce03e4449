"""Distributed training: one process so far, and the optimizer step inside backward."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Whether several processes can train together: not yet."""
    return False


def is_initialized() -> bool:
    """Whether a process group exists: never, as long as `is_available()` is False."""
    return False


def __getattr__(name: str) -> Any:
    """Submodules are imported when they are first asked for."""
    if name == "optim":
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
