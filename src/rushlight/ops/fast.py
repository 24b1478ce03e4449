"""Calling an operator in the usual case: no mode is unusual, and the tensors are float32 or float64.

Everything else goes to `call.apply`; what these functions leave out is only what cannot matter in that case.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rushlight.engine import inplace
from rushlight.engine.node import edge_of, next_seq
from rushlight.engine.saved import Constant, SavedOutput
from rushlight.engine.views import make_view
from rushlight.ops.call import (
    OPERANDS,
    aliases,
    apply,
    check_single_writes,
    fits_into,
    mark_inference,
    shape_of,
    write_out,
)
from rushlight.ops.compute import check_broadcast
from rushlight.ops.plan import OpNode, Plan
from rushlight.state import modes, special
from rushlight.storage import Storage
from rushlight.tensor import LEAF, Tensor

ndarray = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
new = object.__new__
NOTHING = (None,) * 16


def slow(op: Any, inputs: tuple[Any, ...], out: Any, statics: tuple[Any, ...] = ()) -> Any:
    """The general path from a fast one."""
    if out is not None and not statics and computed_into(op, inputs, out):
        return out
    result = apply(op, inputs, statics)
    return result if out is None else write_out(op.name, out, result)


def computed_into(op: Any, inputs: tuple[Any, ...], out: Any) -> bool:
    """Compute straight into `out`, without a temporary, and say whether dtypes, shapes and modes allowed that."""
    alone = op.into is not None and len(inputs) == 1
    if not isinstance(out, Tensor) or modes.levels or modes.observers or op.promote not in ("arith", "float"):
        return False
    target, arrays = out._array, [x._array if isinstance(x, Tensor) else x for x in inputs]
    if not (alone or op.ufunc is not None) or (target.dtype is not F32 and target.dtype is not F64):
        return False
    if modes.grad and any(isinstance(x, Tensor) and x.requires_grad for x in (out, *inputs)):
        return False  # the general path raises
    if not fits_into(op.ufunc, target, arrays) or out._inference:
        return False
    check_single_writes(op.name, target)
    if alone:
        np.copyto(target, arrays[0])
        op.into(op.backend, target)
    else:
        getattr(np, op.ufunc)(*arrays, out=target)
    inplace.written(out, op.name)
    return True


def runner(op: Any) -> Any:
    """The forward of an operator on arrays, without the backend among its arguments."""
    return getattr(np, op.ufunc) if op.ufunc is not None else partial(op.forward, op.backend)


def fixed(op: Any) -> Any:
    """The public function of an operator on a fixed number of tensors, with statics and one output."""
    forward, be, n, count = op.forward, op.backend, len(op.tensors), len(op.names)
    names, aux_names, view, bind, free, same = op.names, op.aux, op.view, op.bind, op.free, op.promote is not None
    defaults = [op.defaults.get(name, bind) for name in names]  # `bind` stands for none: it is no default of anything
    optional = next((i for i in range(count) if all(d is not bind for d in defaults[i:])), count)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = len(args)
        if kwargs or given > count or given < optional:
            out = kwargs.pop("out", None)
            inputs, statics = bind(args, kwargs)
            if out is not None:
                return slow(op, inputs, out, statics)
        else:
            if given < count:
                args = (*args, *defaults[given:])
            inputs, statics = args[:n], args[n:]
        arrays, edges, mask, raw, kind = [], [], 0, True, None
        bit = 1
        for x in inputs:
            edge = None
            if isinstance(x, Tensor):
                if special.count:  # modes are about tensors: formulas that run on arrays do not ask
                    return slow(op, inputs, None, statics)
                a, raw = x._array, False
                edge = x._edge if x._view is None else edge_of(x)
                if edge is not None:
                    mask |= bit
                    edge = x if edge is LEAF else edge
            elif x.__class__ is ndarray:
                a = x
            elif x is None:
                a = None
            else:
                return slow(op, inputs, None, statics)
            if a is not None and a.dtype is not kind and not bit & free:
                d = a.dtype
                if (d is not F32 and d is not F64) or (same and kind is not None):
                    return slow(op, inputs, None, statics)
                kind = d
            arrays.append(a)
            edges.append(edge)
            bit += bit
        try:
            result = forward(be, *arrays, *statics)
        except ValueError:
            if op.elementwise:
                check_broadcast(op.name, arrays)
            raise
        if aux_names:
            result, aux = result[0], result[1:]
        else:
            aux = None
        if result.__class__ is not ndarray:
            result = np.asarray(result)
        if raw:
            return result
        t = new(Tensor)
        t._array = result
        t._edge = t._storage = t._view = None
        if view and inputs[0].__class__ is not ndarray:
            note_view(op, t, inputs[0], statics)
        if mask and op.formulas:
            record_fixed(op, t, inputs, statics, edges, mask, aux)
        return t

    return call


def note_view(op: Any, t: Tensor, of: Tensor, statics: tuple[Any, ...]) -> None:
    """Note that `t` is a view of `of`, unless the operator had to copy."""
    if of._inference:
        mark_inference(op, of, (t,), statics)
    elif aliases(t._array, of._array):
        make_view(t, of, op, statics, None, "")


def record_fixed(op: Any, t: Tensor, inputs: tuple[Any, ...], statics: tuple[Any, ...], edges: list[Any], mask: int,
                 aux: Any) -> None:  # fmt: skip
    """Put the result of `fixed` into the graph."""
    targets = op.target_mask
    if mask & ~targets:
        mask &= targets
        if not mask:
            return
        edges = [e if targets >> i & 1 else None for i, e in enumerate(edges)]
    result = t._array
    if result.dtype.kind in "biu":
        return
    plan = op.plan(mask, len(inputs))
    node = op.node_type()()
    node.seq, node.extra, node.plan, node.statics = next_seq(), None, plan, statics
    node.edges = tuple(edges)
    node.shape, node.dtype = result.shape, result.dtype
    node.versions = node.outs = None
    node.aux = aux if plan.save_aux else None
    node.shapes = tuple([shape_of(x) for x in inputs]) if plan.needs_shapes else None
    if plan.save_inputs:
        saved: list[Any] = [None] * len(inputs)
        for i in plan.save_inputs:
            x = inputs[i]
            if isinstance(x, Tensor):
                saved[i] = x
                if x._storage is not None and x._storage.version:
                    if node.versions is None:
                        node.versions = [0] * len(inputs)
                    node.versions[i] = x._storage.version
            elif x is not None:
                saved[i] = Constant(x)
        node.saved = saved
    else:
        node.saved = NOTHING[: len(inputs)]
    if plan.save_outs:
        if t._storage is None:
            t._storage = Storage(result)
        node.outs = (SavedOutput(t, 0),)
    t._edge = node


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
            plan, slim, full = Plan(op, 1, 1, real=True), op.node_subclass(OpNode), op.node_type()
        keeps = plan.save_outs or plan.needs_shapes
        node = full() if keeps else slim()
        node.seq, node.extra, node.plan = next_seq(), None, plan
        node.edges = (input if edge is LEAF else edge,)
        node.shape, node.dtype = result.shape, d
        storage = input._storage
        node.versions = (storage.version,) if storage is not None and plan.save_inputs else None
        node.saved = (input,) if plan.save_inputs else (None,)
        if keeps:
            keep_rest(node, t, (array.shape,))
        t._edge = node
        return t

    return call


def of_operator(op: Any, inputs: tuple[Any, ...], out: Any) -> Any:
    """The general path of a Python operator, which leaves foreign operands to their own class."""
    if not isinstance(inputs[0], Tensor):
        raise TypeError(f"the operator of Tensor does not apply to a {type(inputs[0]).__name__!r} object")
    if isinstance(inputs[1], OPERANDS):
        return apply(op, inputs, ())
    return NotImplemented


def binary(op: Any, slow: Any = slow) -> Any:
    """The public function of an elementwise operator on two tensors, or a tensor and a number, without statics.

    slow: what is called where the fast path does not apply.
    """
    run, floats, strict = runner(op), op.promote in ("arith", "float"), op.strict
    table: list[Any] = [None] * 4

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
        found = table[mask] or (floats and entry(op, table, mask))
        if not found:
            return t
        plan, node_type, first, second, keeps = found
        node = node_type()
        node.seq, node.extra, node.plan = next_seq(), None, plan
        node.edges = (input if ex is LEAF else ex, other if ey is LEAF else ey)
        node.shape, node.dtype = result.shape, d
        node.versions = None
        second_tensor = second and y is not other
        if (first and input._storage is not None) or (second_tensor and other._storage is not None):
            node.versions = (input._version if first else 0, other._version if second_tensor else 0)
        node.saved = (input if first else None, (other if y is not other else Constant(y)) if second else None)
        if keeps:
            keep_rest(node, t, (x.shape, shape_of(other)))
        t._edge = node
        return t

    return call


def entry(op: Any, table: list[Any], mask: int) -> Any:
    """What `binary` does for the inputs in `mask`: plan, class of node, what it keeps; None without a gradient."""
    if not op.formulas:
        return None
    plan = Plan(op, mask, 2, real=True)
    wanted, keeps = plan.save_inputs, bool(plan.save_outs or plan.needs_shapes)
    if op.slim_class is None:
        op.slim_class = op.node_subclass(OpNode)
    table[mask] = plan, op.node_type() if keeps else op.slim_class, 0 in wanted, 1 in wanted, keeps
    return table[mask]


def keep_rest(node: Any, t: Tensor, shapes: Any) -> None:
    """Fill in what a full node has beside a slim one."""
    node.statics, node.aux, node.outs, node.shapes = (), None, None, shapes
    if node.plan.save_outs:
        t._storage = Storage(t._array)
        node.outs = (SavedOutput(t, 0),)
