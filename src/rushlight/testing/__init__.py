"""torch.testing: assertions on tensors and trees of them, and tensors to test with."""

from __future__ import annotations

import importlib
from types import ModuleType

from rushlight.testing.closeness import assert_allclose, assert_close
from rushlight.testing.creation import make_tensor
from rushlight.testing.file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]


def __getattr__(name: str) -> ModuleType:
    """What test cases find without importing it."""
    if name == "_utils":
        return importlib.import_module(f"{__name__}._utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
