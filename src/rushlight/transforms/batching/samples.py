"""Sample after sample: formulas and composed functions that look at values, which batched tensors do not show.

What runs this way is recorded in the graph of the samples as one node, whose backward runs the same way again: so it can
be differentiated any number of times, like everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import Spec, tree_flatten, tree_leaves, tree_unflatten
from rushlight.dispatch.by_sample import level_of
from rushlight.engine.node import Node, Port, Refused, edge_of, next_seq
from rushlight.engine.run import Run
from rushlight.levels.batch import BatchedArray, DataDependent, dynamic
from rushlight.ops.shape.join import stack_op
from rushlight.ops.shape.reshape import reshape_op, select_op
from rushlight.tensor import ITSELF, LEAF, Tensor, twin, wrap
from rushlight.transforms.batching.loop import once

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op
    from rushlight.transforms.batched import BatchedLevel


def formula(fn: Callable[..., Any], op: Op, args: list[Any]) -> Any:
    """A gradient formula on tensors that may be batched: one that looks at values runs sample after sample."""
    level = level_of(args)
    if level is None:
        return fn(*args)
    try:
        return fn(*args)
    except DataDependent:
        return by_samples(level, lambda *rows: formula(fn, op, list(rows)), args, f"the gradient of {op.name}")


def by_samples(level: BatchedLevel, fn: Callable[..., Any], args: list[Any] | tuple[Any, ...], name: str) -> Any:
    """`fn` of each sample of a tuple of trees; its results, a tree, stacked. Once where all samples are the same."""
    inner = level_of(args)
    if inner is not None and modes.levels.index(inner) > modes.levels.index(level):  # samples of samples: those first
        return by_samples(inner, lambda *rows: by_samples(level, fn, rows, name), args, name)
    leaves, spec = tree_flatten(tuple(args))
    parts = [part_of(level, x) for x in leaves]
    shared = not any(differs(level, x) for x in leaves)
    if not shared:
        once(name)
    found = [tree_flatten(fn(*tree_unflatten([row(level, x, b) for x in leaves], spec)))
             for b in range(1 if shared else level.size)]  # fmt: skip
    if not found:
        raise RuntimeError(f"vmap: {name} runs sample after sample, and there are no samples to run it on")
    results = [joined(level, column, name, shared) for column in zip(*(rows for rows, _ in found), strict=True)]
    if modes.grad:
        edges = tuple(edge_of(x) if p is not None and isinstance(x, Tensor) else None
                      for x, p in zip(leaves, parts, strict=True))  # fmt: skip
        if any(e is not None for e in edges):
            LoopNode(level, fn, name, leaves, spec, edges).place(results)
            for x in results:
                refuse_gradients(level, x, edges, name)
    return tree_unflatten(results, found[0][1])


def part_of(level: BatchedLevel, x: Any) -> Any:
    """The BatchedArray of a leaf that belongs to the level, or None."""
    return level.part(x) if isinstance(x, (Tensor, BatchedArray)) else None


def differs(level: BatchedLevel, x: Any) -> bool:
    """Whether samples of a leaf are not all the same, or those of its tangents are not."""
    part = part_of(level, x)
    return (part is not None and part.dim is not None) or any(differs(level, t) for _, t in tangents_of(level, x))


def row(level: BatchedLevel, x: Any, b: int) -> Any:
    """Sample `b` of a leaf, with its tangents."""
    part, tangents = part_of(level, x), tangents_of(level, x)
    if part is None and not differs(level, x):
        return x
    if part is None:
        found = dual_value(dict(tangents), x)
    else:
        found = part.tensor if part.dim is None else select_op(part.tensor, (*[slice(None)] * part.dim, b, ...))
    for dual, t in tangents:
        if part is not None and found is part.tensor:
            found = reshape_op(found, found._array.shape)
        found._dual_base = ITSELF
        dual.give(found, row(level, t, b))
    return found


def tangents_of(level: BatchedLevel, x: Any) -> list[tuple[Any, Tensor]]:
    """The tangents of a tensor, with their levels: of those inside of `level`.  Those outside are of the tensor of all
    samples, and follow it through every operator."""
    inner = modes.levels[modes.levels.index(level) + 1 :] if isinstance(x, Tensor) else ()
    return [(dual, t) for dual in inner if hasattr(dual, "tangent_of") and (t := dual.tangent_of(x)) is not None]


def joined(level: BatchedLevel, column: tuple[Any, ...], name: str, shared: bool) -> Any:
    """One result of all samples."""
    if not isinstance(column[0], (Tensor, np.ndarray)):
        return column[0]
    if shared:
        one = column[0] if isinstance(column[0], Tensor) else wrap(column[0])
        made = level.batched(one, None)
        for dual, t in tangents_of(level, one):
            dual.give(made, t)
        return made
    if len({tuple(x.shape) for x in column}) > 1:
        dynamic(name)
    rows = [x if isinstance(x, Tensor) else wrap(x) for x in column]
    duals = {dual: None for x in rows for dual, _ in tangents_of(level, x)}
    found = level.batched(stack_op(tuple(dual_value(duals, x) for x in rows), 0))
    for dual in duals:
        ts = [dual.tangent_of(x) for x in rows]
        zeros = wrap(np.zeros(found._array.shape, found._array.dtype))
        dual.give(found, joined(level, tuple(zeros if t is None else t for t in ts), name, False))
    return found


def dual_value(duals: dict[Any, Any], x: Tensor) -> Tensor:
    """A tensor without its tangents of some levels."""
    for dual in duals:
        x = dual.value(x)
    return x


def refuse_gradients(level: BatchedLevel, x: Any, edges: tuple[Any, ...], name: str) -> None:
    """Refuse gradients of the tangents that a result of samples has: the node is of results alone."""
    for _, tangent in tangents_of(level, x):
        tangent._edge = Refused(edges, tangent._array, NotImplementedError,
            f"vmap: {name} runs sample after sample, and tangents of such have no gradients: inside vmap, take forward mode "
            "of reverse mode (jacfwd(jacrev(f)), hessian(f)), or reverse mode twice, rather than reverse mode of forward mode",
        )  # fmt: skip
        refuse_gradients(level, tangent, edges, name)


class LoopNode(Node):
    """The node of what ran sample after sample."""

    __slots__ = ("count", "fn", "label", "leaves", "level", "places", "spec")
    count: int

    def __init__(
        self,
        level: BatchedLevel,
        fn: Callable[..., Any],
        label: str,
        leaves: list[Any],
        spec: Spec,
        edges: tuple[Any, ...],
    ):
        self.level, self.fn, self.label, self.leaves, self.spec, self.edges = level, fn, label, leaves, spec, edges
        self.extra, self.seq = None, next_seq()

    def place(self, results: list[Any]) -> None:
        """Make the results that can have gradients results of this node."""
        self.places = [k for k, t in enumerate(results) if isinstance(t, Tensor) and t._array.dtype.kind not in "biu"]
        outs = [results[k] for k in self.places]
        self.count = len(outs)
        self.shape, self.dtype = [t._array.shape for t in outs], [t._array.dtype for t in outs]
        if self.count == 1:
            self.shape, self.dtype = self.shape[0], self.dtype[0]
        for nr, t in enumerate(outs):
            t._edge = self if self.count == 1 else Port(self, nr)

    def run_tensors(self, g: Tensor, wanted: int) -> list[Any]:
        gs = [g] if self.count == 1 else list(g)
        found = by_samples(self.level, self.pull, (list(self.leaves), gs), self.label)
        numbers = iter(found)
        return [None if e is None else next(numbers) for e in self.edges]

    run = run_tensors

    def pull(self, leaves: list[Any], gs: list[Any]) -> list[Tensor]:
        """Gradients of one sample's leaves that have edges, given those of its results."""
        recorded = modes.grad
        with Setting("grad", True):
            inner = level_of(leaves)
            given = [marked(x, inner) if e is not None else x for x, e in zip(leaves, self.edges, strict=True)]
            outs = tree_leaves(self.fn(*tree_unflatten(given, self.spec)))
        inputs = [x for x, e in zip(given, self.edges, strict=True) if e is not None]
        keys = [(e, 0) if isinstance(e, Tensor) else (e.node, e.nr) for e in map(edge_of, inputs)]
        roots = [(edge_of(outs[k]), g) for k, g in zip(self.places, gs, strict=True)
                 if g is not None and edge_of(outs[k]) is not None]  # fmt: skip
        run = Run(True, True, {key: [] for key in keys}, False)
        run.record = recorded
        found = run.execute(roots) if roots else {}
        return [found[key] if key in found else wrap(np.zeros(x._array.shape, x._array.dtype))
                for key, x in zip(keys, inputs, strict=True)]  # fmt: skip

    def release(self) -> None:
        self.leaves = [None] * len(self.leaves)


def marked(x: Tensor, level: Any) -> Tensor:
    """A tensor of the same values to differentiate at, which keeps the place of `x` in its graph.

    level: the level whose graph the results will be in, to which it must belong too.
    """
    if level is not None and level.part(x) is None:
        tangents = tangents_of(level, x)
        x = level.batched(dual_value(dict(tangents), x), None)
        for dual, tangent in tangents:
            dual.give(x, tangent)
    if edge_of(x) is not None:
        return reshape_op(x, x._array.shape)  # type: ignore[no-any-return]
    t = twin(x)
    t._edge, t._dual_base = LEAF, ITSELF
    for dual in modes.levels:
        if hasattr(dual, "tangent_of") and (tangent := dual.tangent_of(x)) is not None:
            dual.give(t, tangent)
    return t
