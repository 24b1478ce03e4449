"""Functions of torch.linalg for the modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.dispatch.registry import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable


def linalg(name: str) -> Callable[..., Any]:
    """The function `name` of torch.linalg."""
    return NAMESPACES["linalg"][name]
