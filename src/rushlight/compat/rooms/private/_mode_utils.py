"""``torch.utils._mode_utils``: operators as they are below all modes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from rushlight.ops.python.unread import DisableTorchDispatch
from rushlight.utils._python_dispatch import _disable_current_modes

__all__ = ["all_same_mode", "no_dispatch"]


def no_dispatch() -> AbstractContextManager[Any]:
    """A context in which nobody with `__torch_dispatch__` sees operators, neither modes nor classes."""
    stack = ExitStack()
    stack.enter_context(_disable_current_modes())
    stack.enter_context(DisableTorchDispatch())
    return stack


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all of the modes are the first."""
    return all(mode == modes[0] for mode in modes)
