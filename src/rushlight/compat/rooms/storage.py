"""``torch.storage``: the bytes of tensors, and their elements by the older classes for each dtype."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rushlight.basics import dtypes
from rushlight.basics.caller import warn_once
from rushlight.ops.create.typed_storage import TypedStorage
from rushlight.serialization import load
from rushlight.storage import Storage as UntypedStorage

if TYPE_CHECKING:
    import os

    from rushlight.basics.dtypes import dtype

__all__ = ["TypedStorage", "UntypedStorage"]

_StorageBase = UntypedStorage


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Warn, once, that typed storages are deprecated."""
    warn_once(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should "
        "only matter to you if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() "
        "instead of tensor.storage()"
    )


def _load_from_bytes(b: bytes) -> Any:
    """A storage from bytes that `torch.save` made: what plain pickles of PyTorch's tensors call.  It can run what they hold."""
    return load(io.BytesIO(b), weights_only=False)


class _OfOneDtype(type):
    """The class of `torch.FloatStorage` and its relatives, whose instances are the typed storages of a dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, wrap_storage: UntypedStorage | None = None) -> TypedStorage:
        """A storage of so many elements, or of those of a sequence, or an empty one.  Deprecated."""
        _warn_typed_storage_removal()
        if wrap_storage is not None:
            return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)
        return TypedStorage(*args, dtype=cls.dtype)

    def __getattr__(cls, name: str) -> Any:
        """What typed storages have."""
        return getattr(TypedStorage, name)

    def from_buffer(
        cls, buffer: object, byte_order: str | None = None, count: int = -1, offset: int = 0
    ) -> TypedStorage:
        """A storage on a copy of bytes, as `UntypedStorage.from_buffer`."""
        return TypedStorage.from_buffer(buffer, byte_order, count, offset, cls.dtype)

    def _from_buffer(cls, buffer: object) -> TypedStorage:
        """A storage on a copy of bytes of this machine's order."""
        return cls.from_buffer(buffer, "native")

    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0) -> TypedStorage:
        """A storage of so many elements on the bytes of a file, as `UntypedStorage.from_file`."""
        untyped = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=cls.dtype)


def _storage(kind: str, dtype: dtype) -> Any:
    """The class for a dtype."""
    text = f"Typed storages of {dtype}.  Deprecated: `tensor.untyped_storage()` gives the bytes."
    return _OfOneDtype(f"{kind}Storage", (), {"__module__": "torch", "__doc__": text, "dtype": dtype})


class _OfAnyDtype(_OfOneDtype):
    """The class of what `torch.FloatStorage` and its relatives have in common."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage)


_LegacyStorage = _OfAnyDtype("_LegacyStorage", (), {"__module__": "torch.storage"})
BFloat16Storage = _storage("BFloat16", dtypes.bfloat16)
BoolStorage = _storage("Bool", dtypes.bool)
ByteStorage = _storage("Byte", dtypes.uint8)
CharStorage = _storage("Char", dtypes.int8)
ComplexDoubleStorage = _storage("ComplexDouble", dtypes.complex128)
ComplexFloatStorage = _storage("ComplexFloat", dtypes.complex64)
DoubleStorage = _storage("Double", dtypes.float64)
FloatStorage = Storage = _storage("Float", dtypes.float32)
HalfStorage = _storage("Half", dtypes.float16)
IntStorage = _storage("Int", dtypes.int32)
LongStorage = _storage("Long", dtypes.int64)
ShortStorage = _storage("Short", dtypes.int16)


def class_of(dtype: dtype) -> Any:
    """The class of the typed storages of a dtype, None where there is none."""
    made = (x for x in globals().values() if isinstance(x, _OfOneDtype) and not isinstance(x, _OfAnyDtype))
    return next((x for x in made if x.dtype is dtype), None)


def _get_dtype_from_pickle_storage_type(pickle_storage_type: str) -> Any:
    """The dtype of the typed storages of a name.  Raises KeyError for what is none."""
    found = globals().get(pickle_storage_type)
    if not isinstance(found, _OfOneDtype) or isinstance(found, _OfAnyDtype):
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized')
    return found.dtype
