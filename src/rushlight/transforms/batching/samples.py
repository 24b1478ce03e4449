"""Sample after sample: formulas and composed functions that look at values, which batched tensors do not show.

What runs this way is recorded in the graph of the samples as one node, whose backward runs the same way again: so it can
be differentiated any number of times, like everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import tree_flatten, tree_unflatten
from rushlight.dispatch.by_sample import level_of
from rushlight.dispatch.declare import Op
from rushlight.engine.node import Node, Port, edge_of, next_seq
from rushlight.engine.run import Run
from rushlight.levels import SampleLevel
from rushlight.levels.batch import BatchedArray, DataDependent, dynamic
from rushlight.ops.shape.join import stack_op
from rushlight.ops.shape.reshape import reshape_op, select_op
from rushlight.tensor import ITSELF, LEAF, Tensor, twin, wrap
from rushlight.transforms.batching.loop import once
from rushlight.transforms.batching.parted import Parted, duals_inside, made_of, parts_of
from rushlight.transforms.dual import DualLevel


def formula(fn: Callable[..., Any], op: Op, args: list[Any]) -> Any:
    """A gradient formula on tensors that may be batched: one that looks at values runs sample after sample."""
    try:
        return fn(*args)
    except DataDependent:
        level = level_of(args)
        if level is None:
            raise
        return by_samples(level, lambda *rows: formula(fn, op, list(rows)), args, f"the gradient of {op.name}")


def by_samples(level: SampleLevel, fn: Callable[..., Any], args: list[Any] | tuple[Any, ...], name: str) -> Any:
    """`fn` of each sample of a tuple of trees; its results, a tree, stacked. Once where all samples are the same."""
    inner = level_of(args)
    if inner is not None and modes.levels.index(inner) > modes.levels.index(level):  # samples of samples: those first
        return by_samples(inner, lambda *rows: by_samples(level, fn, rows, name), args, name)
    leaves, spec = tree_flatten(tuple(args))
    duals = [d for d in duals_inside(level) if any(isinstance(x, Tensor) and moves(d, x) for x in leaves)]
    run = Parted(fn, spec, len(duals))
    results = each(level, run, [part for x in leaves for part in parts_of(duals, x)], name)
    if modes.grad:
        saved = [part for x in leaves for part in parts_of(duals, x, whole=True)]
        edges = tuple(edge_of(x) if isinstance(x, Tensor) and level.part(x) is not None else None for x in saved)
        if any(e is not None for e in edges):
            LoopNode(level, run, name, saved, edges).place(results)
    return tree_unflatten(made_of(duals, results), run.results)


def moves(dual: DualLevel, x: Tensor) -> bool:
    """Whether a tensor, or a tangent of it at a level inside, has a tangent at a level."""
    if dual.tangent_of(x) is not None:
        return True
    inside = (d.tangent_of(x) for d in duals_inside(dual))
    return any(t is not None and moves(dual, t) for t in inside)


def each(level: SampleLevel, run: Callable[[list[Any]], list[Any]], leaves: list[Any], name: str) -> list[Any]:
    """A function of a list, of each sample; the results stacked."""
    shared = all(level.whole(x)[1] is None for x in leaves)
    if not shared:
        once(name)
    rows = [run([row(level, x, b) for x in leaves]) for b in range(1 if shared else level.size)]
    if not rows:
        raise RuntimeError(f"vmap: {name} runs sample after sample, and there are no samples to run it on")
    return [stacked(level, column, name, shared) for column in zip(*rows, strict=True)]


def row(level: SampleLevel, x: Any, b: int) -> Any:
    """Sample `b` of a leaf."""
    found, dim = level.whole(x)
    return found if dim is None else select_op(found, (*[slice(None)] * dim, b, ...))


def stacked(level: SampleLevel, column: tuple[Any, ...], name: str, shared: bool) -> Any:
    """One result of all samples; zeros for a tangent or gradient that some samples have and some have not."""
    found = [x if isinstance(x, Tensor) else wrap(x) for x in column if isinstance(x, (Tensor, np.ndarray))]
    if not found:
        return column[0]
    if len({tuple(x.shape) for x in found}) > 1:
        dynamic(name)
    if shared:
        return level.batched(found[0], None)
    if len(found) < len(column):
        given = iter(found)
        found = [
            wrap(np.zeros(found[0]._array.shape, found[0]._array.dtype)) if x is None else next(given) for x in column
        ]
    return level.batched(stack_op(tuple(found), 0))


class LoopNode(Node):
    """The node of what ran sample after sample: of values and tangents, each of which is an input, or a result."""

    __slots__ = ("count", "fn", "label", "leaves", "level", "places")
    count: int

    def __init__(self, level: SampleLevel, fn: Parted, label: str, leaves: list[Any], edges: tuple[Any, ...]):
        self.level, self.fn, self.label, self.leaves, self.edges = level, fn, label, leaves, edges
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

    def pull(self, leaves: list[Any], gs: list[Any]) -> list[Any]:
        """Gradients of one sample's leaves that have edges, given those of its results; None where nothing depends on one."""
        wanted = modes.grad and any(recorded(x) for x in (*leaves, *gs))
        asked = [(k, g) for k, g in zip(self.places, gs, strict=True) if g is not None]
        of_values = all(k % 2**self.fn.count == 0 for k, _ in asked)
        with Setting("grad", True), Setting("inference", False):
            inner = level_of(leaves)
            given = [marked(x, inner) if e is not None else x for x, e in zip(leaves, self.edges, strict=True)]
            outs = self.fn.of_values(given) if of_values else self.fn(given)
        inputs = [x for x, e in zip(given, self.edges, strict=True) if e is not None]
        keys = [(e, 0) if isinstance(e, Tensor) else (e.node, e.nr) for e in map(edge_of, inputs)]
        roots = [
            (edge_of(outs[k]), g) for k, g in asked if isinstance(outs[k], Tensor) and edge_of(outs[k]) is not None
        ]
        run = Run(True, True, {key: [] for key in keys}, False)
        run.record = wanted  # or what is differentiated at here would be taken for a place in a graph outside
        found = run.execute(roots) if roots else {}
        return [found.get(key) for key in keys]

    def release(self) -> None:
        self.leaves = [None] * len(self.leaves)


def recorded(x: object) -> bool:
    """Whether a tensor, or a tangent of it, requires grad in any of the graphs that it takes part in."""
    while isinstance(x, Tensor):
        if x.requires_grad or any(map(recorded, (x._tangents or {}).values())):
            return True
        if type(x._held) is not BatchedArray:
            return False
        x = x._held.tensor
    return False


def marked(x: Tensor, level: Any) -> Tensor:
    """A tensor of the same values to differentiate at, which keeps the place of `x` in its graph.

    level: the level whose graph the results will be in, to which it must belong too.
    """
    duals = [d for d in modes.levels if isinstance(d, DualLevel)]
    if level is not None and level.part(x) is None:
        tangents = [(d, t) for d in duals if (t := d.tangent_of(x)) is not None]
        for dual, _ in tangents:
            x = dual.value(x)
        x = level.batched(x, None)
        for dual, tangent in tangents:
            dual.give(x, tangent)
    if edge_of(x) is not None:
        return reshape_op(x, x._array.shape)
    t = twin(x)
    t._edge, t._dual_base = LEAF, ITSELF
    for dual in duals:
        if (tangent := dual.tangent_of(x)) is not None:
            dual.give(t, tangent)
    return t
