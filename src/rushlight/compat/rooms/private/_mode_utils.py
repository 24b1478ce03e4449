"""``torch.utils._mode_utils``: operators as they are below all modes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from rushlight.utils._python_dispatch import _disable_current_modes

__all__ = ["all_same_mode", "no_dispatch"]


def no_dispatch() -> AbstractContextManager[Any]:
    """A context in which no `TorchDispatchMode` sees operators."""
    return _disable_current_modes()


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all of the modes are the first."""
    return all(mode == modes[0] for mode in modes)
