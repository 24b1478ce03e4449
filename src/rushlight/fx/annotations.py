"""Annotations as the code of a graph writes them: each name in them is a name that the code is given."""

from __future__ import annotations

import builtins
import re
import types
import typing
from collections.abc import Callable
from typing import Any

__all__ = ["annotation", "compared"]


def compared(kind: object) -> Any:
    """What `kind` is an alias of, as the code names it: typing.List of List[int], typing.Union of Optional[int]."""
    origin = typing.get_origin(kind)
    named = getattr(typing, getattr(kind, "__name__", ""), None)
    builtin = getattr(builtins, getattr(origin, "__name__", ""), None) is origin
    return named if builtin and getattr(kind, "__module__", "") == "typing" and named is not None else origin


def annotation(kind: object, name: Callable[[Any], str], keep: Callable[[str, Any], str]) -> str:
    """An annotation as code.

    name: gives a function or class a name that the code knows; keep: does for any other object, whose wish is given.
    """
    if kind is type(None):
        return "NoneType"
    if isinstance(kind, types.UnionType):
        return "|".join(annotation(part, name, keep) for part in kind.__args__)
    if isinstance(kind, list):
        return f"[{','.join(annotation(part, name, keep) for part in kind)}]"
    if typing.get_origin(kind) is not None:
        parts = ",".join(annotation(part, name, keep) for part in typing.get_args(kind))
        return f"{name(compared(kind))}[{parts}]" if parts else name(compared(kind))
    if isinstance(kind, type) or hasattr(kind, "__module__"):
        return name(typing.get_origin(kind) or kind)
    return keep(re.sub(r"[^0-9a-zA-Z_]+", "_", "..." if kind is ... else repr(kind)), kind)
