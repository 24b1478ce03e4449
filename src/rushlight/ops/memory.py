"""A tensor's memory as such: resize_, set_, storage(), and copies of tensors by copy, deepcopy and pickle."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import numpy as np

from rushlight import devices
from rushlight.engine.node import edge_of
from rushlight.ops.dims import sizes
from rushlight.ops.formats import contiguous_format, empty_in_format, preserve_format
from rushlight.ops.options import dense_order, strides_of
from rushlight.ops.registry import NAMESPACES, function
from rushlight.ops.strided import view_at
from rushlight.storage import Storage, bump, root_of, storage_of
from rushlight.tensor import Tensor, alias, wrap

# Sizes in place ------------------------------------------------------------------------------------


def behind(array: Any) -> int:
    """The bytes from the first element of `array` to the end of its storage."""
    root = root_of(array)
    if not array.size:
        return 0
    return int(root.nbytes - (array.__array_interface__["data"][0] - root.__array_interface__["data"][0]))


def resized(array: Any, shape: tuple[int, ...], like: Any) -> Any:
    """An array of another shape on the same memory; where that is too small, on new memory after a copy of it.

    like: an array whose strides it gets, or None for contiguous ones.
    """
    count, unit = math.prod(shape), array.itemsize
    steps = like.strides if like is not None else np.empty(shape, np.dtype((np.void, unit))).strides if count else ()
    root = root_of(array)
    if count and count * unit <= behind(array) and (root.flags.c_contiguous or root.flags.f_contiguous):
        return view_at(array, shape, steps)
    if not count:
        return np.empty(shape, array.dtype)
    memory = np.zeros(count, array.dtype)
    if array.size:
        there = min(behind(array) // unit, count)
        old = view_at(array, (there,), (unit,)) if root.flags.c_contiguous else array.reshape(-1)[:count]
        memory[: len(old)] = old
    return view_at(memory, shape, steps)


def resize_(self: Tensor, *size: Any, memory_format: Any = contiguous_format) -> Tensor:
    """Change the shape in place: on the same memory if it is large enough, else on new memory with the old elements.

    Elements that are new are zero. Raises RuntimeError for tensors that require grad.
    """
    if edge_of(self) is not None:
        raise RuntimeError("cannot resize variables that require grad")
    shape = sizes(size, "resize_", "size")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"resize_: sizes must not be negative, got {list(shape)}")
    if memory_format is preserve_format:
        raise RuntimeError("resize_: unsupported memory format preserve_format")
    if shape == self._array.shape and memory_format is contiguous_format:
        return self
    like = None
    if memory_format is not contiguous_format:
        like = empty_in_format(np.empty(shape, self._array.dtype), self._array.dtype, memory_format)
    array = resized(self._array, shape, like)
    if root_of(array) is not root_of(self._array):
        self._storage = None
    self._array, self._view = array, None
    return self


def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Change the shape in place to that of another tensor; see `resize_`."""
    if memory_format is None or memory_format is preserve_format:
        return resize_(self, other._array.shape)
    return resize_(self, other._array.shape, memory_format=memory_format)


def resize(self: Tensor, *size: Any) -> Tensor:
    """As `resize_`, deprecated."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    return resize_(alias(self), *size)


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor share the memory of another tensor or of a storage; of nothing, make it empty.

    offset and stride count elements.
    """
    if edge_of(self) is not None and not self.is_leaf:
        raise RuntimeError("set_: cannot be called on a tensor that was computed with a graph: detach() it")
    if source is None:
        array, storage = np.empty(0, self._array.dtype), None
    elif isinstance(source, Tensor):
        if source._array.dtype != self._array.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}")
        array, storage = source._array, storage_of(source)
    elif isinstance(source, (Storage, TypedStorage)):
        storage = source._untyped if isinstance(source, TypedStorage) else source
        array = storage.root.reshape(-1).view(self._array.dtype)
    else:
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {type(source).__name__}")
    if size is not None:
        array = placed(array, storage_offset, tuple(int(n) for n in size), stride)
    bump(self)
    self._array, self._storage, self._view = array, storage, None
    return self


