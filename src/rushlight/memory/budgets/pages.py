"""Pages: arrays that may be on disk.

Which of them are in use is told by reference counts: an array that only its page holds can be sent away.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import getrefcount
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from rushlight.basics.references import HELD
from rushlight.dispatch.keeping import gates
from rushlight.engine.saved import Packed
from rushlight.signs import turn
from rushlight.storage import Storage, counter_of, depend, in_order, independent, memory_of, root_of, storage_of
from rushlight.stores.region import Elsewhere
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.stores.files import Piece, Spill

SMALL = 1 << 16  # bytes below which an array is not worth the trouble


def _nobody() -> None:
    """In place of a weak reference to a page."""


class Page:
    """An array, in memory or in a spill, or nowhere: to be computed again.

    data: the array while it is in memory. kind: what it is for. mutable: whether the array may change once it is back. piece:
    what is on disk. axes: as they lie in memory, None for C order. then: the page that was brought back after this
        one the last time, outside of backward and in it.
    """

    __slots__ = (
        "__weakref__",
        "axes",
        "data",
        "dtype",
        "kind",
        "mutable",
        "nbytes",
        "pager",
        "piece",
        "shape",
        "strides",
        "then",
        "waiting",
    )

    def __init__(self, array: Any, kind: str, mutable: bool, pager: Any):
        self.data, self.kind, self.mutable, self.pager = array, kind, mutable, pager
        self.nbytes, self.dtype, self.shape, self.strides = array.nbytes, array.dtype, array.shape, array.strides
        self.axes = (
            None if array.flags.c_contiguous else sorted(range(array.ndim), key=lambda i: -abs(array.strides[i]))
        )
        self.piece: Any = None
        self.waiting: list[Any] = []  # while it is away: who computes from it
        self.then: list[Any] = [_nobody, _nobody]
        pager.add(self)

    def get(self) -> Any:
        """The array, brought back if it was away."""
        return self.pager.use(self)

    def outline(self) -> Any:
        """An array of the same shape, strides and dtype, on no memory of that size."""
        return np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides, writeable=False)

    def put(self, spill: Spill) -> Piece:
        """What a spill makes of the array: of its elements in the order in which they lie."""
        return spill.put(self.lying(self.data))

    def lying(self, array: Any) -> Any:
        """The array with its axes as they lie in memory: C-contiguous."""
        return array if self.axes is None else array.transpose(self.axes)

    def read(self) -> Any:
        """The array from disk, in memory that the allocator counts and that is its own."""
        piece = self.piece
        if piece.in_memory:
            found = piece.get()
            root = root_of(found)
            same = root.shape == self.shape and root.strides == self.strides and root.dtype == self.dtype
            return root if same else self.standing(found)
        out = np.empty_like(self.outline())
        piece.get(out=self.lying(out))
        return out

    def standing(self, array: Any) -> Any:
        """The inverse of `lying`."""
        return array if self.axes is None else array.transpose(np.argsort(self.axes))

    def belong(self, kind: str, pager: Any) -> None:
        """Be for something else, or of another pager: the one that was there has ended."""
        if pager is self.pager and kind == self.kind:
            return
        self.pager.drop(self)
        self.kind, self.pager = kind, pager
        pager.add(self)
        if self.data is None:
            pager.note_away(self, self.nbytes)

    @property
    def unchanged(self) -> bool:
        """Whether the array is what is on disk, where something is: told by a digest of 64 bits."""
        if self.piece is None or not self.mutable:
            return self.piece is not None
        return bool(self.piece.holds(self.lying(self.data)))

    @property
    def idle(self) -> bool:
        """Whether only this page holds the array."""
        array = self.data
        if array is None or getrefcount(array) > HELD:
            return False
        base = array.base  # of an array that was read back in another order of axes; views of it refer to that
        return base is None or getrefcount(base) <= HELD

    @property
    def moving(self) -> bool:
        """Whether this is away, and its memory there all the same: not written yet, or read ahead."""
        return self.data is None and self.piece is not None and self.piece.takes_memory

    def __del__(self) -> None:
        pager = getattr(self, "pager", None)
        if pager is not None:
            pager.drop(self)


class SavedPage(Page):
    """The memory of a tensor that was saved for backward, as it was at a version.

    To recipes of other tensors it is the region that keeps the memory.  number: in the order of saving. again: what computes
    it again, None if nothing can. users: weak references to pages that are computed again from this one. later: the version
    at which the memory was saved last. elsewhere: tensors that have other memory since.
    """

    __slots__ = ("again", "elsewhere", "held", "keys", "later", "number", "ready", "seen", "users", "version")
    start, watch = 0, None
    number: int

    def __init__(self, root: Array, kind: str, pager: Any, storage: Storage):
        self.again: Any = None
        self.seen, self.version = ref(storage), storage.version
        self.later = self.version
        self.held: Any = None
        self.ready = False  # whether it was written ahead of need
        self.users: list[Any] = []
        self.elsewhere = Elsewhere()
        super().__init__(root, kind, False, pager)
        self.keys = [depend(root, self)]

    def array(self) -> Any:
        """The memory.  RuntimeError if it was changed in place since it was saved."""
        storage = self.seen()
        if storage is None:
            storage = self.held
        now = self.later if storage is None else storage.version
        if now != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a saved "
                f"tensor of {self.nbytes} bytes is at version {now}; expected version {self.version} instead. "
                "Use the out-of-place form of the change, or clone() the tensor before it."
            )
        return self.get()

    def compute_with(self, again: Any) -> None:
        """Take `again` as what computes the memory again."""
        self.again = again
        for page in sources_of(again):
            page.users.append(ref(self))
        self.keys += [depend(array, self) for array in (again.sources() if again is not None else ())]

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)
        super().__del__()

    def settle(self, root: Any) -> None:
        """Memory that this is, or is computed from, is about to change, perhaps unseen."""
        own = self.data is not None and root is root_of(self.data)
        if self.elsewhere.watched(self, root, own):
            return
        if own:
            self.before_change()
            storage = self.seen()
            self.held = None if storage is None else counter_of(storage)  # also when the memory is forgotten
            self.forget_piece()
        else:
            self.keep()
        self.again = None

    def forget_piece(self) -> None:
        """What was written is no longer what is saved."""
        piece, self.piece = self.piece, None
        if piece is not None:
            self.pager.not_ready(self)
            piece.free()

    def went(self, tensor: Tensor, root: Any) -> None:
        """A tensor on this memory was given other memory: who saved it gets what it has then."""
        self.elsewhere.note(tensor, self)

    def keep(self) -> None:
        """What the memory is computed from is about to change: have it now, unless nobody will get what it was."""
        if self.piece is None and self.later == self.version:
            self.get()

    def alive(self) -> Any:
        """The memory, while it is there."""
        return self.data

    def sources(self) -> tuple[Any, ...]:
        """What else it is computed from: a page that is away comes back by itself."""
        return ()

    def before_change(self) -> None:
        """The memory is about to be changed in place: pages that are computed from it have to be had now."""
        for reference in self.users:
            page = reference()
            if page is not None:
                page.keep()
                page.again = None
        self.users = []

    def computed(self) -> Any:
        """The memory, computed again."""
        return self.standing(self.again.decoded().reshape([self.shape[i] for i in self.axes or range(len(self.shape))]))

    @property
    def stop(self) -> int:
        """Where the region ends: it is the whole memory."""
        return int(self.nbytes)

    @property
    def cost(self) -> int:
        """How many operators run to have it."""
        return 0 if self.again is None else int(self.again.cost)

    @property
    def seconds(self) -> float:
        """How long they take."""
        return 0.0 if self.again is None else float(self.again.seconds)

    def walk(self) -> tuple[Any, ...]:
        """What stores encoded of it: nothing."""
        return ()


def sources_of(again: Any) -> Iterator[SavedPage]:
    """The pages that a tensor is computed from."""
    for source in again.inputs if again is not None else ():
        region = getattr(source, "region", None)
        if region.__class__ is SavedPage:
            yield region
        elif region is not None:
            yield from sources_of(region.kept)


def whole(array: Array) -> bool:
    """Whether an array is its memory, the whole of it and nothing else."""
    return bool(array.flags.owndata and gapless(array) and array.flags.writeable)


def gapless(array: Array) -> bool:
    """Whether an array's elements, whose axes may lie in any order, follow each other in memory."""
    return bool(array.flags.forc or in_order(array).flags.c_contiguous)


