"""The result of relu and its like as one bit an element, once nobody but the operator's own node holds it.

The next layer mostly keeps the result, and then the node's own reference costs nothing. Where none does (a pool, a sum, a mean
follows), the tensor dies while the graph lives, and all that the gradient asks of the memory is a mask: of relu, where it is
over 0. An operator says with `gates` what the mask is; its formula takes that in the place of the result.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.references import untraced
from rushlight.basics.state import modes
from rushlight.dispatch.keeping.rebuilt import LARGE, switch
from rushlight.engine.saved import Packed, SavedOutput
from rushlight.kernels.dispatch import is_half
from rushlight.storage import root_of
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import OpNode
    from rushlight.engine.node import Edge

BLOCK = 1 << 18  # elements looked at together


class Gates:
    """The mask that a node keeps in place of its result.

    array: the bits, as `numpy.packbits` lays them out.
    """

    __slots__ = ("array", "shape")
    _storage = None

    def __init__(self, shape: tuple[int, ...], bits: Array):
        self.shape, self.array = shape, bits

    @property
    def _array(self) -> Array:
        for level in modes.levels:
            if level.dry:
                return level.standing(self.shape, bool)
        return np.unpackbits(self.array, count=int(np.prod(self.shape))).view(bool).reshape(self.shape)

    def tensor(self, edge: Edge | None) -> Tensor:
        """The mask as a tensor, which has no place in the graph: nothing depends on it smoothly."""
        return wrap(self._array)


following: dict[int, Any] = {}  # weak references to the tensors that are waited for, by their own id


def follow(node: OpNode, tensor: Tensor) -> None:
    """Keep bits once the tensor, a result that its node keeps, is gone and nobody else holds its memory."""
    if not large(tensor._held):
        return
    owner, array = weakref.ref(node), weakref.ref(tensor._held)

    def gone(reference: weakref.ref[Tensor]) -> None:
        following.pop(id(reference), None)
        found = owner()
        if found is not None and modes.run is None:  # in a run it goes in a moment anyway
            reduce(found, array)

    reference = weakref.ref(tensor, gone)
    following[id(reference)] = reference


def large(array: Any) -> bool:
    """Whether bits in place of an array are worth their making."""
    return bool(array.nbytes >= LARGE and (array.dtype.kind == "f" or is_half(array.dtype)) and switch.on)


def worthwhile(node: OpNode, tensor: Tensor) -> bool:
    """Whether bits can stand at once for a copy of a result."""
    array = tensor._held
    if node.plan.op.gates is None or array.__class__ is not np.ndarray or tensor._tangents is not None:
        return False
    return large(array) and bool(array.flags.c_contiguous)


def reduce(node: OpNode, array: weakref.ref[Array]) -> None:
    """Have a node keep bits in place of its result, while the last tensor on that is being freed, if nobody else holds it.

    array: that of the tensor.
    """
    if fits(node.outs, array) and holders(node, array) in ALONE:
        with suppress(MemoryError):  # then the result stays, which answers as well
            node.outs = (gates_of(array(), node),)


def gates_of(array: Any, node: OpNode) -> Gates:
    """The mask of a node's result."""
    return Gates(array.shape, packed(array, node.plan.op.gates, node.statics))


def fits(outs: Sequence[Any] | None, array: weakref.ref[Array]) -> bool:
    """Whether what a node keeps is its result, unchanged, in C order."""
    out, found = outs[0] if outs else None, array()
    if found is None or not found.flags.c_contiguous or getattr(out, "tangents", None) is not None:
        return False
    if out.__class__ is Packed and hasattr(out.packed, "held_by"):
        return bool(out.packed.current)
    return out.__class__ is SavedOutput and bool(out.storage.version == out.version and out.array is found)


def holders(node: OpNode | _Node, array: weakref.ref[Array]) -> tuple[int, ...]:
    """How many hold a saved result: the record of it, the array, its storage, and the array that owns the memory.

    Where a store or a budget keeps it: the record, the array, and what that says.
    """
    out = node.outs[0]
    if out.__class__ is Packed:
        return (getrefcount(out), getrefcount(array()), *out.packed.held_by())
    root = root_of(out.array)
    own = () if root is out.array else (getrefcount(root),)
    return (getrefcount(out), getrefcount(out.array), getrefcount(out.storage), *own)


def packed(array: Array, gates: Callable[..., Array], statics: tuple[Any, ...]) -> Array:
    """The mask of an array as bits."""
    for level in modes.levels:
        if level.dry:
            return level.standing((array.size + 7) // 8, np.uint8)
    flat, out = array.reshape(-1), np.empty((array.size + 7) // 8, np.uint8)
    for start in range(0, flat.size, BLOCK):
        out[start // 8 : (start + BLOCK) // 8] = np.packbits(gates(flat[start : start + BLOCK], *statics))
    return out


class _Node:
    outs: Any


@untraced
def alone(saved: Callable[[Tensor], Any]) -> set[tuple[int, ...]]:
    """What `holders` says where nobody else holds a result, whose memory is its own or of an array that it is a shape of.

    saved: what a node keeps of a tensor.
    """
    found = set()
    for array in (np.empty(4), np.empty(4).reshape(2, 2)):
        node, tensor = _Node(), wrap(array.reshape(array.shape) if array.base is not None else array.copy())
        del array
        node.outs = (saved(tensor),)
        held = weakref.ref(tensor._held)
        reference = weakref.ref(tensor, lambda _, node=node, held=held: found.add(holders(node, held)))
        del tensor, reference
    return found


ALONE = alone(lambda tensor: SavedOutput(tensor, 0))
