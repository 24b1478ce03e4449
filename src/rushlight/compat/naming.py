"""What modules, classes and functions call themselves: by PyTorch's names while ``torch`` means this package.

Libraries choose a backend by ``type(x).__module__``, patch by dotted names, and look for "torch" in the text of a type.
Rooms that PyTorch does not have keep their own names.
"""

import functools
import sys
import warnings
from types import FunctionType, ModuleType
from typing import Any

from rushlight.compat.aliases import public_name
from rushlight.compat.homes import HOMES
from rushlight.compat.reached import lend

__all__ = ["OWN", "loaded", "show_own", "show_public", "silence_numpy"]

# Rooms below rushlight that PyTorch does not have, or has in another sense.
OWN = frozenset({
    "backends", "basics", "checkpoint", "cli", "compat", "datasets", "dispatch", "engine", "generator", "kernels", "levels",
    "memory", "ops", "storage", "stores", "tensor", "transforms", "version", "viz",
})  # fmt: skip


_renamed: list[tuple[Any, str, str]] = []  # object, attribute, its former value


def show_public(module: ModuleType) -> None:
    """Let a module of this package, its classes and its functions bear the names that they have in PyTorch."""
    _rename(module, "__name__")
    sys.modules.setdefault(module.__name__, module)  # where annotations of its classes are looked up
    lend(module)
    for name, value in list(vars(module).items()):
        if isinstance(value, (type, FunctionType)):
            _rename(value, "__module__")
            if name == value.__name__ and str(value.__module__).startswith("rushlight."):
                _adopt(module, name, value)


def show_own() -> None:
    """Undo all of `show_public`."""
    while _renamed:
        value, attribute, former = _renamed.pop()
        setattr(value, attribute, former)


def silence_numpy() -> None:
    """NumPy's warnings name the module that called it: filter them under its public name too."""
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"torch\.")


def loaded() -> list[ModuleType]:
    """The modules of this package that have been imported."""
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "rushlight"]


@functools.cache  # thousands of classes and functions come from hundreds of modules
def _public(name: str) -> str:
    found = public_name(name)
    room = name.split(".")[1:2]
    # A file below one of these rooms may still be a module of PyTorch's, under another name.
    return name if room and room[0] in OWN and found == name.replace("rushlight", "torch", 1) else found


def _adopt(module: ModuleType, name: str, value: object) -> None:
    """Let what comes from a room of our own be of the module that publishes it."""
    if not module.__name__.startswith("rushlight") and name in getattr(module, "__all__", ()):
        _renamed.append((value, "__module__", value.__module__))
        value.__module__ = module.__name__


def _rename(value: object, attribute: str) -> None:
    former = getattr(value, attribute)
    home = HOMES.get((former, value.__name__)) if isinstance(value, type) else None
    name = home or (_public(former) if isinstance(former, str) else former)
    if name != former:
        _renamed.append((value, attribute, former))
        setattr(value, attribute, name)
