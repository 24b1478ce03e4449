"""Tangents of an operator's outputs, from those of its inputs.

A rule that an operator declares comes first (`tangent`). Linear operators are their own derivative; products are the sum
over their factors; the gradient formula of an elementwise operator on real numbers multiplies with the same number as its
tangent does. For all others the tangent is derived from the gradient formulas: they give u -> J^H u, which is linear in u,
and the adjoint of that map, again by the engine, is t -> J t. So every operator with a formula has a forward mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.state import Setting, modes
from rushlight.dispatch import call, plan
from rushlight.dispatch.compute import compute
from rushlight.engine.conform import tensor_functions
from rushlight.engine.node import EVERY, Severed, edge_of
from rushlight.engine.run import Run
from rushlight.tensor import LEAF, Tensor, twin, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import OpNode
    from rushlight.transforms.dual import DualLevel


def constant(x: Tensor) -> Tensor:
    """An inference tensor as one that may be saved: for a moment, in which nobody changes it."""
    t = twin(x)
    t._edge, t._tangents = edge_of(x), x._tangents
    return t


class Derivative:
    """The derivative of `op` at `values`, whose results are `outs`, applied to tangents of the inputs at a level."""

    def __init__(self, level: DualLevel, op: Op, values: tuple[Any, ...], given: list[Any], statics: tuple[Any, ...],
                 outs: tuple[Any, ...]):  # fmt: skip
        self.level, self.op, self.values, self.statics, self.outs = level, op, values, statics, outs
        self.given = [t if t is not None and self.covered(i) else None for i, t in enumerate(given)]

    def covered(self, i: int) -> bool:
        """Whether a formula covers the input at a flat position."""
        op = self.op
        return i in op.targets or (op.sequence is not None and i >= op.sequence in op.targets)

    def tangents(self) -> list[Any]:
        """The tangent of each output; None where there is none."""
        op, outs = self.op, self.outs
        smooth = [o._array.dtype.kind not in "biu" for o in outs]
        if not any(smooth) or all(t is None for t in self.given):
            return [None] * len(outs)
        if op.jvp is not None:
            found: Any = self.declared()
        elif op.factors:
            found = [self.product()]
        elif op.linear and not op.by_memory:
            found = self.linear()
        else:
            found = self.by_formulas()
        return [None if t is None or not ok else conformed(t, o) for t, o, ok in zip(found, outs, smooth, strict=True)]

    def call(self, inputs: list[Any]) -> list[Any]:
        """The outputs of the operator for other inputs."""
        op, k = self.op, self.op.sequence
        result = call.apply(op, tuple(inputs) if k is None else (*inputs[:k], tuple(inputs[k:])), self.statics)
        return [result] if op.out_count == 1 else list(result)

    def real(self) -> bool:
        """Whether all numbers are real."""
        return all(not dtypes.is_complex(getattr(x, "_array", x).dtype) if hasattr(x, "dtype") else not isinstance(x, complex)
                   for x in (*self.values, *self.outs))  # fmt: skip

    # The rules -----------------------------------------------------------------------------------------------------

    def declared(self) -> list[Any]:
        """By the rule that the operator declares."""
        op, (fn, requests) = self.op, self.op.jvp
        named = dict(zip(op.static_names, self.statics, strict=True))
        named.update(zip(op.tensors, self.values, strict=False))
        named.update(zip(op.out_names, self.outs, strict=False))
        named.update((f"t_{name}", t) for name, t in zip(op.tensors, self.given, strict=False))
        args = [named[r] for r in requests]
        found = plan.in_levels(fn, op, args) if len(modes.levels) > 1 else fn(*args)
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def linear(self) -> list[Any]:
        """The operator itself, on tangents."""
        inputs = [x if not self.covered(i) else zero(x) if t is None else t
                  for i, (x, t) in enumerate(zip(self.values, self.given, strict=True))]  # fmt: skip
        return self.call(inputs)

    def product(self) -> Any:
        """The sum over the factors that have a tangent of the product with it in their place."""
        factors, added = self.op.factors, self.op.added
        total: Any = None
        for i in factors:
            if self.given[i] is not None:
                inputs = [self.given[i] if k == i else None if k == added else x for k, x in enumerate(self.values)]
                (term,) = self.call(inputs)
                total = term if total is None else total + term
        if added is None or self.given[added] is None:
            return total
        t: Any = self.given[added]
        out = self.outs[0]
        if self.op.added_at != -1:
            t = t.reshape(-1, *[1] * (out._array.ndim - 1 - self.op.added_at))
        return conformed(t, out) if total is None else total + t

    def by_formulas(self) -> list[Any]:
        """From the gradient formulas.  Raises NotImplementedError where the operator has none for an input."""
        try:
            return [self.elementwise()] if self.op.elementwise and self.real() else self.derived()
        except NotImplementedError as error:
            raise NotImplementedError(
                f"Trying to use forward AD with {self.op.shown} that does not support it: {error}"
            ) from error

    def elementwise(self) -> Any:
        """The gradient formulas, given the tangents: for real numbers, a diagonal matrix is its own transpose."""
        node, out, total = self.node(), self.outs[0], None
        for i, t in enumerate(self.given):
            if t is not None:
                if t._array.dtype != out._array.dtype:
                    t = tensor_functions["cast"](t, out._array.dtype)
                term = node.run_tensors(t, 1 << i)[i]
                if term is not None:
                    total = term if total is None else total + term
        return total

    def derived(self) -> list[Any]:
        """The adjoint of the gradient formulas."""
        node = self.node()
        return [self.adjoint(node, k) for k in range(len(self.outs))]

    def adjoint(self, node: OpNode, k: int) -> Any:
        """The tangent of output `k`."""
        out = self.outs[k]._array
        if out.dtype.kind in "biu":
            return None
        record = modes.grad
        with Setting("grad", True), Setting("inference", False):
            u = in_level(wrap(np.zeros(out.shape, out.dtype)), (*node.saved, *node.outs, *self.given))
            u._edge = LEAF
            g = u if node.count == 1 else [u if i == k else None for i in range(node.count)]
            grads = node.run_tensors(g, EVERY)
            roots = [(edge_of(v), conformed(t, v)) for v, t in zip(grads, self.given, strict=True)
                     if v is not None and t is not None and edge_of(v) is not None]  # fmt: skip
            run = Run(True, True, {(u, 0): []}, False)
            run.record = record
            found = run.execute(roots) if roots else {}
        tangent = found.get((u, 0))
        if tangent is None:
            return wrap(np.zeros(out.shape, out.dtype))
        passed = any(t is not None and t._storage is not None and t._storage is tangent._storage for t in self.given)
        return (
            tangent.clone() if passed or any(t is tangent for t in self.given) else tangent
        )  # that of an input is the caller's

    # The formulas --------------------------------------------------------------------------------------------------

    def node(self) -> Any:
        """A node of the operator outside any graph, for its formulas alone."""
        op, outs = self.op, self.outs
        mask = sum(1 << i for i, t in enumerate(self.given) if t is not None)
        # What is not saved for gradients that go nowhere is wanted here: tangents come from everywhere.
        edges = tuple(None if e.__class__ is Severed else e
                      for e in (edge_of(v) if isinstance(v, Tensor) else None for v in self.values))  # fmt: skip
        aux = self.aux(mask) if op.aux else ()
        values = tuple(constant(v) if isinstance(v, Tensor) and v._inference else v for v in self.values)
        with Setting("saved_hooks", ()):  # it lives for a moment
            node = call.make_node(op, values, self.statics, edges, mask, aux)
        node.shape, node.dtype = [o._array.shape for o in outs], [o._array.dtype for o in outs]
        if op.out_count != 1:
            node.count = len(outs)
        if node.count == 1:
            node.shape, node.dtype = node.shape[0], node.dtype[0]
        node.outs = [Kept(o) for o in outs]
        return node

    def aux(self, mask: int) -> Any:
        """The auxiliary results of the operator."""
        for level in reversed(modes.levels):
            if hasattr(level, "aux") and level.owns(self.values):
                return level.aux(self.op, self.values, self.statics, mask)
        arrays = [v._array if isinstance(v, Tensor) else v for v in self.values]
        return compute(self.op, arrays, self.statics)[1]


class Kept:
    """An output as the formulas of a node outside the graph see it."""

    __slots__ = ("_array", "value")

    def __init__(self, value: Tensor):
        self.value, self._array = value, value._array

    def tensor(self, edge: OpNode) -> Tensor:
        return self.value


def zero(x: Array | Tensor | float) -> Array | Tensor | float:
    """What stands for the tangent of an input that has none: zeros, or the number."""
    if isinstance(x, Tensor):
        return wrap(np.broadcast_to(x._array.dtype.type(0), x._array.shape))
    return x if x is None else np.zeros_like(x) if isinstance(x, np.ndarray) else type(x)(0)


def in_level(t: Tensor, others: tuple[Any, ...]) -> Tensor:
    """`t` as a tensor of the innermost batched level that any of `others` belongs to, with the same values in all samples:
    so that its place in the graph is in the one that theirs are in."""
    arrays = [x._array for x in others if x is not None and getattr(x._array, "interpreted", False)]
    if not arrays:
        return t
    found = max(arrays, key=lambda a: modes.levels.index(a.level))
    return wrap(type(found)(found.level, t, None))


def conformed(t: Tensor, like: Tensor) -> Tensor:
    """A tangent in the shape of what it is the tangent of, and of its dtype: broadcast to it, and summed where `like` is a
    gradient that is still to be broadcast."""
    shape = like._array.shape
    if t._array.shape != shape:
        t = tensor_functions["expand"](t, np.broadcast_shapes(t._array.shape, shape))
    if t._array.shape != shape:
        t = tensor_functions["sum_to_size"](t, shape)
    return t if t._array.dtype == like._array.dtype else tensor_functions["cast"](t, like._array.dtype)
