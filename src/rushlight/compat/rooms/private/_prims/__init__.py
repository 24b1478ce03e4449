"""``torch._prims``: operators of which PyTorch makes others.  Here every operator stands for itself."""

from __future__ import annotations

import importlib
from typing import Any

from rushlight.compat.rooms import _prims_common as utils

__all__ = ["utils"]


def __getattr__(name: str) -> Any:
    if name == "context":
        return importlib.import_module(f"{__name__}.context")
    raise AttributeError(f"module 'torch._prims' has no attribute {name!r}")
