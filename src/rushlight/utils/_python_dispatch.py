"""Modes below operators, which rushlight does not have: what packages ask about them is answered, a mode is refused."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rushlight import absent

absent.names(
    globals(),
    "operators call no other operators that could be overridden below them; torch.overrides.TorchFunctionMode sees every function",
    "TorchDispatchMode",
)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is made of others that it shows to a tracer: none is."""
    return False


def _get_current_dispatch_mode() -> None:
    """The innermost mode: there is none."""


def _disable_current_modes() -> AbstractContextManager[None]:
    """A context without modes, as it is in any case."""
    return nullcontext()
