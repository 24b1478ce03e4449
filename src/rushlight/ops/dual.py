"""Dual numbers: a level that sends tangents through every operator beside its values.

The tangent of an operator is derived from its gradient formulas. The formulas give u -> J^H u, which is linear in u;
the adjoint of that map, again by the engine, is t -> J t. So every operator with a formula has a forward mode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.engine.node import EVERY, edge_of
from rushlight.engine.run import Run
from rushlight.engine.saved import Packed, SavedOutput
from rushlight.levels import Level
from rushlight.ops import call, plan
from rushlight.ops.compute import compute
from rushlight.state import Setting, modes, set_mode
from rushlight.tensor import LEAF, Tensor, wrap


class DualLevel(Level):
    """One level of forward mode; tensors carry its tangents in `_tangents[self]`."""

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any of the inputs carries a tangent of this level."""
        return any(isinstance(x, Tensor) and x._tangents and self in x._tangents for x in flat)

    def apply(self, op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run `op` on the values, and its derivative on the tangents."""
        values = tuple(self.value(x) for x in flat)
        inputs = values if op.sequence is None else (*values[: op.sequence], values[op.sequence :])
        result = call.apply(op, inputs, statics)
        outs = (result,) if op.out_count == 1 else tuple(result)
        if not op.formulas:
            return result
        node = self.node(op, values, self.tangents(flat), statics, outs)
        for k, out in enumerate(outs):
            t = self.derivative(node, k, self.tangents(flat))
            if t is not None:
                out._tangents = {**(out._tangents or {}), self: t}
        for out in outs:
            carry_tangents(op, out, flat, values, outs)
        return result

    def apply_inplace(self, op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run the in-place form of `op` on the values, and replace the target's tangent."""
        return self.replace(flat[0], self.apply(op, flat, statics))

    def replace(self, target: Tensor, result: Tensor) -> Tensor:
        """Give `target` the values, history and tangents of `result`."""
        tangents = result._tangents
        former = set_mode("levels", tuple(level for level in modes.levels if level is not self))
        try:
            target.copy_(self.value(result))
        finally:
            set_mode("levels", former)
        target._tangents = tangents
        return target

    def value(self, x: Any) -> Any:
        """A tensor without its tangent of this level, at the same place in the graph."""
        if not isinstance(x, Tensor) or not x._tangents or self not in x._tangents:
            return x
        v = wrap(x._array)
        v._storage, v._view = x._storage, x._view
        v._edge = x if x._edge is LEAF else x._edge
        rest = {level: t for level, t in x._tangents.items() if level is not self}
        v._tangents = rest or None
        return v

    def tangents(self, flat: tuple[Any, ...]) -> list[Any]:
        """The tangent of each input, or None."""
        return [x._tangents.get(self) if isinstance(x, Tensor) and x._tangents else None for x in flat]

    def node(self, op: Any, values: tuple[Any, ...], tangents: list[Any], statics: tuple[Any, ...],
             outs: tuple[Any, ...]) -> Any:  # fmt: skip
        """A node of `op` outside any graph, for its formulas alone; None where no tangent meets a formula."""
        covered = [i in op.targets or (op.sequence is not None and i >= op.sequence in op.targets)
                   for i in range(len(values))]  # fmt: skip
        mask = sum(1 << i for i, t in enumerate(tangents) if t is not None and covered[i])
        if not mask:
            return None
        edges = tuple(edge_of(v) if isinstance(v, Tensor) else None for v in values)
        aux = self.aux(op, values, statics, mask) if op.aux else ()
        with Setting("saved_hooks", ()):  # it lives for a moment
            node = call.make_node(op, values, statics, edges, mask, aux)
        node.shape, node.dtype = [o._array.shape for o in outs], [o._array.dtype for o in outs]
        if op.out_count == 1:
            node.shape, node.dtype = node.shape[0], node.dtype[0]
        else:
            node.count = len(outs)
        node.outs = [_Kept(o) for o in outs]
        return node

    def aux(self, op: Any, values: tuple[Any, ...], statics: tuple[Any, ...], mask: int) -> Any:
        """The auxiliary results of `op`."""
        for level in reversed(modes.levels):
            if level is not self and level.owns(values):
                return level.aux(op, values, statics, mask)
        return compute(op, [v._array if isinstance(v, Tensor) else v for v in values], statics)[1]

    def derivative(self, node: Any, k: int, tangents: list[Any]) -> Any:
        """The tangent of output `k`."""
        shape: Any = None if node is None else node.shape if node.count == 1 else node.shape[k]
        dtype: Any = None if node is None else node.dtype if node.count == 1 else node.dtype[k]
        if node is None or dtype.kind in "biu":
            return None
        with Setting("grad", True), Setting("saved_hooks", ()):
            u = in_level(wrap(np.zeros(shape, dtype)), (*node.saved, *node.outs, *tangents))
            u._edge = LEAF
            g = u if node.count == 1 else [u if i == k else None for i in range(node.count)]
            grads = plan.interpret(node, g, EVERY, True)
            roots = [(edge_of(v), conformed(t, v)) for v, t in zip(grads, tangents, strict=True)
                     if v is not None and t is not None and edge_of(v) is not None]  # fmt: skip
            if not roots:
                return wrap(np.zeros(shape, dtype))
            found = Run(True, True, {(u, 0): []}, False).execute(roots)
        return found.get((u, 0), wrap(np.zeros(shape, dtype)))


def in_level(t: Tensor, others: tuple[Any, ...]) -> Tensor:
    """`t` as a tensor of the innermost batched level that any of `others` belongs to, with the same values in all samples:
    so that its place in the graph is in the one that theirs are in."""
    arrays = [x._array for x in others if x is not None and getattr(x._array, "interpreted", False)]
    if not arrays:
        return t
    found = max(arrays, key=lambda a: modes.levels.index(a.level))
    return wrap(type(found)(found.level, t, None))


def conformed(t: Tensor, like: Tensor) -> Tensor:
    """A tangent broadcast to the shape of a gradient that the formula did not sum."""
    from rushlight.engine.conform import tensor_functions

    if t._array.shape != like._array.shape:
        t = tensor_functions["expand"](t, like._array.shape)
    return t if t._array.dtype == like._array.dtype else tensor_functions["cast"](t, like._array.dtype)


def carry_tangents(op: Any, out: Tensor, flat: tuple[Any, ...], values: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
    """Have the node of `out` keep the dual inputs and outputs themselves, so that its backward has tangents too."""
    node = None if out._edge is None or out._edge is LEAF or isinstance(out._edge, Tensor) else out._edge.node
    if not isinstance(node, plan.OpNode) or node.plan.op is not op or node.saved is None:
        return
    node.saved = tuple(x if s is v and s is not None else s for s, v, x in zip(node.saved, values, flat, strict=True))
    for s, x in zip(node.saved, flat, strict=True):
        if isinstance(s, Packed):
            s.tangents = x._tangents
    for kept in node.outs or ():
        if isinstance(kept, SavedOutput):
            kept.tangents = outs[kept.nr]._tangents
    for kept, out in zip(node.outs or (), outs, strict=False):
        if isinstance(kept, Packed):
            kept.tangents = out._tangents


class _Kept:
    """An output as the formulas of a node outside the graph see it."""

    __slots__ = ("_array", "value")

    def __init__(self, value: Tensor):
        self.value, self._array = value, value._array

    def tensor(self, edge: Any) -> Tensor:
        return self.value
