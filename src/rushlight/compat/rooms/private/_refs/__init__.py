"""``torch._refs``: functions of torch as PyTorch writes them in Python.  Here they are the operators themselves."""

from __future__ import annotations

import importlib
from typing import Any

from rushlight.dispatch.registry import NAMESPACES
from rushlight.tensor import Tensor

__all__: list[str] = []

_BELOW = ("_conversions", "fft", "linalg", "nn", "special")


def operator(namespace: str, name: str) -> Any:
    """The operator of a name, or the method.  Raises AttributeError where there is neither."""
    found = NAMESPACES[namespace].get(name)
    if found is None and not namespace:
        found = vars(Tensor).get(name)
        in_place = vars(Tensor).get(f"{name}_") if found is None else None
        if in_place is not None:  # cauchy, exponential: draws that have a method alone
            return lambda self, *args, **kwargs: in_place(self.clone(), *args, **kwargs)
    if found is None:
        inner = f"torch._refs.{namespace}".rstrip(".")
        raise AttributeError(f"module {inner!r} has no attribute {name!r}")
    return found if callable(found) else lambda self: getattr(self, name)  # T, mT: functions of a tensor there


def __getattr__(name: str) -> Any:
    if name in _BELOW:
        return importlib.import_module(f"{__name__}.{name}")
    return operator("", name)
