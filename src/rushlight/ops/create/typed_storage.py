"""Storages as sequences of elements, and what storages of both kinds can do beside: conversions, copies, other sizes, bytes of buffers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn, Self

import numpy as np

from rushlight.basics import devices, dtypes
from rushlight.basics.devices import device
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import dtype as DType
from rushlight.dispatch.declare import Array
from rushlight.dispatch.memory_views import view_at
from rushlight.ops.create import freed
from rushlight.storage import Storage, settle, storage_of
from rushlight.tensor import Tensor, wrap

__all__ = ["TypedStorage"]

_ORDERS = {"little": "<", "big": ">", "native": "="}


class TypedStorage:
    """The elements of a storage as a sequence.  Deprecated in PyTorch in favour of tensors and `untyped_storage()`.

    args: a number of elements, a sequence of them, or a tensor; wrap_storage: a storage to see as such instead; dtype: of the
    elements, float32 unless given.  Raises RuntimeError or TypeError for other arguments.
    """

    dtype: DType
    is_sparse = is_cuda = is_hpu = False

    def __init__(self, *args: Any, wrap_storage: Storage | None = None, dtype: DType | None = None, device: Any = None,
                 _internal: bool = False):  # fmt: skip
        if wrap_storage is None:
            made = args[0] if args and isinstance(args[0], Tensor) else _tensor_of(args, dtype or dtypes.float32)
            self._untyped, self.dtype = storage_of(made), made.dtype
            return
        if args or dtype is None or device is not None:
            raise RuntimeError("TypedStorage: wrap_storage is given beside dtype, and nothing else is")
        if not isinstance(wrap_storage, Storage):
            raise TypeError(f"TypedStorage: wrap_storage must be an UntypedStorage, but got {type(wrap_storage)}")
        self._untyped, self.dtype = wrap_storage, dtype

    def untyped(self) -> Storage:
        """The bytes."""
        return self._untyped

    @property
    def _untyped_storage(self) -> Storage:
        return self._untyped

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._flat().tolist()

    def _flat(self) -> Array:
        root = self._untyped.root
        return view_at(root, (len(self),), (self.dtype.itemsize,), 0, self.dtype.numpy)

    def __len__(self) -> int:
        return int(self._untyped.nbytes() // self.dtype.itemsize)

    size = __len__

    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._untyped.data_ptr()

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._flat()[index].tolist()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        settle(self._untyped.root)
        self._flat()[index] = value

    def fill_(self, value: float) -> TypedStorage:
        """Set every element."""
        self[:] = value
        return self

    def copy_(self, source: Storage | TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        """Take over the bytes of another storage.  Raises RuntimeError for another size."""
        self._untyped.copy_(source)
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Have so many elements; as `UntypedStorage.resize_`."""
        self._untyped.resize_(size * self.dtype.itemsize)
        return self

    def type(self) -> str:
        """The name of the class that PyTorch had for storages of this dtype."""
        return f"torch.{older(self.dtype)}Storage"

    def pickle_storage_type(self) -> str:
        """The name of that class without its module."""
        return self.type().removeprefix("torch.")

    def clone(self) -> TypedStorage:
        """A storage on a copy of the elements."""
        return self.on(self._untyped.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return self.on(self._untyped.__deepcopy__(memo))

    def on(self, untyped: Storage) -> TypedStorage:
        """The same elements on other bytes."""
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    @staticmethod
    def from_buffer(
        buffer: object, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: DType | None = None
    ) -> TypedStorage:
        """A storage on a copy of bytes, as `UntypedStorage.from_buffer`."""
        untyped = _from_buffer(buffer, byte_order, count, offset, dtype)
        return TypedStorage(wrap_storage=untyped, dtype=dtype)

    @staticmethod
    def from_file(filename: str | os.PathLike[str], shared: bool, size: int) -> NoReturn:
        """RuntimeError: `torch.FloatStorage.from_file` and its like have a dtype."""
        raise RuntimeError("from_file can only be called on derived classes")

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self) -> str:
        lines = "\n ".join(str(v) for v in self.tolist())
        return f" {lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {len(self)}]"


