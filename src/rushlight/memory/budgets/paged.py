"""Tensors and storages whose array may be on disk, and how ordinary ones become such and ordinary again.

A paged tensor is of a subclass in which `_array` brings the array back when anything asks for it.  In the slot stands the
page, which all tensors and storages on that memory share: detached aliases, `data`, parameters made of it.  So they hold
nothing that could not be sent away.
"""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.references import HELD
from rushlight.dispatch.keeping.unmade import place_of
from rushlight.memory.budgets import pages
from rushlight.memory.budgets.pages import Page, gapless, whole
from rushlight.nn.parameter import Parameter
from rushlight.overrides.protocol import switched_off
from rushlight.signs import signed
from rushlight.storage import Counted, Storage, root_of, storage_of
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.memory.budgets.pager import Pager

_ARRAY: Any = Tensor.__dict__["_array"]
_ROOT: Any = Storage.__dict__["root"]
_deepcopy: Any = Tensor.__dict__["__deepcopy__"]
_set_class: Any = object.__dict__["__class__"].__set__


class PagedStorage(Storage):
    """The storage of a paged tensor: its root is the page's array."""

    __slots__ = ()
    ordinary: Any = Storage

    @property
    def page(self) -> Any:
        """The page, None where the storage has come to lie on other memory."""
        held = _ROOT.__get__(self)
        return held if held.__class__ is Page else None

    @property
    def owner(self) -> Any:
        return _ROOT.__get__(self)

    @property
    def root(self) -> Any:
        held = _ROOT.__get__(self)
        return root_of(held.get()) if held.__class__ is Page else held

    @root.setter
    def root(self, value: object) -> None:
        _ROOT.__set__(self, value)


class PagedCounted(PagedStorage, Counted):
    """The same of one of several storages with one version counter."""

    __slots__ = ()
    ordinary = Counted


PagedStorage.counted = PagedCounted
PAGED_STORAGE: dict[Any, Any] = {Storage: PagedStorage, Counted: PagedCounted}


class _Paged:
    """What paged tensors have in place of the slot for their array."""

    __slots__ = ()
    stands_for: Any  # the class that it has to others
    _elsewhere = True
    _unusual: bool

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
    def _array(self, value: object) -> None:
        held = _ARRAY.__get__(self, None) if has_slot(self) else None
        if held.__class__ is not Page or held.data is not value:  # `p.data -= x` puts back what was there
            _ARRAY.__set__(self, value)

    _held = _array

    def _on_page(self, cls: object) -> tuple[Any, Any]:
        """The class, in place of `cls`, of a tensor that shares this one's memory, and what stands in its slot."""
        held = _ARRAY.__get__(self)
        shared = held.__class__ is Page and not held.pager.closed and cls in PAGED
        return (PAGED[cls], held) if shared else (cls, self._held)

    def _on_disk(self) -> tuple[Any, ...] | None:
        """An array of this one's shape, strides and dtype, on no memory, and the page; None where there is no page."""
        held = _ARRAY.__get__(self)
        return (held.outline(), held) if held.__class__ is Page else None

    @property
    def data(self) -> Any:
        """The same memory outside the graph, with a version counter of its own."""
        held = _ARRAY.__get__(self)
        if held.__class__ is not Page or held.pager.closed or self._unusual:
            return Tensor.data.fget(self)  # type: ignore[attr-defined]
        t = object.__new__(PagedTensor)
        _ARRAY.__set__(t, held)
        t._edge, t._view, t._storage = None, None, paged_storage(held)
        return t

    @data.deleter
    def data(self) -> None:
        Tensor.data.fdel(self)  # type: ignore[attr-defined]

    @data.setter
    def data(self, value: object) -> None:
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]


@switched_off
class PagedTensor(_Paged, Tensor):
    """A tensor whose array may be on disk."""

    __slots__ = ()
    stands_for = Tensor

    def __reduce_ex__(self, protocol: Any) -> Any:
        return settled(self).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return on_page_too(_deepcopy(self, memo), self)


@switched_off
class PagedParameter(_Paged, Parameter):
    """A parameter whose array may be on disk."""

    __slots__ = ()
    stands_for = Parameter

    def __reduce_ex__(self, protocol: Any) -> Any:
        return settled(self).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = on_page_too(Parameter(self.data.clone(), self.requires_grad), self)
        return known


