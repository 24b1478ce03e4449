"""Passes over graphs; each is a module, loaded when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    path = f"{__name__}.{name}"
    if name.startswith("_") or importlib.util.find_spec(path) is None:
        raise AttributeError(f"module 'torch.fx.passes' has no attribute {name!r}")
    return importlib.import_module(path)
