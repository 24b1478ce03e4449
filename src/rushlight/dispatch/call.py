"""Calling an operator: the general path, correct in every mode, and the fast paths for the usual case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from rushlight.backends.numpy import backend
from rushlight.basics import caller, dtypes
from rushlight.basics.dtype_words import in_c, older
from rushlight.basics.eights import EIGHTS
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes, special, unkept
from rushlight.dispatch.compute import HALVES, check_kind, compute
from rushlight.dispatch.fast_inplace import changed_at_once, written_at_once
from rushlight.dispatch.keeping.bits import narrowed
from rushlight.dispatch.keeping.gates import follow, gates_of, worthwhile
from rushlight.dispatch.keeping.masks import keep_masks
from rushlight.dispatch.keeping.rebuilt import may_rebuild, pass_on, rebuilt, watch
from rushlight.dispatch.keeping.sides import keep_sides
from rushlight.dispatch.keeping.steady import keep_steady, to_pack
from rushlight.dispatch.keeping.watched import note_written
from rushlight.engine import anomaly, inplace
from rushlight.engine.conform import tensor_functions
from rushlight.engine.node import Port, Severed, edge_of, next_seq
from rushlight.engine.saved import (
    Constant,
    Copying,
    DispatchedOutput,
    Packed,
    PackedResults,
    SavedOutput,
    Sparing,
    active_hooks,
)
from rushlight.engine.views import make_view
from rushlight.kernels.dispatch import narrow_into, recast
from rushlight.kernels.pointwise.copies import move
from rushlight.overrides import fitting
from rushlight.overrides.public import unfit
from rushlight.signs import to_hold, turn, turned
from rushlight.storage import InferenceStorage, dependents
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import FullNode, OpNode, Plan

ndarray = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
NUMBERS = (int, float, bool, complex)
OPERANDS = (Tensor, int, float, complex, ndarray, np.generic)
observed: Any = None  # the module of that name, which imports this one and puts itself here


def flatten(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs with the sequence, if the operator has one, unrolled."""
    if op.sequence is None:
        return inputs
    tail = inputs[-1]
    if isinstance(tail, Tensor):
        raise TypeError(f"{op.name}(): argument '{op.tensors[-1]}' must be tuple of Tensors, not Tensor")
    return (*inputs[:-1], *tail)


def arrays_of(op: Op, flat: tuple[Any, ...]) -> tuple[list[Any], bool]:
    """The raw inputs, and whether any was a tensor.  Raises TypeError for what is neither tensor nor number."""
    arrays, tensors, scalars = [], False, False
    for i, x in enumerate(flat):
        if isinstance(x, Tensor):
            arrays.append(x._array)
            tensors = True
            continue
        arrays.append(x)
        if isinstance(x, np.generic):
            scalars = True
        elif x is not None and not isinstance(x, (ndarray, *NUMBERS)):
            raise unfit(x)(
                f"{op.name}(): argument '{op.input_name(i)}' (position {i + 1}) must be Tensor, not {kind_of(x)}"
            )
    if tensors and scalars:  # numbers of NumPy beside tensors are Python's
        pythons = (np.float64, np.complex128) if op.strict else np.number
        arrays = [x.item() if isinstance(x, pythons) else x for x in arrays]
    if op.strict:
        for i, x in enumerate(arrays):
            if isinstance(x, NUMBERS) and not isinstance(x, np.generic):
                raise TypeError(
                    f"{op.name}(): argument '{op.input_name(i)}' (position {i + 1}) must be Tensor, not {kind_of(x)}"
                )
    return arrays, tensors


