"""Reading PyTorch's format."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import pickletools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.dispatch.meta import nowhere
from rushlight.dispatch.options import Nowhere
from rushlight.ops.create.typed_storage import TypedStorage
from rushlight.serialization import legacy, names, options
from rushlight.serialization.archive import ArchiveReader
from rushlight.serialization.machine import Machine
from rushlight.serialization.names import StorageType
from rushlight.serialization.rebuild import Stored, stored
from rushlight.storage import Storage

ZIP, TAR = b"PK\x03\x04", b"ustar"


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: object,
) -> Any:
    """Read what `save`, here or in PyTorch, wrote.

    Args:
        f: path, or file open for reading bytes that can be sought in.
        map_location: where storages of other devices go: a device, its name, a dictionary of names, or a function of
            (storage, name) that returns a storage or None.  Needed for storages of a GPU.  "meta": shapes and dtypes alone.
        pickle_module: a module whose `Unpickler` reads the file; weights_only is False then.
        weights_only: True, the default: read tensors, numbers, strings and containers of them, and call nothing but
            a few constructors and what add_safe_globals allows.  False: run whatever the file says; only for files
            that you trust.
        mmap: map the storages of a file at a path into memory, so that they are read when they are touched; changes
            stay in memory, unless `set_default_mmap_options` says otherwise.

    Raises FileNotFoundError; RuntimeError for a damaged archive; pickle.UnpicklingError for a pickle that is damaged
    or asks for what is not allowed; TypeError for arguments that nothing takes.
    """
    if pickle_module is not None and not hasattr(pickle_module, "Unpickler"):
        raise AttributeError(f"load: pickle_module must be a module with an Unpickler, got {pickle_module!r}")
    weights_only = _whether_weights_only(weights_only, pickle_module)
    unknown = sorted(pickle_load_args.keys() - {"encoding"}) if weights_only else []
    if unknown:
        raise TypeError(
            f"load() got an unexpected keyword argument {unknown[0]!r}: with weights_only=True no unpickler takes it"
        )
    place = _placement(map_location)
    mmap = options.LOADING["mmap"] if mmap is None else mmap
    with ExitStack() as stack:
        file, name = _open(f, stack, bool(mmap) and options.get_default_mmap_options() == options.MAP_SHARED)
        if mmap and not isinstance(f, (str, os.PathLike)):
            raise ValueError("f must be a file path in order to use the mmap argument")
        start = file.read(4)
        file.seek(-len(start), os.SEEK_CUR)
        if start == ZIP:
            archive = ArchiveReader(file, name, bool(mmap))
            storages, read = Storages(archive, place), _reader(weights_only, pickle_module, pickle_load_args)
            return _read(read, io.BytesIO(archive.read("data.pkl")), storages)
        if mmap:
            raise RuntimeError(
                f"mmap can only be used with files saved with `torch.save({name}, _use_new_zipfile_serialization=True)`, which is the default"
            )
        if not start:
            raise EOFError(f"{name} is empty")
        _refuse_tar(file, name)
        return legacy.load(file, name, place, _reader(weights_only, pickle_module, pickle_load_args))


_YES = ("1", "y", "yes", "true")


def _whether_weights_only(asked: bool | None, pickle_module: object) -> bool:
    """What `load` is asked for, by its arguments and by the variables TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD."""
    force, never = (f"TORCH_FORCE_{which}WEIGHTS_ONLY_LOAD" for which in ("", "NO_"))
    forced, freed = (os.environ.get(name, "").lower() in _YES for name in (force, never))
    if forced and freed:
        raise RuntimeError(f"Only one of `{force}` or `{never}` should be set, but both were set.")
    if forced:
        asked = True
    elif asked is None and freed:
        warn(f"Environment variable {never} detected: weights_only is False, and the file can run any code")
        asked = False
    if asked and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified: leave out pickle_module, or say "
                           "weights_only=False")  # fmt: skip
    return pickle_module is None if asked is None else asked


def _open(f: Any, stack: ExitStack, writable: bool = False) -> tuple[IO[bytes], str]:
    if isinstance(f, (str, os.PathLike)):
        return stack.enter_context(open(f, "r+b" if writable else "rb")), repr(os.fspath(f))
    for method in ("read", "seek", "tell"):
        if not callable(getattr(f, method, None)):
            raise AttributeError(
                f"load: f must be a path or a file that can be sought in, but {type(f).__name__} has no {method}. "
                "You can only torch.load from a file that is seekable: read it into a buffer like io.BytesIO first"
            )
    f.seek(f.tell())
    return f, getattr(f, "name", None) or f"the {type(f).__name__}"


def _refuse_tar(file: IO[bytes], name: str) -> None:
    at = file.tell()
    file.seek(at + 257)
    found = file.read(5)
    file.seek(at)
    if found == TAR:
        raise RuntimeError(f"{name} is a tar file of PyTorch before 0.2: load it with PyTorch and save it again")


# Where storages go ---------------------------------------------------------------------------------


Place = Callable[[Any, str], Any]


def _placement(map_location: object) -> Place:
    """A function of (array, location in the file) that returns the array to use."""
    if map_location is None:
        return _here
    if isinstance(map_location, dict):
        return lambda array, location: _here(array, _named(map_location.get(location, location)))
    if isinstance(map_location, (str, bytes, device)):
        target = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda array, location: _here(array, target)
    if callable(map_location):
        return lambda array, location: _chosen(map_location, array, location)
    raise TypeError(f"load: map_location must be a device, a str, a dict or a function, got {map_location!r}")


def _named(location: object) -> str:
    if not isinstance(location, (str, device)):
        error = TypeError(f"load: map_location must lead from names to names or devices, got {type(location).__name__}")
        raise _Chosen(error)
    return str(location)


def _here(array: Array, location: str) -> Array:
    if location == "meta":
        return nowhere((array.size,), array.dtype).view(Nowhere)
    if location.split(":")[0] == "cpu" and not options.others():
        return array
    found: Array = options.default_restore_location(Storage(array), location).untyped().bytes()
    return found if found.dtype == array.dtype else found.view(array.dtype)


def _chosen(choose: Callable[..., Any], array: Array, location: str) -> Array:
    storage = Storage(array)
    try:
        found = choose(storage, location)
    except Exception as error:
        raise _Chosen(error) from None
    if found is None:
        return _here(array, location)
    if not isinstance(found, (Storage, TypedStorage)):
        raise _Chosen(TypeError(f"load: map_location must return a storage or None, got {type(found).__name__}"))
    root: Array = found.untyped().root
    return root if root.dtype == array.dtype else root.reshape(-1, order="A").view(array.dtype)


class _Chosen(Exception):
    """What a function given as `map_location` raised, on its way through the reader, which takes no errors for its own."""


class Storages:
    """The storages of an archive, each read once, when the pickle names it."""

    def __init__(self, archive: ArchiveReader, place: Place):
        self.archive, self.place = archive, place
        self.read: dict[str, Stored] = {}

    def __call__(self, identity: Any) -> Stored:
        _, kind, key, location, numel = check_identity(identity, 5)
        if key not in self.read:
            dtype = np.dtype(np.uint8) if kind.dtype is None else kind.dtype.numpy
            self.read[key] = stored(self.place(self.archive.storage(key, dtype, numel), location))
        return self.read[key]


def check_identity(identity: object, length: int) -> tuple[Any, ...]:
    """What a pickle names a storage by, once it is known to be of the right form."""
    if not (isinstance(identity, tuple) and len(identity) == length and identity[0] in ("storage", b"storage")):
        raise pickle.UnpicklingError(f"the pickle names a storage in an unknown form: {identity!r}")
    _, kind, key, location, numel, *rest = identity
    key, location = (v.decode() if isinstance(v, bytes) else v for v in (key, location))
    types = isinstance(kind, StorageType), type(key) is str, type(location) is str, type(numel) is int
    if not all(types) or numel < 0:
        raise pickle.UnpicklingError(f"the pickle names a storage in an unknown form: {identity!r}")
    return ("storage", kind, key, location, numel, *rest)


# The two readers -----------------------------------------------------------------------------------


class Finding:
    """What an unpickler of files that are trusted has more: storages, and PyTorch's names, which are looked up here."""

    storages: Any = None

    def persistent_load(self, identity: object) -> Any:
        """A storage that the pickle names."""
        return self.storages(identity)

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for: of torch the like of it here."""
        if module.split(".")[0] != "torch":
            return super().find_class(module, name)  # type: ignore[misc]
        try:
            return names.lookup(module, name)
        except KeyError:
            pass
        if name in names.UNSUPPORTED:
            raise pickle.UnpicklingError(f"{names.UNSUPPORTED[name]} is not supported")
        try:
            here = importlib.import_module("rushlight.compat.aliases").real_name(module)
            return getattr(importlib.import_module(here), name)
        except (ImportError, AttributeError):
            if sys.modules.get("torch") is sys.modules["rushlight"] and hasattr(sys.modules.get(module), name):
                return getattr(sys.modules[module], name)  # of a module that somebody else put below torch
            raise pickle.UnpicklingError(f"the file asks for {module}.{name}, which rushlight does not have") from None


Read = Callable[[IO[bytes], Any], Any]  # of a file and what gives its storages


def _reader(weights_only: bool, module: Any, options: dict[str, Any]) -> Read:
    """A function that reads one pickle, with the unpickler of a module, by default Python's own."""
    if weights_only:
        encoding = options.get("encoding", "utf-8")
        return lambda file, storages: Machine(file, storages, encoding).load()

    def read(file: IO[bytes], storages: Storages) -> Any:
        kind = type("Unpickler", (Finding, (module or pickle).Unpickler), {})
        unpickler: Any = kind(file, **{"encoding": "utf-8", **options})
        unpickler.storages = storages
        return unpickler.load()

    return read


def _read(read: Read, file: IO[bytes], storages: Storages) -> Any:
    try:
        return read(file, storages)
    except _Chosen as chosen:
        raise chosen.args[0] from None


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | IO[bytes]) -> list[str]:
    """The names in a file that `load` with weights_only=True refuses, found without loading it."""
    with ExitStack() as stack:
        file, name = _open(f, stack)
        data = ArchiveReader(file, name).read("data.pkl")
    found: list[Any] = []
    strings: list[str] = []
    for code, argument, _ in pickletools.genops(data):
        if code.name == "STACK_GLOBAL":
            found.append(tuple(strings[-2:]))
        elif code.name == "GLOBAL" and isinstance(argument, str):
            found.append(tuple(argument.split(" ")))
        elif isinstance(argument, str):
            strings.append(argument)
    modern = [("builtins" if module == "__builtin__" else module, item) for module, item in found]
    return [f"{module}.{item}" for module, item in dict.fromkeys(modern) if not _known(module, item)]


def _known(module: str, name: str) -> bool:
    try:
        names.lookup(module, name)
    except KeyError:
        return False
    return True