class View:
    """How an array lies in the memory of another: taken from an array, it is made again on its copy."""

    __slots__ = ("dtype", "offset", "shape", "strides")

    def __init__(self, array: Any, root: Any):
        start = root.__array_interface__["data"][0]
        self.offset = array.__array_interface__["data"][0] - start if array.size else 0
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype

    def of(self, root: Any) -> Any:
        """The view of an array with the layout of the first one's root."""
        return np.ndarray(self.shape, self.dtype, memory_of(root), self.offset, self.strides)


class Kept:
    """A saved tensor as a page, the view of it that was saved, and the bits of that; weakly, the tensor itself."""

    __slots__ = ("bits", "origin", "page", "view")

    def __init__(self, page: SavedPage, view: View | None, bits: int = 0, tensor: Tensor | None = None):
        self.page, self.view, self.bits = page, view, bits
        self.origin = _nobody if tensor is None else ref(tensor)

    def array(self) -> Any:
        """What was saved.  RuntimeError if it was changed in place since."""
        found = self.page.array()
        return found if self.view is None else self.view.of(found)

    def alive(self) -> Any:
        """What was saved, None while it is not in memory."""
        data = self.page.data
        return data if data is None or self.view is None else self.view.of(data)

    def watching(self) -> tuple[Any, int]:
        """The storage, if that lives, and the version that was saved."""
        return self.page.seen(), self.page.version

    @property
    def current(self) -> bool:
        """Whether it is in memory, as it was saved."""
        storage = self.page.seen()
        now = self.page.later if storage is None else storage.version
        return self.page.data is not None and now == self.page.version

    def held_by(self) -> tuple[int, ...]:
        """How many hold this, the page, the memory and its storage."""
        return getrefcount(self), getrefcount(self.page), getrefcount(self.page.data), getrefcount(self.page.seen())

    def spare(self, least: int) -> Any:
        """The whole memory, of so many bytes at least, to be overwritten; None where anybody else may look at it."""
        page = self.page
        if getrefcount(page) > HELD or page.nbytes < least or page.seen() is not None or page.held is not None:
            return None
        if page.later != page.version or any(reference() is not None for reference in page.users):
            return None
        found = self.array()
        if found.nbytes != page.nbytes or not found.flags.c_contiguous:
            return None
        page.forget_piece()  # which may be waiting to be written
        del found
        return self.alive() if page.idle else None

    @property
    def away(self) -> bool:
        """Whether it is not in memory, so that nobody else has it, and as it was saved."""
        return self.page.data is None and self.page.later == self.page.version and self.page.seen() is None

    def tensor(self) -> Any:
        """A tensor of what was saved, on the storage that it had, or on another at its version where that is gone."""
        array = self.array()  # which looks at versions
        moved = self.page.elsewhere.shown(self.origin)
        if moved is not None:
            return moved
        found = turn(wrap(array), self.bits)
        storage = self.page.seen()
        if storage is None:
            storage = storage_of(found)
            storage.version = self.page.version
            self.page.seen = ref(storage)
        found._storage = storage
        return found


class _Nobody:
    """The pager of an example."""

    def add(self, page: SavedPage) -> None: ...

    def drop(self, page: SavedPage) -> None: ...


def _example(tensor: Tensor) -> Packed:
    """What a node keeps of a result in a budget."""
    array = tensor._held
    root = root_of(array)
    page = SavedPage(root, "activation", _Nobody(), storage_of(tensor))
    made = [Kept(page, None if array is root else View(array, root))]
    return Packed(tensor, ((lambda _: made.pop(), None),), None, True)


gates.ALONE |= gates.alone(_example)