def apply(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...], watched: bool = True) -> Any:
    """Run `op`: arrays give arrays; tensors give tensors, recorded where any of them requires grad.

    watched: whether observers are told.
    """
    if op.autocast is not None and modes.autocast is not None:
        inputs = tuple([modes.autocast(op.autocast, x) for x in inputs])
    if special.observing and watched:
        return observed.operator(op, inputs, statics)
    flat = flatten(op, inputs)
    if special.classes is not None and special.classes not in modes.levels:
        special.classes.join()
    if special.meta is not None and special.meta.owns(flat):
        return special.meta.apply(op, flat, statics)
    if op.view and isinstance(flat[0], Tensor) and (flat[0]._bits or op.turns):
        return apply_signed(op, flat, statics)
    arrays, tensors = arrays_of(op, flat)
    if tensors and modes.levels:
        for level in reversed(modes.levels):
            if level.owns(flat):
                return level.apply(op, flat, statics)
    if not tensors and not any(isinstance(x, (ndarray, np.generic)) for x in arrays):
        if op.numbers and isinstance(flat[0], NUMBERS):
            kind = dtypes.default_of_category(dtypes.scalar_category(flat[0]))
            return apply(op, (wrap(np.asarray(flat[0], kind.numpy)), *inputs[1:]), statics, watched)
        if op.sequence is not None and not arrays:
            raise RuntimeError(f"{op.name} expects a non-empty TensorList")
        raise TypeError(f"{op.name}(): argument '{op.input_name(0)}' (position 1) must be Tensor, not "
                        f"{kind_of(flat[0])}")  # fmt: skip
    if special.classes is not None and op.view and getattr(arrays[0], "unread", False):
        return special.classes.seen(op, flat, arrays, statics)
    try:
        if op.planes and op.aux and modes.grad and not edges_of(op, flat)[0]:
            outs, aux = unkept(compute, op, arrays, statics)
        else:
            outs, aux = compute(op, arrays, statics)
    except Exception:
        fitting.statics(op, statics)
        raise
    if not tensors:
        return outs[0] if op.out_count == 1 else outs
    return deliver(op, flat, statics, tuple(wrap(x) for x in outs), aux)


def deliver(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], results: tuple[Tensor, ...],
            aux: tuple[Any, ...]) -> Any:  # fmt: skip
    """Note what the results are views of, put them into the graph, and give them back as the operator does."""
    if modes.inference or (op.view and flat[0]._inference):
        mark_inference(op, flat[0], results, statics)
    elif op.view:
        track_views(op, flat[0], results, statics)
    if modes.grad and op.formulas and not (op.view and flat[0]._inference):
        record(op, flat, statics, results, aux)
    return results[0] if op.out_count == 1 else results


