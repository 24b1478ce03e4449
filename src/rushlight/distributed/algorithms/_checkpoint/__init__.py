"""Modules whose activations are computed again, or kept elsewhere, until backward."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """The module below is imported when it is first asked for."""
    if name != "checkpoint_wrapper":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
