"""Saved inputs that are not kept but computed again: what cheap operators made of what their own nodes keep anyway.

The weight gradient of a linear layer wants the layer's input.  Where that is the result of GELU or a layer norm, the
node of that operator keeps what it was computed from, so keeping the result too saves only a pass over memory, and
doubles the bytes.  A product costs hundreds of times that pass.

Behind the last operator may be others: of a batch norm, a relu and a convolution the norm's input is kept alone, of a gated
linear unit the two products that it is made of.  What nodes in between kept is then computed again too.  A sum (a residual
connection) or a dropout is made of what was made before, or of what its makers keep as their own result.  `again` in
its record says what each operator costs beside a product, `SHARE` how much of the time of the products before and
behind it that may be.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight.basics.state import modes
from rushlight.dispatch.keeping.remade import Found, Live, Rebuilt, alive, in_use
from rushlight.dispatch.keeping.watched import Watched, watch_of, watched, written_by
from rushlight.engine.node import Edge, Node, Port
from rushlight.engine.saved import Constant, Packed, SavedOutput, Sparing, active_hooks
from rushlight.storage import Counted, changes, is_exposed
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import OpNode

LARGE = 1 << 18  # bytes from which on memory is worth more than the pass
SHARE = 0.1  # of the time of a product and its two gradients, that making its input again may take
DEPTH = 3  # operators behind the last one that may run again
SMALL = 16  # what is at most this part of the result's bytes is copied
UNSAFE: Any = object()


def may_rebuild() -> bool:
    """Whether inputs may be computed again: nobody but hooks that do without is to be given them, and no level is active."""
    return all(level.dry for level in modes.levels) and all(isinstance(pair, Sparing) for pair in modes.saved_hooks)


def rebuilt(tensor: Tensor, op: Op, inputs: Sequence[Any], statics: tuple[Any, ...]) -> Any:
    """What to save in place of a tensor for `op` of these inputs: itself, unless it can be computed again for little."""
    if tensor._array.nbytes < LARGE or not switch.on:
        return tensor
    base = tensor if tensor._view is None else tensor._view.base
    if repeatable(base._edge) is None or changes_unseen(base._held):
        return tensor
    own, beside = 3 * products(op, inputs, statics) / tensor._array.size, passed(base)
    search = Search(SHARE * (own + beside[0]))
    found = search.found(base._edge, base, DEPTH)
    if found is None or not holds(found):
        return tensor
    beside[0] = max(0.0, beside[0] - max(0.0, found.cost / SHARE - own))  # the next adapter has what is left
    return found.saver(base, tensor)


def repeatable(edge: Edge) -> OpNode | None:
    """The node that an edge leads to, where its operator is one whose result may be made again."""
    node: Any = edge.node if edge.__class__ is Port and edge.nr == 0 else edge
    plan = getattr(node, "plan", None)
    return node if plan is not None and plan.op.again and node.saved is not None else None


def products(op: Op, inputs: Sequence[Any], statics: tuple[Any, ...]) -> float:
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


def pass_on(tensor: Tensor | Array | complex | None, op: Op, inputs: Sequence[Any], statics: tuple[Any, ...]) -> None:
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


def maker_of(tensor: Tensor) -> Node | None:
    """The node of the watched operator that made a tensor, or made what operators without a product made it of; None otherwise."""
    edge = (tensor if tensor._view is None else tensor._view.base)._edge
    for _ in range(DEPTH + 1):
        node = edge.node if edge.__class__ is Port else edge
        op = None if getattr(node, "plan", None) is None else node.plan.op
        if op is None or not op.again:
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


def paged(x: Packed) -> tuple[Any, Any, int]:
    """The array behind what a budget made of a saved tensor, its storage if that lives, and the version: None while it is on
    disk, and of what others made of it."""
    kept = x.packed
    if not hasattr(kept, "watching"):
        return None, None, 0
    return (kept.alive(), *kept.watching())


def kind_of(x: object) -> tuple[Any, Any] | None:
    """The shape and dtype of a tensor, or of one that a budget may have sent away; None where its memory may change unseen,
    and of what others made of it."""
    array = x._held if isinstance(x, Tensor) else paged(x)[0] if isinstance(x, Packed) else None
    if array is not None:
        return None if changes_unseen(array) else (array.shape, array.dtype)
    return x.like if isinstance(x, Packed) and getattr(x.packed, "away", False) else None


def as_saved(out: Any) -> bool:
    """Whether a result that its node keeps is as it was when it was saved, and the tensor still lies there."""
    if isinstance(out, Packed):
        array, storage, version = paged(out)
        known = array is not None and storage is not None
    else:
        known = out.__class__ is SavedOutput
        storage, version = (out.storage, out.version) if known else (None, 0)
    return known and not isinstance(storage, Counted) and storage.version == version


def holds(found: Found) -> bool:
    """Whether what is made again is the result still: nothing that it is made of has changed, but by operators on the way to it."""
    if modes.levels or (found.stamp < 0 and found.first is None):
        return bool(modes.levels)
    if found.first is None and not found.unwatched:
        return True
    start = found.stamp if found.first is None else min(found.stamp, found.first)
    if changes.large - start > len(found.written):
        return False
    return all(number in found.written for number in range(start + 1, changes.large + 1))


class Shape(NamedTuple):
    """Stands for a tensor of which a rule of costs asks the shape alone."""

    shape: Any


class Search:
    """Looks how a result can be made again, within `room` operations of a product for an element."""

    def __init__(self, room: float):
        self.room = room

    def found(self, edge: Edge, tensor: Tensor | None, depth: int) -> Found | None:
        """How the result that `edge` leads to can be made again.  tensor: that, where it is known."""
        node = repeatable(edge)
        if node is None:
            return None
        plan, cost = node.plan, node.plan.op.again
        if plan.op.cheap:
            self.room += SHARE * product_before(node)
        if cost > self.room or (depth == 0 and not plan.op.cheap):
            return None
        self.room -= cost
        found = WAYS[plan.op.behind](self, Found(node, cost), tensor, depth)
        if found is not None and found.node is node:
            found.written |= written_by(node)
        return found

    def of_watched(self, found: Found, tensor: Tensor | None, depth: int) -> Found | None:
        """Of an operator that was watched from when it ran: from what its node keeps, or what that is made of."""
        node = found.node
        watch = watch_of(node)
        if len(node.plan.save_inputs) < len(node.plan.op.tensors):
            return None
        if not modes.levels:
            if watch is None or watch.changed:
                return None
            found.stamp, found.first = watch.stamp, watch.stamp if watch.overwritten else None
        if not self.inputs(found, depth):
            return None
        from_kept(found)
        return found

    def inputs(self, found: Found, depth: int) -> bool:
        """Find where a node's saved inputs can be had; whether all can."""
        node = found.node
        small = math.prod(found.shape) * found.dtype.itemsize // SMALL
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

    def behind(self, x: Any, edge: Edge, depth: int) -> Any:
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
        if found is None or found.gives or found.shape != kind[0] or not holds(found):
            self.room = room
            return None
        if isinstance(x, Tensor):
            return Rebuilt(x, found), found
        made, (array, *version) = Rebuilt(None, found, follows=False), paged(x)
        if array is not None:  # else nobody can change it
            made.stand_for(array, *version)
            made.seen, made.follows = x.packed.origin, True
        return made, found

    def of_product(self, found: Found, tensor: Tensor | None, depth: int) -> Found | None:
        """Of a product of two tensors of its shape, one of which at least is made by what was watched."""
        node, found.unwatched = found.node, True
        for x in node.saved:
            if x.__class__ is not Rebuilt and (getattr(x, "_unusual", False) or kind_of(x) != (node.shape, node.dtype)):
                return None
        return found if self.inputs(found, depth) and found.lets and holds(found) else None

    def of_sum(self, found: Found, tensor: Tensor | None, depth: int) -> Found | None:
        """Of a sum of two tensors of its shape, neither of which it keeps: each is made again, or its maker keeps it."""
        node, found.unwatched = found.node, True
        return found if all(self.operand(found, edge, node.shape, depth) for edge in node.edges) else None

    def operand(self, found: Found, edge: Edge, shape: tuple[int, ...], depth: int) -> bool:
        """Find where an input can be had that a node does not keep, of a shape and the node's dtype; whether it can."""
        room = self.room
        inner = self.found(edge, None, depth - 1)
        if inner is None or inner.gives:
            self.room = room
            inner = self.kept(edge)
        if inner is None or inner.shape != shape or inner.dtype != found.dtype:
            return False
        found.goes_on(inner)
        found.saved.append(inner.saved[0] if inner.op is None else Rebuilt(None, inner))
        return True

    def kept(self, edge: Edge) -> Found | None:
        """Of an operator that keeps its own result, which lives as long as what is made of it may be asked for."""
        node: Any = edge.node if edge.__class__ is Port and edge.nr == 0 else edge
        plan = getattr(node, "plan", None)
        if plan is None or not plan.save_outs or not node.outs or node.saved is None:
            return None
        out = node.outs[0]
        found = Found(node, 0)
        found.op = None
        if out.__class__ is Rebuilt:
            return self.again(found, out)
        if not as_saved(out):
            return None
        array = out.array if out.__class__ is SavedOutput else paged(out)[0]
        if changes_unseen(array):
            return None
        if isinstance(out, Packed) and out.hooks != active_hooks():
            return None
        found.saved = [out if isinstance(out, Packed) else Live(array)]
        return found

    def again(self, found: Found, out: Rebuilt) -> Found | None:
        """Of what its node makes again itself: made for this alone."""
        storage, core = out.storage(), out.saved[0] if out.saved else None
        if out.made is not None or core.__class__ is not Rebuilt or core.made is not None or core.cost > self.room:
            return None
        if storage is not None and storage.version != out.version:
            return None
        self.room -= core.cost
        found.op, found.statics, found.saved, found.cost = core.op, core.statics, core.saved, core.cost
        return found

    def of_next(self, found: Found, tensor: Tensor | None, depth: int) -> Found | None:
        """Of an operator that keeps no input: relu, which keeps its result, and dropout."""
        node, found.unwatched = found.node, True
        watch = watch_of(node)
        if watch is not None:
            found.stamp, found.first = watch.stamp, watch.stamp if watch.overwritten else None
        outs = node.outs[0] if node.plan.save_outs and node.outs else None
        if outs.__class__ is Rebuilt:
            return self.once_more(found, outs, tensor)
        if (tensor is None and outs is not None) or not self.operand(found, node.edges[0], found.shape, depth):
            return None
        if outs is not None:
            if not as_saved(outs):
                return None
            found.gives = True
        from_kept(found)
        return found

    def once_more(self, found: Found, outs: Rebuilt, tensor: Tensor | None) -> Found | None:
        """Of what another product had made again already."""
        storage = outs.storage()
        same = outs.seen() is tensor and storage is not None and storage.version == outs.version
        if not same or outs.made is not None:
            return None
        found.op, found.saved, found.cost, found.unwatched, found.stamp = (
            None,
            outs.saved,
            outs.cost,
            False,
            changes.large,
        )
        return found