def apply_signed(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """Run a view operator that turns bits, or whose input has any: on memory, what it shows being the tensor's business."""
    for level in reversed(modes.levels):
        if level.owns(flat):
            return level.apply(op, flat, statics)
    return signed_view(op, flat, statics)


def signed_view(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """As `apply_signed`, below all levels."""
    of = flat[0]
    bits = of._bits ^ op.turns if op.bits is None else op.bits(of._bits)
    outs = (of._held,) if op.turns else compute(op, [of._held, *flat[1:]], statics)[0]
    results = tuple(turn(wrap(x), bits) if aliases(x, of._held) else wrap(turned(x, bits)) for x in outs)
    return deliver(op, flat, statics, results, ())


def track_views(op: Op, of: Tensor, results: tuple[Tensor, ...], statics: tuple[Any, ...]) -> None:
    """Note which results share the memory of the input."""
    kind = "inference" if modes.inference else "no_grad" if not modes.grad else "multi" if op.out_count is None else ""
    for i, t in enumerate(results):
        if t._dispatched or aliases(t._held, of._held):
            make_view(t, of, op, statics, None if op.out_count == 1 else i, kind)


def mark_inference(op: Op, of: Tensor, results: tuple[Tensor, ...], statics: tuple[Any, ...]) -> None:
    """Make results inference tensors: all that are made in inference mode but views of normal tensors, and views of
    inference tensors anywhere; what is a copy after all, as of `reshape`, is none there."""
    if op.view and not of._inference:
        track_views(op, of, results, statics)
    for t in results:
        if t._view is None and (modes.inference or aliases(t._held, of._held)):
            t._inference = t._unusual = True
            t._storage = InferenceStorage(t._held)


def aliases(result: Array, array: Array) -> bool:
    """Whether `result`, made from `array`, shares its memory."""
    if result is array:
        return True
    base = result.base
    if base is None:
        return False
    return base is array or base is array.base or bool(np.may_share_memory(result, array))


def record(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], results: tuple[Tensor, ...],
           aux: tuple[Any, ...]) -> None:  # fmt: skip
    """Put results into the graph if an input that a formula covers requires grad."""
    mask, edges = edges_of(op, flat)
    if not mask:
        return
    if op.out_count == 1:
        t = results[0]
        if t._held.dtype.kind not in "biu":
            node = make_node(op, flat, statics, edges, mask, aux)
            node.shape, node.dtype = t._held.shape, t._held.dtype
            t._edge = node
            if op.sides is not None:
                keep_sides(node)
            node.outs = save_outputs(node, results)
            if op.cheap:
                watch(node, t)
        return
    differentiable = range(len(results)) if op.out_count is None else op.differentiable
    node = make_node(op, flat, statics, edges, mask, aux)
    node.count = len(results)
    node.shape, node.dtype = [t._held.shape for t in results], [t._held.dtype for t in results]
    if len(results) == 1:  # to the engine a node with one output is its own edge, whatever its operator
        node.shape, node.dtype, results[0]._edge = node.shape[0], node.dtype[0], node
        differentiable = ()
    for k in differentiable:
        if results[k]._held.dtype.kind not in "biu":
            results[k]._edge = Port(node, k)
    node.outs = save_outputs(node, results)
    if op.cheap:
        watch(node, results[0])


def edges_of(op: Op, flat: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
    """The edges of the inputs that formulas cover, and the mask of those that lead somewhere."""
    mask, edges, bit, covered = 0, [], 1, op.covered
    for x in flat:
        edge = None
        if covered & bit and isinstance(x, Tensor):
            edge = edge_of(x)
            if edge is not None:
                mask |= bit
        edges.append(edge)
        bit += bit
    return mask, tuple(edges)


def make_node(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], edges: tuple[Any, ...], mask: int,
              aux: tuple[Any, ...] | None) -> FullNode:  # fmt: skip
    """A node with its inputs saved; shape, dtype and outputs are for the caller to set, and auxiliary results of None."""
    if len(op.targets) > 1:  # as in PyTorch, whose operators of one tensor save in any case
        for i, edge in enumerate(edges):
            if edge.__class__ is Severed:  # a gradient that goes nowhere: nothing is saved for it
                mask &= ~(1 << i)
    plan = op.plan(mask, len(flat))
    node = op.new_node()
    node.seq, node.edges, node.extra, node.plan, node.statics = next_seq(), edges, None, plan, statics
    node.saved, node.versions = save_inputs(plan, flat, statics)
    if plan.save_inputs:
        keep_masks(node)
    if op.steady:
        keep_steady(node, flat[0])
    node.shapes = tuple([shape_of(x) for x in flat]) if plan.needs_shapes else None
    node.aux = save_aux(aux, op) if plan.save_aux and aux is not None else None
    node.outs = None
    if modes.anomaly is not None:
        anomaly.note(node)
    return node


def shape_of(x: Array | Tensor | None) -> tuple[int, ...] | None:
    """The shape of a tensor or array; () of numbers, None of None."""
    return x._held.shape if isinstance(x, Tensor) else None if x is None else getattr(x, "shape", ())


def save_inputs(plan: Plan, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The inputs that the plan's formulas ask for, packed by the active hooks, and their versions."""
    saved: list[Any] = [None] * len(flat)
    versions: list[int] | None = None
    hooks = saved_hooks()
    for i in plan.save_inputs:
        x = flat[i]
        if not isinstance(x, Tensor):
            saved[i] = None if x is None else Constant(x)
            continue
        heavy = plan.op.heavy and x._edge is not None and may_rebuild()
        kept = rebuilt(x, plan.op, flat, statics) if heavy else x
        if hooks and kept is x:
            kept = Packed(to_pack(plan.op, i, x, hooks), hooks, (plan.op.name, plan.op.input_name(i)))
        saved[i] = kept
        storage = x._storage
        if kept is x and storage is not None and storage.version:
            if versions is None:
                versions = [0] * len(flat)
            versions[i] = storage.version
    if plan.op.heavy and 0 not in plan.save_inputs and may_rebuild():
        pass_on(flat[0], plan.op, flat, statics)
    return tuple(saved), versions


def save_aux(aux: tuple[Any, ...], op: Op | None = None) -> PackedResults | tuple[Any, ...]:
    """Auxiliary results, packed by the active hooks."""
    hooks = saved_hooks()
    found = narrowed(op, aux) if op is not None and op.planes else aux
    if not hooks:
        return found
    places = [None] * len(aux) if op is None else [(op.name, name) for name in op.aux]
    kept = found if isinstance(found, PackedResults) else PackedResults(found)
    return kept.replaced(tuple(Packed(wrap(x), hooks, place) if isinstance(x, ndarray) else x
                               for x, place in zip(kept.items, places, strict=True)))  # fmt: skip


def saved_hooks() -> tuple[Any, ...]:
    """The active pack/unpack pairs; raises where saving is disabled."""
    if modes.saved_hooks_disabled is not None and modes.saved_hooks:
        raise RuntimeError(modes.saved_hooks_disabled)
    return active_hooks() if modes.saved_hooks else ()


def save_outputs(node: OpNode, results: tuple[Tensor, ...]) -> list[Packed | SavedOutput | None] | None:
    """The outputs that the plan's formulas ask for, without their edges."""
    wanted = node.plan.save_outs
    if not wanted:
        return None
    hooks = saved_hooks()
    outs: list[Any] = [None] * len(results)
    for k in wanted:
        if len(hooks) == 1 and hooks[0].__class__ is Copying and worthwhile(node, results[k]):
            outs[k] = gates_of(results[k]._held, node)
        elif results[k]._dispatched:
            outs[k] = DispatchedOutput(results[k], k)
        elif hooks:
            outs[k] = Packed(results[k], hooks, (node.plan.op.name, node.plan.op.out_names[k]), True)
        else:
            outs[k] = SavedOutput(results[k], k)
        if node.plan.op.gates and all(isinstance(pair, Sparing) for pair in hooks):
            follow(node, results[k])
    return outs


# In place ------------------------------------------------------------------------------------------


def apply_inplace(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...], watched: bool = True) -> Tensor:
    """Run `op` and store its result in its first input."""
    if special.observing and watched:
        return observed.inplace(op, inputs, statics)
    target = inputs[0]
    if not isinstance(target, Tensor):
        raise TypeError(f"{op.name}_(): argument 'input' (position 1) must be Tensor, not {kind_of(target)}")
    if special.classes is not None and special.classes not in modes.levels:
        special.classes.join()
    if op.ufunc is not None and len(inputs) == 2 and changed_at_once(op, op.ufunc, *inputs):
        return target
    if op.into is not None and written_at_once(op, inputs, statics):
        return target
    flat = flatten(op, inputs)
    if special.meta is not None and special.meta.owns(flat):
        return special.meta.apply_inplace(op, flat, statics)
    arrays, _ = arrays_of(op, flat)
    if modes.levels:
        for level in reversed(modes.levels):
            if level.owns(flat):
                return level.apply_inplace(op, flat, statics)
    return changed(op, flat, statics, lambda: stored(op, target, arrays, statics))


def stored(op: Op, target: Tensor, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Any, ...]:
    """Compute into the memory of `target`; the auxiliary results."""
    if target._bits:
        return store_signed(op, target, arrays, statics)
    return store(op, target._array, arrays, statics)


def changed(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], run: Callable[[], tuple[Any, ...]]) -> Tensor:
    """The first input, which `run` changes as `op` says and gives auxiliary results of, with its new place in the graph."""
    target = flat[0]
    mask, edges = edges_of(op, (inplace.origin(target), *flat[1:])) if modes.grad and op.formulas else (0, ())
    if mask and target._held.dtype.kind in "biu":
        mask = 0  # what is rounded to integers depends on nothing
    inplace.check(target, bool(mask))
    if not op.one_value and not target._dispatched:
        check_single_writes(op.name, target._held)
    original = None
    if mask and True in [flat[i] is target for i in op.plan(mask, len(flat)).save_inputs]:
        original = special.classes.copied(target) if target._dispatched else wrap(target._array.copy())
        original._edge = edge_of(target)
        flat = (original, *(original if x is target else x for x in flat[1:]))
    if mask:  # what it saves is packed as it is now: an operand may lie on the memory that changes
        node = make_node(op, flat, statics, edges, mask, None)
        node.shape, node.dtype = target._held.shape, target._held.dtype
        if dependents and node.plan.save_inputs:
            inplace.tell_of_operands(target, flat)
    aux = unkept(run) if op.planes and op.aux and not mask and not modes.levels else run()
    if mask and node.plan.save_aux:
        node.aux = save_aux(aux, op)
    inplace.written(target, op.writes)
    if mask:
        inplace.rebase(target, node)
        node.outs = save_outputs(node, (target,))
        if dependents and op.again:
            note_written(node, target._held)
    return target


