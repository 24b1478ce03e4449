"""Stacks of modes, one mode at a time, and who is asked by ``__torch_function__``."""

from __future__ import annotations

import enum
from typing import Any

from rushlight.overrides import protocol
from rushlight.overrides.modes import TorchFunctionMode
from rushlight.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack


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


def _push_on_torch_function_stack(mode: Any) -> None:
    """Let a mode be the innermost of this thread."""
    TorchFunctionMode.__enter__(mode)


def _pop_torch_function_stack() -> Any:
    """Take the innermost mode of this thread away, and return it.  Raises RuntimeError where there is none."""
    if not protocol.here.modes:
        raise RuntimeError("_pop_torch_function_stack: this thread is in no TorchFunctionMode")
    mode = protocol.here.modes[-1]
    TorchFunctionMode.__exit__(mode, None, None, None)
    return mode


def _len_torch_dispatch_stack() -> int:
    """How many TorchDispatchModes this thread is in."""
    return len(_get_current_dispatch_mode_stack())


def _get_dispatch_stack_at(level: int) -> TorchDispatchMode:
    """The TorchDispatchMode at a place, counted from the outermost one.  Raises IndexError where there is none."""
    return _get_current_dispatch_mode_stack()[level]


def _push_on_torch_dispatch_stack(mode: Any) -> None:
    """Let a TorchDispatchMode be the innermost of this thread."""
    TorchDispatchMode.__enter__(mode)


def _pop_torch_dispatch_stack(mode_key: object = None) -> TorchDispatchMode:
    """Take the innermost TorchDispatchMode of this thread away, and return it.  Raises RuntimeError where there is none."""
    stack = _get_current_dispatch_mode_stack()
    if not stack:
        raise RuntimeError("_pop_torch_dispatch_stack: this thread is in no TorchDispatchMode")
    TorchDispatchMode.__exit__(stack[-1])
    return stack[-1]
