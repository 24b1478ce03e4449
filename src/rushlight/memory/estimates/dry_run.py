"""A backward run over stand-ins: the engine's order, ownership and accumulation, with gradients that have a shape only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.references import HELD, untraced
from rushlight.dispatch import families
from rushlight.dispatch.declare import Op
from rushlight.dispatch.keeping.blocks import LARGE, WHOLE, elements, go_together, layout, narrowing
from rushlight.dispatch.keeping.remade import Rebuilt
from rushlight.dispatch.keeping.spare import spare
from rushlight.dispatch.plan import Formula, arguments, fetch
from rushlight.dispatch.shapes import order_of
from rushlight.engine.accumulate import accumulated, gone, prepared, same_layout
from rushlight.engine.conform import Part, expands, fits, is_dense, mismatch
from rushlight.engine.deferred import Deferred
from rushlight.engine.node import Node
from rushlight.engine.reach import count_contributions
from rushlight.engine.rows import Rows
from rushlight.engine.run import Run
from rushlight.engine.saved import freed
from rushlight.memory.counting.holders import ACTIVATION, GRADIENT, TEMPORARY, saved_arrays
from rushlight.memory.estimates.dry import DryLevel
from rushlight.memory.estimates.learned import learned
from rushlight.memory.estimates.standins import BACKWARD_WORK, owns, standin
from rushlight.memory.estimates.standins import LARGE as FROM
from rushlight.tensor import LEAF, Tensor, wrap

ndarray = np.ndarray


def _alone(cell: list[Any]) -> int:
    """How many references there are to an array that a local variable alone holds."""
    g, cell[0] = cell[0], None
    return getrefcount(g)


ALONE = untraced(lambda: _alone([np.zeros(1)]))()


class DryRun(Run):
    """A run without computing.  accumulated: called with each leaf whose `.grad` is complete."""

    observes = True
    accumulated: Callable[[Tensor], None] | None = None

    def __init__(self, level: DryLevel, keep: bool = False):
        super().__init__(keep, False, None, True)
        self.level, self.tally = level, level.tally

    def execute(self, roots: list[tuple[Any, Tensor]]) -> dict[Any, Any]:
        """Send gradients through the graph; what custom functions saved is known by then."""
        self.note_saved(roots)
        return super().execute(roots)

    def note_saved(self, roots: list[tuple[Any, Tensor]]) -> None:
        """Count what nodes saved; apart, for what a loop looked at last would be held as long as the run."""
        for node in count_contributions(roots):
            for array in () if isinstance(node, Tensor) else saved_arrays(node):
                self.tally.add(array)
                self.tally.categorize(array, ACTIVATION)

    def made(self, shape: Any, dtype: Any, operator: str, order: Any = None, category: int = TEMPORARY) -> Array:
        array: Array = standin(shape, dtype, order)
        self.tally.add(array, operator, category)
        return array

    # Nodes ------------------------------------------------------------------------------------------

    def compute(self, node: Node, g: Array, mask: int) -> Any:
        """What a node hands on."""
        if getattr(node, "plan", None) is None:
            return self.counted(node.run(g, mask))
        if node.plan.takes_deferred:
            return self.counted(node.plan.way(lambda node, g: self.by_formulas(node, g, mask), mask, node, g))
        return self.counted(self.by_formulas(node, g, mask))

    def counted(self, grads: object) -> Any:
        for x in grads if isinstance(grads, (list, tuple)) else (grads,):
            if isinstance(x, ndarray):
                self.tally.add(x)
        return grads

    def by_formulas(self, node: Any, g: Array, wanted: int) -> list[Any]:
        """As `plan.Backward`: formulas on tensors, through the level; of raw twins the shapes of their results."""
        plan = node.plan
        if node.saved is None and plan.saves:
            freed(node)
        results: list[Any] = [None] * len(node.edges)
        mask = plan.mask & wanted
        fetched: dict[Any, Any] = {}
        former, self.tally.beside = self.tally.beside, fetched
        try:
            for formula, places, needs in self.wanted(node, g, mask):
                given = self.given(node, formula, places, needs, g, fetched)
                if plan.op.heavy:
                    fetched.clear()  # what was computed again is gone before the next is made
                for place, value in zip(places, given, strict=True):
                    values = value if len(place) != 1 or plan.op.sequence == place[0] else (value,)
                    for i, v in zip(place, values or (), strict=False):
                        if mask >> i & 1:
                            results[i] = v._array if isinstance(v, Tensor) else v
        finally:
            self.tally.beside = former
        return results

    def wanted(self, node: Any, g: Any, mask: int) -> list[tuple[Formula, Any, tuple[bool, ...]]]:
        """The formulas of a node that run, the places of their targets, and which of those are wanted."""
        found = []
        for formula in in_turn(node.plan.op, g):
            places = node.plan.places(formula, len(node.edges))
            needs = tuple(any(mask >> i & 1 for i in place) for place in places)
            if any(needs):
                found.append((formula, places, needs))
        return found

    def given(
        self, node: Any, formula: Formula, places: Any, needs: tuple[bool, ...], g: Any, fetched: dict[Any, Any]
    ) -> Any:
        """The results of a formula, or stand-ins of them."""
        op = node.plan.op
        raw = formula.raw is not None or by_elements(op, formula, g)
        args = self.asked(node, formula, g, needs, raw, fetched)
        used = self.tally.uses((g, *args) if isinstance(g, ndarray) else args)
        given = self.learned(node, formula, args, g) if raw else None
        if given is None and formula.raw is not None:
            given = self.raw(node, formula, args, g, needs, places)
        if given is not None:
            self.worked(node, used, formula, args, needs, given)
            return given
        if raw:
            del args
            fetched.clear()
            args = self.asked(node, formula, g, needs, False, fetched)
        return self.of_tensors(formula, args)

    def of_tensors(self, formula: Formula, args: list[Any]) -> Any:
        """What a formula makes of tensors, as a run makes it of arrays."""
        former, self.level.on_arrays = self.level.on_arrays, True
        try:
            return formula.fn(*args) if formula.joint else (formula.fn(*args),)
        finally:
            self.level.on_arrays = former

    def asked(
        self, node: Node, formula: Formula, g: Array, needs: tuple[bool, ...], raw: bool, kept: dict[Any, Any]
    ) -> list[Any]:
        """What a formula asks for."""
        return [self.fetched(node, r, g, needs, raw, kept) for r in (formula.raw_requests or formula.requests)]

    def learned(self, node: Any, formula: Formula, args: list[Any], g: Any) -> Any:
        """What a formula makes that goes by elements, as it is on some; None of others, and where it makes anything else."""
        op = node.plan.op
        if not by_elements(op, formula, g):
            return None
        whole: Array = max((x for x in (g, *args) if isinstance(x, ndarray)), key=np.size)
        if whole.nbytes < FROM or not all(fit(whole, x) for x in args):
            return None
        like = layout(whole, tuple(args))
        cut = formula.goes_in_blocks(op) and g.size >= LARGE and go_together(like, args)
        name = op.name, op.formulas.index(formula), repr([x for x in args if not isinstance(x, ndarray)]), g.dtype
        fn = formula.raw or formula.fn
        found = learned(name, narrowing(fn, g) if cut else fn, args, like, elements(like) if cut else 0)
        if found is None or found.parts is None:
            return None
        given = [None if part is None else args[part.operand] if part.operand >= 0
                 else self.made(whole.shape, part.dtype, op.name, part.order) for part in found.parts]  # fmt: skip
        self.tally.work(found.most if cut else found.beside, op.name)
        return given

    def worked(
        self,
        node: Node,
        used: tuple[int | tuple[int, ...], ...],
        formula: Formula,
        args: list[Any],
        needs: tuple[bool, ...],
        given: Any,
    ) -> None:
        """Note what a formula costs: of a product as much as its forward for each gradient of a factor."""
        op, flops = node.plan.op, self.level.flops.get(node, 0)
        if flops:
            factors = [need and target in op.cost.requests for target, need in zip(formula.targets, needs, strict=True)]
            flops = int(flops * (sum(factors) if op.counted.times is None else op.counted.times))
        self.tally.worked(BACKWARD_WORK, op.name, flops, used, (*args, *given))

    def fetched(
        self, node: Node, request: str, g: Array, needs: tuple[bool, ...], raw: bool, kept: dict[Any, Any]
    ) -> Any:
        """What a formula asks for."""
        if request == "needs":
            return needs
        key = request, raw
        if key not in kept:
            kept[key] = self.saved(node, request, g, needs, raw)
        return kept[key]

    def saved(self, node: Any, request: str, g: Any, needs: Any, raw: bool) -> Any:
        """What a formula asks for, unpacked, or computed again by rule."""
        op = node.plan.op
        if request.endswith("_spare"):
            return spare(node, op.tensors.index(request.removesuffix("_spare")))
        if request in op.tensors and op.tensors.index(request) != op.sequence:
            item = node.saved[op.tensors.index(request)]
            if item.__class__ is Rebuilt:
                array = item._array
                return array if raw else wrap(array)
        if request in ("g", "gs") or request.startswith("g_"):
            found = fetch(node, request, g, False, needs)
            if isinstance(found, list):
                return found if raw else [None if x is None else wrap(x) for x in found]
            return found if raw else wrap(found)
        found = fetch(node, request, g, not raw, needs)
        if isinstance(found, ndarray):
            self.tally.add(found)
        return found

    def raw(self, node: Node, formula: Formula, args: list[Any], g: Array, needs: tuple[bool, ...], places: Any) -> Any:
        """The results of a formula's twin on arrays."""
        given = dict(zip(formula.raw_requests or formula.requests, args, strict=True))
        if formula.shapes is not None:
            given["make"] = Makings(self, node)
            made = formula.shapes(*(given[name] for name in arguments(formula.shapes)))
            return made if formula.joint else (made,)
        out = []
        for (place, *_), need in zip(places, needs, strict=True):
            over = given.get(f"{node.plan.op.tensors[place]}_spare")
            out.append(None if not need else self.gradient_for(node, place) if over is None else over)
        return out

    def gradient_for(self, node: Node, i: int, order: Any = None) -> Array:
        """A gradient of the shape of input `i`."""
        edge = node.edges[i]
        leaf = isinstance(edge, Tensor)
        like = edge._array if leaf else edge
        made = self.made(like.shape, like.dtype, node.plan.op.name, order, GRADIENT if leaf else TEMPORARY)
        if leaf:
            self.tally.hold(made)  # it may be one of several to be added up
        return made

    # Gradients on their way -------------------------------------------------------------------------

    def conformed(self, g: Any, edge: Any, shape: tuple[int, ...], dtype: np.dtype[Any], first: bool) -> Any:
        """As `conform_array`."""
        if isinstance(g, Part):
            if not first and g.shape == shape:
                return g
            g = self.made(g.shape, g.dtype, "slice")
        elif isinstance(g, Deferred):
            g = g.arriving(edge, first)
            if not isinstance(g, ndarray):
                return g
        elif isinstance(g, Rows):
            if isinstance(edge, Tensor) and g.shape == shape and g.dtype == dtype:
                return g
            g = self.made(g.shape, g.dtype, "embedding")
        elif not isinstance(g, ndarray):
            g = np.asarray(g)
        if g.shape != shape:
            if fits(g.shape, shape):
                g = self.made(shape, np.float32 if g.dtype.itemsize == 2 else g.dtype, "sum")
            elif expands(g.shape, shape):
                g = np.broadcast_to(g, shape)
            else:
                raise mismatch(edge, list(g.shape), list(shape), "shape")
        return g if g.dtype == dtype else self.made(shape, dtype, "_to_copy")

    def added(self, cell: list[Any], g: Array) -> Any:
        """As `add_arrays`: the total in `cell`, which is written to where nobody else holds it, else a new array."""
        total, cell[0] = cell[0], None
        if isinstance(total, Rows):
            return self.plus(total, g)
        if isinstance(g, Rows):
            return total
        if getrefcount(total) <= ALONE and total.flags.writeable and sole(total):
            self.tally.worked(BACKWARD_WORK, "add", 0, self.tally.uses((total, g)), (total, g, total))
            return total
        made = self.made(total.shape, total.dtype, "add")
        self.tally.worked(BACKWARD_WORK, "add", 0, self.tally.uses((total, g)), (total, g, made))
        return made

    def plus(self, total: Rows, g: Any) -> Any:
        """As `Rows.plus`."""
        if not isinstance(g, Rows):
            return self.made(total.shape, total.dtype, "add")
        count = len(total.values) + len(g.values)
        both = ((len(total.indices), count), total.indices.dtype), ((count, *total.values.shape[1:]), total.dtype)
        return Rows(total.shape, *(self.made(size, dtype, "add") for size, dtype in both))

    def deliver_array(self, edge: Any, g: Any) -> Any:
        """Hand `g` to an edge; the node that has become ready, if any."""
        record = self.records.get(edge)
        if record is None:
            return self.deliver_port(edge, g)
        if g is not None:
            like = edge._array if record[2] else edge
            g = self.conformed(g, edge, like.shape, like.dtype, record[1] is None)
            if record[1] is None:
                record[1] = g
            else:
                cell, record[1] = [record[1]], None
                record[1] = self.added(cell, g)
            g = None
        record[0] -= 1
        if record[0]:
            return None
        if record[2]:
            self.leaf(edge, record)
            return None
        return edge

    def deliver_port(self, port: Any, g: Any) -> Any:
        """Hand `g` to one output of a node that has several."""
        node, nr = port.node, port.nr
        record = self.records[node]
        if g is not None:
            self.put(record[1], nr, self.conformed(g, port, node.shape[nr], node.dtype[nr], True))
        record[0] -= 1
        return node if record[0] == 0 else None

    def put(self, slots: list[Any], nr: int, g: Array) -> None:
        if slots[nr] is None:
            slots[nr] = g
            return
        cell, slots[nr] = [slots[nr]], None
        slots[nr] = self.added(cell, g)

    def leaf(self, leaf: Tensor, record: list[Any]) -> None:
        """The gradient of a leaf is complete: it becomes `.grad`, or is added to it."""
        cell, record[1] = [record[1]], None
        if cell[0] is None or (leaf._edge is not LEAF and gone(leaf)):
            return
        if isinstance(cell[0], Rows):
            cell[0] = cell[0].values  # which stand for all: places take few bytes beside rows
        if leaf._hooks or leaf._node_hooks is not None:
            given = prepared(leaf, wrap(cell[0]))
            if given is None:
                return
            cell[0] = given._array
            del given
        if leaf._grad is None:
            leaf._grad = wrap(self.taken(cell, leaf._array))
        cell[0] = None
        self.tally.add(leaf._grad._array)
        self.tally.categorize(leaf._grad._array, GRADIENT)
        self.tally.hold(leaf._grad._array, len(self.tally.events))
        if leaf._post_hooks:
            accumulated(leaf)
        if self.accumulated is not None:
            self.accumulated(leaf)

    def taken(self, cell: list[Any], like: Array) -> Any:
        """As `owned_copy`."""
        g, cell[0] = cell[0], None
        if g.shape != like.shape:  # of `Rows`
            return g
        if getrefcount(g) <= ALONE and g.flags.writeable and sole(g) and same_layout(g, like):
            return g
        order = None if like.flags.c_contiguous or not is_dense(like) else order_of(like)
        return self.made(g.shape, g.dtype, "AccumulateGrad", order)


