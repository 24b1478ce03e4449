"""Processes that `multiprocessing` starts anew (its methods spawn and forkserver) resolve ``torch`` as this one does."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

__all__ = ["Teaching", "resolve", "teach"]


def resolve() -> None:
    """Resolve ``torch`` to rushlight, and keep tensors of CUDA devices on the CPU, from now on in this process."""
    from rushlight.compat import devices, imports

    imports.install()
    devices.stay_on_cpu()


class Resolved:
    """What in the place where it is unpickled calls `resolve`."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return resolve, ()


def teach(spawning: ModuleType) -> None:
    """Have ``multiprocessing.spawn`` send a `Resolved` ahead of what it sends to each process that it starts; once is enough."""
    prepare = spawning.get_preparation_data
    if prepare.__module__ == __name__:
        return

    def prepared(name: str) -> dict[str, Any]:
        from rushlight.compat import imports

        return {**({"torch": Resolved()} if imports.installed() else {}), **prepare(name)}

    spawning.get_preparation_data = prepared  # type: ignore[attr-defined]


class Teaching(SourceFileLoader):
    """Loads ``multiprocessing.spawn``, and teaches it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        teach(module)
