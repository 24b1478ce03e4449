"""A saved input as what makes it again, and how that was found."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.state import modes
from rushlight.dispatch.compute import compute
from rushlight.dispatch.memory_views import view_at
from rushlight.engine.saved import Constant, Packed, stale
from rushlight.engine.views import chain_of, replay
from rushlight.storage import Storage, bytes_before, counter_of, depend, independent, root_of, storage_of
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import OpNode
    from rushlight.engine.node import Edge


class _Ask:
    """In `_storage`: sends whoever reads a saved input to `plan.input_array`."""


class Rebuilt:
    """An input as the operator that made it, and what that keeps: the same memory as its node's, and no more.

    It is as if the input itself were kept.  Whoever changes the memory that it is computed from says so first (see
    `storage.settle`): then it is computed at once, or kept if it is still there.  Small inputs are copied.
    seen, storage: weak references to the result and its storage, which may be changed in place; version: that it had.
    follows: whether it stands for the tensor, whatever memory that is given, and not for its memory; moved: that, once its memory
    was about to change. asks: how many are still to ask for it, one soon after the other: each leaves it, in `left`, for the next.
    """

    __slots__ = ("__weakref__", "asks", "chain", "cost", "follows", "held", "keys", "left", "made", "moved", "op", "place", "root",
                 "saved", "seen", "statics", "storage", "version")  # fmt: skip
    _storage = _edge = _Ask

    def __init__(self, tensor: Tensor | None, found: Found, chain: tuple[Any, ...] = (), follows: bool = True):
        """tensor: the result that `found` makes, None where nobody will ask whether it was changed; chain: the views that
        make the input of it."""
        self.chain, self.op, self.saved, self.statics = chain, found.op, found.saved, found.statics
        self.made: Array | None = None
        self.held: Any = None
        self.left: Any = None
        self.moved: Any = None
        self.asks, self.cost, self.version, self.follows = 0, found.cost, 0, follows and not chain
        arrays = [x for x in map(in_use, self.saved) if x is not None]
        self.seen: Any = nothing
        self.storage: Any = nothing
        self.root: Any = nothing
        self.keys = [depend(x, self) for x in arrays]
        if tensor is not None:
            storage, self.seen = storage_of(tensor), weakref.ref(tensor)
            self.stand_for(tensor._array, storage, storage.version)

    def stand_for(self, array: Array, storage: Storage | None, version: int) -> None:
        """Be what these elements of memory are, as long as it lives: at a version, where its storage lives."""
        self.root = weakref.ref(root_of(array))
        self.place = array.shape, array.strides, bytes_before(array), array.dtype
        self.version = version
        if storage is not None:
            self.storage = weakref.ref(storage)
        self.keys.append(depend(array, self))

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """Some of the memory that this depends on is about to change."""
        if self.made is None:
            result = self.root()
            self.made = self.computed() if result is None else view_at(result, *self.place)
            storage = self.storage()
            self.saved, self.held = [], None if storage is None else counter_of(storage)  # which tells the version
            self.left, self.moved = None, self.seen() if self.follows else None

    def computed(self) -> Array:
        """The result, computed again; in a rehearsal, by shapes."""
        if self.op is not None and len(self.saved) == 1 and self.saved[0].__class__ is Rebuilt and not modes.levels:
            both = self.saved[0].with_next(self.op)
            if both is not None:
                return both
        return self.made_again(*self.sources())

    def with_next(self, op: Op) -> Array | None:
        """The result of `op` of this one's, in one pass; None where there is none, or somebody else is to have this one."""
        then = None if self.op is None or self.op.then is None else self.op.then.get(op.name)
        if then is None or self.chain or self.asks > 1 or self.left is not None or self.kept() is not None:
            return None
        self.asks -= 1
        return then(*self.sources()[0], *self.statics)

    def sources(self) -> tuple[list[Any], bool]:
        """What it is computed from, and whether the first of it was made for this alone."""
        own, arrays = False, []
        for i, x in enumerate(self.saved):
            value, alone = x.fresh() if x.__class__ is Rebuilt else (None if x is None else x._array, False)
            own = own or (alone and i == 0)
            arrays.append(value)
        return arrays, own

    def made_again(self, arrays: list[Any], own: bool) -> Array:
        """The result of these arrays, the first of which it may be written over."""
        op = self.op
        first: Array = arrays[0]
        if op is None:
            return first
        own = own and op.over and fits_over(arrays[: len(op.tensors) - op.free.bit_count()])
        for level in modes.levels:
            if level.dry:
                return first if own else level.again(op, arrays, self.statics)[0][0]
        if not own:
            return compute(op, arrays, self.statics)[0][0]
        if op.ufunc is None:
            op.into(*arrays, *self.statics)
        else:
            getattr(np, op.ufunc)(*arrays, out=first)
        return first

    def fresh(self) -> tuple[Any, bool]:
        """The result, and whether nobody else has it, or will be given it."""
        shared = bool(self.chain) or self.op is None or self.left is not None or self.kept() is not None
        value = self._array
        return value, not shared and self.left is None

    def array(self, node: OpNode, i: int | None) -> Array:
        """The input, for the node that asks for its input at position `i`, or its result.  RuntimeError if it was changed."""
        storage, tensor = self.storage() if self.moved is None else self.moved._storage, self.seen()
        if storage is None:
            storage = self.held
        if storage is not None and storage.version != self.version:
            what = "its result" if i is None else f"argument {node.argument(i)!r}"
            stale(node, what, self.place[0], storage.version, self.version, storage,
                  None if tensor is None else tensor._edge)  # fmt: skip
        return self._array

    @property
    def _array(self) -> Array:
        value, self.left = self.left, None
        if value is None:
            value = self.kept()
            if value is not None:
                return replay(self.chain, value)
            value = self.computed()
        self.asks -= 1
        if self.asks > 0:
            self.left = value
        return replay(self.chain, value)

    def kept(self) -> Array | None:
        """The result, where it was computed because something was about to change."""
        return self.made if self.moved is None else self.moved._array

    def tensor(self, edge: Edge | None) -> Tensor:
        """The input as a tensor with its place in the graph, on memory that nobody else sees."""
        value = self.kept()
        t = wrap(replay(self.chain, self.computed() if value is None else value))
        t._edge = edge
        return t


