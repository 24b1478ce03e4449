"""Batches in memory that an accelerator reads by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rushlight.tensor import Tensor

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: object = None) -> Any:
    """A batch whose tensors, in mappings and sequences of any depth, are pinned; what has `pin_memory()` is asked.

    Raises RuntimeError where there is a tensor: there is no accelerator.
    """
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Mapping):
        return {key: pin_memory(each, device) for key, each in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(each, device) for each in data))
    return [pin_memory(each, device) for each in data] if isinstance(data, Sequence) else data