WAYS = {"": Search.of_watched, "input": Search.of_next, "product": Search.of_product, "sum": Search.of_sum}


def product_before(node: OpNode) -> float:
    """Operations an element of a product and its gradients, of which an operator takes the result, where that is known."""
    edge = node.edges[0]
    maker: Any = edge.node if edge.__class__ is Port else edge
    plan = getattr(maker, "plan", None)
    if plan is None or not plan.op.heavy or not maker.shapes:
        return 0.0
    operations = plan.op.cost([None if s is None else Shape(s) for s in maker.shapes], maker.statics)
    return float(3 * operations / max(1, math.prod(maker.shape)))


def from_kept(found: Found) -> None:
    """Have a result made again with what its node keeps beside: a norm from its statistics, in one pass, dropout from its bits."""
    node, given = found.node, found.node.plan.op.remade
    if given is None:
        return
    op, names = given
    arrays = [x for name in names if (x := beside(node, name)) is not None]
    if len(arrays) < len(names):
        return
    found.op, found.statics = op, node.statics[: len(op.static_names)]
    found.saved = [*found.saved, *map(Constant, arrays)]


def beside(node: OpNode, name: str) -> Array | None:
    """A small further result that a node keeps: a copy of what others may change; None where it cannot be had."""
    op, plan = node.plan.op, node.plan
    found: Array | None = None
    if name in op.aux:
        if plan.save_aux and node.aux.__class__ is tuple:
            found = node.aux[op.aux.index(name)]
        return found
    k = op.out_names.index(name)
    out = node.outs[k] if k in plan.save_outs and node.outs else None
    if out is None or not as_saved(out):
        return None
    found = (out.array if out.__class__ is SavedOutput else paged(out)[0]).copy()
    return found


