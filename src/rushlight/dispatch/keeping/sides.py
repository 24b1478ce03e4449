"""Inputs of abs and its like as two bits an element, once nobody but the graph holds them.

`(a - b).abs().mean()` makes a difference that the caller forgets at once, and of which the gradient asks no more than on which
side of 0 its elements lie. An operator says with `sides` what lies there: its formula is given -1, 0 or 1 in bytes in the place of
its input, and 0 in the place of a second one. An input that somebody holds costs nothing more and stays.
"""

from __future__ import annotations

import math
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from rushlight.dispatch.keeping.bits import rehearsed
from rushlight.dispatch.keeping.masks import ALONE, Mask, holders
from rushlight.dispatch.keeping.rebuilt import LARGE, switch
from rushlight.engine.node import Edge, Node, Port
from rushlight.engine.saved import DETACHED, Constant
from rushlight.storage import root_of
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import OpNode

BLOCK = 1 << 16  # elements looked at together, while the input and what is made of it are still there


class Side(Mask):
    """A saved input, until its sides of 0 will do.

    node: a weak reference to the node that keeps it.
    """

    __slots__ = ("node",)

    def __init__(self, tensor: Tensor, node: OpNode):
        super().__init__(tensor)
        self.node = weakref.ref(node)

    def pack(self) -> None:
        """Have the node keep sides in the place of all that it saved, while the last tensor on this is being freed."""
        node = self.node()
        if node is None or not node.saved or not all(map(unchanged, node.saved)) or holders(self) not in ALONE:
            return
        with suppress(MemoryError):  # then the input stays, which answers as well
            self.bits = bits_of(node)
            self.array = self.storage = None
            node.saved = [self, *[Constant(0)] * (len(node.saved) - 1)]
            node.versions = None

    def unpacked(self) -> Array:
        """The sides, in bytes."""
        below, above = (np.unpackbits(plane, count=math.prod(self.shape)).view(np.int8) for plane in self.bits)
        return np.subtract(above, below, out=above).reshape(self.shape)

    def tensor(self, edge: Edge | None) -> Tensor:
        """The input in its place in the graph, or its sides, which have none."""
        found = self.seen()
        if found is None:
            found = wrap(self._array)
            if self.array is not None:
                found._storage, found._edge = self.storage, edge
        elif found._edge is None and found._view is None and isinstance(edge, (Node, Port)):
            raise RuntimeError(DETACHED)
        return found


def unchanged(kept: object) -> bool:
    """Whether a saved input is what it was when it was saved."""
    if kept.__class__ is not Side or kept.array is None or kept.storage is None:
        return False
    found = kept.seen()
    return bool(kept.storage.version == kept.version and (found is None or found._held is kept.array))


def bits_of(node: OpNode) -> Array:
    """Where what a node's operator makes of its inputs is under 0, and where over 0: a plane of bits for each."""
    arrays, sides = [kept.array.reshape(-1) for kept in node.saved], node.plan.op.sides
    count, level = arrays[0].size, rehearsed()
    if level is not None:
        return level.standing((2, (count + 7) // 8), np.uint8)
    out = np.empty((2, (count + 7) // 8), np.uint8)
    for start in range(0, count, BLOCK):
        below, above = sides(*[x[start : start + BLOCK] for x in arrays])
        out[0, start // 8 : (start + BLOCK) // 8] = np.packbits(below)
        out[1, start // 8 : (start + BLOCK) // 8] = np.packbits(above)
    return out


def keep_sides(node: OpNode) -> None:
    """Have a node be told when nobody else holds an input that it saved, where all of them are large and alike."""
    first = node.saved[0]
    if all(x.__class__ is Tensor and fits(x, first) for x in node.saved):
        node.saved = [Side(x, node) for x in node.saved]


def fits(tensor: Tensor, like: Tensor) -> bool:
    """Whether sides in the place of a saved tensor are worth their making, and can be made."""
    array = tensor._held
    if array.__class__ is not np.ndarray or array.nbytes < LARGE or array.dtype.kind not in "fV" or not switch.on:
        return False
    if array.shape != like._held.shape or not array.flags.c_contiguous or root_of(array).nbytes != array.nbytes:
        return False
    return not tensor._unusual and tensor._tangents is None


def of_zero(x: Array) -> tuple[Array, Array]:
    """Where elements are under 0, and where over."""
    return np.less(x, 0), np.greater(x, 0)
