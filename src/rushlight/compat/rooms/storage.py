"""``torch.storage``: the bytes of tensors, and their elements by the older classes for each dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.basics import dtypes
from rushlight.basics.caller import warn_once
from rushlight.dispatch.named import named
from rushlight.ops.create.memory import TypedStorage
from rushlight.storage import Storage as UntypedStorage

if TYPE_CHECKING:
    from rushlight.basics.dtypes import dtype

__all__ = ["TypedStorage", "UntypedStorage"]


class _OfOneDtype(type):
    """The class of `torch.FloatStorage` and its relatives, whose instances are the typed storages of a dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> TypedStorage:
        """A storage of so many elements, or of those of a sequence, or an empty one.  Deprecated."""
        warn_once(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should "
            "only matter to you if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() "
            "instead of tensor.storage()"
        )
        if len(args) > 1:
            raise TypeError(f"{cls.__name__}() takes at most one argument: a size or a sequence of elements")
        if args and not isinstance(args[0], int):
            return TypedStorage(named.tensor(list(args[0]), dtype=cls.dtype))
        return TypedStorage(named.empty(args[0] if args else 0, dtype=cls.dtype))


def _storage(kind: str, dtype: dtype) -> Any:
    """The class for a dtype."""
    return _OfOneDtype(f"{kind}Storage", (), {"__module__": "torch", "dtype": dtype})


BFloat16Storage = _storage("BFloat16", dtypes.bfloat16)
BoolStorage = _storage("Bool", dtypes.bool)
ByteStorage = _storage("Byte", dtypes.uint8)
CharStorage = _storage("Char", dtypes.int8)
ComplexDoubleStorage = _storage("ComplexDouble", dtypes.complex128)
ComplexFloatStorage = _storage("ComplexFloat", dtypes.complex64)
DoubleStorage = _storage("Double", dtypes.float64)
FloatStorage = _storage("Float", dtypes.float32)
HalfStorage = _storage("Half", dtypes.float16)
IntStorage = _storage("Int", dtypes.int32)
LongStorage = _storage("Long", dtypes.int64)
ShortStorage = _storage("Short", dtypes.int16)
