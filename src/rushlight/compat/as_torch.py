"""What an environment's hook loads when ``torch`` or ``torchvision`` is asked for: see `rushlight.compat.stand_in`."""

from __future__ import annotations

import importlib
from types import ModuleType

from rushlight.compat import devices, imports

__all__ = ["load"]


def load(name: str) -> ModuleType:
    """Let ``torch`` mean this package in this process, as ``rushlight run`` does, and return the module of that name."""
    imports.install()
    devices.stay_on_cpu()
    return importlib.import_module(name)
