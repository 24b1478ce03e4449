"""Pages: arrays that may be on disk, and tensors that do not mind.

A `PagedTensor` is a tensor whose array is brought back when anything asks for it.  Which pages are in use is told by
reference counts: an array that only its page holds can be sent away.
"""

from __future__ import annotations

import weakref
from sys import getrefcount
from typing import Any

import numpy as np

from rushlight.nn.parameter import Parameter
from rushlight.storage import Storage, storage_of
from rushlight.tensor import Tensor

SMALL = 1 << 16  # bytes below which an array is not worth the trouble
_ARRAY: Any = Tensor.__dict__["_array"]
_ROOT: Any = Storage.__dict__["root"]


class Page:
    """An array, in memory or in a spill.

    kind: what it is for. mutable: whether what is on disk is void once the array is back. away: whether it is on disk.
    """

    __slots__ = ("__weakref__", "array", "kind", "mutable", "nbytes", "number", "pager", "piece")
    number: int  # of saved tensors: in the order of saving

    def __init__(self, array: Any, kind: str, mutable: bool, pager: Any):
        self.array, self.kind, self.mutable, self.pager = array, kind, mutable, pager
        self.nbytes = array.nbytes
        self.piece: Any = None
        pager.add(self)

    def get(self) -> Any:
        """The array, brought back if it was away."""
        self.pager.use(self)
        return self.array

    @property
    def idle(self) -> bool:
        """Whether only this page holds the array."""
        array = self.array
        if array is None or getrefcount(array) > 3:  # the slot, our variable, and the argument of getrefcount
            return False
        base = array.base  # of an array that was read back in another order of axes; views of it refer to that
        return base is None or getrefcount(base) <= 3

    def __del__(self) -> None:
        pager = getattr(self, "pager", None)
        if pager is not None:
            pager.drop(self)


class PagedStorage(Storage):
    """The storage of a paged tensor: its root is the page's array."""

    __slots__ = ()

    @property
    def root(self) -> Any:
        held = _ROOT.__get__(self)
        return held.get() if held.__class__ is Page else held

    @root.setter
    def root(self, value: Any) -> None:
        _ROOT.__set__(self, value)


class _Paged:
    """What paged tensors have in place of the slot for their array."""

    __slots__ = ()

    @property
    def _array(self) -> Any:
        held = _ARRAY.__get__(self)
        if held.__class__ is not Page:
            return held
        array = held.get()
        if held.pager.closed:  # the budget has ended, and this was not asked for since
            release(self)
        return array

    @_array.setter
    def _array(self, value: Any) -> None:
        _ARRAY.__set__(self, value)


class PagedTensor(_Paged, Tensor):
    """A tensor whose array may be on disk."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return settled(self).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copied(self, memo)


class PagedParameter(_Paged, Parameter):
    """A parameter whose array may be on disk."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return settled(self).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copied(self, memo)


PAGED: dict[Any, Any] = {Tensor: PagedTensor, Parameter: PagedParameter}
PLAIN: dict[Any, Any] = {PagedTensor: Tensor, PagedParameter: Parameter}


def settled(tensor: Any) -> Any:
    """An ordinary tensor on the same memory, with the attributes of a paged one: for copies and files."""
    plain = object.__new__(PLAIN[type(tensor)])
    plain.__dict__.update(tensor.__dict__)
    plain._array, plain._edge, plain._view = tensor._array, tensor._edge, None
    plain._storage = None
    return plain


def copied(tensor: Any, memo: dict[int, Any]) -> Any:
    """What `copy.deepcopy` makes of a paged tensor: an ordinary one."""
    if id(tensor) not in memo:
        memo[id(tensor)] = settled(tensor).__deepcopy__(memo)
    return memo[id(tensor)]


def adopt(tensor: Any, kind: str, pager: Any) -> Page | None:
    """Make a tensor's array a page; None where it is small, a view, or of another class."""
    paged = PAGED.get(type(tensor))
    array = tensor._array if paged is not None else None
    if array is None or tensor._view is not None or array.nbytes < SMALL or not whole(array):
        return None
    storage = storage_of(tensor)
    if type(storage) is not Storage or storage.root is not array:
        return None
    page = Page(array, kind, True, pager)
    del array
    _ARRAY.__set__(tensor, page)
    tensor.__class__ = paged
    storage.__class__ = PagedStorage
    storage.root = page
    return page


def in_memory(tensor: Any) -> bool:
    """Whether the array of a paged tensor is in memory."""
    held = _ARRAY.__get__(tensor)
    return held.__class__ is not Page or held.array is not None


def release(tensor: Any) -> None:
    """Make a paged tensor an ordinary one again, its array in memory."""
    held = _ARRAY.__get__(tensor)
    storage = tensor._storage
    if type(storage) is PagedStorage:
        array = storage.root
        storage.__class__ = Storage  # type: ignore[assignment]
        storage.root = array
    if held.__class__ is Page:
        _ARRAY.__set__(tensor, held.get())
    tensor.__class__ = PLAIN[type(tensor)]


def whole(array: Any) -> bool:
    """Whether an array is its memory, the whole of it and nothing else."""
    return bool(array.flags.owndata and array.flags.forc and array.flags.writeable)


class View:
    """How an array lies in the memory of another: taken from an array, it is made again on its copy."""

    __slots__ = ("dtype", "offset", "shape", "strides")

    def __init__(self, array: Any, root: Any):
        start = root.__array_interface__["data"][0]
        self.offset = array.__array_interface__["data"][0] - start if array.size else 0
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype

    def of(self, root: Any) -> Any:
        """The view of an array with the layout of the first one's root."""
        return np.ndarray(self.shape, self.dtype, root.reshape(-1, order="A").view(np.uint8), self.offset, self.strides)


class Kept:
    """A saved tensor as a page, and the view of it that was saved."""

    __slots__ = ("page", "seen", "version", "view")

    def __init__(self, tensor: Any, page: Page, view: View | None):
        self.page, self.view = page, view
        self.seen, self.version = weakref.ref(storage_of(tensor)), tensor._version

    def array(self) -> Any:
        """What was saved.  RuntimeError if it was changed in place since."""
        storage = self.seen()
        if storage is not None and storage.version != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a saved "
                f"tensor of {self.page.nbytes} bytes is at version {storage.version}; expected version {self.version} "
                "instead. Use the out-of-place form of the change, or clone() the tensor before it."
            )
        found = self.page.get()
        return found if self.view is None else self.view.of(found)
