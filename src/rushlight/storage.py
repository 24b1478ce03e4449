"""Storage: the bytes that a tensor and its views share, and the version counter of their in-place changes."""

from __future__ import annotations

from typing import Any

import numpy as np


def root_of(array: Any) -> Any:
    """The array that owns the memory of `array`: the end of its chain of bases."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Storage:
    """What all views of one array share.  Made when a second tensor needs it: until then a tensor's version is 0."""

    __slots__ = ("__weakref__", "root", "version", "writer")

    def __init__(self, array: Any):
        self.root = root_of(array)
        self.version = 0
        self.writer: Any = None  # who changed it last (operator, file:line), while anomaly mode records

    def nbytes(self) -> int:
        """Bytes of the owning array."""
        return int(self.root.nbytes)

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return int(self.root.__array_interface__["data"][0])

    size = __len__ = nbytes

    def __repr__(self) -> str:
        return f"Storage({self.root.dtype}, {self.nbytes()} bytes, version {self.version})"


class InferenceStorage(Storage):
    """The storage of a tensor made in inference mode: it counts no versions, so nothing on it can be saved."""

    __slots__ = ()

    @property
    def version(self) -> int:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward, since they do not track a version counter. To work around "
            "you can make a clone to get a normal tensor and use it in autograd."
        )

    @version.setter
    def version(self, value: int) -> None:
        pass


def storage_of(tensor: Any) -> Storage:
    """The storage of a tensor, made now if there was none."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage(tensor._array)
    return storage  # type: ignore[no-any-return]


def bump(tensor: Any) -> None:
    """Count an in-place change of the tensor's memory."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage(tensor._array)
    if not tensor._inference:
        storage.version += 1


def offset_of(array: Any) -> int:
    """Elements between the start of the owning array and the first element of `array`."""
    start = array.__array_interface__["data"][0] - root_of(array).__array_interface__["data"][0]
    return int(start // max(array.itemsize, 1)) if array.size else 0
