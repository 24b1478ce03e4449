"""Memory that `resize_(0)` of a storage frees under the tensors that lie on it, and that a later `resize_` gives back to them.

Between the two such a tensor has its shape and dtype, and whatever asks for its elements raises.  A module that can compute
its input again from its output frees the input so.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache
from sys import getrefcount
from typing import Any, NoReturn

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.dispatch.memory_views import view_at
from rushlight.storage import Storage, settle, storage_of
from rushlight.tensor import Tensor, wrap


class Freed:
    """What stands where the array of a tensor was: its shape, strides and dtype, on no memory."""

    __slots__ = ("dtype", "freed_bytes", "nbytes", "offset", "ordered", "shape", "strides")
    base = None
    interpreted = samples = False

    def __init__(self, array: Array, root: Array):
        self.dtype, self.shape, self.strides, self.nbytes = array.dtype, array.shape, array.strides, array.nbytes
        start = root.__array_interface__["data"][0]
        self.offset = array.__array_interface__["data"][0] - start if array.size else 0
        self.freed_bytes, self.ordered = root.nbytes, bool(array.flags.c_contiguous)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    itemsize = property(lambda self: self.dtype.itemsize)

    def of(self, root: Array) -> Array:
        """The array, as it lay in the memory that is `root` now."""
        if root.shape == self.shape and root.strides == self.strides and root.dtype == self.dtype:
            return root
        return view_at(root, self.shape, self.strides, self.offset, self.dtype)

    def refuse(self, *args: object, **kwargs: object) -> NoReturn:
        """RuntimeError: there are no elements."""
        raise RuntimeError(
            f"this tensor of shape {self.shape} has no elements: resize_(0) of its storage freed its {self.freed_bytes} bytes. "
            "Give the storage its size back by resize_ and fill the tensor, or give the tensor other memory by `.data` or set_"
        )

    __array__ = __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __getattr__ = refuse
    __len__ = __iter__ = __bool__ = __copy__ = __deepcopy__ = __reduce_ex__ = refuse


def tensors_on(storage: Storage) -> list[Tensor]:
    """All tensors on a storage, whom only the collector of garbage knows."""
    return [t for t in gc.get_referrers(storage) if isinstance(t, Tensor) and t._storage is storage]


def free(storage: Storage) -> None:
    """Free the memory of a storage, on which tensors lie.

    Raises RuntimeError where it is not of these tensors alone: graphs, arrays of NumPy's or storages with version counters of
    their own would keep it.
    """
    places = places_of(storage)
    if storage.page is not None or not storage.root.flags.owndata or _held_by_others(storage, places):
        raise RuntimeError(
            f"resize_: tensors lie on this storage, and something else would keep its {storage.nbytes()} bytes: a graph, NumPy's "
            "arrays, a budget, or tensors with a version counter of their own, as `.data` is"
        )
    root = storage.root
    settle(root)
    instead = {id(root): Freed(root, root)}
    for owner, name in places:
        array = getattr(owner, name)
        if id(array) not in instead:
            instead[id(array)] = Freed(array, root)
        setattr(owner, name, instead[id(array)])
    storage.root = instead[id(root)]


def refill(storage: Storage, size: int) -> None:
    """Give so many bytes, which are 0, to a storage whose memory was freed, and to the tensors that lie on it.

    Raises RuntimeError for fewer than it had: tensors would read beyond them.
    """
    former: Any = storage.root
    if size < former.freed_bytes:
        raise RuntimeError(
            f"resize_: tensors lie on {former.freed_bytes} bytes of this storage, and would read beyond {size}: give back all"
        )
    same = size == former.freed_bytes and former.ordered
    root = np.zeros(former.shape, former.dtype) if same else np.zeros(size, np.uint8)
    for owner, name in places_of(storage):
        freed = getattr(owner, name)
        if isinstance(freed, Freed):
            setattr(owner, name, freed.of(root))
    storage.root = root


def places_of(storage: Storage) -> list[tuple[Any, str]]:
    """Where the arrays of the tensors on a storage are: slots of theirs, and of what says how views came about."""
    tensors = tensors_on(storage)
    infos = {id(info): info for t in tensors for info in _infos(t._view)}
    return [*((t, "_held") for t in tensors), *((info, "array") for info in infos.values())]


def _infos(info: Any) -> Iterator[Any]:
    while info is not None:
        yield info
        info = info.parent


def _held_by_others(storage: Storage, places: list[tuple[Any, str]]) -> bool:
    """Whether the memory, or an array that views it, is in other places, too."""
    root, *views = _references(storage, places)
    alone, of_view = _alone()
    return root > alone or any(count > of_view for count in views)


def _references(storage: Storage, places: list[tuple[Any, str]]) -> list[int]:
    """References to the memory, and to each array that views it, beside these places; a few are those of asking."""
    views: dict[int, list[tuple[Any, str]]] = {}
    for owner, name in places:
        if getattr(owner, name) is not storage.root:
            views.setdefault(id(getattr(owner, name)), []).append((owner, name))
    whole = len(places) - sum(map(len, views.values()))
    counted = (getrefcount(getattr(*found[0])) - len(found) for found in views.values())
    return [getrefcount(storage.root) - whole - len(views), *counted]


@cache
def _alone() -> list[int]:
    """What `_references` says of memory that nothing else refers to."""
    t = wrap(np.empty(2))
    view = wrap(t._held[:1])
    view._storage = storage_of(t)
    return _references(view._storage, [(t, "_held"), (view, "_held")])