def store(op: Op, target: Any, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Any, ...]:
    """Compute into `target`, without a temporary where the operator is a ufunc of matching dtypes."""
    if op.refuse:
        check_kind(op, arrays)
    if op.ufunc is not None and target.dtype not in HALVES and target.dtype.kind in "fc" and target.dtype.num < 256:
        if op.promote in ("arith", "float") and fits_into(op.ufunc, target, arrays):
            getattr(backend, op.ufunc)(*arrays, out=target)
            return ()
    direct = op.half is None and not dtypes.is_complex_half(target.dtype) and target.dtype not in EIGHTS
    if op.into is not None and (direct or target.dtype is F32 or target.dtype is F64):
        others = arrays[1:] if op.sequence is None else [*arrays[1 : op.sequence], tuple(arrays[op.sequence :])]
        made = op.into(target, *others, *statics)
        return made if made.__class__ is tuple else ()
    outs, aux = compute(op, arrays, statics)
    write(op.name, target, outs[0])
    return aux


def store_signed(op: Op, target: Tensor, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Any, ...]:
    """As `store`, into a tensor with bits: into a copy of what it shows, and from there into its memory."""
    arrays[0] = own = turned(target._held, target._bits)
    aux = store(op, own, arrays, statics)
    target._held[...] = turned(own, target._bits)
    return aux


