"""Dual numbers: a level that sends tangents through every operator beside its values.

A tensor keeps its tangents in `_tangents`, by level. Views need no bookkeeping of their own: the tangent of a view is the
same view of its base's tangent. A change in place gives the base a new tangent and a new stamp; views whose stamp is
another one take theirs anew when it is next asked for. Nobody ever writes into a tangent that somebody else may hold.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.state import modes, set_mode
from rushlight.dispatch import call, plan
from rushlight.dispatch.declare import Op
from rushlight.dispatch.dims import check_output
from rushlight.dispatch.formats import contiguous_format
from rushlight.dispatch.plan import OpNode
from rushlight.engine.conform import tensor_functions
from rushlight.engine.node import Node
from rushlight.engine.saved import Packed, SavedOutput
from rushlight.engine.views import Step, extent, replay, restrided, spans
from rushlight.levels import Level
from rushlight.levels.batch import BatchedArray, batched_like, batches_of
from rushlight.ops.elementwise.convert import clone
from rushlight.ops.python.handing import composed
from rushlight.storage import bytes_before, root_of, storage_of
from rushlight.tensor import ITSELF, LEAF, Tensor, ViewInfo, twin, wrap
from rushlight.transforms.tangents import Derivative


class DualLevel(Level):
    """One level of forward mode; tensors carry its tangents in `_tangents[self]`.

    of_function: whether `func.jvp` or a relative of it opened it, for the time of one call.
    """

    of_function = False

    def __init__(self) -> None:
        # Weak references to the tensors that have tangents of this level, and to the nodes that keep such tensors' tangents.
        self.holders: list[Any] = []
        self.limit = 256

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any of the inputs carries a tangent of this level."""
        return modes.forward_grad and any(isinstance(x, Tensor) and self.tangent_of(x) is not None for x in flat)

    def idle(self) -> bool:
        """Whether no tensor that is alive has a tangent of this level."""
        return all(ref() is None for ref in self.holders)

    def tangent_of(self, x: Tensor) -> Any:
        """The tangent of a tensor at this level, or None."""
        if x._view is not None and x._dual_base is not ITSELF and (x._dual_base is not None or not severed(x._view)):
            base = base_of(x)
            if base is not x and base._stamp != x._stamp:
                x._tangents = {level: viewed(base, x, t) for level, t in (base._tangents or {}).items()
                               if level in modes.levels}  # fmt: skip
                x._stamp = base._stamp
                for level in x._tangents:
                    level.note(x)
            elif base._tangents and self in base._tangents and not (x._tangents and self in x._tangents):
                self.give(x, viewed(base, x, base._tangents[self]))
        return x._tangents.get(self) if x._tangents else None

    def give(self, x: Tensor, tangent: Tensor) -> None:
        """Set the tangent of a tensor."""
        x._tangents = {**(x._tangents or {}), self: tangent}
        self.note(x)

    def note(self, x: Node | Tensor) -> None:
        """Remember that a tensor has a tangent of this level, or that a node keeps one."""
        if len(self.holders) >= self.limit:
            self.holders = [ref for ref in self.holders if ref() is not None]
            self.limit = 2 * len(self.holders) + 256
        self.holders.append(weakref.ref(x))

    def end(self) -> None:
        """Drop all tangents of this level."""
        for ref in self.holders:
            x = ref()
            for tangents in () if x is None else (x._tangents,) if isinstance(x, Tensor) else kept_tangents(x):
                if tangents:
                    tangents.pop(self, None)
        self.holders.clear()

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run `op` on the values, and its derivative on the tangents."""
        if len(modes.levels) > 1:
            found = self.composed(op, flat, statics)
            if found is not NotImplemented:
                return found
        values = tuple(self.value(x) for x in flat)
        inputs = values if op.sequence is None else (*values[: op.sequence], values[op.sequence :])
        result = call.apply(op, inputs, statics)
        outs = (result,) if op.out_count == 1 else tuple(result)
        if op.view:
            attach_views(outs, flat[0], values[0])
        if not op.formulas or (op.view and op.by_memory and self.strided(outs[0])):
            return result
        derivative = Derivative(self, op, values, self.tangents(flat), statics, outs)
        for out, t in zip(outs, derivative.tangents(), strict=True):
            if t is not None:
                self.give(out, t)
        for out in outs:
            node = carry_tangents(op, out, flat, values, outs)
            if node is not None:
                self.note(node)
        return result

    def composed(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """What several operators make of the duals, where a level outside of this one would run those instead of `op`.

        Of the values alone they would make several nodes, which nothing says the tangents of.
        """
        handed = any(hasattr(level, "handed_as") and level.owns(flat) for level in modes.levels)
        return composed(op, flat, statics) if handed else NotImplemented

    def strided(self, view: Tensor) -> bool:
        """Give a view by strides what it sees of its base's tangent: its memory may be beyond what it was made of.

        Whether there is such a base.
        """
        base = base_of(view)
        tangent = None if base is view else self.tangent_of(base)
        if tangent is None or type(base._held) is BatchedArray:
            return False
        self.give(view, viewed(base, view, tangent))
        return True

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Tensor:
        """Run the in-place form of `op` on the values, and replace the target's tangent."""
        target = flat[0]
        if modes.grad and op.formulas and self.saves_target(op, flat):
            original = clone(target)
            flat = tuple(original if x is target else x for x in flat)
        result = self.apply(op, flat, statics)
        check_output(op.name, target._array.shape, result._array.shape)
        if not op.casts:
            call.check_cast(op.name, result._array, target._array)
        return self.replace(target, result)

    def saves_target(self, op: Op, flat: tuple[Any, ...]) -> bool:
        """Whether a graph, of the values or of the tangents, keeps the value that the first input has before its change."""
        if type(flat[0]._held) is BatchedArray:  # the graphs around a batched tensor are not seen from here
            return bool(op.tensors)
        mask, _ = call.edges_of(op, flat)
        if mask and 0 in op.plan(mask, len(flat)).save_inputs:
            return True
        if not any(t is not None and t.requires_grad for t in self.tangents(flat)):
            return False
        asked = op.jvp is not None and not set(op.tensors[:1]).isdisjoint(op.jvp[1])
        return asked or 0 in op.plan((1 << len(flat)) - 1, len(flat)).save_inputs

    def replace(self, target: Tensor, result: Tensor) -> Tensor:
        """Give `target` the values, history and tangents of `result`."""
        tangent, former = self.tangent_of(result), self.tangent_of(target)
        levels = set_mode("levels", tuple(level for level in modes.levels if level is not self))
        try:
            target.copy_(self.value(result))
        finally:
            set_mode("levels", levels)
        if (tangent is not None or former is not None) and target._array.dtype.kind not in "biu":
            self.change(target, tangent)
        return target

    def change(self, target: Tensor, tangent: Tensor) -> None:
        """Make `tangent` (zeros for None) that of `target` after a change in place, and so part of that of its base."""
        base = base_of(target)
        if base is target:
            self.give(base, zeros_like(target) if tangent is None else fitting(tangent, target))
        else:
            former = self.tangent_of(base)
            whole = laid_out(zeros_like(base) if former is None else former, base._held, target._held)
            if tangent is not None and not batches_of(tangent) <= batches_of(whole):
                whole = batched_like(tangent, whole)
            part = replay(chain_from(base, target), whole)
            _ = part.zero_() if tangent is None else part.copy_(tangent)
            self.give(base, whole)
        base._stamp += 1

    def value(self, x: Tensor | float | None) -> Any:
        """A tensor without its tangent of this level, at the same place in the graph."""
        if not isinstance(x, Tensor) or self.tangent_of(x) is None:
            return x
        v = twin(x)
        v._storage, v._view = storage_of(x), None if x._view is None else cut(x._view)
        v._edge = x if x._edge is LEAF else x._edge
        v._dual_base = ITSELF
        if x._inference:
            v._inference = v._unusual = True
        rest = {level: t for level, t in x._tangents.items() if level is not self}
        v._tangents = rest or None
        return v

    def tangents(self, flat: tuple[Any, ...]) -> list[Any]:
        """The tangent of each input, or None."""
        return [self.tangent_of(x) if isinstance(x, Tensor) else None for x in flat]


