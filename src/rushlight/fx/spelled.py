"""Calls as they come to a proxy from functions that PyTorch has in Python: those hand on all that they take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight.basics.signatures import signature_of
from rushlight.overrides.public import OWNER

__all__ = ["explicit"]


def explicit(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call: of such a function all that have a default by name, also where they are as by default."""
    public = OWNER.get(id(func))
    if public is None or not public.python or public.name.startswith("torch.Tensor."):
        return args, kwargs
    signature = _signature(func)
    if signature is None:
        return args, kwargs
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:  # for the function to say
        return args, kwargs
    bound.apply_defaults()
    required = [p.name for p in signature.parameters.values() if p.default is p.empty]
    named = {name: value for name, value in bound.arguments.items() if name not in required}
    return tuple(bound.arguments[name] for name in required), named


@functools.cache
def _signature(func: Callable[..., Any]) -> inspect.Signature | None:
    """How a function is called; None for one of any number of arguments."""
    signature = signature_of(func)
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return None if any(p.kind in stars for p in signature.parameters.values()) else signature
