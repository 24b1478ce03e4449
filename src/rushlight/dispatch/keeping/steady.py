"""Saved inputs whose later changes are nothing to the gradient: copied when their memory is about to change.

Where PyTorch keeps what it makes of an input, and an operator here keeps the input itself, as `cross_entropy` does its logits,
whoever changes that in place afterwards changes no gradient there, and is not refused.  So it is here, for the price of a copy
if it happens.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.state import modes
from rushlight.dispatch.keeping.unmade import place_of, rehearsed
from rushlight.dispatch.memory_views import view_at
from rushlight.engine.saved import Packed, Sparing
from rushlight.signs import turned
from rushlight.storage import UNSEEN, bytes_before, depend, independent
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import OpNode


class Steady:
    """Has a node keep a copy of its first input before the memory of that changes.

    place: where in its memory that lies. bits: what it shows of that.
    """

    __slots__ = ("__weakref__", "bits", "keys", "node", "place")

    def __init__(self, node: OpNode):
        self.node, self.keys = weakref.ref(node), list[int]()

    def __del__(self) -> None:
        independent(self.keys, self)

    def over(self, input: Tensor) -> None:
        """Watch over the memory that a tensor has now."""
        array = input._held
        self.place, self.bits = (array.shape, array.strides, bytes_before(array), array.dtype), input._bits
        self.keys.append(depend(array, self))

    def made(self) -> None:
        """The input was made that a loss had done without."""
        node = self.node()
        if node is not None and node.saved is not None:
            self.over(node.saved[0])

    def settle(self, root: Array) -> None:
        """The memory is about to change."""
        node = self.node()
        if node is None or node.saved is None:
            return
        seen = view_at(root, *self.place)
        copy = turned(seen, self.bits) if self.bits else seen.copy(order="K")
        keep_copy(node, copy, getattr(node.saved[0], "_tangents", None))


kept: dict[int, tuple[Any, Steady]] = {}  # by the id of a node, to which the first is a weak reference


def keep_copy(node: OpNode, array: Array, tangents: Any) -> None:
    """Have a node keep a tensor on `array` in place of its first input."""
    copy = wrap(array)
    copy._edge, copy._tangents = node.edges[0], tangents
    node.saved = (copy, *node.saved[1:])
    if node.versions is not None:
        node.versions = [0, *node.versions[1:]]


def soon_copied(input: Tensor) -> bool:
    """Whether an input is so small that to watch it takes longer than to copy it; nor would all changes be seen."""
    held = None if place_of(input) is not None else input._held
    return held.__class__ is np.ndarray and held.nbytes < UNSEEN and not (modes.levels or input._bits)


def to_pack(op: Op, i: int, input: Tensor, hooks: tuple[Any, ...]) -> Tensor:
    """What hooks are given of the i-th input: where it is to stay what it is, and they are not the user's, a copy if it is small."""
    if i or not op.steady or not soon_copied(input) or not all(isinstance(pair, Sparing) for pair in hooks):
        return input
    copy = wrap(input._held.copy(order="K"))
    copy._edge, copy._tangents = input._edge, input._tangents
    return copy


def keep_steady(node: OpNode, input: Tensor) -> None:
    """Have a node's gradients stay what they are, whatever becomes of its first input."""
    kept_input = node.saved[0]
    if kept_input is None or rehearsed() is not None:
        return
    place = place_of(input)
    if place is None and input._held.__class__ is not np.ndarray:
        return
    if kept_input is input and soon_copied(input):
        keep_copy(node, input._held.copy(order="K"), input._tangents)
        return
    if (
        isinstance(kept_input, Packed)
        and soon_copied(input)
        and all(isinstance(pair, Sparing) for pair in kept_input.hooks)
    ):
        return  # that is one of a copy
    key, steady = id(node), Steady(node)
    kept[key] = weakref.ref(node, lambda _: kept.pop(key, None)), steady
    if place is None:
        steady.over(input)
    else:
        place.product.waiting.append(weakref.ref(steady))


def let_go(node: OpNode) -> None:
    """Watch no longer over what a node kept: it is about to write over that itself."""
    kept.pop(id(node), None)
