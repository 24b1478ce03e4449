"""Memory that other processes see: tensors and storages moved into it, sent with it, and made on it again.

The memory belongs to no name: whoever has its descriptor maps it, and nothing is left behind when all are gone.
"""

from __future__ import annotations

import importlib
import mmap
import os
import sys
import weakref
from functools import cache
from sys import getrefcount
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.references import untraced
from rushlight.dispatch.memory_views import view_at
from rushlight.ops.create.freed import places_of
from rushlight.storage import Storage, root_of, storage_of
from rushlight.tensor import Tensor, strided, wrap

_UNTRACKED: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


def new_descriptor(size: int) -> int:
    """A descriptor of new memory, all 0.  size: in bytes.  Raises OSError where the system refuses it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("rushlight", os.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class SharedMemory(mmap.mmap):
    """The memory of a descriptor, which it keeps."""

    descriptor: int

    def __new__(cls, descriptor: int, size: int) -> SharedMemory:
        try:
            made: SharedMemory = super().__new__(cls, descriptor, max(size, 1), **_UNTRACKED)
        except BaseException:
            os.close(descriptor)
            raise
        made.descriptor = descriptor
        return made

    def __del__(self, close: Any = os.close) -> None:
        close(self.descriptor)


def _memory_of(root: Array) -> SharedMemory | None:
    return root.base if isinstance(root.base, SharedMemory) else None


def is_shared(storage: Storage) -> bool:
    """Whether other processes may see the memory."""
    return _memory_of(storage.root) is not None


def descriptor_of(storage: Storage) -> int:
    """The descriptor of memory that is shared."""
    memory = _memory_of(storage.root)
    assert memory is not None
    return memory.descriptor


# Storages by their memory, wherever it came from: what is received twice is one storage.
_known: weakref.WeakValueDictionary[tuple[int, int], Storage] = weakref.WeakValueDictionary()


def _key(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _mapped(descriptor: int, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    size = int(np.prod(shape)) * dtype.itemsize
    return np.ndarray(shape, dtype, SharedMemory(descriptor, size), 0, strides)


def holding(descriptor: int, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Storage:
    """The storage on the memory of a descriptor, which is used or closed.  strides: in bytes."""
    key = _key(descriptor)
    found = _known.get(key)
    if found is None:
        found = _known[key] = Storage(_mapped(descriptor, dtype, shape, strides))
    else:
        os.close(descriptor)
    return found


def share(storage: Storage, tensor: Tensor | None = None) -> None:
    """Move the memory of a storage where other processes see it, and all tensors that lie on it with it.

    tensor: one that does, where it is known.  Arrays of NumPy's on that memory stay behind.  Raises RuntimeError for memory that
    a budget has, and OSError where there is no more of it.
    """
    root = storage.root
    if _memory_of(root) is not None:
        return
    if storage.page is not None:
        raise RuntimeError(
            "share_memory_: this memory is in a budget, which may move it to disk; share it before the budget begins"
        )
    if not root.flags.forc:
        raise RuntimeError("share_memory_: the memory is not laid out without gaps: clone() the tensor")
    one = tensor is not None and getrefcount(storage) <= _alone()
    fresh = _mapped(new_descriptor(max(root.nbytes, 1)), root.dtype, root.shape, root.strides)
    fresh[...] = root
    for owner, name in [(tensor, "_held")] if one else places_of(storage):
        setattr(owner, name, _moved(getattr(owner, name), root, fresh))
    storage.root = fresh
    _known[_key(descriptor_of(storage))] = storage
    importlib.import_module(
        "rushlight.multiprocessing"
    )  # of a higher floor: without it the standard library's would send copies


def _references(storage: Storage, tensor: Tensor) -> int:
    """How many references there are to a storage; called as `share` is, which has as many where no other tensor lies on it."""
    return getrefcount(storage)


@cache
@untraced
def _alone() -> int:
    t = wrap(np.empty(1))
    return _references(storage_of(t), t)


def _moved(held: Array, root: Array, fresh: Array) -> Array:
    """The array that lies in memory `fresh` as `held` does in `root`."""
    if held is root:
        return fresh
    start = held.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return view_at(fresh, held.shape, held.strides, start if held.size else 0, held.dtype)


def share_tensor(t: Tensor) -> None:
    """Move the memory of a tensor where other processes see it.  Raises NotImplementedError for one that has parts."""
    if t.layout is not strided or t.is_nested:
        raise NotImplementedError("share_memory_: a sparse or nested tensor has no memory of its own: share its parts")
    if not t.is_meta:
        share(storage_of(t), t)


def tensor_is_shared(t: Tensor) -> bool:
    """Whether other processes may see the memory of a tensor."""
    plain = t.layout is strided and not t.is_nested and not t.is_meta
    return plain and _memory_of(root_of(t._held)) is not None
