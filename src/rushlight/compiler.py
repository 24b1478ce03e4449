"""``torch.compiler``: how code is compiled, where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from rushlight._dynamo.backends.registry import get_default_backend, list_backends, set_default_backend
from rushlight.compat.functions import compile

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset",
           "set_default_backend", "set_stance"]  # fmt: skip

Thing = TypeVar("Thing")


def is_compiling() -> bool:
    """Whether this code is being compiled: no."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether TorchDynamo follows this code: no."""
    return False


def is_exporting() -> bool:
    """Whether this code is being exported: no."""
    return False


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` as it is: it is not compiled anyway.  Without a function, a decorator that does the same.

    >>> import rushlight as torch
    >>> @torch.compiler.disable(recursive=False)
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    return _as_it_is if fn is None else _as_it_is(fn)


def _as_it_is(fn: Thing) -> Thing:
    if not callable(fn):
        raise TypeError(f"torch.compiler.disable: expected a function or a module, got {type(fn).__name__}")
    return fn


def allow_in_graph(fn: Thing) -> Thing:
    """`fn`, a function or a list of functions, as it is."""
    return fn


def assume_constant_result(fn: Thing) -> Thing:
    """`fn` as it is."""
    return fn


def reset() -> None:
    """Forget what was compiled: nothing was."""


def cudagraph_mark_step_begin() -> None:
    """Tell CUDA graphs that a step begins: there are none."""


class set_stance:
    """How to treat code that is compiled: accepted, without effect; a function, a context or a decorator."""

    def __init__(self, stance: str = "default", **options: object) -> None:
        self.stance = stance

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        return None

    def __call__(self, fn: Thing) -> Thing:
        """`fn` as it is."""
        return fn
