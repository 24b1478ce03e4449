"""Names that are imported when they are first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["lazily"]


def lazily(
    module: str, modules: Iterable[str] = (), places: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], Any]:
    """The `__getattr__` of a module: names that are imported when they are first asked for.

    module: its name, for errors; modules: those that have their own last names here; places: {name: the module that has it}.
    """
    known = {name.rpartition(".")[2]: name for name in modules}

    def find(name: str) -> Any:
        if name in known:
            return importlib.import_module(known[name])
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(places[name]), name)

    return find
