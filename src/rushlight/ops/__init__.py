"""Operators: importing this package declares all of them and attaches the methods of Tensor."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.registry import NAMESPACES
from rushlight.ops import everything  # noqa: F401

__all__ = ["NAMESPACES"]


def __getattr__(name: str) -> Any:
    if name == "aten":
        import importlib

        return importlib.import_module("rushlight.ops.python.aten")
    try:
        return NAMESPACES[""][name]
    except KeyError:
        raise AttributeError(f"module 'rushlight.ops' has no attribute {name!r}") from None
