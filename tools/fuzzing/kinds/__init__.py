"""The kinds of programs, one file each."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from .base import Kind

FILES = {
    "views": "views",
    "operators": "operators",
    "modes": "modes",
    "functions": "functions",
    "hooks": "hooks",
    "saved": "saved",
    "grads": "grads",
    "transforms": "transforms",
    "threads": "threads",
    "layers": "layers",
    "memory": "memory",
    "recorded": "selves",
    "anomaly": "selves",
    "general": "selves",
    "native": "selves",
    "squeezed": "selves",
    "stored": "selves",
}
NAMES = tuple(FILES)


def kind(name: str) -> Kind:
    """The kind of that name."""
    module = import_module(f".{FILES[name]}", __package__)
    found = module.KINDS[name] if hasattr(module, "KINDS") else module.KIND
    assert isinstance(found, Kind)
    return found


def usable(names: Iterable[str]) -> list[str]:
    """Those kinds whose sides are there: without PyTorch, the ones that compare rushlight with itself."""
    kinds = []
    for name in names:
        try:
            kind(name).sides()
        except ImportError:
            continue
        kinds.append(name)
    return kinds
