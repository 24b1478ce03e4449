"""What stores keep in the place of saved tensors: regions of memory, shared by the tensors that lie in them."""

from __future__ import annotations

import threading
import weakref
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.engine.saved import stale
from rushlight.signs import turn
from rushlight.storage import Storage, counter_of, depend, independent, root_of
from rushlight.stores.layout import Layout, remaining, viewed
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.basics.arrays import Array
    from rushlight.stores.files import Piece


class Coded:
    """An array as a store encoded it: arrays, each of which the next store may have encoded, and a note of the store's."""

    __slots__ = ("dtype", "note", "parts", "size", "store")

    def __init__(self, store: Any, parts: list[Any], note: Piece | tuple[Any, ...] | None, array: Array):
        self.store, self.parts, self.note = store, parts, note
        self.size, self.dtype = array.size, array.dtype

    def decoded(self) -> Any:
        """The array: flat, of the dtype and size that it had."""
        parts = [part.decoded() if part.__class__ is Coded else part for part in self.parts]
        return self.store.decode(parts, self.note, self.size, self.dtype)

    def walk(self) -> Any:
        """This and what is encoded within it."""
        yield self
        for part in self.parts:
            if part.__class__ is Coded:
                yield from part.walk()

    def arrays(self) -> Any:
        """The arrays that are in memory."""
        for coded in self.walk():
            yield from (part for part in coded.parts if part.__class__ is not Coded)


def encoded(stages: tuple[Any, ...], array: Array, guard: Callable[..., Any] | None = None) -> Any:
    """A flat array as a row of stores keeps it; the first encodes, the next ones encode what that made.

    guard: tells whether the array is still as it was, to a store that reads it later.
    """
    if not stages:
        return array
    parts, note = stages[0].encode(array, guard)
    rest = stages[1:]
    kept = [encoded(tuple(s for s in rest if part.nbytes >= s.min_bytes), part) for part in parts]
    return Coded(stages[0], kept, note, array)


class Elsewhere:
    """Tensors that were saved and that `.data` or `set_` has given other memory since, which backward is to see.

    It does not keep them: they may lead to the node that keeps this.
    """

    __slots__ = ("arrays",)

    def __init__(self) -> None:
        self.arrays: tuple[tuple[Any, Any], ...] = ()  # weak references to tensors, and what they show

    def note(self, tensor: Tensor, who: Any) -> None:
        """A tensor was given other memory; `who` keeps this, and is to hear of the next."""
        reference, array = weakref.ref(tensor), tensor._held
        known = root_of(array) in self
        self.arrays = (*(entry for entry in self.arrays if entry[0] is not reference), (reference, array))
        if not known:
            who.keys.append(depend(array, who))

    def __contains__(self, root: Array) -> bool:
        return any(root_of(array) is root for _, array in self.arrays)

    def watched(self, who: Any, root: Array, own: bool) -> bool:
        """Have `who` hear of the next change of memory, too, that was its own or is one of these; whether it is one of these."""
        known = root in self
        if known or own:
            depend(root, who)
        return known and not own

    def shown(self, reference: Any) -> Tensor | None:
        """What the tensor of a weak reference shows, or showed last; None where it is none of these."""
        for other, array in self.arrays:
            if other is reference:  # Python makes one for all who ask
                tensor = reference()
                return wrap(array) if tensor is None else turn(wrap(tensor._held), tensor._bits)
        return None


