"""``import torch`` resolved to rushlight: an import hook that gives the same module objects a second name.

``torch.nn.functional`` *is* ``rushlight.nn.functional``: a class found under both names is one class, so
``isinstance`` and pickles agree; what has a name in PyTorch says that name of itself.  What scripts ask PyTorch's
version for is decided by PyTorch's version: while the hook is there, ``__version__`` is the one of PyTorch that
rushlight behaves as.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

import rushlight
from rushlight.absent import walls
from rushlight.compat import children, naming
from rushlight.compat.aliases import real_name

__all__ = ["install", "installed", "uninstall"]


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

    def get_code(self, name: str) -> CodeType | None:
        """What ``python -m torch.distributed.run`` runs; None of what is not written in Python."""
        spec = importlib.util.find_spec(self.target)
        found = getattr(None if spec is None else spec.loader, "get_code", None)
        code: CodeType | None = None if found is None else found(self.target)
        return code


class _Renaming(SourceFileLoader):
    """Loads a module of this package, and lets it bear its public names."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        naming.show_public(module)


class _Finder(MetaPathFinder):
    """Finds ``torch`` and ``torchvision``, and what lies below them, in this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("rushlight."):
            return _loaded_by(_Renaming, PathFinder.find_spec(fullname, path, target))
        if fullname in children.TAUGHT:
            return _loaded_by(children.Teaching, PathFinder.find_spec(fullname, path, target))
        if fullname.partition(".")[0] == "torchvision" and (_only_asked() or _installed("torchvision")):
            return None  # the package itself, on these operators; or none, and it is not there by half
        real = real_name(fullname)
        found = None if real is None else _spec(real)
        if real is None or found is None:
            return None  # another finder may know it
        return ModuleSpec(fullname, _Alias(real), is_package=found.submodule_search_locations is not None)


def _installed(name: str) -> bool:
    """Whether a package of that name lies on the path."""
    return PathFinder.find_spec(name) is not None


def _only_asked() -> bool:
    """Whether the finder's caller asks where a module lies (`importlib.util.find_spec`) and imports nothing.

    Libraries ask so whether torchvision is installed, and then take its transforms: programs that import its models get
    ours, but who asks hears that the package is not there.
    """
    return sys._getframe(3).f_globals.get("__name__") == "importlib.util"


def _spec(name: str) -> ModuleSpec | None:
    """The specification of a module of this package, None where there is none, nor a package to hold it."""
    if name in sys.modules:
        return sys.modules[name].__spec__
    wall = walls.room(name)
    if wall is not None:
        return wall.__spec__
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
        return None


def _loaded_by(loader: type[SourceFileLoader], spec: ModuleSpec | None) -> ModuleSpec | None:
    """A specification whose module is loaded in another way than files of Python are."""
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = loader(spec.loader.name, spec.loader.path)
    return spec


_finder = _Finder()


def code_of(name: str) -> CodeType | None:
    """What ``python -m name`` runs where that is a module of this package under a name of PyTorch's, None where it is not."""
    spec = None if name.startswith("rushlight.") else _finder.find_spec(name, None)
    if spec is None or not isinstance(spec.loader, _Alias) or spec.submodule_search_locations is not None:
        return None
    return spec.loader.get_code(name)


def install() -> None:
    """Resolve ``torch`` and ``torchvision`` to rushlight from now on, in this process.

    Raises RuntimeError if another ``torch`` has been imported already.
    """
    if installed():
        return
    if "torch" in sys.modules:
        raise RuntimeError("torch has been imported already: install the import hook before it")
    sys.meta_path.insert(0, _finder)
    _show_version("rushlight.compat.version", "rushlight.compat.torch_version", "PYTORCH")
    naming.silence_numpy()
    for module in naming.loaded():
        naming.show_public(module)
    for name, teach in children.TAUGHT.items():
        if name in sys.modules:
            teach(sys.modules[name])


def installed() -> bool:
    """Whether the hook is there."""
    return _finder in sys.meta_path


def _show_version(room: str, module: str, name: str) -> None:
    """Let ``rushlight.version`` be that room and ``rushlight.__version__`` that name of a module."""
    vars(rushlight)["version"] = importlib.import_module(room)
    vars(rushlight)["__version__"] = getattr(importlib.import_module(module), name)


def uninstall() -> None:
    """Undo `install`: the names are forgotten, the modules stay."""
    if installed():
        sys.meta_path.remove(_finder)
        _show_version("rushlight.version", "rushlight.version", "__version__")
        naming.show_own()
    for name in [name for name in sys.modules if real_name(name)]:
        del sys.modules[name]