def in_turn(op: Op, g: Any) -> list[Formula]:
    """The formulas of an operator as they run: those that are written out for real numbers stand where results are handed on."""
    if not op.inline or not isinstance(g, ndarray) or g.dtype.char not in "fd":
        return op.formulas
    return sorted(op.formulas, key=lambda formula: formula.targets[0] in op.inline)


def by_elements(op: Op, formula: Formula, g: Any) -> bool:
    """Whether each element of the arrays that a formula makes is of those at its place alone; of a small gradient only where
    that is of a loss, which may be one number."""
    asked = formula.raw_requests or formula.requests
    loss = op.batch is families.pairs_of_elements
    return (
        (op.pointwise or loss or formula.goes_in_blocks(op))
        and formula.shapes is None
        and isinstance(g, ndarray)
        and (loss or g.nbytes >= FROM)
        and "gs" not in asked
        and not any(name.endswith("_shape") for name in asked)
    )


def fit(g: Array, x: object) -> bool:
    """Whether an operand is a number, or an array that broadcasts to the shape of `g`."""
    return expands(x.shape, g.shape) or x.shape == g.shape if isinstance(x, ndarray) else isinstance(x, WHOLE)


class Makings:
    """What the rules for shapes of gradients ask for, of one node: a `rules.Making`."""

    __slots__ = ("node", "run")

    def __init__(self, run: DryRun, node: Any):
        self.run, self.node = run, node

    def array(self, shape: Sequence[int], dtype: object, order: Sequence[int] | None = None) -> Array:
        """A new array."""
        return self.run.made(shape, dtype, self.node.plan.op.name, order)

    def gradient(self, position: int, order: Sequence[int] | None = None) -> Array:
        """A gradient of the shape of an input."""
        return self.run.gradient_for(self.node, position, order)

    def work(self, nbytes: int) -> None:
        """Bytes that are needed for a moment."""
        self.run.tally.work(nbytes, self.node.plan.op.name)

    def blocks(self, fn: Callable[..., Any], like: Array, *args: Any) -> None:
        """What a function takes that goes over large arrays in blocks."""
        name, cut = self.node.plan.op.name, like.size >= LARGE and go_together(like, args)
        found = learned((name, repr(self.node.statics)), fn, args, like, elements(like) if cut else 0)
        if found is not None:
            self.work(found.most if cut else found.beside)


def sole(g: Array) -> bool:
    """As `owns_memory`: whether `g` is the only array on its memory, or the only view of an array of the same bytes."""
    base = g.base
    if not isinstance(base, ndarray):
        return True
    return bool(owns(base) and base.nbytes == g.nbytes and getrefcount(base) <= HELD and is_dense(g))
