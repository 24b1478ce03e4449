"""``torch.utils._import_utils``: which packages can be imported."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

__all__ = ["dill_available", "import_dill"]


def _check_module_exists(name: str) -> bool:
    """Whether a module is installed, which is not imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def dill_available() -> bool:
    """Whether `dill`, which pickles functions, is installed."""
    return _check_module_exists("dill")


def import_dill() -> ModuleType | None:
    """The module `dill`, without its changes of how others pickle; None where it is not installed."""
    if not dill_available():
        return None
    dill = importlib.import_module("dill")
    dill.extend(use_dill=False)
    return dill
