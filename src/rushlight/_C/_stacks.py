"""Stacks of modes, one mode at a time, and who is asked by ``__torch_function__``."""

from __future__ import annotations

import enum

from rushlight.overrides import protocol
from rushlight.overrides.modes import _pop_mode as _pop_torch_function_stack
from rushlight.overrides.modes import _push_mode as _push_on_torch_function_stack
from rushlight.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from rushlight.utils._python_dispatch import _pop_mode as _pop_torch_dispatch_stack
from rushlight.utils._python_dispatch import _push_mode as _push_on_torch_dispatch_stack

__all__ = ["_EnableTorchFunction", "_TorchFunctionState", "_get_dispatch_stack_at", "_get_torch_function_state",
           "_is_torch_function_all_disabled", "_is_torch_function_enabled", "_len_torch_dispatch_stack",
           "_pop_torch_dispatch_stack", "_pop_torch_function_stack", "_push_on_torch_dispatch_stack",
           "_push_on_torch_function_stack", "_set_torch_function_state"]  # fmt: skip


class _TorchFunctionState(enum.Enum):
    """Who is asked in a thread: modes and classes, modes alone, or nobody."""

    ENABLED = protocol.ALL
    SUBCLASSES_DISABLED = protocol.MODES
    ALL_DISABLED = protocol.NOBODY


def _get_torch_function_state() -> _TorchFunctionState:
    """Who is asked in this thread."""
    return _TorchFunctionState(protocol.here.asks)


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    """Say who is asked in this thread from now on."""
    protocol.here.asks = state.value


def _is_torch_function_enabled() -> bool:
    """Whether modes and classes are asked in this thread."""
    return protocol.here.asks == protocol.ALL


def _is_torch_function_all_disabled() -> bool:
    """Whether nobody is asked in this thread."""
    return protocol.here.asks == protocol.NOBODY


class _EnableTorchFunction:
    """Context manager in which modes and classes are asked, whatever is around it."""

    def __enter__(self) -> None:
        self.former = protocol.here.asks
        protocol.here.asks = protocol.ALL

    def __exit__(self, *error: object) -> None:
        protocol.here.asks = self.former


def _len_torch_dispatch_stack() -> int:
    """How many TorchDispatchModes this thread is in."""
    return len(_get_current_dispatch_mode_stack())


def _get_dispatch_stack_at(level: int) -> TorchDispatchMode:
    """The TorchDispatchMode at a place, counted from the outermost one.  Raises IndexError where there is none."""
    return _get_current_dispatch_mode_stack()[level]
