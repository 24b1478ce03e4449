"""Which tensors a store takes: by bytes, by who saves them, by the module that runs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


def matcher(what: Callable[..., Any] | list[str] | str | None, name: str) -> Callable[[Any], bool] | None:
    """A predicate from a filter: None (everything), a name or pattern, several of them, or a predicate."""
    if what is None:
        return None
    if callable(what) and not isinstance(what, type):
        return what
    several = (
        (what,) if isinstance(what, str) else tuple(what) if isinstance(what, (list, tuple, set, frozenset)) else None
    )
    if several is None or not all(isinstance(x, str) for x in several):
        raise TypeError(f"{name}=: expected a name, names or a predicate, got {what!r}")
    return lambda found: any(fnmatchcase(str(found), pattern) for pattern in several)


class ModuleFilter:
    """Whether any of the modules that run is meant: by name (dotted in a wrapped module, or the class's), object, class or
    predicate."""

    def __init__(self, what: Any):
        self.given = tuple(what) if isinstance(what, (list, tuple, set, frozenset)) else (what,)
        self.names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        for x in self.given:
            if not (isinstance(x, (str, type)) or callable(x)):
                raise TypeError(f"module=: expected names, modules, classes or a predicate, got {x!r}")

    def name_modules(self, root: Any) -> None:
        """Remember the names of the modules within `root`."""
        for name, module in root.named_modules():
            self.names[module] = name

    def __call__(self, running: list[Any]) -> bool:
        return any(self.meant(x, module) for module in running for x in self.given)

    def meant(self, x: Any, module: object) -> bool:
        """Whether `x` means a module."""
        if isinstance(x, str):
            return fnmatchcase(type(module).__name__, x) or fnmatchcase(self.names.get(module, ""), x)
        if isinstance(x, type):
            return isinstance(module, x)
        return x is module or (not hasattr(x, "_modules") and bool(x(module)))


class Running(threading.local):
    """The modules whose forward runs in this thread, outermost first, while a store asks."""

    def __init__(self) -> None:
        self.modules: list[Any] = []


running = Running()


class Following:
    """Keeps `running` while any store with a filter by module is active: module hooks, registered for that time."""

    lock = threading.Lock()
    count = 0
    handles: tuple[Any, ...] = ()

    @classmethod
    def start(cls) -> None:
        """One more store asks."""
        from rushlight.nn.modules import module as modules

        with cls.lock:
            cls.count += 1
            if cls.count == 1:
                cls.handles = (modules.register_module_forward_pre_hook(entered),
                               modules.register_module_forward_hook(left, always_call=True))  # fmt: skip

    @classmethod
    def stop(cls) -> None:
        """One less."""
        with cls.lock:
            cls.count -= 1
            if cls.count == 0:
                for handle in cls.handles:
                    handle.remove()
                cls.handles = ()


def entered(module: Module, args: tuple[Any, ...]) -> None:
    """The hook before a module's forward."""
    running.modules.append(module)


def left(module: object, args: tuple[Any, ...], result: Any) -> None:
    """The hook after it; what an exception left above the module goes too."""
    while running.modules and running.modules.pop() is not module:
        pass
