"""The constructors that files call, under PyTorch's names.  They trust no argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight import storage
from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.dtypes import dtype as DType
from rushlight.dispatch.meta import nowhere, on_meta, strided
from rushlight.dispatch.options import Nowhere
from rushlight.ops.create.memory import give, rewrapped
from rushlight.ops.create.typed_storage import TypedStorage
from rushlight.signs import CONJ, NEG, turn
from rushlight.storage import Storage
from rushlight.tensor import Tensor, layout, wrap


class Stored(TypedStorage):
    """A storage read from a file: an array of its elements, shared by the tensors made on it."""

    def __init__(self, array: Any, storage: Storage | None = None):
        self._read: Any = array  # until a tensor is made of it: what that lies on may be sent elsewhere
        self.storage = storage

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        """Of its elements."""
        return dtypes.of(self.array.dtype)

    @property
    def _untyped(self) -> Storage:  # type: ignore[override]
        if self.storage is None:
            self.storage, self._read = Storage(self._read), None
        return self.storage

    @property
    def array(self) -> Any:
        """The elements."""
        return self._read if self.storage is None else self.storage.root

    def tensor(self, offset: int, size: tuple[int, ...], stride: tuple[int, ...], dtype: DType | None = None) -> Tensor:
        """A tensor on this memory.  offset, stride: in elements.  Raises ValueError where it does not fit in."""
        array = self.array if dtype is None else self.array.reshape(-1, order="A").view(dtype.numpy)
        self._check(array, offset, size, stride)
        if not all(size):
            return self._share(np.empty(size, array.dtype))
        strides = tuple(step * array.itemsize for step in stride)
        if self._take_shape(array, size, strides):
            return self._share(array)
        return self._share(np.ndarray(size, array.dtype, array, offset * array.itemsize, strides))

    def _check(self, array: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> None:
        """Raise ValueError for a tensor that reaches beyond the elements."""
        if len(size) != len(stride) or any(n < 0 for n in (offset, *size, *stride)):
            raise ValueError(f"no tensor has sizes {size}, strides {stride} and offset {offset}")
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if all(size) and last >= array.size:
            raise ValueError(
                f"a tensor of sizes {size}, strides {stride} and offset {offset} does not fit into a storage of "
                f"{array.size} elements"
            )

    def _take_shape(self, array: Array, size: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        """Give the memory itself the shape of its first tensor, if that is all of it: no view is left to hold it."""
        if array is self.array and array.shape == size and array.strides == strides:
            return True  # another tensor on all of it
        if (
            self.storage is not None
            or array is not self.array
            or not array.flags.owndata
            or array.size != math.prod(size)
        ):
            return False
        array.resize(size, refcheck=False)
        return bool(array.strides == strides)

    def _share(self, array: Array) -> Tensor:
        t = wrap(array)
        if not array.size:
            return t
        if self.storage is None:
            self.storage, self._read = Storage(array), None
        t._storage = self.storage
        if storage.guests is not None:
            storage.guests(t)
        return t


Stored.__name__ = Stored.__qualname__ = (
    "TypedStorage"  # what is a storage of its own in a file is one to whoever loads it
)


def _given(storage: object, kind: DType | None) -> tuple[Stored, DType | None]:
    """A storage, of a file or of the caller's own, and the dtype to see it in."""
    if isinstance(storage, Stored):
        return storage, kind
    if isinstance(storage, TypedStorage):
        return Stored(None, storage.untyped()), kind or storage.dtype
    if isinstance(storage, Storage) and kind is not None:
        return Stored(None, storage), kind
    raise TypeError(
        f"a tensor's storage must be a TypedStorage, or an UntypedStorage beside a dtype, got {type(storage).__name__}"
    )


def stored(array: Array) -> Stored:
    """The storage of an array that was read from a file."""
    return WithoutMemory(array) if isinstance(array, Nowhere) else Stored(array)