def _tensor_of(args: tuple[Any, ...], kind: DType) -> Tensor:
    """A tensor of so many elements, of those of a sequence, or of none."""
    if len(args) > 1:
        raise TypeError("TypedStorage() takes at most one argument: a size or a sequence of elements")
    given = args[0] if args else 0
    return wrap(np.empty(given, kind.numpy) if isinstance(given, int) else np.array(list(given), kind.numpy))


def _converted(storage: Any, kind: DType) -> TypedStorage:
    """A storage of its elements, of an untyped one its bytes, in another dtype.  Always a copy."""
    array = storage.bytes() if isinstance(storage, Storage) else storage._flat()
    return TypedStorage(wrap(array.copy()).to(kind))


# Storages of bytes, from what PyTorch makes them of ------------------------------------------------


def _from_buffer(buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: DType | None = None,
                 requires_grad: bool = False) -> Storage:  # fmt: skip
    """A storage on a copy of bytes.

    buffer: bytes, bytearray, array; byte_order: "little", "big" or "native", of its elements; count: how many, all for -1;
    offset: bytes to leave out before.  Raises ValueError for a size that does not fit, RuntimeError without a dtype.
    """
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    data, unit = memoryview(buffer).cast("B"), dtype.itemsize
    if byte_order not in _ORDERS and (byte_order is not None or unit > 1):
        raise ValueError(f"invalid byte_order {byte_order!r} (expected 'big', 'little', or 'native')")
    if not 0 <= offset <= len(data):
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({len(data)}), but got {offset}"
        )
    if count < 0 and (len(data) - offset) % unit:
        raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({unit})")
    if offset + count * unit > len(data):
        raise ValueError(
            f"buffer has only {len(data) - offset} elements after offset {offset}, but specified a size of {count}"
        )
    end = len(data) if count < 0 else offset + count * unit
    array = np.frombuffer(data[offset:end], np.uint8).copy()
    if byte_order in ("big", "little") and byte_order != sys.byteorder:
        _swap(array, dtype)
    return Storage(array)


def _swap(array: Array, kind: DType) -> None:
    """Turn the order of bytes in each number.  Complex numbers are two."""
    unit = kind.itemsize // (2 if kind.is_complex else 1)
    if unit > 1:
        array.view(f"u{unit}").byteswap(inplace=True)


def _byteswap(self: Storage, dtype: DType) -> None:
    """Turn the order of bytes in each element of that dtype, in place."""
    settle(self.root)
    _swap(self.bytes(), dtype)


def _copy(self: Storage, src: Any, non_blocking: bool | None = None) -> Storage:
    """Take over the bytes of another storage.  Raises RuntimeError for another size."""
    source = src.untyped()
    if source.nbytes() != self.nbytes():
        raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes")
    self[:] = source.bytes()
    return self


def _resize(self: Storage, size: int) -> Storage:
    """Have so many bytes, of which those that there were stay.

    Tensors on a storage of 0 bytes have none, and those that they had once it gets its size back: see `freed`.  Raises RuntimeError
    for other sizes where tensors lie on the memory: they would keep it, and the former size.
    """
    if size < 0:
        raise RuntimeError(f"resize_: a storage cannot have {size} bytes")
    if size == self.nbytes():
        return self
    if isinstance(self.root, freed.Freed):
        freed.refill(self, size)
        return self
    if sys.getrefcount(self.root) > 2 and size == 0:
        freed.free(self)
        return self
    if sys.getrefcount(self.root) > 2:
        raise RuntimeError(
            f"resize_: tensors lie on this storage, and would keep its {self.nbytes()} bytes: assign to `.data` of each of "
            "them, or use Tensor.resize_"
        )
    kept = self.bytes()[:size].copy()
    self.root = np.concatenate([kept, np.empty(size - kept.size, np.uint8)]) if size > kept.size else kept
    return self


