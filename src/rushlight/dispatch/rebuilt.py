"""Saved inputs that are not kept but computed again: what a cheap operator made of what its own node keeps anyway.

The weight gradient of a linear layer wants the layer's input.  Where that is the result of GELU or a layer norm, the
node of that operator keeps what it was computed from, so keeping the result too saves only a pass over memory, and
doubles the bytes.  A product costs hundreds of times that pass.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.state import modes
from rushlight.dispatch.compute import compute
from rushlight.dispatch.memory_views import view_at
from rushlight.engine.saved import Constant, Packed, Sparing, stale
from rushlight.engine.views import chain_of, replay
from rushlight.storage import bytes_before, counter_of, depend, independent, is_exposed, root_of, storage_of
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import OpNode

LARGE = 1 << 18  # bytes from which on memory is worth more than the pass
SMALL = 16  # what is at most this part of the result's bytes is copied
UNSAFE: Any = object()


class _Ask:
    """In `_storage`: sends whoever reads a saved input to `plan.input_array`."""


class Rebuilt:
    """An input as the operator that made it, and what that keeps: the same memory as its node's, and no more.

    It is as if the input itself were kept.  Whoever changes the memory that it is computed from says so first (see
    `storage.settle`): then it is computed at once, or kept if it is still there.  Small inputs are copied.
    seen, storage: weak references to the result and its storage, which may be changed in place; version: that it had.
    """

    __slots__ = ("__weakref__", "chain", "held", "keys", "made", "op", "place", "root", "saved", "seen", "statics", "storage",
                 "version")  # fmt: skip
    _storage = _edge = _Ask

    def __init__(self, tensor: Tensor, node: OpNode, saved: list[Any], chain: tuple[Any, ...]):
        """tensor: the result of `node`; saved: what it is computed from; chain: the views that make the input of it."""
        self.chain, self.op, self.saved, self.statics = chain, node.plan.op, saved, node.statics
        storage, array = storage_of(tensor), tensor._array
        self.seen, self.storage, self.version = weakref.ref(tensor), weakref.ref(storage), storage.version
        self.root, self.place = (
            weakref.ref(root_of(array)),
            (array.shape, array.strides, bytes_before(array), array.dtype),
        )
        self.made: Any = None
        self.held: Any = None
        self.keys = [depend(x, self) for x in (array, *map(in_use, saved)) if x is not None]

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """Some of the memory that this depends on is about to change."""
        if self.made is None:
            result = self.root()
            self.made = self.computed() if result is None else view_at(result, *self.place)
            storage = self.storage()
            self.saved, self.held = [], None if storage is None else counter_of(storage)  # which tells the version

    def computed(self) -> Any:
        """The result, computed again."""
        arrays = [None if x is None else x._array for x in self.saved]
        return compute(self.op, arrays, self.statics)[0][0]

    def array(self, node: OpNode, i: int) -> Any:
        """The input, for the node that asks for its input at position `i`.  RuntimeError if it was changed since."""
        storage, tensor = self.storage(), self.seen()
        if storage is None:
            storage = self.held
        if storage is not None and storage.version != self.version:
            stale(node, f"argument {node.argument(i)!r}", self.place[0], storage.version, self.version, storage,
                  None if tensor is None else tensor._edge)  # fmt: skip
        return self._array

    @property
    def _array(self) -> Any:
        return replay(self.chain, self.computed() if self.made is None else self.made)

    def tensor(self, edge: Any) -> Tensor:
        """The input as a tensor with its place in the graph."""
        t = wrap(self._array)
        t._edge = edge
        return t


def may_rebuild() -> bool:
    """Whether inputs may be computed again: nobody but hooks that do without is to be given them, and no level is active."""
    return all(level.dry for level in modes.levels) and all(isinstance(pair, Sparing) for pair in modes.saved_hooks)


def rebuilt(tensor: Tensor) -> Any:
    """What to save in place of a tensor: itself, unless it can be computed again for little."""
    if tensor._array.nbytes < LARGE:
        return tensor
    base = tensor if tensor._view is None else tensor._view.base
    node = base._edge
    plan = getattr(node, "plan", None)
    if plan is None or not plan.op.cheap or node.saved is None or len(plan.save_inputs) < len(plan.op.tensors):
        return tensor
    saved = [source(x, base._array.nbytes // SMALL) for x in node.saved]
    if any(x is UNSAFE for x in saved) or changes_unseen(base._held) or changed_since(node):
        return tensor
    return Rebuilt(base, node, saved, () if base is tensor else chain_of(tensor))


class Live(Constant):
    """Memory that is computed from, and that others may hold too, and change."""

    __slots__ = ()


def source(x: Any, small: int) -> Any:
    """What an input is computed from again: a copy of what is small; UNSAFE where its memory may change unseen."""
    if x is None or x.__class__ is Constant:
        return x
    array = x._array if isinstance(x, Tensor) else alive(x.packed) if isinstance(x, Packed) else None
    if array is None:
        return x if isinstance(x, Packed) else UNSAFE
    if array.nbytes <= small:
        return Constant(array.copy(order="K"))
    if changes_unseen(array):
        return UNSAFE
    return x if isinstance(x, Packed) else Live(array)  # a store's to keep or not: held here, it would be in memory too


def in_use(x: Constant | Live) -> Any:
    """The memory that a source is computed from, which others may change; None where there is none."""
    return x._array if x.__class__ is Live else alive(x.packed) if isinstance(x, Packed) else None


def changes_unseen(array: Array) -> bool:
    """Whether others may change memory without a word; that of an estimate's stand-ins nobody does."""
    return not modes.levels and is_exposed(array)