def fits_over(arrays: list[Any]) -> bool:
    """Whether the result of these arrays can be written over the first."""
    first = arrays[0]
    if first.dtype.kind != "f" or first.itemsize < 4:
        return False
    return all(x.__class__ is first.__class__ and x.shape == first.shape and x.dtype == first.dtype for x in arrays)


def nothing() -> None:
    """What a weak reference to nothing gives."""


class Found:
    """How an operator's result can be made again.

    node: of the operator. op, statics: what makes it, of what is `saved`; None for the first of that itself. lets: what nodes need
    no longer keep, as (node, position, what computes it again). gives: whether the node keeps its own result, and can compute that
    again, too. stamp: how many changes of large memory there had been when the last watched operator behind it ran; first: when
    the first did whose result was written over since, None where none was; written: the numbers of the changes that operators
    of the chain made in place. unwatched: whether results in between, which nobody watched, must not have changed.
    """

    __slots__ = ("cost", "first", "gives", "lets", "node", "op", "saved", "stamp", "statics", "unwatched", "written")

    def __init__(self, node: OpNode, cost: float, saved: list[Any] | None = None):
        self.node, self.cost, self.saved = node, cost, [] if saved is None else saved
        self.op, self.statics = node.plan.op, node.statics
        self.lets: list[Any] = []
        self.gives, self.unwatched, self.stamp = False, False, -1
        self.first: int | None = None
        self.written: set[int] = set()

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        return self.node.shape if self.node.count == 1 else self.node.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the result."""
        return self.node.dtype if self.node.count == 1 else self.node.dtype[0]

    def goes_on(self, inner: Found) -> None:
        """What is made again on the way to this is made as `inner` says."""
        self.lets += inner.lets
        self.cost += inner.cost
        self.stamp = max(self.stamp, inner.stamp)
        self.written |= inner.written
        self.unwatched = self.unwatched or inner.unwatched
        if inner.first is not None:
            self.first = inner.first if self.first is None else min(self.first, inner.first)

    def saver(self, result: Tensor, chain_to: Tensor) -> Rebuilt:
        """What the node that asked keeps in place of `chain_to`, a view of `result` or itself.

        The nodes in between keep what computes again instead, too. Who asks first leaves what was made to the next, but where a
        budget may have to send away what is not in use.
        """
        shared = not modes.saved_hooks
        for node, i, made in self.lets:
            saved = list(node.saved)
            saved[i], made.asks = made, 2 * shared
            node.saved = saved
        if self.gives:
            self.saved = [Rebuilt(None, self)]
            self.op = None
            self.node.outs = (Rebuilt(result, self, follows=False),)
        if self.op is None and shared:
            core = self.saved[0]
            core.asks = max(core.asks, 0) + (2 if self.gives else 1)
        return Rebuilt(result, self, () if chain_to is result else chain_of(chain_to))


class Live(Constant):
    """Memory that is computed from, and that others may hold too, and change."""

    __slots__ = ()


def in_use(x: Constant | Live | Rebuilt) -> Array | None:
    """The memory that a source is computed from, which others may change; None where there is none.

    Of what is computed again itself, the result that it stands for: to the node that keeps it that changes with its memory.
    """
    found: Array | None = None
    if x.__class__ is Rebuilt:
        found = x.root()
    elif x.__class__ is Live:
        found = x._array  # type: ignore[assignment]  # of no number
    elif isinstance(x, Packed):
        found = alive(x.packed)
    return found


def alive(packed: object) -> Array | None:
    """The array behind what a store packed, where that is in use by others too."""
    if isinstance(packed, tuple):
        packed = packed[0]
    if isinstance(packed, Tensor):
        found: Array | None = packed._array
    else:
        found = packed.alive() if hasattr(packed, "alive") else None
    return found
