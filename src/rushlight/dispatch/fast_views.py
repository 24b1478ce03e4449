"""Views made quickly: from an array that is already there, in any grad mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.makers import maker
from rushlight.basics.state import RECORDED, modes, special, way_of
from rushlight.dispatch import call
from rushlight.dispatch.call import apply
from rushlight.dispatch.quick import made
from rushlight.engine.node import Edge, Port, edge_of, next_seq
from rushlight.storage import Storage
from rushlight.tensor import LEAF, Tensor, ViewInfo, bare

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import FullNode

bare_info = maker(ViewInfo)
ndarray = np.ndarray


def at_once(x: object) -> bool:
    """Whether `x` is a tensor that no level interprets, so that its array may be worked on directly."""
    return x.__class__ is not ndarray and not (special.count and modes.levels)


def made_view(op: Op, of: Tensor, array: Array, statics: tuple[Any, ...]) -> Tensor:
    """The tensor on `array`, which is what the view operator `op` makes of `of` with `statics`, with its history."""
    grad, kind = True, ""
    if special.count:
        if special.observing:
            return call.observed.view(op, of, array, statics)
        if modes.levels or modes.anomaly is not None:
            return apply(op, (of,), statics)
        grad = modes.grad
        kind = "" if grad else unrecorded()
    if of._unusual:
        return apply(op, (of,), statics)
    storage = of._storage
    if storage is None:
        storage = of._storage = Storage(of._held)
    t = bare()
    t._array, t._edge, t._storage = array, None, storage
    t._view = info = bare_info()
    info.op, info.statics, info.position, info.version = op, statics, None, storage.version
    parent = info.parent = of._view
    if parent is None:
        info.base, info.array, edge = of, of._held, of._edge
        info.kind = kind
    else:
        info.base, info.array = parent.base, parent.array
        if grad:
            info.kind, edge = parent.kind, edge_of(of)
        else:
            info.kind, edge = kind, None
    if edge is not None and grad and array.dtype.kind not in "biu":
        link(t, op, of, edge, statics)
    return t


def unrecorded() -> str:
    """The kind of a view that is made where nothing is recorded."""
    return "inference" if modes.inference else "no_grad"


def link(t: Tensor, op: Op, of: Tensor, edge: Edge, statics: tuple[Any, ...]) -> None:
    """Put `t`, made by an operator on one tensor that saves nothing of it, into the graph."""
    plan = op.plans.get((1, 1)) or op.plan(1, 1)
    array = t._held
    t._edge = node = op.new_node()
    node.seq, node.extra, node.plan, node.statics = next_seq(), None, plan, statics
    node.edges = (of if edge is LEAF else edge,)
    node.shape, node.dtype = array.shape, array.dtype
    node.saved, node.versions, node.outs, node.aux = NOTHING, None, None, None
    node.shapes = (of._held.shape,) if plan.needs_shapes else None


def made_views(op: Op, of: Tensor, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """As `made_view`, of an operator with several results: a tuple of views with one node."""
    grad = True
    if special.count:
        if modes.levels or special.observing or modes.anomaly is not None:
            return tuple(apply(op, (of,), statics))
        grad = modes.grad
    if of._unusual:
        return tuple(apply(op, (of,), statics))
    storage, parent, kind = of._storage, of._view, "multi" if grad else unrecorded()
    if storage is None:
        storage = of._storage = Storage(of._held)
    base, array, version = (of, of._held, storage.version) if parent is None else \
        (parent.base, parent.array, storage.version)  # fmt: skip
    node = several(op, of, arrays, statics) if grad and arrays and arrays[0].dtype.kind not in "biu" else None
    single, views = len(arrays) == 1, []
    for i, part in enumerate(arrays):
        t = bare()
        t._array, t._storage = part, storage
        t._edge = node if node is None or single else Port(node, i)
        t._view = info = bare_info()
        info.op, info.statics, info.position, info.version = op, statics, i, version
        info.base, info.array, info.parent, info.kind = base, array, parent, kind
        views.append(t)
    return tuple(views)


def several(op: Op, of: Tensor, arrays: list[Any], statics: tuple[Any, ...]) -> FullNode | None:
    """The node of an operator on one tensor with several results that saves nothing; None if no gradient is wanted."""
    edge = of._edge if of._view is None else edge_of(of)
    if edge is None:
        return None
    node = op.new_node()
    node.seq, node.extra, node.plan, node.statics = next_seq(), None, op.plans.get((1, 1)) or op.plan(1, 1), statics
    node.edges = (of if edge is LEAF else edge,)
    node.count, node.shape, node.dtype = len(arrays), [a.shape for a in arrays], [a.dtype for a in arrays]
    if len(arrays) == 1:  # to the engine a node with one output is its own edge
        node.shape, node.dtype = arrays[0].shape, arrays[0].dtype
    node.saved, node.versions, node.outs, node.aux = NOTHING, None, None, None
    node.shapes = (of._held.shape,)
    return node


def joined(op: Op, tensors: Sequence[Any], array: Array, statics: tuple[Any, ...]) -> Tensor:
    """The tensor on `array`, which is what `op`, that saves nothing, makes of a list of tensors, recorded or not."""
    t = bare()
    t._array = array
    t._edge = t._storage = t._view = None
    if special.count and not modes.grad:
        return made(t)
    if array.dtype.kind in "biu":
        return t
    edges, mask, bit = [], 0, 1
    for x in tensors:
        edge = x._edge if x._view is None else edge_of(x)
        if edge is not None:
            mask |= bit
            edge = x if edge is LEAF else edge
        edges.append(edge)
        bit += bit
    if mask:
        n = len(edges)
        t._edge = node = op.new_node()
        node.seq, node.extra, node.plan, node.statics = next_seq(), None, op.plan(mask, n), statics
        node.edges, node.shape, node.dtype = tuple(edges), array.shape, array.dtype
        node.saved, node.versions, node.outs, node.aux = (None,) * n, None, None, None
        node.shapes = tuple([x._array.shape for x in tensors])
    return t


def made_copy(op: Op, of: Tensor, array: Array, statics: tuple[Any, ...]) -> Tensor:
    """As `made_view`, where the operator had to copy."""
    way = way_of((of,)) if special.count else RECORDED
    if not way or special.observing or of._unusual:
        return apply(op, (of,), statics)
    t = bare()
    t._array = array
    t._edge = t._storage = t._view = None
    if way is not RECORDED:
        return made(t)
    edge = of._edge if of._view is None else edge_of(of)
    if edge is not None and array.dtype.kind not in "biu":
        link(t, op, of, edge, statics)
    return t


NOTHING = (None,)


def shares(result: Array, array: Array) -> bool:
    """Whether `result` of reshaping `array` is a view of it and no copy."""
    base = result.base
    return base is not None and (base is array or base is array.base)
