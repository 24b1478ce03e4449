"""Which implementation of attention may be used: accepted as in PyTorch, there is one here."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """Names of PyTorch's implementations of scaled dot product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Accepted without effect: attention never keeps its probabilities, whichever implementation is asked for.

    backends: an SDPBackend or several.  Raises AssertionError for what is none.
    """
    listed = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(listed, Iterable) or not all(isinstance(b, SDPBackend) for b in listed):
        raise AssertionError(f"sdpa_kernel: backends must be an SDPBackend or a list of them, got {backends!r}")
    yield


def __getattr__(name: str) -> Any:
    """What is imported when it is first asked for."""
    if name == "flex_attention":
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
