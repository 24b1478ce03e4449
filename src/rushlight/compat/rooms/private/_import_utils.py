"""``torch.utils._import_utils``: which packages can be imported."""

from __future__ import annotations

import importlib.util

__all__ = ["dill_available"]


def _check_module_exists(name: str) -> bool:
    """Whether a module is installed, which is not imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def dill_available() -> bool:
    """Whether `dill`, which pickles functions, is installed."""
    return _check_module_exists("dill")