class Watched:
    """Whether memory has changed since a cheap operator ran: what it saved, or its result."""

    __slots__ = ("__weakref__", "changed", "keys")

    def __init__(self, arrays: Sequence[Any]):
        self.changed, self.keys = False, [depend(array, self) for array in arrays]

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """Some of it is about to change."""
        self.changed = True


watched: dict[int, tuple[Any, Watched]] = {}  # by the id of a node, to which the first is a weak reference


def watch(node: OpNode, t: Tensor) -> None:
    """Watch what a cheap operator saved, and its result `t`, if that is large enough to be computed again."""
    if modes.levels or t._held.nbytes < LARGE:
        return
    arrays = [x._held if isinstance(x, Tensor) else in_use(x) for x in node.saved]
    key = id(node)
    watched[key] = (
        weakref.ref(node, lambda _: watched.pop(key, None)),
        Watched([t._held, *(x for x in arrays if x is not None)]),
    )


def changed_since(node: OpNode) -> bool:
    """Whether what a cheap operator would compute now may be something else than its result."""
    found = watched.get(id(node))
    return not modes.levels and (found is None or found[0]() is not node or found[1].changed)


def alive(packed: Any) -> Any:
    """The array behind what a store packed, where that is in use by others too."""
    if isinstance(packed, tuple):
        packed = packed[0]
    if isinstance(packed, Tensor):
        return packed._array
    return packed.alive() if hasattr(packed, "alive") else None


def keep_watched(node: OpNode, inputs: tuple[Any, ...], wanted: tuple[int, ...], t: Tensor) -> None:
    """As `fast.keep_inputs`, for a cheap operator: its result may be computed again as long as nothing changes."""
    keep_inputs(node, inputs, wanted, spare=False)
    watch(node, t)


def keep_inputs(
    node: OpNode, inputs: tuple[Any, ...], wanted: tuple[int, ...], t: Tensor | None = None, spare: bool = True
) -> None:
    """As `fast.keep_inputs`, for an operator that costs much more than reading its inputs once.

    spare: whether what can be computed again is not kept.
    """
    saved: list[Any] = [None] * len(inputs)
    for i in wanted:
        x = inputs[i]
        if not isinstance(x, Tensor):
            saved[i] = None if x is None else Constant(x)
            continue
        saved[i] = kept = rebuilt(x) if spare and x._edge is not None else x
        if kept is x and x._storage is not None and x._storage.version:
            if node.versions is None:
                node.versions = [0] * len(inputs)
            node.versions[i] = x._storage.version
    node.saved = saved
