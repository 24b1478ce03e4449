"""For functions of one's own that are to be overridden as torch's are: whether an argument overrides, and asking it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.overrides.protocol import (
    ALL,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    asked,
    here,
    overrides,
    overriding,
)
from rushlight.overrides.public import OWNER
from rushlight.tensor import Tensor


def is_tensor_like(inp: object) -> bool:
    """Whether `inp` is a tensor, or has ``__torch_function__``.

    >>> import rushlight as torch
    >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments overrides functions, or a mode is active.  Plain tensors and parameters do not.

    >>> import rushlight as torch
    >>> class Own(torch.Tensor):
    ...     pass
    >>> torch.overrides.has_torch_function((torch.ones(1), Own([1.0])))
    True
    """
    if here.passed:
        here.passed = False
        return False
    return (here.asks == ALL and any(overrides(x.__class__) for x in relevant_args)) or bool(here.asks and here.modes)


def has_torch_function_unary(argument: object) -> bool:
    """``has_torch_function((argument,))``."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: object) -> bool:
    """``has_torch_function(arguments)``."""
    return has_torch_function(arguments)


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: object, **kwargs: object) -> Any:
    """What overrides `public_api`, called with `args` and `kwargs`, in place of it.

    relevant_args: those of the arguments that may override it; plain tensors among them alone answer with the function itself.
    Raises TypeError where none of them has an answer.
    """
    relevant = tuple(relevant_args)
    found = overriding(relevant, True) if here.asks == ALL else []
    if not found and not here.modes and any(isinstance(x, Tensor) for x in relevant):
        with DisableTorchFunctionSubclass():
            return public_api(*args, **kwargs)
    name = f"{public_api.__module__}.{public_api.__name__}"
    return asked(public_api, name, args, kwargs, found, True)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function that the arguments may override which `dispatcher`, called with all of them, names.

    >>> import rushlight as torch
    >>> @torch.overrides.wrap_torch_function(lambda a, b: (a, b))
    ... def both(a, b):
    ...     return a + b
    >>> both(1, 2)
    3
    """

    def wrap(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: object, **kwargs: object) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return wrap


def redispatch_function(func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...],
                        kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
    """Call `func` from within ``__torch_function__`` without asking again for itself: for what it calls, all are asked.

    Operators call nothing that would be asked for, and give plain tensors.

    >>> import rushlight as torch
    >>> class Told(torch.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args, kwargs=None):
    ...         print(func.__name__)
    ...         return torch.overrides.redispatch_function(func, types, args, kwargs)
    >>> torch.add(Told([1.0]), 1)
    add
    tensor([2.])
    """
    named = kwargs or {}
    if id(func) in OWNER or getattr(func, "__module__", None) is None:  # of attributes
        with DisableTorchFunction():
            return func(*args, **named)
    former, here.passed = here.passed, True
    try:
        return func(*args, **named)
    finally:
        here.passed = former
