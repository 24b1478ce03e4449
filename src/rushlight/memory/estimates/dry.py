"""Operators on stand-ins: a level that makes results by shape rules and leaves the recording to the engine."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.state import modes
from rushlight.dispatch import call, families
from rushlight.dispatch.compute import HALVES, compute, goes_in_blocks
from rushlight.dispatch.declare import Op
from rushlight.dispatch.operands import raw
from rushlight.dispatch.shapes import Made, order_of
from rushlight.engine import inplace
from rushlight.levels import Level
from rushlight.memory.counting.holders import ACTIVATION, saved_arrays
from rushlight.memory.estimates.learned import learned
from rushlight.memory.estimates.standins import FORWARD_WORK, LARGE, Tally, like, standin
from rushlight.storage import root_of
from rushlight.tensor import Tensor, wrap

ndarray = np.ndarray
SEEN = 1 << 24  # bytes up to which an array of places that are spread has values, and what comes of it
WHOLE = ("truth",)  # operators that say of elements that are equal what they say of one: `all` and `any`


class DryLevel(Level):
    """The level under which a model runs without computing: it owns every tensor.

    Small arrays, and operators without a shape rule, are computed: `ran` counts the latter where they are large.
    """

    dry = True

    def __init__(self, tally: Tally):
        self.tally = tally
        self.ran: dict[str, int] = {}
        self.on_arrays = False  # whether a run would compute with arrays, which NumPy converts a few at a time
        self.on_step: Any = None  # called with (optimizer, parameter) where an optimizer's step would change it
        self.flops: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # of products, by their nodes
        self.unknown: dict[int, Any] = {}  # by id, weak references to small arrays that come of what is not computed
        self.picked: dict[int, Any] = {}  # by id, weak references to what `spread` gave values, large or not
        self.true: dict[int, Any] = {}  # by id, weak references to large bools that zeros make True
        self.read: dict[str, int] = {}  # how often the user's lines read such values, or others of stand-ins
        self.kinds: dict[Any, Any] = {}  # dtypes of elementwise results, by operator and what went in

    def owns(self, flat: tuple[Any, ...]) -> bool:
        return True

    def blank(self, make: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array of zeros, ones or anything: a stand-in where it is large."""
        large = math.prod(shape) * dtype.itemsize >= LARGE
        array = standin(shape, dtype) if large else make(shape, dtype)
        self.tally.add(array, make.__name__)
        return array

    def recurrent(self, plan: Any) -> Any:
        """A recurrent layer by shapes."""
        from rushlight.memory.estimates.dry_recurrent import DryPlan

        return DryPlan(plan, self.tally)

    def run(self, keep: bool) -> Any:
        """A backward run that the model calls for itself, inside its forward."""
        from rushlight.memory.estimates.dry_run import DryRun

        return DryRun(self, keep)

    def stepped(self, optimizer: Any) -> None:
        """What an optimizer's `step` does: the state of its parameters comes into being."""
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p._grad is not None and self.on_step is not None:
                    self.on_step(optimizer, p)

    # What operators make ---------------------------------------------------------------------------

    def results(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Results and auxiliary results of `op` on arrays."""
        made = self.planned(op, arrays, statics)
        if made is None:
            outs, aux = self.computed(op, arrays, statics)
            if any(self.is_unknown(x) for x in arrays):
                self.doubt((*outs, *aux))
                self.spread(op, arrays, statics, (*outs, *aux))
            return outs, aux
        beside = self.beside(op, arrays, statics) if by_elements(op) else None
        held = self.temporaries(op, arrays, made) if beside is None else ()
        found = tuple(self.make(op, m) for m in made)
        self.doubt(found)
        self.spread(op, arrays, statics, found)
        self.judge(op, arrays, statics, found)
        self.tally.work(beside or 0 if op.needed is None else op.needed(arrays, statics), op.name)
        del held
        if op.out_count is None:
            return found, ()
        return found[: op.out_count], found[op.out_count :]

    def again(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Any, ...]:
        """As `results`, of an operator that runs once more for what it made."""
        used = self.tally.uses(arrays)
        outs, aux = self.results(op, arrays, statics)
        self.tally.worked(FORWARD_WORK, op.name, self.counted(op, arrays, statics), used, (*arrays, *outs, *aux))
        return outs, aux

    def in_blocks(self, name: str, flops: int, arrays: Any, held: int) -> None:
        """Note what makes, of so many operations, its results of arrays a block at a time, and the bytes of a block."""
        self.tally.worked(FORWARD_WORK, name, flops, self.tally.uses(arrays), arrays)
        self.tally.work(held, name)

    def doubt(self, arrays: tuple[Any, ...]) -> None:
        """Note that the values of these arrays are not those of a run."""
        for x in arrays:
            if isinstance(x, ndarray) and x.nbytes < LARGE:
                enter(self.unknown, x)

    def is_unknown(self, x: Array) -> bool:
        """Whether the values of an operand are not those of a run."""
        return isinstance(x, ndarray) and (x.nbytes >= LARGE or is_in(self.unknown, x))

    def has_values(self, x: Array) -> bool:
        """Whether an operand is computed with: it is small, or what `spread` gave values."""
        return size_of(x) < LARGE or is_in(self.picked, x)

    def spread(self, op: Op, arrays: list[Any], statics: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """Spread what an operator picked, and remember it and what is computed of such alone."""
        at = spread(op, arrays, statics, outs)
        if at is not None:
            enter(self.picked, outs[at])
        elif self.picked and all(is_in(self.picked, x) for x in arrays if self.is_unknown(x)):
            for x in outs:
                if isinstance(x, ndarray):
                    enter(self.picked, x)

    def judge(self, op: Op, arrays: list[Any], statics: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """Have bools that are not computed be what zeros make: `isfinite(x).all()` holds of them, and so does `x >= 0`."""
        if not (op.elementwise or op.name in WHOLE) or not any(x.dtype == bool for x in outs):
            return
        given = [self.one(x) if isinstance(x, ndarray) else x for x in arrays]
        if any(x is None for x, y in zip(given, arrays, strict=True) if y is not None):
            return
        for x, whole in zip(outs, flat(compute(op, given, statics)), strict=False):
            if x.dtype == bool and whole.all():
                if x.nbytes < LARGE:
                    x[...] = True
                else:
                    enter(self.true, x)

    def one(self, x: Array) -> Array | None:
        """An array of one element with the value that all of an operand are taken to have; None where they differ."""
        if x.nbytes >= LARGE:
            return np.full((1,) * x.ndim, is_in(self.true, x), x.dtype)
        first: Array = x[(slice(1),) * x.ndim]
        return first if x.size and (x == first).all() else None

    def reuses(self, t: Any, g: Any) -> bool:
        """Whether what a formula on arrays writes over a temporary of its own is that one: large ones of one dtype and shape."""
        x, y = t._held, raw(g)
        return (
            self.on_arrays
            and x.nbytes >= LARGE
            and (x.dtype == y.dtype or x.dtype.kind == "c")
            and np.broadcast_shapes(x.shape, np.shape(y)) == x.shape
        )

    def looked(self, array: Array) -> None:
        """The program reads values, or has a size depend on them: note where, if they are not those of a run."""
        if self.is_unknown(array) and not is_in(self.picked, array):
            line = caller.line()
            self.read[line] = self.read.get(line, 0) + 1

    def standing(self, shape: int | Sequence[int], dtype: np.dtype[Any] | type[Any]) -> Array:
        """An array that stands for one of this shape and dtype."""
        made = standin((shape,) if isinstance(shape, int) else shape, dtype)
        self.tally.add(made)
        return made

    def planned(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> Any:
        """What a rule says that `op` makes: None where it is to be computed."""
        if op.made is not None:
            made = op.made(arrays, statics)
        else:
            made = self.elementwise(op, arrays, statics) if op.elementwise and not op.view else None
        if made is None or not all(self.has_values(x) for x in arrays):
            return made
        most = SEEN if any(size_of(x) and is_in(self.picked, x) for x in arrays) else LARGE
        return made if max((m.nbytes for m in made), default=0) >= most else None

    def elementwise(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> list[Made] | None:
        """Of an elementwise operator: the broadcast shape, and dtypes found with arrays of one element."""
        shapes = [x.shape for x in arrays if hasattr(x, "shape")]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            return None  # computing it raises the right error
        known = self.dtypes_of(op, arrays, statics)
        kinds = [kind for kind in known if kind is not None]
        if len(kinds) < len(known):
            return None
        leader = next((x for x in arrays if isinstance(x, ndarray) and x.shape == shape and 0 not in x.strides), None)
        order = None if leader is None else order_of(leader)
        return [Made(shape, kind, order) for kind in kinds]

    def dtypes_of(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> list[np.dtype[Any] | None]:
        """Those of the results of an elementwise operator, and of auxiliary ones: None for those that are not kept."""
        key = op.name, modes.grad, *(kind_of(x) for x in arrays), repr(statics)
        found = self.kinds.get(key)
        if found is None:
            ones = [np.ones((1,) * x.ndim, x.dtype) if isinstance(x, ndarray) else x for x in arrays]
            outs, aux = compute(op, ones, statics)
            found = self.kinds[key] = [x.dtype if isinstance(x, (ndarray, np.generic)) else None for x in (*outs, *aux)]
        return found

    def make(self, op: Op, made: Made) -> Array:
        array = standin(*made)
        self.tally.add(array, op.name)
        return array

    def beside(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> int | None:
        """The bytes that an operator by elements takes beside its results; None where they cannot be learned.

        A formula on arrays has NumPy's own function of a ufunc, which converts a few elements at a time.
        """
        if self.on_arrays and op.ufunc is not None:
            return 0
        name = op.name, modes.grad, repr(statics)
        found = learned(name, lambda *some: flat(compute(op, list(some), statics)), arrays, leader(arrays))
        return None if found is None else found.beside

    def temporaries(self, op: Op, arrays: list[Any], made: list[Made]) -> list[Any]:
        """The copies of inputs, and of 16-bit results, in the dtype that `op` computes in, to be held as long as it runs."""
        present: list[Any] = [x for x in arrays if isinstance(x, ndarray)]
        wanted = None
        if op.promote is not None and not self.on_arrays:
            target = dtypes.result_dtype([x for x in arrays if x is not None])
            if op.promote == "float" and target.category < dtypes.FLOAT:
                target = dtypes.get_default_dtype()
            wanted = target.numpy
        if op.half is not None and any(x.dtype in HALVES for x in present):
            if goes_in_blocks(op):
                return []
            wanted = np.dtype(np.float32)
            present = [x for x in (*present, *made) if x.dtype in HALVES]
        if wanted is None:
            return []
        return [self.make(op, Made(x.shape, wanted)) for x in present if x.dtype != wanted and x.nbytes >= LARGE]

    def computed(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Any, Any]:
        """Run `op` for real: on small arrays, as a view, or because there is no rule."""
        if not op.view and not all(self.has_values(x) for x in arrays):
            self.ran[op.name] = self.ran.get(op.name, 0) + 1
        outs, aux = compute(op, arrays, statics)
        for x in (*outs, *aux):
            if isinstance(x, ndarray):
                self.tally.add(x, op.name)
        return outs, aux

    # As the general path of operators does it -----------------------------------------------------------

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run `op` and record it."""
        if op.view and isinstance(flat[0], Tensor) and (flat[0]._bits or op.turns):
            return call.signed_view(op, flat, statics)
        arrays, _ = call.arrays_of(op, unsigned(flat))
        for x in arrays:
            if isinstance(x, ndarray):
                self.tally.add(x)
        used = self.tally.uses(arrays)
        outs, aux = self.results(op, arrays, statics)
        flops = 0 if op.view else self.counted(op, arrays, statics)
        if not op.view:
            self.tally.worked(FORWARD_WORK, op.name, flops, used, (*arrays, *outs, *aux))
        results = tuple(wrap(x) for x in outs)
        if modes.inference or (op.view and flat[0]._inference):
            call.mark_inference(op, flat[0], results, statics)
        elif op.view:
            call.track_views(op, flat[0], results, statics)
        if modes.grad and op.formulas:
            call.record(op, flat, statics, results, aux)
            self.noted(op, results, flops)
        return results[0] if op.out_count == 1 else results

    def counted(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> int:
        """The floating-point operations of a product; 0 of what only passes over memory."""
        return int(op.cost(arrays, statics)) if op.cost is not None and op.counted is not None else 0

    def noted(self, op: Op, results: tuple[Tensor, ...], flops: int) -> None:
        """Count what the node of a result saves as activations; remember what the call cost."""
        node = getattr(results[0]._edge, "node", None) if results else None
        if node is None or getattr(node, "plan", None) is None or node.plan.op is not op:
            return
        if flops:
            self.flops[node] = flops
        for array in saved_arrays(node):
            self.tally.add(array)
            self.tally.categorize(array, ACTIVATION)

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run the in-place form of `op`."""
        target = flat[0]
        arrays, _ = call.arrays_of(op, unsigned(flat))
        mask, edges = call.edges_of(op, flat) if modes.grad and op.formulas else (0, ())
        inplace.check(target, bool(mask))
        if mask and 0 in op.plan(mask, len(flat)).save_inputs:
            original = wrap(like(target._held))
            self.tally.add(original._array, op.name)
            original._edge = edges[0]
            flat = (original, *(original if x is target else x for x in flat[1:]))
        used = self.tally.uses(arrays)
        if target._bits and target.nbytes < LARGE:
            aux = call.store_signed(op, target, arrays, statics)
        else:
            aux = self.stored(op, target._held, arrays, statics)
        self.true.pop(id(root_of(target._held)), None)
        if any(self.is_unknown(x) for x in arrays):
            self.doubt((target._held,))
        self.tally.worked(FORWARD_WORK, op.name, self.counted(op, arrays, statics), used, (target._held, *arrays, *aux))
        node = None
        if mask:
            node = call.make_node(op, flat, statics, edges, mask, aux)
            node.shape, node.dtype = target._held.shape, target._held.dtype
        inplace.written(target, f"{op.name.rstrip('_')}_")
        if node is not None:
            inplace.rebase(target, node)
            node.outs = call.save_outputs(node, (target,))
            for array in saved_arrays(node):
                self.tally.categorize(array, ACTIVATION)
        return target

    def stored(self, op: Op, target: Any, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Any, ...]:
        """The auxiliary results of `op` stored into `target`; the bytes of a result on the side are counted."""
        if all(size_of(x) < LARGE for x in arrays):
            return call.store(op, target, arrays, statics)
        fits = op.ufunc is not None and target.dtype not in HALVES and call.fits_into(op.ufunc, target, arrays)
        if fits or op.direct:
            return ()
        if op.into is None:
            outs, aux = self.results(op, arrays, statics)
            call.check_cast(op.name, outs[0], target)
            return aux
        made = self.planned(op, arrays, statics)
        if made is None:
            return call.store(op, target, arrays, statics)
        return tuple(self.make(op, m) for m in made[1:])


def by_elements(op: Op) -> bool:
    """Whether each element of what an operator makes, or reduces to a loss, is of those at its place alone."""
    return op.elementwise or op.cut or op.batch is families.pairs_of_elements


def leader(arrays: Sequence[Any]) -> Any:
    """The operand whose order results are in: the first of their shape."""
    given = [x for x in arrays if isinstance(x, ndarray)]
    shape = np.broadcast_shapes(*(x.shape for x in given))
    return next((x for x in given if x.shape == shape and 0 not in x.strides), np.broadcast_to(np.empty(()), shape))


def flat(computed: tuple[tuple[Any, ...], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Results and auxiliary results, those that are no arrays left out."""
    return tuple([x for some in computed for x in some if isinstance(x, ndarray)])


def unsigned(flat: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs with stand-ins for the copies that are computed with where tensors have bits."""
    return tuple([wrap(like(x._held)) if isinstance(x, Tensor) and x._bits and x.nbytes >= LARGE else x for x in flat])


def size_of(x: Array) -> int:
    """Bytes of an array, 0 of anything else."""
    return int(x.nbytes) if isinstance(x, ndarray) else 0


def kind_of(x: Array | float) -> Any:
    """What decides the dtype of results: the dtype and whether it is 0-d, or the type of a number."""
    return (x.dtype, x.ndim) if isinstance(x, ndarray) else type(x)


def spread(op: Op, arrays: list[Any], statics: tuple[Any, ...], outs: tuple[Any, ...]) -> int | None:
    """Have what an operator picked of values that are not known be each place as often, and not the first alone: which result it is.

    Rows of a mixture of experts, say: the first two of eight would get all of them.
    """
    if "indices" not in op.out_names or "dim" not in op.static_names or not arrays[0].ndim:
        return None
    at, dim = op.out_names.index("indices"), statics[op.static_names.index("dim")]
    out = outs[at]
    if out.nbytes >= SEEN or not isinstance(dim, int):
        return None
    laid = np.moveaxis(out, dim, -1) if out.ndim == arrays[0].ndim else out
    laid[...] = np.arange(out.size).reshape(laid.shape) % max(arrays[0].shape[dim], 1)
    return at


def enter(table: dict[int, Any], x: Array) -> None:
    """Put the owner of an array's memory into a table, until it ends."""
    root = root_of(x)
    key = id(root)
    table[key] = weakref.ref(root, lambda _: table.pop(key, None))


def is_in(table: dict[int, Any], x: object) -> bool:
    """Whether the owner of an operand's memory is in a table."""
    if not table or not isinstance(x, ndarray):
        return False
    found = table.get(id(root_of(x)))
    return found is not None and found() is root_of(x)
