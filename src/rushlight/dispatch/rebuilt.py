"""Saved inputs that are not kept but computed again: what cheap operators made of what their own nodes keep anyway.

The weight gradient of a linear layer wants the layer's input.  Where that is the result of GELU or a layer norm, the
node of that operator keeps what it was computed from, so keeping the result too saves only a pass over memory, and
doubles the bytes.  A product costs hundreds of times that pass.

Behind the last operator may be others: of a batch norm, a relu and a convolution the norm's input is kept alone, of a gated
linear unit the two products that it is made of.  What nodes in between kept is then computed again too.  `FLOPS` says what each
operator costs beside a product, `SHARE` how much of the product's own time that may be.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.state import modes
from rushlight.dispatch.compute import compute
from rushlight.dispatch.memory_views import view_at
from rushlight.engine.node import Port
from rushlight.engine.saved import Constant, Packed, SavedOutput, Sparing, stale
from rushlight.engine.views import chain_of, replay
from rushlight.storage import bytes_before, changes, counter_of, depend, independent, is_exposed, root_of, storage_of
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import OpNode

LARGE = 1 << 18  # bytes from which on memory is worth more than the pass
FLOPS = {  # operations of a product that take about as long as making an element again
    "gelu": 60, "silu": 60, "native_layer_norm": 40, "fused_rms_norm": 40, "native_group_norm": 60, "native_batch_norm": 60,
    "relu": 15, "mul": 20, "native_dropout": 60,
}  # fmt: skip
SHARE = 0.1  # of the time of a product and its two gradients, that making its input again may take
DEPTH = 3  # operators behind the last one that may run again
SMALL = 16  # what is at most this part of the result's bytes is copied
UNSAFE: Any = object()


class _Ask:
    """In `_storage`: sends whoever reads a saved input to `plan.input_array`."""


class Rebuilt:
    """An input as the operator that made it, and what that keeps: the same memory as its node's, and no more.

    It is as if the input itself were kept.  Whoever changes the memory that it is computed from says so first (see
    `storage.settle`): then it is computed at once, or kept if it is still there.  Small inputs are copied.
    seen, storage: weak references to the result and its storage, which may be changed in place; version: that it had.
    follows: whether it stands for the tensor, whatever memory that is given, and not for its memory; moved: that, once its memory
    was about to change. shared: whether two ask for it, one soon after the other: then the first leaves it, in `left`, for the
    second.
    """

    __slots__ = ("__weakref__", "chain", "cost", "follows", "held", "keys", "left", "made", "moved", "op", "place", "root",
                 "saved", "seen", "shared", "statics", "storage", "version")  # fmt: skip
    _storage = _edge = _Ask

    def __init__(self, tensor: Tensor | None, found: Found, chain: tuple[Any, ...] = (), follows: bool = True):
        """tensor: the result that `found` makes, None where nobody will ask whether it was changed; chain: the views that
        make the input of it."""
        self.chain, self.op, self.saved, self.statics = chain, found.node.plan.op, found.saved, found.node.statics
        self.made: Any = None
        self.held: Any = None
        self.left: Any = None
        self.moved: Any = None
        self.shared, self.cost, self.version, self.follows = False, found.cost, 0, follows and not chain
        arrays = [x for x in map(in_use, self.saved) if x is not None]
        self.seen: Any = nothing
        self.storage: Any = nothing
        self.root: Any = nothing
        self.keys = [depend(x, self) for x in arrays]
        if tensor is not None:
            storage, self.seen = storage_of(tensor), weakref.ref(tensor)
            self.stand_for(tensor._array, storage, storage.version)

    def stand_for(self, array: Array, storage: Any, version: int) -> None:
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

    def computed(self) -> Any:
        """The result, computed again; in a rehearsal, by shapes."""
        arrays = [None if x is None else x._array for x in self.saved]
        for level in modes.levels:
            if level.dry:
                return level.again(self.op, arrays, self.statics)[0][0]
        return compute(self.op, arrays, self.statics)[0][0]

    def array(self, node: OpNode, i: int | None) -> Any:
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
    def _array(self) -> Any:
        value, self.left = self.left, None
        if value is None:
            value = self.kept()
            if value is None:
                value = self.computed()
                if self.shared:
                    self.left = value
        return replay(self.chain, value)

    def kept(self) -> Any:
        """The result, where it was computed because something was about to change."""
        return self.made if self.moved is None else self.moved._array

    def tensor(self, edge: Any) -> Tensor:
        """The input as a tensor with its place in the graph, on memory that nobody else sees."""
        value = self.kept()
        t = wrap(replay(self.chain, self.computed() if value is None else value))
        t._edge = edge
        return t


def nothing() -> None:
    """What a weak reference to nothing gives."""


def may_rebuild() -> bool:
    """Whether inputs may be computed again: nobody but hooks that do without is to be given them, and no level is active."""
    return all(level.dry for level in modes.levels) and all(isinstance(pair, Sparing) for pair in modes.saved_hooks)


def rebuilt(tensor: Tensor, op: Any, inputs: Sequence[Any], statics: Any) -> Any:
    """What to save in place of a tensor for `op` of these inputs: itself, unless it can be computed again for little."""
    if tensor._array.nbytes < LARGE or not switch.on:
        return tensor
    base = tensor if tensor._view is None else tensor._view.base
    if changes_unseen(base._held):
        return tensor
    own, beside = 3 * products(op, inputs, statics) / tensor._array.size, passed(base)
    found = Search(SHARE * (own + beside[0])).found(base._edge, base, DEPTH)
    if found is None:
        return tensor
    beside[0] = max(0.0, beside[0] - max(0.0, found.cost / SHARE - own))  # the next adapter has what is left
    found.let_go(base)
    return Rebuilt(base, found, () if base is tensor else chain_of(tensor))


def products(op: Any, inputs: Sequence[Any], statics: Any) -> float:
    """How many operations the product of `op` takes."""
    return float(op.cost([x._held if isinstance(x, Tensor) else x for x in inputs], statics))


spent: dict[
    int, tuple[Any, list[float]]
] = {}  # see `passed`, by the id of a node, to which the first is a weak reference


def passed(tensor: Tensor) -> list[float]:
    """Operations an element, in a list to be changed, that products took of a result without keeping it: those of frozen weights.

    What they take pays for making it again for an adapter beside them, whose own products are small.
    """
    node = maker_of(tensor)
    found = spent.get(id(node))
    return found[1] if found is not None and found[0]() is node else [0.0]


def pass_on(tensor: Any, op: Any, inputs: Sequence[Any], statics: Any) -> None:
    """Note what a product that does not keep `tensor` takes, forward and for its gradient."""
    if not isinstance(tensor, Tensor) or tensor._edge is None or tensor._held.nbytes < LARGE:
        return
    node = maker_of(tensor)
    if node is None:
        return
    key = id(node)
    found = spent.get(key)
    if found is None or found[0]() is not node:
        found = spent[key] = (weakref.ref(node, lambda _: spent.pop(key, None)), [0.0])
    found[1][0] += 2 * products(op, inputs, statics) / tensor._array.size


def maker_of(tensor: Tensor) -> Any:
    """The node of the watched operator that made a tensor, or made what operators without a product made it of; None otherwise."""
    edge = (tensor if tensor._view is None else tensor._view.base)._edge
    for _ in range(DEPTH + 1):
        node = edge.node if edge.__class__ is Port else edge
        op = None if getattr(node, "plan", None) is None else node.plan.op
        if op is None or op.name not in FLOPS:
            return None
        if op.cheap:
            return node
        edge = node.edges[0]
    return None


class Switch:
    """on: whether anything is computed again instead of kept."""

    on = os.environ.get("RUSHLIGHT_REBUILD", "1").lower() not in ("0", "false", "off", "no")


switch = Switch()


def recompute_cheap(enabled: bool | None = None) -> bool:
    """Whether results of cheap operators are computed again in backward, where a product has kept them for its own gradient.

    enabled: from now on, in all threads; None leaves it. What was before is returned. On unless the environment has
    RUSHLIGHT_REBUILD=0. Gradients are the same bits either way.

    >>> from rushlight import memory
    >>> memory.recompute_cheap()
    True
    """
    former = switch.on
    switch.on = former if enabled is None else bool(enabled)
    return former


class Found:
    """How an operator's result can be made again.

    node: of the operator. saved: what it computes from. stamp: how many changes of large memory there had been when the last
    watched operator behind it ran. lets: what nodes need no longer keep, as (node, position, what computes it again). gives:
    whether the node keeps its own result, and can compute that again, too.
    """

    __slots__ = ("cost", "gives", "lets", "node", "saved", "stamp")

    def __init__(self, node: Any, saved: list[Any], stamp: int, cost: float, lets: list[Any]):
        self.node, self.saved, self.stamp, self.cost, self.lets = node, saved, stamp, cost, lets
        self.gives = False

    @property
    def shape(self) -> Any:
        """Of the result."""
        return self.node.shape if self.node.count == 1 else self.node.shape[0]

    def let_go(self, result: Tensor) -> None:
        """Have the nodes keep what computes again instead.

        Where a budget may have to send away what is not in use, nothing is left for the second who asks.
        """
        shared = not modes.saved_hooks
        for node, i, made in self.lets:
            saved = list(node.saved)
            saved[i], made.shared = made, shared
            node.saved = saved
        if self.gives:
            self.node.outs, self.saved[0].shared = (Rebuilt(result, self, follows=False),), shared


def paged(x: Packed) -> tuple[Any, Any, int]:
    """The array behind what a budget made of a saved tensor, its storage if that lives, and the version: None while it is on
    disk, and of what others made of it."""
    kept = x.packed
    if not hasattr(kept, "watching"):
        return None, None, 0
    return (kept.alive(), *kept.watching())


def kind_of(x: Any) -> tuple[Any, Any] | None:
    """The shape and dtype of a tensor, or of one that a budget may have sent away; None where its memory may change unseen,
    and of what others made of it."""
    array = x._held if isinstance(x, Tensor) else paged(x)[0] if isinstance(x, Packed) else None
    if array is not None:
        return None if changes_unseen(array) else (array.shape, array.dtype)
    return x.like if isinstance(x, Packed) and getattr(x.packed, "away", False) else None


def as_saved(out: Any) -> bool:
    """Whether a result that its node keeps is as it was when it was saved."""
    if isinstance(out, Packed):
        array, storage, version = paged(out)
        return array is not None and storage is not None and storage.version == version
    return out.__class__ is SavedOutput and out.storage.version == out.version


class Search:
    """Looks how a result can be made again, within `room` operations of a product for an element."""

    def __init__(self, room: float):
        self.room = room

    def found(self, edge: Any, tensor: Tensor | None, depth: int, into: Tensor | None = None) -> Found | None:
        """How the result that `edge` leads to can be made again.

        tensor: that, where it is known; into: what overwrote it, if it was overwritten.
        """
        node: Any = edge.node if edge.__class__ is Port and edge.nr == 0 else edge
        plan = getattr(node, "plan", None)
        if plan is None or node.saved is None:
            return None
        cost = FLOPS.get(plan.op.name)
        if cost is None or cost > self.room:
            return None
        self.room -= cost
        if plan.op.cheap:
            return self.of_watched(node, into, depth, cost)
        if depth == 0:
            return None
        return self.of_product(node, depth, cost) if plan.op.name == "mul" else self.of_next(node, tensor, depth, cost)

    def of_watched(self, node: Any, into: Tensor | None, depth: int, cost: float) -> Found | None:
        """Of an operator that was watched from when it ran: from what its node keeps, or what that is made of."""
        if len(node.plan.save_inputs) < len(node.plan.op.tensors):
            return None
        if changed_since(node) and not (into is not None and overwritten(node, into)):
            return None
        found = Found(node, [], stamp_of(node), cost, [])
        return found if self.inputs(found, depth) else None

    def inputs(self, found: Found, depth: int) -> bool:
        """Find where a node's saved inputs can be had; whether all can."""
        node = found.node
        shape, dtype = (node.shape, node.dtype) if node.count == 1 else (node.shape[0], node.dtype[0])
        small = math.prod(shape) * dtype.itemsize // SMALL
        for i, x in enumerate(node.saved):
            inner = self.behind(x, node.edges[i], depth)
            if inner is not None:
                if inner is not x:
                    made, behind = inner
                    found.lets += [*behind.lets, (node, i, made)]
                    found.cost += behind.cost
                    found.stamp = max(found.stamp, behind.stamp)
                    inner = made
                found.saved.append(inner)
                continue
            kept = source(x, small)
            if kept is UNSAFE:
                return False
            found.saved.append(kept)
        return True

    def behind(self, x: Any, edge: Any, depth: int) -> Any:
        """What makes a node's saved input again, and how that was found; itself, where it is made again already."""
        if x.__class__ is Rebuilt:
            if x.cost > self.room or x.made is not None:
                return None
            self.room -= x.cost
            return x
        kind = None if not depth or (isinstance(x, Tensor) and (x._view is not None or x._unusual)) else kind_of(x)
        if kind is None or math.prod(kind[0]) * kind[1].itemsize < LARGE:
            return None
        room = self.room
        found = self.found(edge, None, depth - 1)
        if found is None or found.gives or found.shape != kind[0]:
            self.room = room
            return None
        if isinstance(x, Tensor):
            return Rebuilt(x, found), found
        made, (array, *version) = Rebuilt(None, found, follows=False), paged(x)
        if array is not None:  # else nobody can change it
            made.stand_for(array, *version)
        return made, found

    def of_product(self, node: Any, depth: int, cost: float) -> Found | None:
        """Of a product of two tensors of its shape, one of which at least is made by what was watched."""
        for x in node.saved:
            if x.__class__ is not Rebuilt and (getattr(x, "_unusual", False) or kind_of(x) != (node.shape, node.dtype)):
                return None
        found = Found(node, [], -1, cost, [])
        if not self.inputs(found, depth) or not found.lets or not unchanged_since(found.stamp):
            return None
        return found

    def of_next(self, node: Any, tensor: Tensor | None, depth: int, cost: float) -> Found | None:
        """Of an operator that keeps no input: relu, which keeps its result, and dropout."""
        outs = node.outs[0] if node.plan.save_outs and node.outs else None
        if outs.__class__ is Rebuilt:
            found = Found(node, [], 0, outs.cost, [])
            storage = outs.storage()
            same = outs.seen() is tensor and storage is not None and storage.version == outs.version
            found.saved = outs.saved
            return found if same and outs.made is None else None
        if tensor is None and outs is not None:
            return None
        inner = self.found(node.edges[0], None, depth - 1, tensor)
        if inner is None or inner.gives:
            return None
        if not unchanged_since(inner.stamp) and not (tensor is not None and overwritten(inner.node, tensor)):
            return None
        found = Found(node, [Rebuilt(None, inner)], inner.stamp, cost + inner.cost, inner.lets)
        if outs is not None:
            if not as_saved(outs):
                return None
            found.gives = True
        return found


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


