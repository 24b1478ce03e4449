"""Processes that `multiprocessing` starts anew (its methods spawn and forkserver) resolve ``torch`` as this one does."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

__all__ = ["TAUGHT", "Teaching", "resolve"]


def resolve() -> None:
    """Resolve ``torch`` to rushlight, and keep tensors of CUDA devices on the CPU, from now on in this process."""
    from rushlight.compat import devices, imports

    imports.install()
    devices.stay_on_cpu()


class Resolved:
    """What in the place where it is unpickled calls `resolve`."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return resolve, ()


def teach_spawn(spawning: ModuleType) -> None:
    """Have ``multiprocessing.spawn`` send a `Resolved` ahead of what it sends to each process that it starts; once is enough."""
    prepare = spawning.get_preparation_data
    if prepare.__module__ == __name__:
        return

    def prepared(name: str) -> dict[str, Any]:
        from rushlight.compat import imports

        return {**({"torch": Resolved()} if imports.installed() else {}), **prepare(name)}

    spawning.get_preparation_data = prepared  # type: ignore[attr-defined]


def teach_server(serving: ModuleType) -> None:
    """Have ``multiprocessing.forkserver`` resolve ``torch`` in its server before that loads modules ahead of its children.

    It would load the script first, which is left to the children.
    """
    start = serving.ForkServer.ensure_running
    if start.__module__ == __name__:
        return

    def ensure_running(self: Any) -> None:
        from rushlight.compat import imports

        if imports.installed():
            ahead = [name for name in self._preload_modules if name not in ("__main__", RESOLVED)]
            self._preload_modules = [RESOLVED, *ahead]
        start(self)

    serving.ForkServer.ensure_running = ensure_running
    serving.ensure_running = serving._forkserver.ensure_running  # type: ignore[attr-defined]


RESOLVED = "rushlight.compat.resolved"
TAUGHT = {"multiprocessing.spawn": teach_spawn, "multiprocessing.forkserver": teach_server}


class Teaching(SourceFileLoader):
    """Loads what starts processes, and teaches it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        TAUGHT[module.__name__](module)
