"""``import torch`` resolved to rushlight: an import hook that gives the same module objects a second name.

``torch.nn.functional`` *is* ``rushlight.nn.functional``: a class found under both names is one class, so
``isinstance`` and pickles agree.  What scripts ask PyTorch's version for is decided by PyTorch's version: while the
hook is there, ``__version__`` is the one of PyTorch that rushlight behaves as.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import rushlight

__all__ = ["ALIASES", "install", "public_name", "real_name", "uninstall"]

# Longest prefix first.
ALIASES = {
    "torchvision.models": "rushlight.models",
    "torchvision": "rushlight.compat.torchvision",
    "torchviz": "rushlight.compat.torchviz",  # needs Graphviz, and PyTorch
    "torch.backends": "rushlight.compat.backends",  # rushlight.backends is what operators compute with
    "torch.torch_version": "rushlight.compat.torch_version",
    "torch.version": "rushlight.compat.version",
    "torch": "rushlight",
}


def real_name(name: str) -> str | None:
    """The module that ``name`` resolves to, None for a name that is not ours.

    >>> real_name("torch.nn.functional"), real_name("torchvision.models.resnet"), real_name("torchaudio")
    ('rushlight.nn.functional', 'rushlight.models.resnet', None)
    """
    for alias, target in ALIASES.items():
        if name == alias or name.startswith(alias + "."):
            return target + name[len(alias) :]
    return None


def public_name(module: str) -> str:
    """The name under which a PyTorch user knows a module of this package.

    >>> public_name("rushlight.optim"), public_name("rushlight.models.resnet"), public_name("numpy")
    ('torch.optim', 'torchvision.models.resnet', 'numpy')
    """
    for alias, target in ALIASES.items():
        if module == target or module.startswith(target + "."):
            return alias + module[len(target) :]
    return module


class _Alias(Loader):
    """Loads a module by handing out one that exists."""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self.spec, self.loader = module.__spec__, module.__loader__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just written the alias's spec over the module's own.
        module.__spec__, module.__loader__ = self.spec, self.loader


class _Finder(MetaPathFinder):
    """Finds ``torch`` and ``torchvision``, and what lies below them, in this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        real = real_name(fullname)
        if real is None or (real not in sys.modules and importlib.util.find_spec(real) is None):
            return None
        module = importlib.import_module(real)
        return ModuleSpec(fullname, _Alias(real), is_package=hasattr(module, "__path__"))


_finder = _Finder()


def install() -> None:
    """Resolve ``torch`` and ``torchvision`` to rushlight from now on, in this process.

    Raises RuntimeError if another ``torch`` has been imported already.
    """
    if _finder in sys.meta_path:
        return
    for name in ("torch", "torchvision"):
        if name in sys.modules:
            raise RuntimeError(f"{name} has been imported already: install the import hook before it")
    sys.meta_path.insert(0, _finder)
    _show_version("rushlight.compat.version", "rushlight.compat.torch_version", "PYTORCH")


def _show_version(room: str, module: str, name: str) -> None:
    """Let ``rushlight.version`` be that room and ``rushlight.__version__`` that name of a module."""
    vars(rushlight)["version"] = importlib.import_module(room)
    vars(rushlight)["__version__"] = getattr(importlib.import_module(module), name)


def uninstall() -> None:
    """Undo :func:`install`: the names are forgotten, the modules stay."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        _show_version("rushlight.version", "rushlight.version", "__version__")
    for name in [name for name in sys.modules if real_name(name)]:
        del sys.modules[name]
