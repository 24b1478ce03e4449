"""Calling an operator: the general path, correct in every mode, and the fast paths for the usual case."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.engine import anomaly, inplace
from rushlight.engine.node import Port, edge_of, next_seq
from rushlight.engine.saved import Constant, Packed, SavedOutput, active_hooks
from rushlight.engine.views import make_view
from rushlight.ops.compute import HALVES, check_broadcast, compute
from rushlight.ops.plan import OpNode
from rushlight.state import modes, special
from rushlight.storage import InferenceStorage, Storage, root_of
from rushlight.tensor import LEAF, Tensor, wrap

ndarray = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
NUMBERS = (int, float, bool, complex)
OPERANDS = (Tensor, int, float, complex, ndarray, np.generic)
new = object.__new__


def flatten(op: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs with the sequence, if the operator has one, unrolled."""
    if op.sequence is None:
        return inputs
    tail = inputs[-1]
    if isinstance(tail, Tensor):
        raise TypeError(f"{op.name}(): argument '{op.tensors[-1]}' must be tuple of Tensors, not Tensor")
    return (*inputs[:-1], *tail)


def arrays_of(op: Any, flat: tuple[Any, ...]) -> tuple[list[Any], bool]:
    """The raw inputs, and whether any was a tensor.  Raises TypeError for what is neither tensor nor number."""
    arrays, tensors = [], False
    for i, x in enumerate(flat):
        if isinstance(x, Tensor):
            arrays.append(x._array)
            tensors = True
        elif x is None or isinstance(x, (ndarray, np.generic, *NUMBERS)):
            arrays.append(x)
        else:
            raise TypeError(
                f"{op.name}(): argument '{op.input_name(i)}' (position {i + 1}) must be Tensor, not {type(x).__name__}"
            )
    if op.strict:
        for i, x in enumerate(arrays):
            if isinstance(x, NUMBERS) and not isinstance(x, np.generic):
                raise TypeError(
                    f"{op.name}(): argument '{op.input_name(i)}' (position {i + 1}) must be Tensor, not "
                    f"{type(x).__name__}"
                )
    return arrays, tensors


def apply(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """Run `op`: arrays give arrays; tensors give tensors, recorded where any of them requires grad."""
    flat = flatten(op, inputs)
    arrays, tensors = arrays_of(op, flat)
    if tensors and modes.levels:
        for level in reversed(modes.levels):
            if level.owns(flat):
                return level.apply(op, flat, statics)
    if not tensors and not any(isinstance(x, (ndarray, np.generic)) for x in arrays):
        if op.sequence is not None and not arrays:
            raise RuntimeError(f"{op.name}(): expected a non-empty list of Tensors")
        raise TypeError(f"{op.name}(): argument '{op.input_name(0)}' (position 1) must be Tensor, not "
                        f"{type(flat[0]).__name__}")  # fmt: skip
    outs, aux = compute(op, arrays, statics)
    if not tensors:
        return outs[0] if op.out_count == 1 else outs
    results = tuple(wrap(x) for x in outs)
    if modes.inference:
        for t in results:
            t._inference = True
            t._storage = InferenceStorage(t._array)
    elif op.view:
        track_views(op, flat[0], results, statics)
    if modes.grad and op.formulas:
        record(op, flat, statics, results, aux)
    for observer in modes.observers:
        observer(op, flat, statics, results)
    return results[0] if op.out_count == 1 else results


def track_views(op: Any, of: Tensor, results: tuple[Tensor, ...], statics: tuple[Any, ...]) -> None:
    """Note which results share the memory of the input."""
    root = root_of(of._array)
    kind = "no_grad" if not modes.grad else "multi" if op.out_count is None else ""
    for i, t in enumerate(results):
        if t._array.base is not None and (root_of(t._array) is root or np.may_share_memory(t._array, of._array)):
            step = partial(op.call, **dict(zip(op.static_names, statics, strict=True)))
            make_view(t, of, step if op.out_count == 1 else partial(nth, step, i), kind)
        elif t._array is of._array:
            t._array = of._array.view()
            make_view(t, of, partial(op.call, **dict(zip(op.static_names, statics, strict=True))), kind)


def nth(step: Any, i: int, x: Any) -> Any:
    """One of several views."""
    return step(x)[i]


def record(op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...], results: tuple[Tensor, ...],
           aux: tuple[Any, ...]) -> None:  # fmt: skip
    """Put results into the graph if an input that a formula covers requires grad."""
    mask, edges = edges_of(op, flat)
    if not mask:
        return
    if op.out_count == 1:
        t = results[0]
        if t._array.dtype.kind not in "biu":
            node = make_node(op, flat, statics, edges, mask, aux)
            node.shape, node.dtype = t._array.shape, t._array.dtype
            t._edge = node
            node.outs = save_outputs(node, results)
        return
    differentiable = range(len(results)) if op.out_count is None else op.differentiable
    node = make_node(op, flat, statics, edges, mask, aux)
    node.count = len(results)
    node.shape, node.dtype = [t._array.shape for t in results], [t._array.dtype for t in results]
    if len(results) == 1:  # to the engine a node with one output is its own edge, whatever its operator
        node.shape, node.dtype, results[0]._edge = node.shape[0], node.dtype[0], node
        differentiable = ()
    for k in differentiable:
        if results[k]._array.dtype.kind not in "biu":
            results[k]._edge = Port(node, k)
    node.outs = save_outputs(node, results)


