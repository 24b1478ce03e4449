"""What the names in a file stand for: PyTorch's storage types, dtypes and constructors, and what the user allows."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.size import Size
from rushlight.tensor import Tensor, layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided


class StorageType:
    """A type of storage as files name it.  dtype: of its elements, None for bytes of no dtype."""

    def __init__(self, module: str, name: str, dtype: dtype | None):
        self.module, self.name, self.dtype = module, name, dtype

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"


_NAMES = {
    "DoubleStorage": dtypes.float64,
    "FloatStorage": dtypes.float32,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
    "ComplexFloatStorage": dtypes.complex64,
    "ComplexDoubleStorage": dtypes.complex128,
}
UNTYPED = StorageType("torch.storage", "UntypedStorage", None)
STORAGE_TYPES = {dtype: StorageType("torch", name, dtype) for name, dtype in _NAMES.items()}
UNSUPPORTED = {"_rebuild_qtensor": "a quantized tensor"}


class Ignored:
    """What PyTorch's compiler notes of a nested tensor: made, given its state and forgotten."""


def _encode(text: object, encoding: object) -> bytes:
    """How pickles of protocol 2 hold bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise TypeError("_codecs.encode is allowed for latin1 text only")
    return text.encode("latin1")


def _bytearray(data: bytes = b"", *encoding: object) -> bytearray:
    """A bytearray of bytes or of latin1 text, never one of a length that the file chooses."""
    return bytearray(_encode(data, *encoding) if encoding else bytes(data) if isinstance(data, (bytes, list)) else b"")


def _layout(name: str) -> layout:
    for kind in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
        if name == repr(kind):
            return kind
    raise TypeError(f"tensors of layout {name} are not supported")


FACTORIES = (list, dict, int, float, str, tuple, bool)  # may be named, but not called


def _defaultdict(factory: object = None, *items: object) -> object:
    """A defaultdict whose factory is one of the builtin types."""
    if factory not in (None, set, *FACTORIES):
        raise TypeError(f"a defaultdict of {factory!r} is not allowed")
    return defaultdict(factory, *items)


def _table() -> dict[str, Any]:
    """Everything that a file may name by default."""
    from rushlight.nn.parameter import Parameter
    from rushlight.serialization import rebuild

    table: dict[str, Any] = {f"torch.{d.name}": d for d in (*dtypes.ALL, *dtypes.EIGHTS)}
    table |= {f"torch.{alias}": d for alias, d in dtypes.ALIASES.items()}
    table |= {repr(kind): kind for kind in (UNTYPED, *STORAGE_TYPES.values())}
    table |= {f"torch._utils.{f.__name__}": f for f in rebuild.FUNCTIONS}
    table |= {
        "torch.UntypedStorage": UNTYPED,
        "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
        "torch.nested._internal.nested_tensor._rebuild_njt": rebuild._rebuild_njt,
        "torch.nested._internal.nested_tensor.NestedTensor": Tensor,
        "torch._dynamo.decorators._DimRange": Ignored,
        "torch.Tensor": Tensor,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.nn.Parameter": Parameter,
        "torch.Size": Size,
        "torch.device": device,
        "torch.strided": strided,
        "torch.serialization._get_layout": _layout,
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "collections.defaultdict": _defaultdict,
        "_codecs.encode": _encode,
        "builtins.bytearray": _bytearray,
    }
    plain = (set, frozenset, complex, slice, *FACTORIES)
    return table | {f"builtins.{kind.__name__}": kind for kind in plain}


_DEFAULT: dict[str, Any] = {}
_user: list[Any] = []
_lock = threading.Lock()


def default_table() -> dict[str, Any]:
    """The names that are allowed by default, with what they stand for."""
    if not _DEFAULT:
        _DEFAULT.update(_table())
    return _DEFAULT


def user_table() -> dict[str, Any]:
    """The names that the user allowed."""
    found = {}
    for entry in _user:
        value, name = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        found[name] = value
    return found


def lookup(module: str, name: str) -> Any:
    """What a name stands for.  Raises KeyError for one that is not allowed."""
    full = f"{'builtins' if module == '__builtin__' else module}.{name}"
    users = user_table()
    return users[full] if full in users else default_table()[full]


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files name these classes and functions too: those, or pairs (object, "module.name" in the file).

    Loading will call them with arguments from the file: allow only what you would run on anybody's data.
    """
    with _lock:
        _user.extend(entry for entry in safe_globals if entry not in _user)


def get_safe_globals() -> list[Any]:
    """What the user allowed."""
    return list(_user)


def clear_safe_globals() -> None:
    """Allow nothing but the defaults."""
    with _lock:
        _user.clear()


class safe_globals:
    """Context manager that allows classes and functions for a while."""

    def __init__(self, safe_globals: Iterable[Any]):
        self.entries = list(safe_globals)

    def __enter__(self) -> None:
        self.added = [entry for entry in self.entries if entry not in _user]
        add_safe_globals(self.entries)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with _lock:
            for entry in self.added:
                if entry in _user:
                    _user.remove(entry)