def in_use(x: Constant | Live | Rebuilt) -> Any:
    """The memory that a source is computed from, which others may change; None where there is none.

    Of what is computed again itself, the result that it stands for: to the node that keeps it that changes with its memory.
    """
    if x.__class__ is Rebuilt:
        return x.root()
    return x._array if x.__class__ is Live else alive(x.packed) if isinstance(x, Packed) else None


def changes_unseen(array: Array) -> bool:
    """Whether others may change memory without a word; that of an estimate's stand-ins nobody does."""
    return not modes.levels and is_exposed(array)


class Watched:
    """Whether memory has changed since a cheap operator ran: what it saved, or its result, the first of `arrays`.

    stamp: how many changes of large memory there had been. overwritten: whether the result alone has changed.
    """

    __slots__ = ("__weakref__", "changed", "keys", "overwritten", "result", "stamp")

    def __init__(self, arrays: Sequence[Any]):
        self.changed, self.keys = False, [depend(array, self) for array in arrays]
        self.result, self.overwritten, self.stamp = weakref.ref(root_of(arrays[0])), False, changes.large
        changes.count(1)

    def __del__(self) -> None:
        if hasattr(self, "stamp"):
            changes.count(-1)
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """Some of it is about to change."""
        if root is self.result() and not self.overwritten:
            self.overwritten = True
            self.keys.append(depend(root, self))  # of the next change, too
        else:
            self.changed = True


