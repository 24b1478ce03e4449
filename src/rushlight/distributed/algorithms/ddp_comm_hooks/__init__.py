"""Communication hooks of DistributedDataParallel."""

import importlib
from typing import Any

from rushlight.absent import walls


def __getattr__(name: str) -> Any:
    """Submodules are imported when they are first asked for; of what is not here there are names."""
    if name in ("default_hooks", "powerSGD_hook"):
        return importlib.import_module(f"{__name__}.{name}")
    return walls.missing(__name__, name)