class Region:
    """A stretch of memory as stores keep it.  While anybody uses what it was restored to, that is used again.

    Where the memory that it was made of changes, perhaps unseen, it is that memory from then on: as if nobody stored it.
    cost: how many operators run to restore it. elsewhere: see `Elsewhere`. order: that which reads ahead, and of its
        handles the numbers there.
    """

    __slots__ = (
        "__weakref__",
        "cost",
        "elsewhere",
        "kept",
        "keys",
        "layout",
        "lock",
        "numbers",
        "order",
        "own",
        "root",
        "watch",
    )

    def __init__(
        self, kept: Any, layout: Layout, cost: int = 0, watch: Watch | None = None, array: Array | None = None
    ):
        """array: that which it was made of, where others may hold and change that."""
        self.kept, self.layout, self.cost = kept, layout, cost
        self.lock: Any = threading.RLock()
        self.watch = watch  # the version of the memory that it was made of
        self.root: Any = None  # weak: the array that owns what was restored last
        self.order: Any = None
        self.numbers: list[int] = []
        self.keys = list[int]()
        self.elsewhere = Elsewhere()
        self.own = None if array is None else weakref.ref(root_of(array))
        if array is not None:
            self.keys = [depend(x, self) for x in (array, *self.sources())]

    @property
    def start(self) -> int:
        """The first byte."""
        return self.layout.start

    @property
    def stop(self) -> int:
        """The byte after the last."""
        return self.layout.stop

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def sources(self) -> Any:
        """The memory in use by others that it is computed from."""
        return self.kept.sources() if hasattr(self.kept, "sources") else ()

    def alive(self) -> Array | None:
        """The memory that it was made of, if that is still there."""
        return None if self.own is None else self.own()

    def settle(self, root: Array) -> None:
        """Memory that this was made of, or is computed from, is about to change."""
        own = self.alive()
        if self.elsewhere.watched(self, root, root is own):
            return
        with self.lock:
            if own is not None and (own is root or hasattr(self.kept, "sources")):
                self.kept = remaining(own, self.layout)
                if self.watch is not None:
                    self.watch.hold()
            elif hasattr(self.kept, "sources"):
                self.kept = self.kept.decoded()

    def went(self, tensor: Tensor, root: Array) -> None:
        """A tensor on the memory that this was made of was given other memory."""
        if self.own is not None:
            self.elsewhere.note(tensor, self)

    def array(self) -> Any:
        """The stretch, flat."""
        with self.lock:
            if self.kept.__class__ is np.ndarray:
                return self.kept
            own = self.alive()
            if own is not None and self.exact:  # arrays that were shown to NumPy before may have changed it
                self.hand_over()
                return remaining(own, self.layout)
            root = None if self.root is None else self.root()
            if root is not None:
                return root.reshape(-1).view(np.uint8)[: self.nbytes].view(self.kept.dtype)
            found = self.kept.decoded()
            root = root_of(found)
            if root.flags.c_contiguous and root.__array_interface__["data"] == found.__array_interface__["data"]:
                self.root = weakref.ref(root)
                if self.order is not None:
                    self.order.restored(self, root)
            return found

    @property
    def exact(self) -> bool:
        """Whether what is restored is what was saved, to the bit."""
        return all(coded.store.exact for coded in self.walk())

    @property
    def stays(self) -> bool:
        """Whether the memory that it was made of is used again, as that is still there."""
        return self.alive() is not None and self.exact

    def hand_over(self) -> None:
        """Take what is in memory on its way to or from a disk, which nobody will ask for, and hear of what went wrong there."""
        for coded in self.kept.walk():
            if coded.store.on_disk and coded.note.in_memory:
                coded.note.get()

    @property
    def nbytes(self) -> int:
        """Bytes of what is restored."""
        return int(self.kept.size * self.kept.dtype.itemsize)

    @property
    def seconds(self) -> float:
        """How long the operators run that restore it."""
        return float(getattr(self.kept, "seconds", 0.0))

    def walk(self) -> Any:
        """Everything encoded that it is restored from."""
        return () if self.kept.__class__ is np.ndarray else self.kept.walk()


class Saver:
    """Who saved a tensor, as error messages ask."""

    extra = None

    def __init__(self, where: tuple[str, ...]):
        self.where = where or ("an operator", "a tensor")

    def name(self) -> str:
        """The name in messages."""
        return str(self.where[0])


class Watch:
    """The version of a tensor's memory when it was saved: of the memory that it has, as long as it lives, for `set_` may give it
    another."""

    __slots__ = ("held", "storage", "tensor", "version", "where")

    def __init__(self, tensor: Tensor, storage: Storage, version: int, where: tuple[str, ...]):
        self.tensor, self.storage, self.version, self.where = weakref.ref(tensor), weakref.ref(storage), version, where
        self.held: Any = None

    def hold(self) -> None:
        """Keep the version: the memory is about to change."""
        storage = self.storage()
        self.held = None if storage is None else counter_of(storage)

    def check(self, shape: tuple[int, ...], first: Watch | None = None) -> None:
        """Raise RuntimeError if the memory was changed since, as where nothing packs tensors.

        first: the watch of who saved the same memory first, which alone is told that it is about to change.
        """
        tensor, storage = self.tensor(), self.storage()
        if tensor is not None and tensor._storage is not None:
            storage = tensor._storage
        if storage is None:
            storage = self.held if self.held is not None or first is None else first.held
        if storage is not None and storage.version != self.version:
            saver = Saver(self.where)
            stale(saver, f"{saver.where[1]!r}", shape, storage.version, self.version, storage)


