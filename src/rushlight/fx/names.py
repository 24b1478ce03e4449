"""Under which names functions and classes are known to whoever reads a graph."""

from __future__ import annotations

import builtins
import re
import sys
from typing import Any

__all__ = ["public_path", "qualified_name", "type_repr"]


def name_of(value: Any) -> str:
    """The name of a function or class, or of the class of another object."""
    return str(getattr(value, "__name__", type(value).__name__))


def room(value: object) -> str:
    """The module of a function or class, as PyTorch has it."""
    known = re.sub(r"^rushlight(\.(ops|dispatch)\b.*)?", "torch", getattr(value, "__module__", None) or "")
    return re.sub(r"^torch\._ops\b", "torch.ops", known)


def public_path(value: object) -> str | None:
    """The path from `torch` on under which a function, class or dtype is known; None for others."""
    name, module = name_of(value), room(value)
    inner = module.startswith("torch")  # what torch itself shows is known by that name, wherever it is defined
    wishes = [f"torch.functional.{name}", f"torch.{name}"] * inner + [f"{module}.{name}"]
    return next((found for found in map(_spelled, wishes) if _leads(found, value)), None)


def _spelled(path: str) -> str:
    """A path as users write it: linalg_norm is torch.linalg.norm."""
    *_, room, name = ("", *path.split("."))
    return path.removesuffix(name) + name.removeprefix(f"{room}_") if path.count(".") > 1 else path


def _leads(path: str, value: object) -> bool:
    first, *parts = path.split(".")
    if first != "torch" or not parts:
        return False
    at: Any = sys.modules[__name__.partition(".")[0]]
    for part in parts:
        at = getattr(at, part, None)
    return at is value


def qualified_name(value: object) -> str:
    """The name of what a step calls, with its module; builtins by their name alone."""
    name = name_of(value)
    if getattr(builtins, name, None) is value:
        return name
    module = re.sub(r"^torch\._ops\b", "torch.ops", getattr(value, "__module__", None) or "builtins")
    return public_path(value) or f"{module}.{name}"


def type_repr(kind: object) -> str:
    """An annotation as text."""
    if kind is ...:
        return "..."
    if not isinstance(kind, type) or hasattr(kind, "__origin__"):
        return repr(kind)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return re.sub(r"^rushlight\b", "torch", f"{kind.__module__}.{kind.__qualname__}")