def fits_into(ufunc: str | None, target: Array, arrays: list[Any]) -> bool:
    """Whether a ufunc of these arrays and numbers has results of the shape and dtype of `target`."""
    if ufunc == "negative" and not target.flags.forc:
        return False  # NumPy 2.4 puts them elsewhere where the strides of `out` are 16 (float32) or 64 bytes (float64)
    shape, dtype, alike = target.shape, target.dtype, True
    for x in arrays:
        if x.__class__ is ndarray:
            if x.dtype is not dtype and x.dtype != dtype:
                return False
            alike = alike and x.shape == shape
        elif not isinstance(x, NUMBERS) or (isinstance(x, complex) and dtype.kind != "c"):
            return False
    if alike:
        return True
    try:
        return bool(np.broadcast_shapes(*(np.shape(x) for x in arrays)) == shape)
    except ValueError:
        return False  # the general path raises


def check_cast(name: str, value: Array, target: Array, out: bool | str = False) -> None:
    """Raise RuntimeError, TypeError for what joins tensors, if results of the dtype of `value` may not be stored in `target`.

    out: whether that is an argument of this name, or what it is called.
    """
    have, want = dtypes.of(value.dtype), dtypes.of(target.dtype)
    if not dtypes.can_cast(have, want):
        error = TypeError if name in JOINS else RuntimeError
        words = f"result type {older(have)} can't be cast to the desired output type {older(want)}"
        if out and (name in SAFELY or isinstance(out, str)):
            what = SAFELY.get(name, out)
            words = f"Expected {what} to be safely castable from {older(have)} dtype, but got {what} with dtype {older(want)}"
        elif out:
            words = f"Expected out tensor to have dtype {in_c(have)}, but got {in_c(want)} instead: {words}"
        raise error(f"{name}: {words}")


