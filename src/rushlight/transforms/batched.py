"""Batched tensors: a level that runs operators on all samples at once, as `func.vmap` needs it.

A batched tensor has the shape of one sample; its `_array` is a `BatchedArray`, which holds the tensor of all samples and
the dimension in which they lie. An operator's batching rule (see `ops.batching`) says what to do with that one instead.
Two graphs may grow: that of the tensors of all samples, for gradients taken outside, and, of batched tensors that require
grad themselves, that of the samples, for gradients taken inside, one for each sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.state import Setting, modes, set_mode
from rushlight.dispatch import call
from rushlight.dispatch.declare import Op
from rushlight.dispatch.dims import check_output
from rushlight.dispatch.variants import with_auxiliaries
from rushlight.engine import inplace
from rushlight.engine.node import Port
from rushlight.engine.views import chain_of, make_view, replay
from rushlight.levels import Level
from rushlight.levels.batch import BatchedArray
from rushlight.ops.elementwise.convert import copy as copied
from rushlight.ops.elementwise.convert import copy_into
from rushlight.ops.shape.reshape import broadcast, permute_op
from rushlight.signs import turn
from rushlight.tensor import LEAF, Tensor, twin, wrap
from rushlight.transforms.batching import rule_of, samples
from rushlight.transforms.batching.given import Given


class BatchedLevel(Level):
    """One level of vmap over `size` samples.  randomness: "error", "same" or "different"."""

    def __init__(self, size: int, randomness: str = "error"):
        self.size, self.randomness = size, randomness
        self.lifted: list[tuple[Tensor, Tensor]] = []
        self.adopted: list[tuple[Any, ...]] = []

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any of the inputs is batched at this level."""
        for x in flat:  # many times faster than `any` of a generator
            if self.part(x) is not None:
                return True
        return False

    def part(self, x: Any) -> BatchedArray | None:
        """The BatchedArray of an input that belongs to this level, or None."""
        array = x._held if isinstance(x, Tensor) else x
        if type(array) is BatchedArray:
            return array if array.level is self else None
        view = x._view if self.adopted and isinstance(x, Tensor) else None
        if view is not None and type(view.base._held) is BatchedArray and view.base._held.level is self:
            self.follow(x)
            return x._held
        return None

    def batched(self, tensor: Tensor, dim: int | None = 0) -> Tensor:
        """One sample of `tensor`, whose dimension `dim` runs over the samples."""
        t = wrap(BatchedArray(self, tensor, dim))
        t._inference = t._unusual = tensor._inference
        return t

    def whole(self, x: Tensor) -> tuple[Tensor, int | None]:
        """The tensor of all samples behind `x`, and the dimension in which they lie: None if they are all the same."""
        part = self.part(x)
        return (x, None) if part is None else (part.tensor, part.dim)

    def lift(self, tensor: Tensor) -> bool:
        """Make a tensor from outside one of this level, until it ends: its gradients are then one for each sample."""
        if self.part(tensor) is None:
            inner = twin(tensor)
            inner._edge, inner._storage, inner._view = tensor._edge, tensor._storage, tensor._view
            self.lifted.append((tensor, inner))
            turn(tensor, 0)
            tensor._array, tensor._storage, tensor._view = BatchedArray(self, inner, None), None, None
        return True

    def adopt(self, target: Tensor) -> Any:
        """Take a tensor from outside, and what it views, into this level until it ends; give its place there.

        What changes it in place has a history at this level, which a tensor from outside has no room for.
        """
        base = target if target._view is None else target._view.base
        self.adopted.append((base, base._held, base._storage, base._view, base._edge, base._bits))
        inner = twin(base)
        inner._edge, inner._storage = base._edge, base._storage
        turn(base, 0)
        base._array, base._storage, base._edge = BatchedArray(self, inner, None), None, None
        if base is not target:
            self.follow(target)
        return target._held

    def follow(self, view: Tensor) -> None:
        """Adopt a view of a tensor that was adopted."""
        self.adopted.append((view, view._held, view._storage, view._view, view._edge, view._bits))
        with Setting("grad", True):
            made = replay(chain_of(view), view._view.base)
        turn(view, made._bits)
        view._array, view._storage, view._view, view._edge = made._held, made._storage, made._view, made._edge

    def end(self) -> None:
        """Give what was lifted its memory back, and what was adopted its place outside."""
        for tensor, array, storage, view, edge, bits in reversed(self.adopted):
            whole = tensor._held.tensor
            if view is None:
                storage, edge = (storage if whole._storage is None else whole._storage), whole._edge
            tensor._array, tensor._storage, tensor._view, tensor._edge = array, storage, view, edge
            turn(tensor, bits)
        self.adopted.clear()
        for tensor, inner in self.lifted:
            if self.part(tensor) is not None:
                tensor._array, tensor._storage, tensor._view = inner._held, inner._storage, inner._view
                turn(tensor, inner._bits)
        self.lifted.clear()

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Tensor | tuple[Tensor, ...]:
        """Run `op` on all samples."""
        results, single = self.results(op, flat, statics)
        if op.view:
            self.note_views(op, flat[0], results, statics)
        if modes.grad and op.formulas and has_history(flat):
            self.record(op, flat, statics, results)
        return results[0] if single else tuple(results)

    def results(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> tuple[list[Tensor], bool]:
        """The results as batched tensors, and whether the operator has one that is not in a tuple."""
        given = Given(self, op, flat, statics)
        # Rules work on the tensors of all samples, which are of the levels outside: without this one operators take their
        # fast forms, which is a third of a small operator's time.
        levels = set_mode("levels", modes.levels[: modes.levels.index(self)])
        try:
            found, dim = (rule_of(op)(given), 0) if any(given.batched) else (given.run(given.values), None)
        finally:
            set_mode("levels", levels)
        single = op.out_count == 1 and not isinstance(found, (tuple, list))
        return [self.batched(t, dim) for t in ([found] if single else found)], single

    def note_views(self, op: Op, of: Tensor, results: list[Tensor], statics: tuple[Any, ...]) -> None:
        """Note which results share memory, so that changes in place are known to reach both."""
        source = self.part(of)
        if source is None:
            return
        kind = "no_grad" if not modes.grad else "multi" if op.out_count is None else ""
        for i, t in enumerate(results):
            storage = t._array.tensor._storage
            if storage is not None and storage is source.tensor._storage:
                make_view(t, of, op, statics, None if op.out_count == 1 else i, kind)
            else:
                t._array.copied = True

    # What functions on tensors ask of the level they are batched at ----------------------------------

    def formula(self, fn: Callable[..., Any], op: Op, args: list[Any]) -> Any:
        """A gradient formula; one that looks at values runs sample after sample."""
        return samples.formula(fn, op, args)

    def by_samples(self, fn: Callable[..., Any], args: tuple[Any, ...], name: str) -> Any:
        """`fn` of each sample of a tuple of trees, its results stacked."""
        return samples.by_samples(self, fn, args, name)

    def detached(self, x: Tensor) -> Tensor:
        """A batched tensor outside of all graphs, on the same memory."""
        t = self.batched(x._array.tensor.detach(), x._array.dim)
        t._storage = x._storage
        return t

    def alike(self, x: Tensor, array: Array) -> Tensor:
        """A tensor whose every sample is a copy of `array`, batched as `x` is."""
        part = x._array
        if part.dim is None:  # the same for all samples here, and perhaps not at the levels around
            return stretched(part.tensor, array)
        return self.batched(stretched(part.tensor, array, self.size), 0)

    def apart(self, x: Tensor) -> Tensor:
        """A tensor whose samples are the same as one with a copy for each; one that has its samples as it is."""
        tensor, dim = self.whole(x)
        if dim is not None:
            return x
        with Setting("levels", modes.levels[: modes.levels.index(self)]):
            whole = broadcast(tensor, (self.size, *tensor.shape))
        return self.batched(whole, 0)

    # The graph of the samples ----------------------------------------------------------------------

    def edges(self, op: Op, flat: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
        """As `call.edges_of`, of the tensors of this level alone."""
        return call.edges_of(op, tuple(x if self.part(x) is not None else None for x in flat))

    def record(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], results: list[Tensor]) -> None:
        """Put the results into the graph of the samples if a batched tensor requires grad."""
        mask, edges = self.edges(op, flat)
        if not mask:
            return
        node = call.make_node(op, flat, statics, edges, mask, self.aux(op, flat, statics, mask))
        if op.out_count == 1:
            if results[0]._array.dtype.kind in "biu":
                return
            node.shape, node.dtype = results[0]._array.shape, results[0]._array.dtype
            results[0]._edge = node
        else:
            node.count = len(results)
            node.shape, node.dtype = [t._array.shape for t in results], [t._array.dtype for t in results]
            if node.count == 1:
                node.shape, node.dtype = node.shape[0], node.dtype[0]
            for k in range(node.count) if op.out_count is None else op.differentiable:
                if results[k]._array.dtype.kind not in "biu":
                    results[k]._edge = node if node.count == 1 else Port(node, k)
        node.outs = call.save_outputs(node, tuple(results))

    def aux(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], mask: int) -> tuple[Any, ...]:
        """The auxiliary results that formulas on tensors ask for, as tensors; None for the others."""
        wanted = {r for f in op.formulas for r in f.requests if r in op.aux}
        if not wanted or not op.plan(mask, len(flat)).save_aux:
            return (None,) * len(op.aux)
        # Modes have seen the operator: with what it keeps it has more results than the operator that they are handed.
        with Setting("levels", tuple(level for level in modes.levels if not hasattr(level, "told"))):
            found, _ = self.results(with_auxiliaries(op), flat, statics)
        return tuple(found[op.out_count :])

    # In place --------------------------------------------------------------------------------------

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Tensor:
        """Run `op` and store the result of every sample in the first input."""
        target: Tensor = flat[0]
        part, others = self.part(target), [p for p in map(self.part, flat) if p is not None]
        if (
            part is None
            and all(p.dim is None for p in others)
            and modes.grad
            and op.formulas
            and self.edges(op, flat)[0]
        ):
            part = self.adopt(target)
        if part is None or (part.dim is None and any(p.dim is not None for p in others)):
            return self.apply_to_all(op, flat, statics)
        if part.copied:
            raise RuntimeError(
                f"{op.name}_: the target is not a view inside vmap, since its samples lie apart in memory, so the tensor it "
                "was made of would not change. Use .clone() before the change, or change that tensor itself"
            )
        mask, edges = self.edges(op, flat) if modes.grad and op.formulas else (0, ())
        inplace.check(target, bool(mask))
        given = flat
        if op.formulas and modes.grad and any(samples.recorded(x) for x in flat) and asks_for_target(op):
            # A graph around this one may save the target, which is about to change: it gets a copy.
            original = self.batched(copied(part.tensor, None), part.dim)
            given = tuple(original if x is target else x for x in flat)
        (result, *_), _ = self.results(op, given, statics)
        check_output(op.name, target._array.shape, result._array.shape)
        if not op.casts:
            call.check_cast(op.name, result._array, target._array)
        aux: tuple[Any, ...] = ()
        if mask:
            aux = self.aux(op, flat, statics, mask)
            flat = self.before(op, flat, edges, mask)
            # Before the change: an operand that is saved may lie on the memory that changes, which is to be noticed.
            node = call.make_node(op, flat, statics, edges, mask, aux)
            node.shape, node.dtype = target._array.shape, target._array.dtype
        whole, dim = result._array.tensor, part.dim
        if dim:
            whole = permute_op(whole, (*range(1, dim + 1), 0, *range(dim + 1, whole._array.ndim)))
        call.apply_inplace(copy_into.op, (part.tensor, whole), ())
        inplace.written(target, f"{op.name}_")
        if mask:
            inplace.rebase(target, node)
            node.outs = call.save_outputs(node, (target,))
        return target

    def before(self, op: Op, flat: tuple[Any, ...], edges: tuple[Any, ...], mask: int) -> tuple[Any, ...]:
        """The inputs with a copy of the target, where formulas ask for its value before the change."""
        target = flat[0]
        if 0 not in op.plan(mask, len(flat)).save_inputs:
            return flat
        tensor, dim = self.whole(target)
        original = self.batched(copied(tensor, None), dim)
        original._edge = edges[0]
        return (original, *(original if x is target else x for x in flat[1:]))

    def apply_to_all(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Tensor:
        """An in-place operator on a target that all samples share."""
        if any(p is not None and p.dim is not None for p in map(self.part, flat)):
            raise RuntimeError(
                f"vmap: {op.name}_(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
                "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
                f"vmapped over in a vmap. Please try to use out-of-place operators instead of {op.name}_, or make `self` "
                "from a tensor that is vmapped over, as x.new_zeros() does."
            )
        values = tuple(x if (part := self.part(x)) is None else part.tensor for x in flat)
        inputs = values if op.sequence is None else (*values[: op.sequence], values[op.sequence :])
        call.apply_inplace(op, inputs, statics)
        return flat[0]


def has_history(flat: tuple[Any, ...]) -> bool:
    """Whether an input may require grad, at its own level."""
    for x in flat:  # many times faster than `any` of a generator
        if isinstance(x, Tensor) and (x._edge is not None or x._view is not None):
            return True
    return False


def asks_for_target(op: Op) -> bool:
    """Whether a gradient formula asks for the first input."""
    return any(op.tensors[0] in (*f.requests, *f.raw_requests) for f in op.formulas)


# What others ask for -------------------------------------------------------------------------------


def innermost(levels: Any = None) -> BatchedLevel | None:
    """The innermost batched level that is active."""
    for level in reversed(modes.levels if levels is None else levels):
        if isinstance(level, BatchedLevel):
            return level
    return None


def fresh_leaf(x: Tensor) -> Tensor:
    """A leaf that requires grad with the values of `x`, which keeps its place in the graphs outside of the innermost
    batched level: what a transformation inside vmap differentiates with respect to."""
    level = innermost()
    if level is None:
        t = twin(x)
    else:
        tensor, dim = level.whole(x)
        t = level.batched(tensor, dim)
    t._edge = LEAF
    return t


def repeated(array: Array, size: int) -> Array:
    """`size` copies of an array one behind another, each with its strides."""
    if array.flags.c_contiguous:
        return np.repeat(array[None], size, 0)
    length = 1 + sum((n - 1) * s // array.itemsize for n, s in zip(array.shape, array.strides, strict=True))
    memory = np.zeros(size * length, array.dtype)
    whole = np.ndarray((size, *array.shape), array.dtype, memory, 0, (length * array.itemsize, *array.strides))
    whole[...] = array
    return whole


def stretched(like: Tensor, array: Array, size: int | None = None) -> Tensor:
    """`size` copies of `array`, or itself, batched at the outer levels as `like` is."""
    whole = array if size is None else repeated(array, size)
    return like._array.level.alike(like, whole) if type(like._array) is BatchedArray else wrap(whole)