def edges_of(op: Any, flat: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
    """The edges of the inputs that formulas cover, and the mask of those that lead somewhere."""
    mask, edges = 0, []
    targets, sequence = op.targets, op.sequence
    for i, x in enumerate(flat):
        edge = None
        covered = i in targets if sequence is None or i < sequence else sequence in targets
        if covered and isinstance(x, Tensor):
            edge = edge_of(x)
            if edge is not None:
                mask |= 1 << i
        edges.append(edge)
    return mask, tuple(edges)


def make_node(op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...], edges: tuple[Any, ...], mask: int,
              aux: tuple[Any, ...]) -> Any:  # fmt: skip
    """A node with its inputs saved; shape, dtype and outputs are for the caller to set."""
    plan = op.plan(mask, len(flat))
    node = new(op.node_type())
    node.seq, node.edges, node.extra, node.plan, node.statics = next_seq(), edges, None, plan, statics
    node.saved, node.versions = save_inputs(plan, flat)
    node.shapes = tuple([shape_of(x) for x in flat]) if plan.needs_shapes else None
    node.aux = aux if plan.save_aux else None
    node.outs = None
    if modes.anomaly is not None:
        anomaly.note(node)
    return node


def shape_of(x: Any) -> Any:
    """The shape of a tensor or array; () of numbers, None of None."""
    return x._array.shape if isinstance(x, Tensor) else None if x is None else getattr(x, "shape", ())


