"""Plans of nodes that can be given a deferred gradient: it goes through views, and ends at the product that asked for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.dispatch.keeping.remade import Rebuilt
from rushlight.dispatch.keeping.unmade import rehearsed, shaped
from rushlight.dispatch.plan import Plan, input_array
from rushlight.engine.conform import conform_array
from rushlight.engine.deferred import Deferred
from rushlight.engine.saved import freed

if TYPE_CHECKING:
    import numpy as np

    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import Backwards, OpNode

COPIED = (
    "count",
    "mask",
    "needs_shapes",
    "op",
    "order",
    "real",
    "save_aux",
    "save_inputs",
    "save_outs",
    "saves",
    "slim",
)


class Taking(Plan):
    """A plan as another, whose nodes do with some gradients something else.

    way: called with what computes gradients of arrays, which inputs are wanted, the node and the gradient.
    """

    __slots__ = ("plain", "way")
    takes_deferred = True

    def __init__(self, plain: Plan, way: Callable[[Backwards, int, OpNode, Any], list[Any]]):
        for name in COPIED:
            setattr(self, name, getattr(plain, name))
        self.plain, self.way, self.functions, self.full = plain, way, {}, self._first

    def compiled(self, wanted: int, tensors: bool = False) -> Backwards:
        if tensors:  # which no gradient is deferred among
            return self.plain.compiled(wanted, True)
        if (wanted, False) not in self.functions:
            usual, way = self.plain.compiled(wanted), self.way

            def fn(node: OpNode, g: Array | Deferred) -> list[Any]:
                return way(usual, wanted, node, g)

            self.functions[wanted, False] = fn
        return self.functions[wanted, False]


class OfRows(Deferred):
    """The gradient of a product by a loss that had it made a few rows at a time.

    ready: what the loss found: `gradients`, the product's gradients, and `whole`, which gives the gradient of the loss's input in
    memory, of shape `first`. scale: what they are to be multiplied by. back: the views in between: how that becomes one of this
    shape.
    """

    __slots__ = ("back", "first", "ready", "scale")

    def __init__(
        self,
        ready: Any,
        scale: Array | float,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        first: tuple[int, ...],
        back: tuple[Any, ...] = (),
    ):
        self.ready, self.scale, self.shape, self.dtype, self.first, self.back = ready, scale, shape, dtype, first, back

    def array(self) -> Array:
        level = rehearsed()
        if level is not None:
            return level.standing(self.shape, self.dtype)
        found = self.ready.whole(self.scale, self.first)
        for usual, node in self.back:
            edge = node.edges[0]
            found = conform_array(usual(node, found)[0], edge, edge.shape, edge.dtype)
        return found


def through_view(usual: Backwards, wanted: int, node: OpNode, g: Array | Deferred) -> list[Any]:
    """What a view hands on of a deferred gradient: the same of the shape before."""
    if g.__class__ is not OfRows:
        return usual(node, g)
    edge = node.edges[0]
    return [OfRows(g.ready, g.scale, edge.shape, edge.dtype, g.first, (*g.back, (usual, node)))]


def of_product(usual: Backwards, wanted: int, node: OpNode, g: Array | Deferred) -> list[Any]:
    """The gradients of the product itself, where the loss has found them already; what is saved is looked at as ever."""
    if g.__class__ is not OfRows:
        return usual(node, g)
    if node.saved is None:
        freed(node)
    for i in asked_for(node.plan, wanted):
        kept = node.saved[i]
        if kept is not None and kept._storage is not None:
            input_array(node, i)  # for its version
        if g.ready.product.changed or (
            kept.__class__ is not Rebuilt and kept is not None and kept._array is not g.ready.product.given[i]
        ):
            return usual(node, g.array())  # `.data` gave it other numbers, and so another gradient
    return [x if wanted >> i & 1 else None for i, x in enumerate(g.ready.gradients(g.scale))]


def asked_for(plan: Plan, wanted: int) -> list[int]:
    """The saved inputs that the gradients of the wanted inputs take."""
    names = plan.op.tensors
    formulas = [f for f in plan.op.formulas if any((plan.mask & wanted) >> names.index(t) & 1 for t in f.targets)]
    requests = {name for f in formulas for name in (f.requests if f.raw is None else f.raw_requests)}
    return [i for i in plan.save_inputs if names[i] in requests]


def of_view(plan: Plan) -> Plan:
    """The plan of a view operator, as one that hands deferred gradients on."""
    if plan.takes_deferred:
        return plan
    return known.get(plan) or known.setdefault(plan, Taking(plan, through_view))


known: dict[Plan, Taking] = {}
shaped["of"] = of_view