# What both kinds have -----------------------------------------------------------------------------


def _same(self: object) -> Self:
    """The storage itself."""
    return self


def _elsewhere(self: object, place: object) -> Self:
    """The storage, where that is on the CPU.  Raises as `Tensor.to` for other devices."""
    found = device(place)
    if found.type == "cpu":
        return self
    if found.type == "cuda" and devices.instead_of_cuda is not None:
        devices.instead_of_cuda()
        return self
    raise AssertionError(f"{found.type.upper()} device module is not loaded")


def _to(self: object, *, device: device | str | int | None, non_blocking: bool = False) -> object:
    """The storage, where the device is the CPU.  Raises AssertionError for others."""
    return _elsewhere(self, device)


def _cuda(self: object, device: device | str | int | None = None, non_blocking: bool = False) -> object:
    """A copy on a GPU: AssertionError, there is none."""
    return _elsewhere(self, "cuda")


def _pin_memory(self: Storage | TypedStorage, device: device | str | int | None = None) -> Self:
    """Memory that an accelerator can read by itself: RuntimeError, there is none."""
    if devices.instead_of_cuda is not None:
        return self
    raise RuntimeError("Cannot access accelerator device when none is available.")


def _share_memory(self: Storage | TypedStorage) -> Self:
    """Move the memory to where other processes see it, with the tensors that lie on it."""
    from rushlight.ops.create.shared import share

    share(self.untyped())
    return self


def _is_shared(self: Storage | TypedStorage) -> bool:
    """Whether the memory is where other processes see it."""
    from rushlight.ops.create.shared import is_shared

    return is_shared(self.untyped())


def _never(self: Storage | TypedStorage, *args: object) -> bool:
    """Always False: memory is the process's own."""
    return False


def _nothing(self: Storage | TypedStorage) -> None:
    """None: on the CPU devices have no numbers, and no file is known."""


def _converter(kind: DType) -> Callable[[Any], TypedStorage]:
    def convert(self: object) -> TypedStorage:
        return _converted(self, kind)

    convert.__doc__ = f"A storage of the elements, of an untyped one the bytes, as {kind}."
    return convert


_CONVERSIONS = {"bfloat16": dtypes.bfloat16, "bool": dtypes.bool, "byte": dtypes.uint8, "char": dtypes.int8,
                "double": dtypes.float64, "float": dtypes.float32, "half": dtypes.float16, "int": dtypes.int32,
                "long": dtypes.int64, "short": dtypes.int16, "complex_double": dtypes.complex128,
                "complex_float": dtypes.complex64}  # fmt: skip
_BOTH: dict[str, Any] = {name: _converter(kind) for name, kind in _CONVERSIONS.items()}
_BOTH |= {
    "cpu": _same,
    "cuda": _cuda,
    "to": _to,
    "pin_memory": _pin_memory,
    "share_memory_": _share_memory,
    "is_pinned": _never,
    "is_shared": _is_shared,
    "get_device": _nothing,
    "filename": property(_nothing),
    "resizable": lambda self: True,
    "device": device("cpu"),
}
for _name, _value in _BOTH.items():
    setattr(Storage, _name, _value)
    setattr(TypedStorage, _name, _value)
for _name, _value in {"from_buffer": staticmethod(_from_buffer), "byteswap": _byteswap, "copy_": _copy, "resize_": _resize,
                      "element_size": lambda self: 1, "new": lambda self: Storage(np.empty(0, np.uint8)), "is_cuda": False,
                      "is_sparse": False, "is_sparse_csr": False, "is_hpu": False}.items():  # fmt: skip
    setattr(Storage, _name, _value)
vars(sys.modules[settle.__module__]).update(
    TypedStorage=TypedStorage, UntypedStorage=Storage
)  # as `torch.storage.TypedStorage`