def save_inputs(plan: Any, flat: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The inputs that the plan's formulas ask for, packed by the active hooks, and their versions."""
    saved: list[Any] = [None] * len(flat)
    versions: list[int] | None = None
    hooks = saved_hooks()
    for i in plan.save_inputs:
        x = flat[i]
        if not isinstance(x, Tensor):
            saved[i] = None if x is None else Constant(x)
            continue
        if hooks:
            saved[i] = Packed(x, hooks)
            continue
        saved[i] = x
        storage = x._storage
        if storage is not None and storage.version:
            if versions is None:
                versions = [0] * len(flat)
            versions[i] = storage.version
    return tuple(saved), versions


def saved_hooks() -> Any:
    """The active pack/unpack pairs; raises where saving is disabled."""
    if modes.saved_hooks_disabled is not None and modes.saved_hooks:
        raise RuntimeError(modes.saved_hooks_disabled)
    return active_hooks() if modes.saved_hooks else ()


def save_outputs(node: Any, results: tuple[Tensor, ...]) -> Any:
    """The outputs that the plan's formulas ask for, without their edges."""
    wanted = node.plan.save_outs
    if not wanted:
        return None
    hooks = saved_hooks()
    outs: list[Any] = [None] * len(results)
    for k in wanted:
        outs[k] = Packed(results[k], hooks) if hooks else SavedOutput(results[k], k)
    return outs


# In place ------------------------------------------------------------------------------------------


def apply_inplace(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Tensor:
    """Run `op` and store its result in its first input."""
    target = inputs[0]
    if not isinstance(target, Tensor):
        raise TypeError(f"{op.name}_(): argument 'input' (position 1) must be Tensor, not {type(target).__name__}")
    flat = flatten(op, inputs)
    arrays, _ = arrays_of(op, flat)
    if modes.levels:
        for level in reversed(modes.levels):
            if level.owns(flat):
                return level.apply_inplace(op, flat, statics)  # type: ignore[no-any-return]
    mask, edges = edges_of(op, flat) if modes.grad and op.formulas else (0, ())
    inplace.check(target, bool(mask))
    check_single_writes(op.name, target._array)
    original = None
    if mask and 0 in op.plan(mask, len(flat)).save_inputs:
        original = wrap(target._array.copy())
        original._edge = edges[0]
        flat = (original, *(original if x is target else x for x in flat[1:]))
    aux = store(op, target._array, arrays, statics)
    if mask:
        node = make_node(op, flat, statics, edges, mask, aux)
        node.shape, node.dtype = target._array.shape, target._array.dtype
    inplace.written(target, f"{op.name}_")
    if mask:
        inplace.rebase(target, node)
        node.outs = save_outputs(node, (target,))
    return target


def store(op: Any, target: Any, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[Any, ...]:
    """Compute into `target`, without a temporary where the operator is a ufunc of matching dtypes."""
    if op.ufunc is not None and target.dtype not in HALVES and target.dtype.kind in "fc":
        same = all(isinstance(x, NUMBERS) or (x.__class__ is ndarray and x.dtype == target.dtype) for x in arrays)
        if same and op.promote in ("arith", "float"):
            real = target.dtype.kind == "c" or not any(isinstance(x, complex) for x in arrays)
            if real and np.broadcast_shapes(*(np.shape(x) for x in arrays)) == target.shape:
                getattr(op.backend, op.ufunc)(*arrays, out=target)
                return ()
    if op.into is not None and (op.half is None or target.dtype is F32 or target.dtype is F64):
        others = arrays[1:] if op.sequence is None else [*arrays[1 : op.sequence], tuple(arrays[op.sequence :])]
        return op.into(op.backend, target, *others, *statics) or ()
    outs, aux = compute(op, arrays, statics)
    write(op.name, target, outs[0])
    return aux


def check_cast(name: str, value: Any, target: Any) -> None:
    """Raise RuntimeError if results of the dtype of `value` may not be stored in `target`."""
    have, want = dtypes.of(value.dtype), dtypes.of(target.dtype)
    if not dtypes.can_cast(have, want):
        raise RuntimeError(f"{name}: result type {have.name} can't be cast to the desired output type {want.name}")


def write(name: str, target: Any, value: Any) -> None:
    """Copy a result into `target`, checking that dtype and shape allow it."""
    check_cast(name, value, target)
    if value.shape != target.shape:
        raise RuntimeError(f"{name}: output with shape {list(target.shape)} doesn't match the broadcast shape "
                           f"{list(value.shape)}")  # fmt: skip
    target[...] = value


def check_single_writes(name: str, array: Any) -> None:
    """Raise RuntimeError where several elements of `array` are one memory location."""
    if 0 in array.strides and any(n > 1 and s == 0 for n, s in zip(array.shape, array.strides, strict=True)):
        raise RuntimeError(
            f"{name}: unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


# Fast paths ----------------------------------------------------------------------------------------


def general(op: Any) -> Any:
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
        result = apply(op, inputs, statics)
        return result if out is None else write_out(op.name, out, result)

    return call


def write_out(name: str, out: Any, result: Any) -> Any:
    """Store a result (or each of several) in `out`, which takes its shape."""
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors")
        made = [write_out(name, o, r) for o, r in zip(out, result, strict=True)]
        return type(result)(*made) if hasattr(result, "_fields") else tuple(made)
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if modes.grad and (out.requires_grad or result.requires_grad):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the arguments requires grad.")  # fmt: skip
    if out._array.shape != result._array.shape:
        if out._array.size:
            import warnings

            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
                f"match the required output shape {list(result.shape)}.", UserWarning, stacklevel=3)  # fmt: skip
        out._array, out._storage = np.empty(result._array.shape, out._array.dtype), None
    write(name, out._array, result._array)
    inplace.written(out, name)
    return out


def slow(op: Any, inputs: tuple[Any, ...], out: Any) -> Any:
    """The general path from a fast one."""
    result = apply(op, inputs, ())
    return result if out is None else write_out(op.name, out, result)


def runner(op: Any) -> Any:
    """The forward of an operator on arrays, without the backend among its arguments."""
    return getattr(np, op.ufunc) if op.ufunc is not None else partial(op.forward, op.backend)


def unary(op: Any) -> Any:
    """The public function of an elementwise operator on one tensor without statics."""
    run = runner(op)
    plan: Any = None
    slim: Any = None
    full: Any = None

    def call(input: Any, *, out: Any = None) -> Any:
        nonlocal plan, slim, full
        if input.__class__ is ndarray and (input.dtype is F32 or input.dtype is F64):
            result = run(input)
            return result if result.__class__ is ndarray else np.asarray(result)
        if special.count or out is not None or not isinstance(input, Tensor):
            return slow(op, (input,), out)
        array = input._array
        d = array.dtype
        if d is not F32 and d is not F64:
            return slow(op, (input,), out)
        result = run(array)
        if result.__class__ is not ndarray:
            result = np.asarray(result)
        t = new(Tensor)
        t._array = result
        t._edge = t._storage = t._view = None
        edge = input._edge if input._view is None else edge_of(input)
        if edge is None or not op.formulas:
            return t
        if plan is None:
            plan, slim, full = op.plan(1, 1), op.node_subclass(OpNode), op.node_type()
        keeps = plan.save_outs or plan.needs_shapes
        node = full() if keeps else slim()
        node.seq, node.extra, node.plan = next_seq(), None, plan
        node.edges = (input if edge is LEAF else edge,)
        node.shape, node.dtype = result.shape, d
        storage = input._storage
        node.versions = (storage.version,) if storage is not None and plan.save_inputs else None
        node.saved = (input,) if plan.save_inputs else (None,)
        if keeps:
            node.statics, node.aux, node.outs = (), None, None
            node.shapes = (array.shape,)
            if plan.save_outs:
                t._storage = Storage(result)
                node.outs = (SavedOutput(t, 0),)
        t._edge = node
        return t

    return call


def of_operator(op: Any, inputs: tuple[Any, ...], out: Any) -> Any:
    """The general path of a Python operator, which leaves foreign operands to their own class."""
    if isinstance(inputs[1], OPERANDS):
        return apply(op, inputs, ())
    return NotImplemented


def binary(op: Any, slow: Any = slow) -> Any:
    """The public function of an elementwise operator on two tensors, or a tensor and a number, without statics.

    slow: what is called where the fast path does not apply.
    """
    run, floats, strict = runner(op), op.promote in ("arith", "float"), op.strict
    table: list[Any] = [None] * 4
    slim: Any = None
    full: Any = None

    def entry(mask: int) -> Any:
        """The plan for the inputs in `mask` and what it keeps; None if the operator has no gradient."""
        nonlocal slim, full
        if not floats or not op.formulas:
            return None
        if slim is None:
            slim, full = op.node_subclass(OpNode), op.node_type()
        plan = op.plan(mask, 2)
        wanted = plan.save_inputs
        table[mask] = found = (plan, 0 in wanted, 1 in wanted, bool(plan.save_outs or plan.needs_shapes))
        return found

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        if special.count or out is not None or not isinstance(input, Tensor):
            return slow(op, (input, other), out)
        x = input._array
        d = x.dtype
        if d is not F32 and d is not F64:
            return slow(op, (input, other), out)
        if isinstance(other, Tensor):
            y = other._array
            if y.dtype is not d:
                return slow(op, (input, other), out)
            ey = other._edge if other._view is None else edge_of(other)
        elif (other.__class__ is float or other.__class__ is int) and not strict:
            y, ey = other, None
        else:
            return slow(op, (input, other), out)
        try:
            result = run(x, y)
        except ValueError:
            check_broadcast(op.name, (x, y))
            raise
        if result.__class__ is not ndarray:
            result = np.asarray(result)
        t = new(Tensor)
        t._array = result
        t._edge = t._storage = t._view = None
        ex = input._edge if input._view is None else edge_of(input)
        if ex is None:
            if ey is None:
                return t
            mask = 2
        else:
            mask = 1 if ey is None else 3
        found = table[mask] or entry(mask)
        if found is None:
            return t
        plan, first, second, keeps = found
        node = full() if keeps else slim()
        node.seq, node.extra, node.plan = next_seq(), None, plan
        node.edges = (input if ex is LEAF else ex, other if ey is LEAF else ey)
        node.shape, node.dtype = result.shape, d
        node.versions = None
        second_tensor = second and y is not other
        if (first and input._storage is not None) or (second_tensor and other._storage is not None):
            node.versions = (input._version if first else 0, other._version if second_tensor else 0)
        node.saved = (input if first else None, (other if y is not other else Constant(y)) if second else None)
        if keeps:
            node.statics, node.aux, node.outs = (), None, None
            node.shapes = (x.shape, shape_of(other))
            if plan.save_outs:
                t._storage = Storage(result)
                node.outs = (SavedOutput(t, 0),)
        t._edge = node
        return t

    return call