class WithoutMemory(Stored):
    """A storage of which only the size was read: the tensors made on it are on the device meta."""

    def tensor(self, offset: int, size: tuple[int, ...], stride: tuple[int, ...], dtype: DType | None = None) -> Tensor:
        array = self.array if dtype is None else nowhere((self.array.nbytes // dtype.numpy.itemsize,), dtype.numpy)
        self._check(array, offset, size, stride)
        return on_meta(strided(size, stride, array.dtype))


def _ints(values: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = tuple(values)
    if not all(type(v) is int for v in found):
        raise TypeError(f"sizes and strides must be ints, got {found}")
    return found


def _rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    return _rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def _rebuild_tensor_v2(
    storage: Stored,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    hooks: Any,
    metadata: dict[str, Any] | None = None,
) -> Tensor:
    return _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, hooks, None, metadata)


def _rebuild_tensor_v3(
    storage: Stored,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    hooks: object,
    dtype: DType | None,
    metadata: dict[str, Any] | None = None,
) -> Tensor:
    storage, dtype = _given(storage, dtype)
    (offset,) = _ints([storage_offset])
    t = storage.tensor(offset, _ints(size), _ints(stride), dtype)
    bits = sum(bit for key, bit in (("conj", CONJ), ("neg", NEG)) if (metadata or {}).get(key))
    if bits:
        turn(t, bits)
    return t.requires_grad_() if requires_grad else t


def _rebuild_meta_tensor_no_storage(dtype: DType, size: object, stride: object, requires_grad: bool) -> Tensor:
    size, stride = _ints(size), _ints(stride)
    if not isinstance(dtype, DType) or len(size) != len(stride) or any(n < 0 for n in (*size, *stride)):
        raise ValueError(f"no tensor has dtype {dtype}, sizes {size} and strides {stride}")
    return on_meta(strided(size, stride, dtype.numpy), bool(requires_grad))


def _rebuild_sparse_tensor(layout: layout, data: Any) -> Tensor:
    from rushlight.sparse.construct import sparse_compressed_tensor, sparse_coo_tensor

    try:
        if str(layout) == "torch.sparse_coo":
            indices, values, size, *coalesced = data
            made = sparse_coo_tensor(indices, values, _ints(size))
            return made.coalesce() if coalesced == [True] else made
        starts, others, values, size = data
        return sparse_compressed_tensor(starts, others, values, _ints(size), layout=layout)
    except RuntimeError as error:  # parts that do not fit
        raise ValueError(str(error)) from error


def _rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> Tensor:
    from rushlight.nested.build import packed
    from rushlight.tensor import strided

    try:
        places = zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True)
        parts = [
            buffer.detach().as_strided(_ints(size), _ints(stride), *_ints([start])) for size, stride, start in places
        ]
        return packed(parts, strided).requires_grad_(buffer.requires_grad)
    except (AttributeError, RuntimeError) as error:  # parts that do not fit
        raise ValueError(str(error)) from error


def _rebuild_njt(parts: dict[str, Any]) -> Tensor:
    from rushlight.nested.build import rebuilt_jagged

    try:
        found = rebuilt_jagged(parts["values"], parts["offsets"], parts["lengths"], *_ints([parts["_ragged_idx"]]))
        found.unbind()  # raises for places that are not among the values
        return found.requires_grad_(parts["requires_grad"] is True)
    except (AttributeError, IndexError, RuntimeError) as error:
        raise ValueError(str(error)) from error


def _rebuild_wrapper_subclass(cls: type[Any], dtype: dtype | None, size: object, stride: object,
                              storage_offset: object, layout: layout | None, device: device | str | int | None,
                              requires_grad: bool) -> Tensor:  # fmt: skip
    """A tensor of a class with ``__torch_dispatch__``, without what the class holds."""
    return rewrapped(cls, dtype, size, stride, storage_offset, layout, device, requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: object = None) -> Tensor:
    from rushlight.nn.parameter import Parameter

    parameter: Tensor = Parameter(data, bool(requires_grad))
    return parameter


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, hooks: object, state: dict[str, Any]) -> Tensor:
    return _with_state(_rebuild_parameter(data, requires_grad), state)


def _rebuild_from_type_v2(
    func: Callable[..., Any], new_type: type[Any], args: tuple[Any, ...], state: dict[str, Any]
) -> Tensor:
    """A tensor with attributes of its own."""
    from rushlight.serialization.names import user_table

    if not any(func is value for value in (*FUNCTIONS, *user_table().values())):
        raise TypeError(f"{func!r} makes no tensors")
    if not (isinstance(new_type, type) and issubclass(new_type, Tensor)):
        raise TypeError(f"{new_type!r} is no type of tensors")
    t: Any = func(*args)
    if not isinstance(t, new_type):
        t = t._make_subclass(new_type, t, t.requires_grad)
    return _with_state(t, state)


def _with_state(t: Tensor, state: dict[str, Any]) -> Tensor:
    """The tensor with attributes; those of the engine's own names are refused."""
    parts = [part for part in (state if isinstance(state, tuple) else (state,)) if part]
    if t.is_nested:  # whose parts PyTorch has there once more
        return t
    attributes = {name: value for part in parts for name, value in part.items()}
    for name in attributes:
        if not isinstance(name, str) or (name.startswith("_") and hasattr(Tensor, name)):
            raise TypeError(f"a tensor cannot have the attribute {name!r} set by a file")
    give(t, attributes)
    return t


FUNCTIONS: Any = (
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_meta_tensor_no_storage,
    _rebuild_sparse_tensor,
    _rebuild_nested_tensor,
    _rebuild_njt,
    _rebuild_wrapper_subclass,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
)
