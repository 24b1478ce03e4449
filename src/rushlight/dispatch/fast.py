"""Calling an operator in the usual case: no mode is unusual, and the tensors are float32 or float64.

Everything else goes to `call.apply`; what these functions leave out is only what cannot matter in that case.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.makers import maker
from rushlight.basics.state import modes
from rushlight.dispatch.call import (
    OPERANDS,
    aliases,
    apply,
    apply_signed,
    check_out,
    check_single_writes,
    fits_into,
    mark_inference,
    same_out,
    shape_of,
    write_out,
)
from rushlight.dispatch.keeping.bits import narrowed
from rushlight.dispatch.keeping.gates import follow
from rushlight.dispatch.keeping.masks import keep_masks
from rushlight.dispatch.keeping.sides import keep_sides
from rushlight.dispatch.keeping.steady import keep_steady
from rushlight.dispatch.quick import applied
from rushlight.engine import inplace
from rushlight.engine.node import next_seq
from rushlight.engine.saved import Constant, SavedOutput
from rushlight.engine.views import make_view
from rushlight.overrides.public import Unnoticed, left_to, retried
from rushlight.signs import turn
from rushlight.storage import Storage, settle
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import OpNode, Plan

ndarray = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
NOTHING = (None,) * 16


def slow(
    op: Op,
    inputs: tuple[Any, ...],
    out: Tensor | None,
    statics: tuple[Any, ...] = (),
    run: Callable[..., Any] = applied,
) -> Any:
    """The general path from a fast one.  run: what takes it."""
    if out is not None:
        check_out(op, out, inputs)
    if out is not None and not statics and computed_into(op, inputs, out):
        return out
    try:
        if out is None:
            return run(op, inputs, statics)
        return write_out(op.name, out, apply(op, inputs, statics), same=same_out(op, inputs))
    except Unnoticed as error:
        public, given = sys._getframe(1).f_globals.get("public"), {} if out is None else {"out": out}
        return retried(public, error, *inputs, *given_statics(op, statics), **given)


def given_statics(op: Op, statics: tuple[Any, ...]) -> tuple[Any, ...]:
    """Static arguments without the last ones that are as by default."""
    count = len(statics)
    while (
        count
        and op.static_names[count - 1] in op.defaults
        and statics[count - 1] is op.defaults[op.static_names[count - 1]]
    ):
        count -= 1
    return statics[:count]


def computed_into(op: Op, inputs: tuple[Any, ...], out: Tensor) -> bool:
    """Compute straight into `out`, without a temporary, and say whether dtypes, shapes and modes allowed that."""
    alone, ufunc = op.into is not None and len(inputs) == 1, op.ufunc or ""
    if not isinstance(out, Tensor) or modes.levels or modes.observers or op.promote not in ("arith", "float"):
        return False
    target, arrays = out._array, [x._array if isinstance(x, Tensor) else x for x in inputs]
    if not (alone or ufunc) or (target.dtype is not F32 and target.dtype is not F64):
        return False
    if modes.grad and any(isinstance(x, Tensor) and x.requires_grad for x in (out, *inputs)):
        return False  # the general path raises
    if not fits_into(ufunc, target, arrays) or out._unusual:
        return False
    if op.strict and not all(isinstance(x, ndarray) for x in arrays):
        return False  # the general path raises
    if op.check is not None:
        op.check(arrays)
    check_single_writes(op.name, target)
    settle(target)
    inplace.keep_result(out)
    if alone:
        np.copyto(target, arrays[0])
        op.into(target)
    else:
        getattr(np, ufunc)(*arrays, out=target)
    inplace.written(out, op.name)
    return True


def note_view(op: Op, t: Tensor, of: Tensor, statics: tuple[Any, ...]) -> None:
    """Note that `t` is a view of `of`, unless the operator had to copy."""
    if of._unusual:
        of_unusual(op, t, of, statics)
    elif aliases(t._array, of._array):
        make_view(t, of, op, statics, None, "")


def of_unusual(op: Op, t: Tensor, of: Tensor, statics: tuple[Any, ...]) -> None:
    """As `note_view`, of a tensor of inference mode or one with bits, for which `t` is made again on its memory."""
    if of._bits:
        made = apply_signed(op, (of,), statics)
        t._array, t._storage, t._view = made._held, made._storage, made._view
        turn(t, made._bits)
    if of._inference:
        mark_inference(op, of, (t,), statics)


def record(op: Op, table: dict[Any, Any], t: Tensor, inputs: tuple[Any, ...], statics: tuple[Any, ...], edges: tuple[Any, ...],
           mask: int, aux: tuple[Array, ...] | None) -> None:  # fmt: skip
    """Put the result of an operator on a fixed number of tensors into the graph; `mask`: the inputs with an edge."""
    result = t._held
    if result.dtype.kind in "biu":
        return
    plan, new_node = table.get(mask) or entry(op, table, mask, len(inputs))
    if plan is None:
        return
    node = new_node()
    node.seq, node.extra, node.plan, node.statics, node.edges = next_seq(), None, plan, statics, edges
    node.shape, node.dtype = result.shape, result.dtype
    node.versions = node.outs = None
    node.aux = (narrowed(op, aux) if op.planes and aux is not None else aux) if plan.save_aux else None
    node.shapes = tuple([shape_of(x) for x in inputs]) if plan.needs_shapes else None
    if plan.save_inputs:
        (op.saver or keep_inputs)(node, inputs, plan.save_inputs, t)
        if op.free:
            keep_masks(node)
        if op.sides is not None:
            keep_sides(node)
        if op.steady:
            keep_steady(node, inputs[0])
    else:
        node.saved = NOTHING[: len(inputs)]
    if plan.save_outs:
        if t._storage is None:
            t._storage = Storage(result)
        node.outs = (SavedOutput(t, 0),)
        if op.gates is not None:
            follow(node, t)
    t._edge = node


def entry(op: Op, table: dict[Any, Any], mask: int, count: int) -> tuple[Plan | None, Callable[[], OpNode] | None]:
    """Plan and maker of the nodes for the inputs in `mask`, kept in `table`; (None, None) without a gradient."""
    covered = mask & op.target_mask
    found = (op.plan(covered, count), maker(op.node_type())) if covered else (None, None)
    table[mask] = found
    return found


def keep_inputs(node: OpNode, inputs: tuple[Any, ...], wanted: tuple[int, ...], t: Tensor | None = None) -> None:
    """Save the wanted inputs and their versions."""
    saved: list[Any] = [None] * len(inputs)
    for i in wanted:
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


def completed(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """All arguments in order, the defaults filled in, and `out`."""
    out = kwargs.pop("out", None)
    inputs, statics = op.bind(args, kwargs)
    return (*inputs, *statics), out


def of_operator(name: str, op: Op, inputs: tuple[Any, ...], out: Tensor | None) -> Any:
    """The general path of the Python operator `name`, which leaves foreign operands to their own class."""
    if not isinstance(inputs[0], Tensor):
        raise TypeError(f"the operator of Tensor does not apply to a {type(inputs[0]).__name__!r} object")
    if isinstance(inputs[1], OPERANDS):
        return applied(op, inputs, ())
    return left_to(name, *inputs)


def keep_rest(node: OpNode, t: Tensor, shapes: tuple[Any, ...]) -> None:
    """Fill in what a full node has beside a slim one."""
    node.statics, node.aux, node.outs, node.shapes = (), None, None, shapes
    if node.plan.save_outs:
        t._storage = Storage(t._array)
        node.outs = (SavedOutput(t, 0),)
        if node.plan.op.gates is not None:
            follow(node, t)