def placed(array: Any, offset: int, shape: tuple[int, ...], stride: Any) -> Any:
    """Memory seen from an offset with a shape and strides in elements.  Raises RuntimeError where it is too small."""
    root, unit = root_of(array), array.itemsize
    flat = view_at(root, (root.nbytes // unit,), (unit,), 0, array.dtype)
    steps = strides_of(np.empty(shape, np.bool_)) if stride is None else tuple(int(s) for s in stride)
    last = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    if all(shape) and not 0 <= last < flat.size:
        raise RuntimeError(f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset} require "
                           f"{last + 1} elements, which are out of bounds for storage of {flat.size}")  # fmt: skip
    return view_at(flat, shape, tuple([s * unit for s in steps]), offset * unit)


class TypedStorage:
    """The elements of a storage as a sequence.  Deprecated in PyTorch in favour of tensors and `untyped_storage()`."""

    def __init__(self, tensor: Tensor):
        self._untyped, self.dtype = storage_of(tensor), tensor.dtype

    def untyped(self) -> Storage:
        """The bytes."""
        return self._untyped

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._flat().tolist()  # type: ignore[no-any-return]

    def _flat(self) -> Any:
        root = self._untyped.root
        return view_at(root, (len(self),), (self.dtype.itemsize,), 0, self.dtype.numpy)

    def __len__(self) -> int:
        return int(self._untyped.nbytes() // self.dtype.itemsize)

    size = __len__

    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self._untyped.nbytes()

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._untyped.data_ptr()

    def __getitem__(self, index: Any) -> Any:
        return self._flat()[index].tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat()[index] = value

    def __repr__(self) -> str:
        lines = "\n ".join(str(v) for v in self.tolist())
        return f" {lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {len(self)}]"


def storage(self: Tensor) -> TypedStorage:
    """The storage as a sequence of elements."""
    return TypedStorage(self)


def share_memory_(self: Tensor) -> Tensor:
    """Moving memory where other processes see it is not supported: threads share it as it is."""
    raise RuntimeError("share_memory_: tensors cannot be put into shared memory; threads of one process share them as "
                       "they are, and torch.from_numpy takes arrays on multiprocessing.shared_memory")  # fmt: skip


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Memory that a CUDA device can read by itself.  Raises RuntimeError where there is none."""
    if devices.instead_of_cuda is not None:
        return self
    raise RuntimeError("pin_memory: there is no accelerator to pin memory for")


function(method=False)(resize_as_)
for _method in (resize_, resize_as_, resize, set_, storage, share_memory_, pin_memory):
    setattr(Tensor, _method.__name__, _method)
Tensor._typed_storage = storage  # type: ignore[attr-defined]


@function()
def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, (Storage, TypedStorage))


def storage_type(self: Tensor) -> Any:
    """The type of `storage()`."""
    return TypedStorage


def resize_as(self: Tensor, other: Tensor) -> Tensor:
    """As `resize_as_`, deprecated."""
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=2)
    return resize_(alias(self), *other._array.shape)


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions from outermost to innermost in memory."""
    steps = strides_of(self._array)
    return tuple(sorted(range(len(steps)), key=lambda d: -steps[d]))


for _each in (storage_type, resize_as, dim_order):
    setattr(Tensor, _each.__name__, _each)
Tensor.const_data_ptr = Tensor.data_ptr  # type: ignore[attr-defined]
Tensor.name = None  # type: ignore[attr-defined]
NAMESPACES[""].update(UntypedStorage=Storage, TypedStorage=TypedStorage)


# Copies --------------------------------------------------------------------------------------------

SLOTS = frozenset(name for name in vars(Tensor) if name.startswith("_"))


def attributes(t: Tensor) -> dict[str, Any]:
    """The attributes that users have given to a tensor."""
    return {name: value for name, value in t.__dict__.items() if name not in SLOTS}


def like_class(t: Tensor, cls: Any) -> Tensor:
    """A new tensor as an object of a subclass."""
    if cls is Tensor:
        return t
    fresh: Tensor = object.__new__(cls)
    fresh._array, fresh._edge, fresh._storage, fresh._view = t._array, t._edge, t._storage, None
    return fresh


def _copy(self: Tensor) -> Tensor:
    """copy.copy: another tensor on the same memory; a leaf that requires grad if this one does."""
    fresh = like_class(alias(self), type(self))
    fresh.__dict__.update(attributes(self))
    return fresh.requires_grad_() if edge_of(self) is not None else fresh


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """copy.deepcopy: memory of its own, shared as the originals share it; with gradient and attributes.

    Raises RuntimeError for tensors that an operator computed with a graph.
    """
    known = memo.get(id(self))
    if known is not None:
        return known  # type: ignore[no-any-return]
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
                           "at the moment: detach() or clone() this tensor, which an operator computed.")  # fmt: skip
    fresh = like_class(wrap(copied(self, memo)), type(self))
    fresh._storage = memo.get(-id(root_of(self._array)))
    memo[id(self)] = fresh
    fresh.__dict__.update(copy.deepcopy(attributes(self), memo))
    if self._edge is not None:
        fresh.requires_grad_()
    if self._grad is not None:
        fresh._grad = copy.deepcopy(self._grad, memo)
    return fresh


def copied(t: Tensor, memo: dict[int, Any]) -> Any:
    """A copy of the array of `t`; if others share its storage, in a copy of that, which they share too."""
    array, root = t._array, root_of(t._array)
    dense = root.flags.c_contiguous or root.flags.f_contiguous
    if t._storage is None or not dense or not array.size:
        return array.copy() if array.flags.c_contiguous else np.array(array, order="K", subok=False)
    fresh = memo.get(-id(root))
    if fresh is None:
        fresh = memo[-id(root)] = Storage(root.copy(order="K"))
        memo[id(memo)] = [*memo.get(id(memo), []), root]  # deepcopy keeps alive what its ids speak of
    if root is array:
        return fresh.root
    offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return view_at(fresh.root, array.shape, array.strides, offset, array.dtype)


def _reduce(self: Tensor, protocol: Any) -> Any:
    warn_of_hooks(self)
    order, shape, strides, flat = dense_order(self._array), self._array.shape, None, self._array
    if order is not None and not self._array.flags.c_contiguous:
        flat, strides = self._array.transpose(order), order
    elif order is None and all(shape):
        span = 1 + sum((n - 1) * s for n, s in zip(shape, strides_of(self._array), strict=True))
        if span <= self._array.size and min(self._array.strides, default=0) >= 0:  # expanded
            flat, strides = view_at(self._array, (span,), (self._array.itemsize,)), self._array.strides
    grad = edge_of(self) is not None
    return rebuilt, (type(self), np.ascontiguousarray(flat), shape, strides, order is None, grad, attributes(self))


def rebuilt(cls: Any, flat: Any, shape: Any, strides: Any, by_strides: bool, requires_grad: bool, state: Any) -> Tensor:
    """A tensor as `_reduce` described it."""
    if strides is None:
        array = flat.reshape(shape)
    else:
        array = view_at(flat, shape, strides) if by_strides else flat.transpose(np.argsort(strides))
    t = like_class(wrap(array), cls)
    t.__dict__.update(state)
    return t.requires_grad_() if requires_grad else t


def warn_of_hooks(t: Tensor) -> None:
    """Warn that hooks are not kept."""
    for hook in t._hooks.values() if t._hooks is not None else ():
        if getattr(hook, "__torch_unserializable__", False):
            continue
        warnings.warn(f"backward hook {hook!r} on tensor will not be serialized. If this is expected, you can decorate "
                      "the function with @torch.utils.hooks.unserializable_hook to suppress this warning", UserWarning,
                      stacklevel=4)  # fmt: skip


Tensor.__copy__, Tensor.__deepcopy__, Tensor.__reduce_ex__ = _copy, _deepcopy, _reduce  # type: ignore[attr-defined,method-assign,assignment]


def as_subclass(self: Tensor, cls: Any) -> Any:
    """This tensor as an object of a subclass, on the same memory and with the same history."""
    fresh = like_class(alias(self), cls)
    fresh._edge = edge_of(self) if self.is_leaf is False else None
    return fresh.requires_grad_() if self.is_leaf and self.requires_grad else fresh


def make_subclass(cls: Any, data: Tensor, requires_grad: bool = False) -> Any:
    """A leaf of a subclass of Tensor on the memory of `data`."""
    fresh = like_class(alias(data), cls)
    return fresh.requires_grad_() if requires_grad else fresh


Tensor.as_subclass = as_subclass  # type: ignore[attr-defined]
Tensor._make_subclass = staticmethod(make_subclass)  # type: ignore[attr-defined]
