"""What a module of an accelerator says where there is none: the questions are answered, what needs it raises."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from rushlight import absent

__all__ = ["answers", "contexts", "needs"]


def answers(room: dict[str, Any], given: dict[str, Any]) -> None:
    """Put functions into a module that take any arguments and return these values."""
    absent.put(room, {name: _answer(room["__name__"], name, value) for name, value in given.items()})


def _answer(module: str, name: str, value: object) -> Callable[..., Any]:
    def answer(*args: object, **kwargs: object) -> Any:
        return copy.copy(value)

    answer.__name__ = answer.__qualname__ = name
    answer.__module__, answer.__doc__ = module, f"{value!r}: there is no such device."
    return answer


def needs(room: dict[str, Any], kind: str, given: str, error: type[Exception] = AssertionError) -> None:
    """Put functions into a module that raise, since there is no device of this kind."""
    absent.put(room, {name: _need(room["__name__"], name, kind, error) for name in given.split()})


def _need(module: str, name: str, kind: str, error: type[Exception]) -> Callable[..., NoReturn]:
    def refused(*args: object, **kwargs: object) -> NoReturn:
        raise error(f"torch.{kind}.{name}: there is no {kind.upper()} device; ask torch.{kind}.is_available() first")

    refused.__name__ = refused.__qualname__ = name
    refused.__module__, refused.__doc__ = module, f"Raises {error.__name__}: there is no such device."
    return refused


class _Nothing:
    """A context in which a device is chosen.  Raises RuntimeError on entering, but for None and numbers below 0."""

    kind = ""

    def __init__(self, device: Any = None) -> None:
        self.device = device

    def __enter__(self) -> None:
        if self.device is not None and not (isinstance(self.device, int) and self.device < 0):
            raise RuntimeError(f"torch.{self.kind}.{type(self).__name__}: there is no {self.kind.upper()} device")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


def contexts(room: dict[str, Any], kind: str, given: str) -> None:
    """Put classes into a module whose instances are contexts that choose a device, or a queue of it."""
    own = {"__module__": room["__name__"], "kind": kind, "__doc__": _Nothing.__doc__}
    absent.put(room, {name: type(name, (_Nothing,), own) for name in given.split()})


def classes(room: dict[str, Any], kind: str, given: str) -> None:
    """Put classes without instances into a module."""
    absent.names(room, f"there is no {kind.upper()} device", given)
