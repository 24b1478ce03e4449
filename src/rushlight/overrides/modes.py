"""Modes: objects that are asked before every function of torch that their thread calls."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from rushlight.basics.caller import warn
from rushlight.overrides.protocol import INERT, here, plain
from rushlight.overrides.public import arm

_lock = threading.Lock()
_entered = [0]  # how many modes are active, in all threads


def _count(change: int) -> None:
    """Note that so many more modes are active: while there are any, no argument is too plain to be looked at."""
    with _lock:
        _entered[0] += change
        if _entered[0]:
            plain.clear()
        else:
            plain.update(INERT)


class TorchFunctionMode:
    """Context manager whose `__torch_function__` is called in place of every function of torch, whatever its arguments.

    Within it the mode is not active; the one around it is, if there is one.

    >>> import rushlight as torch
    >>> class Names(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(torch.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = torch.ones(2) + 1
    torch.ones
    torch.Tensor.add
    """

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> Any:
        """The older way to make one for a ``with``: a warning says so."""
        warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`")
        return cls(*args, **kwargs)

    def __torch_function__(self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        """Called in place of `func(*args, **kwargs)`."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no __torch_function__(self, func, types, args, kwargs)"
        )

    def __enter__(self) -> Self:
        arm()
        _count(1)
        here.modes = (*here.modes, self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        here.modes = here.modes[:-1]
        _count(-1)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing: it calls every function as it is."""

    def __torch_function__(self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        """`func(*args, **kwargs)`."""
        return func(*args, **(kwargs or {}))


def _get_current_function_mode_stack() -> list[Any]:
    """The modes that this thread is in, the outermost first."""
    return list(here.modes)


def _get_current_function_mode() -> object:
    """The innermost mode that this thread is in, or None."""
    return here.modes[-1] if here.modes else None


def _push_mode(mode: TorchFunctionMode) -> None:
    """Let a mode be the innermost of this thread."""
    TorchFunctionMode.__enter__(mode)


def _pop_mode() -> TorchFunctionMode:
    """Take the innermost mode of this thread away, and return it.  Raises RuntimeError where there is none."""
    if not here.modes:
        raise RuntimeError("this thread is in no TorchFunctionMode, of which one could be taken away")
    mode: TorchFunctionMode = here.modes[-1]
    TorchFunctionMode.__exit__(mode, None, None, None)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """A context without the innermost mode, which it gives."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Context in which ``__torch_dispatch__`` may be entered again: always so here, since nothing is below an operator."""
    yield