def source(x: object, small: int) -> Any:
    """What an input is computed from again: a copy of what is small; UNSAFE where its memory may change unseen."""
    if x is None or x.__class__ is Constant:
        return x
    array = x._array if isinstance(x, Tensor) else alive(x.packed) if isinstance(x, Packed) else None
    if isinstance(x, Packed) and x.hooks != active_hooks():
        return UNSAFE  # whoever asks is outside of what packed it: a checkpoint would run once more
    if array is None:
        return x if isinstance(x, Packed) else UNSAFE
    if array.nbytes <= small:
        return Constant(array.copy(order="K"))
    if changes_unseen(array):
        return UNSAFE
    return x if isinstance(x, Packed) else Live(array)  # a store's to keep or not: held here, it would be in memory too


def changes_unseen(array: Array) -> bool:
    """Whether others may change memory without a word; that of an estimate's stand-ins nobody does."""
    return not modes.levels and is_exposed(array)


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
        saved[i] = kept = x
        if spare and x._edge is not None and x._array.nbytes >= LARGE:
            saved[i] = kept = rebuilt(x, node.plan.op, inputs, node.statics)
        if kept is x and x._storage is not None and x._storage.version:
            if node.versions is None:
                node.versions = [0] * len(inputs)
            node.versions[i] = x._storage.version
    node.saved = saved
    if spare and 0 not in wanted:
        pass_on(inputs[0], node.plan.op, inputs, node.statics)