PAGED: dict[Any, Any] = {kind.stands_for: kind for kind in (PagedTensor, PagedParameter)}
KINDS = (*PAGED, *PAGED.values())


def on_page_too(copy: object, original: Any) -> Any:
    """A copy of a paged tensor, paged like that."""
    page = page_of(original)
    if page is not None and not page.pager.closed:
        page.pager.adopt(copy, page.kind)
    return copy


def has_slot(tensor: object) -> bool:
    """Whether the slot for the array of a tensor has been filled."""
    try:
        _ARRAY.__get__(tensor)
    except AttributeError:
        return False
    return True


def complete(tensor: Tensor) -> bool:
    """Whether a tensor is made: another thread, or the one that asks for memory, may be at it."""
    try:
        return has_slot(tensor) and (tensor._edge, tensor._storage, tensor._view) is not None
    except AttributeError:
        return False


def paged_storage(page: object) -> PagedStorage:
    """A storage with a version counter of its own on the memory of a page."""
    made = object.__new__(PagedStorage)
    made.root, made.version, made.writer = page, 0, None
    return made


def settled(tensor: Any) -> Any:
    """An ordinary tensor on the same memory, with the attributes of a paged one: for pickles."""
    plain = object.__new__(type(tensor).stands_for)
    plain.__dict__.update(tensor.__dict__)
    plain._array, plain._edge, plain._view = tensor._array, tensor._edge, None
    plain._storage = None
    return plain


def page_of(tensor: object) -> Any:
    """The page in a tensor's slot, None if there is none."""
    held = _ARRAY.__get__(tensor)
    return held if held.__class__ is Page else None


def adopt(tensor: Tensor, kind: str, pager: Pager) -> bool:
    """Make a tensor's array a page of a pager; False where it is small, a view, or of another class."""
    if type(tensor) not in KINDS or not complete(tensor):
        return False
    page = page_of(tensor)
    if page is not None:
        page.belong(kind, pager)
        return True
    array = _ARRAY.__get__(tensor)
    if array.__class__ is not np.ndarray or tensor._view is not None or array.nbytes < pages.SMALL or not covers(array):
        return False
    storage = storage_of(tensor)
    if storage.page is not None and storage.page.data is array:  # another tensor on this memory was adopted
        page = storage.page
        page.belong(kind, pager)
    elif (
        storage.page is not None
        or getattr(type(storage), "ordinary", type(storage)) not in PAGED_STORAGE
        or storage.root is not root_of(array)
    ):
        return False
    else:
        page = Page(array, kind, True, pager)
        storage.__class__ = PAGED_STORAGE.get(type(storage), type(storage))
        storage.root = page
    _ARRAY.__set__(tensor, page)
    _set_class(tensor, PAGED.get(type(tensor), type(tensor)))
    return True


def covers(array: Any) -> bool:
    """Whether an array is all of its memory, perhaps with its axes in another order than its owner, which nobody else has."""
    root = root_of(array)
    if array is root:
        return whole(root)
    mine = getrefcount(root) <= HELD + 1  # the array, whose base it is, and the storage
    return mine and whole(root) and array.nbytes == root.nbytes and gapless(array)


def in_memory(tensor: Tensor) -> bool:
    """Whether the array of a paged tensor is in memory."""
    page = page_of(tensor)
    return page is None or page.data is not None


def present(tensor: Tensor) -> Any:
    """The array of a tensor, None while it is on disk, or not made yet."""
    if place_of(tensor) is not None:
        return None
    if not tensor._elsewhere:
        return tensor._held
    page = page_of(tensor)
    return _ARRAY.__get__(tensor) if page is None else page.data


def release(tensor: Any) -> None:
    """Make a paged tensor an ordinary one again, its array in memory."""
    page, storage = page_of(tensor), tensor._storage
    if isinstance(storage, PagedStorage):
        array = storage.root
        storage.__class__ = storage.ordinary
        storage.root = array
    if page is not None:
        _ARRAY.__set__(tensor, page.get())
    kind = type(tensor)
    _set_class(tensor, signed(kind.stands_for, kind._bits))