# Views -----------------------------------------------------------------------------------------------------------


class Cut(ViewInfo):
    """That of a value: views of it are not views of the dual."""

    __slots__ = ()


def cut(info: ViewInfo) -> Cut:
    """The same information for a value."""
    made = Cut()
    for name in ViewInfo.__slots__:
        setattr(made, name, getattr(info, name))
    return made


def severed(info: Any) -> bool:
    """Whether a view was made of a value."""
    while info is not None:
        if info.__class__ is Cut:
            return True
        info = info.parent
    return False


def base_of(x: Tensor) -> Tensor:
    """The tensor whose tangent that of `x` is a view of: `x` itself where it is no view, or the dual that make_dual made."""
    base: Any = x._dual_base
    if base is ITSELF:
        return x
    if base is not None:
        return base
    return x if x._view is None else x._view.base


def attach_views(outs: tuple[Any, ...], of: Tensor, value: Tensor) -> None:
    """Make views of the value of a dual views of the dual itself."""
    base = base_of(of)
    for out in outs:
        info = out._view
        if info is None:
            continue
        if info.base is value:
            info.base = of
        if info.parent is value._view:
            info.parent = of._view
        out._dual_base, out._stamp = base, base._stamp


def viewed(base: Tensor, view: Tensor, tangent: Tensor) -> Any:
    """What `view` is of its base, of a tangent of that."""
    steps = chain_from(base, view)
    if any(getattr(step, "op", None) is None or step.op.by_memory for step in steps):
        tangent = laid_out(tangent, base._held, view._held)
    return replay(steps, tangent)