class Handle:
    """What a node keeps in the place of a tensor: a view of a region."""

    __slots__ = ("__weakref__", "layout", "number", "order", "region", "watch")

    def __init__(self, region: Region, layout: Layout, watch: Any):
        self.region, self.layout, self.watch = region, layout, watch
        self.order: Any = None  # that reads ahead, where there is one, and this handle's number in it
        self.number = 0

    def tensor(self) -> Tensor:
        """The tensor again."""
        if self.watch is not None:
            self.watch.check(self.layout.shape, self.region.watch)
            moved = self.region.elsewhere.shown(self.watch.tensor)
            if moved is not None:
                return moved
        if self.order is None:
            return wrap(viewed(self.region.array(), self.layout))
        self.order.wanted(self.number)
        try:
            return wrap(viewed(self.region.array(), self.layout))
        finally:
            self.order.ahead(self.number)

    def alive(self) -> Array | None:
        """The memory of what was saved, where others use it too."""
        return self.region.alive()

    @property
    def current(self) -> bool:
        """Whether it takes memory, for a tensor whose own memory is as it was when that was saved."""
        storage, kept = None if self.watch is None else self.watch.storage(), self.region.kept
        if storage is None or storage.version != self.watch.version or kept.__class__ not in (Coded, np.ndarray):
            return False
        return not any(coded.store.on_disk for coded in self.region.walk())

    def held_by(self) -> tuple[int, ...]:
        """Whether the region is that memory itself, and how many hold this, the region, the memory and its storage."""
        region = self.region
        counts = getrefcount(self), getrefcount(region), getrefcount(region.alive()), getrefcount(self.watch.storage())
        return region.kept.__class__ is np.ndarray, *counts

    def arrays(self) -> Any:
        """The arrays in memory that this keeps alive."""
        kept = self.region.kept
        if kept.__class__ is np.ndarray:
            return [kept]
        return [*kept.arrays(), *(a for coded in kept.walk() if coded.store.on_disk for a in coded.note.arrays())]

    def __del__(self) -> None:
        order = getattr(self, "order", None)
        if order is not None:
            order.gone(self.number)


class Passed:
    """Beside a tensor that no store took: the check that its memory did not change."""

    __slots__ = ("watch",)

    def __init__(self, watch: Watch):
        self.watch = watch


class Exposed:
    """Beside the tensors that a store made of one, for hooks around it that are no stores: how to decode them."""

    __slots__ = ("__weakref__", "coded", "elsewhere", "kept", "keys", "layout", "own", "watch")

    def __init__(self, coded: Any, layout: Layout, watch: Any, array: Array):
        """array: what was saved, whose changes are watched after it has died; None where nobody watches.

        kept: as of a region, its memory once that was about to change.
        """
        self.coded, self.layout, self.watch = coded, layout, watch
        self.elsewhere = Elsewhere()
        self.own = None if array is None else weakref.ref(root_of(array))
        self.kept: Any = None
        self.keys = [] if array is None else [depend(array, self)]

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """What was saved is about to change."""
        if not self.elsewhere.watched(self, root, self.own is not None and root is self.own()):
            self.watch.hold()
            self.kept = remaining(root, self.layout)

    def went(self, tensor: Tensor, root: Array) -> None:
        """What was saved, or another tensor on its memory, was given other memory."""
        self.elsewhere.note(tensor, self)

    def tensor(self, tensors: list[Any]) -> Tensor:
        """The tensor again."""
        if self.watch is not None:
            self.watch.check(self.layout.shape)
            moved = self.elsewhere.shown(self.watch.tensor)
            if moved is not None:
                return moved
        if self.kept is not None:
            return wrap(viewed(self.kept, self.layout))
        coded = self.coded
        arrays = [t._array.reshape(-1) for t in tensors]
        return wrap(viewed(coded.store.decode(arrays, coded.note, coded.size, coded.dtype), self.layout))