# Functions of `linalg` that speak of their result where others speak of what `out` is.
SAFELY = dict.fromkeys(
    "pinv cond matrix_power matrix_rank tensorinv tensorsolve householder_product cholesky_solve "
    "cholesky_inverse".split(),
    "result",
) | {"eigvals": "eigenvalues"}
JOINS = frozenset("cat concat concatenate stack hstack vstack row_stack dstack column_stack".split())


def write(name: str, target: Array, value: Array) -> None:
    """Copy a result into `target`, checking that dtype and shape allow it."""
    check_cast(name, value, target)
    if value.shape != target.shape:
        raise RuntimeError(f"{name}: output with shape {list(target.shape)} doesn't match the broadcast shape "
                           f"{list(value.shape)}")  # fmt: skip
    if target.dtype in HALVES and value.dtype.kind in "fiu" and value.dtype != target.dtype:
        narrow_into(value, target)
        return
    move(recast(value, target.dtype) if target.dtype in EIGHTS else value, target)


def check_single_writes(name: str, array: Array) -> None:
    """Raise RuntimeError where several elements of `array` are one memory location."""
    if (
        array.size
        and 0 in array.strides
        and any(n > 1 and s == 0 for n, s in zip(array.shape, array.strides, strict=True))
    ):
        raise explained(
            RuntimeError(
                f"{name}: unsupported operation: more than one element of the written-to tensor refers to a single memory "
                "location. Please clone() the tensor before performing the operation."
            ),
            "overlapping-memory",
        )


def check_overlaps(name: str, out: object, inputs: Iterable[object]) -> None:
    """Raise RuntimeError where `out` shares a part of its memory with an input, and is not the same elements."""
    if not isinstance(out, Tensor) or out._meta or modes.levels:
        return
    for x in inputs:
        if isinstance(x, Tensor) and x is not out and not x._meta and _partly(x._held, out._held):
            raise explained(
                RuntimeError(
                    f"{name}: unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory location. Please clone() the tensor before performing the operation."
                ),
                "overlapping-memory",
            )


def check_out(op: Op, out: Tensor, inputs: tuple[Any, ...]) -> None:
    """Raise TypeError where an operator has no keyword `out`, RuntimeError where that lies on a part of an input."""
    if not op.takes_out:
        raise no_out(op.name)
    if op.elementwise:
        check_overlaps(op.name, out, inputs)


def same_out(op: Op, inputs: tuple[Any, ...]) -> bool:
    """Whether `out` is to be of the dtype of an operator's result."""
    if op.same_out != "real":
        return bool(op.same_out)
    x = inputs[0]
    return bool((x._held if isinstance(x, Tensor) else x).dtype.kind != "c")


def no_out(name: str) -> TypeError:
    """What is raised for the keyword `out` of a function, or of one of its forms, that has none."""
    return TypeError(f"{name}() got an unexpected keyword argument 'out'")


def _partly(a: Array, b: Array) -> bool:
    """Whether two arrays without gaps share memory otherwise than element by element: what has gaps is not looked into."""
    if not (a.size and b.size and np.may_share_memory(a, b) and _dense(a) and _dense(b)):
        return False
    return byte_bounds(a)[0] != byte_bounds(b)[0] or _steps(a) != _steps(b)


