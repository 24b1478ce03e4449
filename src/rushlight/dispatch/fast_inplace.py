"""Changes in place in the usual case: of a float32 or float64 tensor, or of 16 bits as they are, in no unusual mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.dtypes import HALVES
from rushlight.basics.state import RECORDED, special, unkept, way_of
from rushlight.dispatch.compute import held
from rushlight.engine import inplace
from rushlight.engine.node import Severed, edge_of, next_seq
from rushlight.engine.saved import Constant
from rushlight.kernels.native.ufuncs import DTYPES
from rushlight.kernels.rows import LARGE
from rushlight.storage import dependents
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op
    from rushlight.dispatch.plan import FullNode

F32, F64, I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
BEYOND = 1 << 63


def written_at_once(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> bool:
    """Change the first of `inputs` by `op.into` in the usual case, where nothing is to be recorded; whether it was."""
    way, target = way_of(inputs) if special.count else RECORDED, inputs[0]
    if not way or dependents or "f" in op.refuse or op.sequence is not None:
        return False
    arrays = []
    for x in inputs:
        if isinstance(x, Tensor):
            if x._unusual or (way is RECORDED and x.requires_grad):
                return False
            arrays.append(x._array)
        elif x is None or (x.__class__ in PLAIN and not op.strict):
            arrays.append(x)
        else:
            return False
    x = arrays[0]
    if (x.dtype is not F32 and x.dtype is not F64 and not (op.half is None and x.dtype in HALVES)) or 0 in x.strides:
        return False
    inplace.keep_result(target)
    if op.aux and op.planes:
        unkept(op.into, *arrays, *statics)
    else:
        op.into(*arrays, *statics)
    inplace.written(target, op.writes)
    return True


PLAIN = (float, int, bool)


def changed_at_once(op: Op, ufunc: str, target: Tensor, other: Any) -> bool:
    """Change a tensor by a ufunc of it and another or a number in the usual case, recorded or not; whether it was."""
    way = way_of((target, other)) if special.count else RECORDED
    if not way or dependents or target._unusual or op.promote not in ("arith", "float") or "f" in op.refuse:
        return False
    x, tensor = target._array, isinstance(other, Tensor)
    dtype, y = x.dtype, other._array if tensor else other
    number = (y.__class__ is float or y.__class__ is int) and not op.strict
    floats, alike = dtype is F32 or dtype is F64 or dtype in DTYPES[ufunc], getattr(y, "dtype", None) is dtype
    by = held(dtype, y) if number and dtype.itemsize == 2 else y
    whole = dtype is I64 and op.promote == "arith" and "i" not in op.refuse and (alike or is_int64(y))
    if not (whole or (floats and (number or alike))) or by is None or 0 in x.strides:
        return False
    node = None
    if way is RECORDED:
        if tensor and other.requires_grad:
            return False
        if target.requires_grad:
            if special.count:
                return False
            node = recorded(op, target, other, y)
            if node is None:
                return False
    if node is None:
        inplace.keep_result(target)
    try:
        (op.large if op.large is not None and x.nbytes >= LARGE else getattr(backend, ufunc))(x, by, out=x)
    except ValueError:  # the sizes do not fit: the general path raises
        return False
    inplace.written(target, op.writes)
    if node is not None:
        inplace.rebase(target, node, alone=True)
    return True


def is_int64(number: Any) -> bool:
    """Whether a Python number is an integer of 64 bits."""
    return number.__class__ is int and -BEYOND <= number < BEYOND


def recorded(op: Op, target: Tensor, other: Any, y: Any) -> FullNode | None:
    """The node of a change of a tensor that requires grad by one that does not, or a number; None where it saves more than that."""
    plan = op.plan(1, 2)
    if not op.covered & 1 or plan.save_outs or plan.save_aux or 0 in plan.save_inputs or op.heavy:
        return None
    edge = edge_of(inplace.origin(target))
    if edge is None or edge.__class__ is Severed:
        return None
    inplace.check(target, True)
    node = op.new_node()
    node.seq, node.edges, node.extra, node.plan, node.statics = next_seq(), (edge, None), None, plan, ()
    node.saved, node.versions, node.outs, node.aux = (None, None), None, None, None
    if plan.save_inputs:
        if y is other:
            node.saved = None, Constant(y)
        else:
            node.saved = None, other
            if other._storage is not None and other._storage.version:
                node.versions = [0, other._storage.version]
    node.shapes = (target._held.shape, getattr(y, "shape", ())) if plan.needs_shapes else None
    node.shape, node.dtype = target._held.shape, target._held.dtype
    return node
