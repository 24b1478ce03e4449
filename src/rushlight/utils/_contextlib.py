"""Contexts that decorate functions, generators and coroutines too: what packages build their own on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rushlight.engine.modes import decorate

__all__ = ["context_decorator"]


def context_decorator(ctx: object, func: Callable[..., Any]) -> Any:
    """`func` within a context: a function that makes one for each call, or one context for all.

    Raises ValueError for an object that could be either.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise ValueError(f"context_decorator(): expected a context or a function that makes one, got {ctx!r}, which is both: "
                         "give lambda: ctx")  # fmt: skip
    return decorate(func, ctx if callable(ctx) else lambda: ctx)


def _wrap_generator(ctx_factory: Callable[[], Any], func: Callable[..., Any]) -> object:
    """A generator function with a fresh context around each step."""
    return decorate(func, ctx_factory)


class _DecoratorContextManager:
    """What is entered in a with statement, or decorates a function: each call enters a `clone()`."""

    def __call__(self, orig_func: Any) -> Any:
        if inspect.isclass(orig_func):
            orig_func.__init__ = self(orig_func.__init__)  # type: ignore[method-assign]
            return orig_func
        return decorate(orig_func, self.clone)

    def __enter__(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} defines no __enter__(self)")

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        raise NotImplementedError(f"{type(self).__name__} defines no __exit__(self, exc_type, exc_value, traceback)")

    def clone(self) -> Any:
        """Another one; of classes whose constructor takes arguments, to be overridden."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One whose class is itself a decorator: `@the_class` without brackets."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