def _steps(array: Array) -> list[tuple[int, int]]:
    """Sizes and strides of the dimensions that lead anywhere, strides in elements."""
    return [(n, s // array.itemsize) for n, s in zip(array.shape, array.strides, strict=True) if n > 1]


def _dense(array: Array) -> bool:
    low, high = byte_bounds(array)
    return bool(high - low == array.nbytes and 0 not in array.strides)


# The public function ----------------------------------------------------------------------------------------


def general(op: Op) -> Callable[..., Any]:
    """The public function of an operator of any signature."""
    bind, n, count, sequence = op.bind, len(op.tensors), len(op.names), op.sequence

    def call(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if kwargs else None
        if kwargs or len(args) != count:
            inputs, statics = bind(args, kwargs)
        else:
            inputs, statics = args[:n], args[n:]
        if sequence is None and out is None and inputs[0].__class__ is ndarray:
            for x in inputs:
                if isinstance(x, Tensor):
                    break
            else:
                outs, _ = compute(op, list(inputs), statics)
                return outs[0] if op.out_count == 1 else outs
        if out is None:
            return apply(op, inputs, statics)
        check_out(op, out, inputs)
        return write_out(op.name, out, apply(op, inputs, statics), same=same_out(op, inputs))

    return call


def by_function(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """As `apply`, by the public function of an operator of as many inputs: usual cases are specialised there."""
    return op.call(*inputs, *statics)


def write_out(name: str, out: Tensor | tuple[Tensor, ...], result: Any, warns: bool = True, same: bool = False) -> Any:
    """Store a result (or each of several) in `out`, which takes its shape.

    warns: of elements that are lost by that.  same: only where it is of the result's dtype.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors")
        fields = getattr(result, "_fields", None) if name == "eig" else None  # which speaks of each
        if fields:
            for what, o, r in zip(fields, out, result, strict=True):
                check_cast(name, r._held, o._held, what)
        made = [write_out(name, o, r, warns, same) for o, r in zip(out, result, strict=True)]
        return type(result)(*made) if hasattr(result, "_fields") else tuple(made)
    if not isinstance(out, Tensor):
        raise unfit(out)(f"{name}(): argument 'out' must be Tensor, not {kind_of(out)}")
    if out._meta is not result._meta:
        raise RuntimeError(f"{name}(): Attempting to copy from device {result.device} to device {out.device}, but cross-device "
                           "copies are not allowed!")  # fmt: skip
    if same and out._held.dtype != result._held.dtype:
        raise RuntimeError(
            f"{name}(): Expected out tensor to have dtype {in_c(result.dtype)}, but got {in_c(out.dtype)} instead"
        )
    if modes.levels and any(getattr(t._held, "interpreted", False) for t in (out, result)):
        raise RuntimeError(f"{name}(): out= is not possible inside a function being vmapped: use what it returns")
    if modes.grad and (out.requires_grad or result.requires_grad):
        raise explained(RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the arguments requires grad."), "out-and-grad")  # fmt: skip
    if modes.levels and (result._tangents or out._tangents):
        raise NotImplementedError(f"Trying to use forward AD with {name}_out that does not support it because it is an out= "
                                  "function: assign its result, or use copy_().")  # fmt: skip
    if out._dispatched or result._dispatched:
        return out.copy_(result)
    inplace.check(out, False)
    check_cast(name, result._held, out._held, out=True)
    if out._held.shape != result._held.shape:
        if out._held.size and warns:
            caller.warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
                f"match the required output shape {list(result.shape)}.")  # fmt: skip
        tensor_functions["resize_like"](out, result._held)
    if out._meta:  # which has a shape alone
        return out
    check_single_writes(name, out._held)
    if modes.mutation is not None:
        modes.mutation.before_change(out)
    value = result._array
    check_cast(name, value, out._held, out=True)
    write(name, out._held, to_hold(out, value))
    inplace.written(out, name)
    return out
