"""Functions of torch.linalg for the modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.dispatch.registry import NAMESPACES


def linalg(name: str) -> Callable[..., Any]:
    """The function `name` of torch.linalg."""
    return NAMESPACES["linalg"][name]
