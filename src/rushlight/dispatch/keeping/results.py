"""Results that their nodes keep and that are changed in place afterwards, where PyTorch's nodes keep the input.

Before the change the node takes what its gradient asks of the result: a mask (see `gates`), or a copy. In-place operators ask for
that through the graph. Of what is detached, or shown to NumPy, the memory alone says whose it is: `watch_result` has that told of.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.dispatch.keeping.gates import gates_of
from rushlight.dispatch.memory_views import view_at
from rushlight.engine.saved import Packed, SavedOutput, Sparing
from rushlight.storage import Storage, bytes_before, depend, independent
from rushlight.tensor import wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import FullNode

KINDS = (SavedOutput, Packed)
COPIED = object()  # in the place of a watch: what is kept is the node's own


def keep_result(node: FullNode, array: Array, storage: Storage | None = None) -> None:
    """Have a node keep what it asks of its result, unless it does or the result was changed before.

    array: of the result; storage: of its tensor, where that is known and has one.
    """
    kept = node.outs[0] if node.outs else None
    if kept.__class__ not in KINDS or kept.watch is COPIED or array.__class__ is not np.ndarray:
        return
    storage = kept.storage if kept.__class__ is SavedOutput else storage
    if storage is not None and storage.version != kept.version:
        return
    if node.plan.op.gates is not None and kept.tangents is None:
        node.outs = (gates_of(array, node),)
        return
    copy: Any = wrap(array.copy())
    copy._tangents = kept.tangents
    own: Any = SavedOutput(copy, 0)
    if isinstance(kept, Packed) and all(isinstance(pair, Sparing) for pair in kept.hooks):
        own = Packed(copy, kept.hooks, kept.where, True)
    own.tangents, own.watch = kept.tangents, COPIED
    node.outs = (own,)


def watch_result(node: FullNode, array: Array) -> None:
    """As `keep_result`, before whoever has the memory of the result outside of the graph changes it."""
    kept = node.outs[0] if node.outs else None
    if kept.__class__ in KINDS and array.__class__ is np.ndarray and kept.watch is None:
        kept.watch = Watch(node, array)


class Watch:
    """Who is told when the memory of a result is about to change; what the node keeps of the result holds it.

    place: where in its memory the result lies.
    """

    __slots__ = ("__weakref__", "keys", "node", "place")

    def __init__(self, node: FullNode, array: Array):
        self.node, self.keys = weakref.ref(node), list[int]()
        self.place = array.shape, array.strides, bytes_before(array), array.dtype
        self.keys.append(depend(array, self))

    def __del__(self) -> None:
        independent(self.keys, self)

    def settle(self, root: Array) -> None:
        """The memory is about to change."""
        node = self.node()
        if node is not None:
            keep_result(node, view_at(root, *self.place))
