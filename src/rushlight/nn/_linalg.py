"""Functions of torch.linalg for the modules."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.registry import NAMESPACES


def linalg(name: str) -> Any:
    """The function `name` of torch.linalg."""
    return NAMESPACES["linalg"][name]
