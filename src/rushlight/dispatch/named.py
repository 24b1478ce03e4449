"""torch's functions by name, looked up when used: for what formulas need of modules imported later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.dispatch.registry import NAMESPACES


class Named:
    """`named.exp` is torch.exp, `Named("linalg").inv` torch.linalg.inv."""

    def __init__(self, ns: str = ""):
        self._ns = ns

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            found: Callable[..., Any] = NAMESPACES[self._ns][name]
            self.__dict__[name] = found
        except KeyError:
            raise AttributeError(f"torch{self._ns and '.' + self._ns} has no function {name!r}") from None
        return found


named, linalg = Named(), Named("linalg")