def chain_from(base: Tensor, view: Tensor) -> tuple[Any, ...]:
    """The operators that make `view` from its base in the sense of `base_of`."""
    info, end, steps = view._view, base._view, []
    array = base._held
    while info is not None and info is not end:
        if info.op is None:
            raise RuntimeError(
                "a view made inside a custom Function was changed in place in forward mode: clone() it first"
            )
        if info.parent is not None and info.op.by_memory:
            return restrided(view, base)
        steps.append(Step(info.op, info.statics, info.position))
        adopted = type(array) is BatchedArray and type(info.array) is not BatchedArray
        if info.parent is None and info.array is not array and not adopted:
            if type(array) is not BatchedArray and not spans(array, info.array):
                return restrided(view, base)
            steps.append(tensor_functions["restride"](info.array, array))
        info = info.parent
    return tuple(reversed(steps))


def laid_out(t: Tensor, like: Any, view: Any) -> Tensor:
    """A copy of a tangent, laid out as the memory that it belongs to, so that views of one are views of the other.

    view: an array on that memory, which may reach beyond what has a tangent: there are zeros.
    """
    hidden = type(like) is BatchedArray or type(t._array) is BatchedArray or type(view) is BatchedArray
    if hidden or like.size == 0 or any(step <= 0 for step in like.strides):
        return t.clone(memory_format=contiguous_format)
    low, high = together(like, view)
    if like.flags.c_contiguous and high - low == like.nbytes:
        return t.clone(memory_format=contiguous_format)
    memory = np.zeros((high - low) // like.itemsize, like.dtype)
    whole: Tensor = wrap(np.ndarray(like.shape, like.dtype, memory, bytes_before(like) - low, like.strides))
    return whole.copy_(t)


def together(array: Array, view: Array) -> tuple[int, int]:
    """Where the memory that two arrays show begins and ends, in bytes from its owner, by whole elements of the first."""
    low, high = extent(array)
    if root_of(view) is not root_of(array) or view.size == 0:
        return low, high
    start, end = extent(view)
    before, behind = max(low - start, 0), max(end - high, 0)
    unit = array.itemsize
    return low - -(-before // unit) * unit, high + -(-behind // unit) * unit


def zeros_like(x: Tensor) -> Tensor:
    """Zeros of the shape and dtype of a tensor, at the level that it belongs to."""
    zeros = np.zeros(x._held.shape, x._held.dtype)
    if type(x._held) is not BatchedArray:
        return wrap(zeros)
    return x._held.level.alike(x, zeros)


def fitting(t: Tensor, target: Tensor) -> Tensor:
    """A tangent in the dtype of the tensor that it becomes the tangent of."""
    return t if t._array.dtype == target._array.dtype else t.to(target.dtype)


def carry_tangents(op: Op, out: Tensor, flat: tuple[Any, ...], values: tuple[Any, ...], outs: tuple[Any, ...]) -> Any:
    """Have the node of `out` keep the dual inputs and outputs themselves, so that its backward has tangents too.

    Returns the node if it keeps tangents of its outputs, whose graph leads back to it.
    """
    node = None if out._edge is None or out._edge is LEAF or isinstance(out._edge, Tensor) else out._edge.node
    if not isinstance(node, plan.OpNode) or node.plan.op is not op or node.saved is None:
        return None
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
    return node if node.outs else None


def kept_tangents(node: OpNode) -> list[Any]:
    """The tangents, by level, that a node keeps of its outputs."""
    return [kept.tangents for kept in node.outs or () if isinstance(kept, SavedOutput | Packed)]