watched: dict[int, tuple[Any, Watched]] = {}  # by the id of a node, to which the first is a weak reference


def watch(node: OpNode, t: Tensor) -> None:
    """Watch what a cheap operator saved, and its result `t`, if that is large enough to be computed again."""
    if modes.levels or t._held.nbytes < LARGE:
        return
    changes.least = LARGE
    arrays = [x._held if isinstance(x, Tensor) else in_use(x) for x in node.saved]
    key = id(node)
    watched[key] = (
        weakref.ref(node, lambda _: watched.pop(key, None)),
        Watched([t._held, *(x for x in arrays if x is not None)]),
    )


def changed_since(node: OpNode) -> bool:
    """Whether what a cheap operator would compute now may be something else than its result."""
    found = watch_of(node)
    return not modes.levels and (found is None or found.changed or found.overwritten)


def watch_of(node: Any) -> Watched | None:
    """What watches since a cheap operator ran; None where it was not watched."""
    found = watched.get(id(node))
    return found[1] if found is not None and found[0]() is node else None


def stamp_of(node: Any) -> int:
    """How many changes of large memory there had been when a cheap operator ran; -1 where nobody watched."""
    found = watch_of(node)
    return -1 if found is None else found.stamp


def unchanged_since(stamp: int) -> bool:
    """Whether no large memory was changed by anybody since there had been so many changes."""
    return bool(modes.levels) or stamp == changes.large >= 0


def overwritten(node: Any, tensor: Tensor) -> bool:
    """Whether the one change of large memory since a cheap operator ran was that of its result into `tensor`."""
    found, stamp = watch_of(node), stamp_of(node)
    if found is None or not found.overwritten or found.changed or stamp < 0 or stamp + 1 != changes.large:
        return False
    return root_of(tensor._held) is found.result()


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
        saved[i] = kept = rebuilt(x, node.plan.op, inputs, node.statics) if spare and x._edge is not None else x
        if kept is x and x._storage is not None and x._storage.version:
            if node.versions is None:
                node.versions = [0] * len(inputs)
            node.versions[i] = x._storage.version
    node.saved = saved
    if spare and 0 not in wanted:
        pass_on(inputs[0], node.plan.op, inputs, node.statics)
