"""Masks that operators were given, as one bit an element, once nobody but the graph holds them.

`torch.where(x > 0, x, y)` makes a mask that the caller forgets at once, and that the gradient asks for again: a byte an element
until then.  A node that saves one is told when the tensor goes, and has it packed.  One that somebody holds costs nothing more
and stays as it is: with its version, and to whoever asks the tensor itself.
"""

from __future__ import annotations

import math
import weakref
from contextlib import suppress
from sys import getrefcount
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rushlight.basics.references import untraced
from rushlight.basics.state import modes
from rushlight.dispatch.keeping.bits import packed, rehearsed
from rushlight.dispatch.keeping.rebuilt import LARGE, switch
from rushlight.engine.views import make_view
from rushlight.storage import Storage, root_of, storage_of
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import OpNode
    from rushlight.engine.node import Edge

BOOL = np.dtype(bool)


class Mask:
    """A saved mask, for all nodes that saved it.

    array, storage: its memory, None once it is bits; bits: these, as `numpy.packbits` lays them out; version: that it had when
    it was saved; seen: a weak reference to the tensor; waiting: one to that whose end is waited for, the base of a view.
    """

    __slots__ = ("__weakref__", "array", "bits", "seen", "shape", "storage", "version", "waiting")
    _edge = None

    def __init__(self, tensor: Tensor):
        self.shape, self.seen = tensor._held.shape, weakref.ref(tensor)
        self.bits: Any = None
        self.array: Array | None = tensor._held
        self.storage: Storage | None = storage_of(tensor)
        self.version = self.storage.version
        owner = weakref.ref(self)

        def gone(_: weakref.ref[Tensor]) -> None:
            mask = owner()
            if mask is not None and modes.run is None:  # in a run it goes in a moment anyway
                mask.pack()

        self.waiting = weakref.ref(tensor if tensor._view is None else tensor._view.base, gone)

    def pack(self) -> None:
        """Keep bits, while the last tensor on the memory is being freed, if nobody else holds that."""
        array, storage = self.array, self.storage
        if array is None or storage is None or storage.version != self.version:
            return
        del array, storage
        if holders(self) in ALONE:
            with suppress(MemoryError):  # then the mask stays, which answers as well
                self.bits, self.array, self.storage = bits_of(self.array), None, None

    @property
    def memory(self) -> Array:
        """What it takes: the array, or bits."""
        return self.bits if self.array is None else self.array

    @property
    def _storage(self) -> Storage | None:
        tensor = self.seen()
        return self.storage if tensor is None else tensor._storage

    @property
    def _array(self) -> Array:
        tensor, level = self.seen(), rehearsed()
        found: Any = self.array if tensor is None else tensor._array
        if found is None and level is not None:
            found = level.standing(self.shape, bool)
        return self.unpacked() if found is None else found

    def unpacked(self) -> Array:
        """The mask again, of its bits."""
        return np.unpackbits(self.bits, count=math.prod(self.shape)).view(bool).reshape(self.shape)

    def tensor(self, edge: Edge | None) -> Tensor:
        """The mask as a tensor: that which was given, as long as it lives."""
        found = self.seen()
        if found is None:
            found = wrap(self._array)
            found._storage = self.storage
        return found


def bits_of(array: Any) -> Array:
    """A mask as bits."""
    level, size = rehearsed(), (array.size + 7) // 8
    return packed(array, np.empty((1, size), np.uint8))[0] if level is None else level.standing(size, np.uint8)


known: weakref.WeakValueDictionary[int, Mask] = weakref.WeakValueDictionary()  # by the id of the tensor


def mask_of(tensor: Tensor) -> Tensor | Mask:
    """What a node keeps of a tensor of bools: itself, where bits are not worth their making."""
    array = tensor._held
    if array.__class__ is not np.ndarray or array.nbytes < LARGE or not switch.on:
        return tensor
    if tensor.__class__ is not Tensor or tensor._unusual or not array.flags.c_contiguous:
        return tensor
    if root_of(array).nbytes != array.nbytes:
        return tensor
    found = known.get(id(tensor))
    if found is None or found.seen() is not tensor or found.version != storage_of(tensor).version:
        found = known[id(tensor)] = Mask(tensor)
    return found


def keep_masks(node: OpNode) -> None:
    """Have a node be told when nobody else holds the masks that it was given."""
    for x in node.saved:
        if x.__class__ is Tensor and x._held.dtype is BOOL and x._held.nbytes >= LARGE:
            node.saved = [mask_of(x) if x.__class__ is Tensor and x._held.dtype is BOOL else x for x in node.saved]
            return


def holders(mask: Mask) -> tuple[int, ...]:
    """How many hold a saved mask's array, its storage, and the array that owns the memory."""
    root = root_of(mask.array)
    own = () if root is mask.array else (getrefcount(root),)
    return (getrefcount(mask.array), getrefcount(mask.storage), *own)


class _Example(Mask):
    """A mask of which nobody holds anything but what is being freed: `pack` notes what `holders` says then."""

    __slots__ = ()
    said: ClassVar[set[tuple[int, ...]]] = set()

    def pack(self) -> None:
        self.said.add(holders(self))


def _viewed(of: Tensor) -> Tensor:
    view = wrap(of._held.reshape(1, 4))
    make_view(view, of, None, (), None, "")
    return view


@untraced
def _alone() -> set[tuple[int, ...]]:
    """What `holders` says where nobody else holds a mask: a result, shaped or not, and views of both."""
    for shaped in (False, True):
        for views in range(3):
            made = wrap(np.empty(4, bool).reshape(2, 2) if shaped else np.empty(4, bool))
            for _ in range(views):
                made = _viewed(made)
            kept = _Example(made)
            del made, kept
    return _Example.said


ALONE = _alone()
