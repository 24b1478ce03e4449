"""Large linear layers whose result is made when somebody looks at it: see `dispatch.keeping.unmade`."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.state import modes
from rushlight.dispatch import fast
from rushlight.dispatch.declare import Op
from rushlight.dispatch.formats import contiguous_format
from rushlight.dispatch.keeping.deferring import Taking, of_product, of_view
from rushlight.dispatch.keeping.rebuilt import switch
from rushlight.dispatch.keeping.unmade import (
    Outlined,
    Product,
    UnmadeStorage,
    place_of,
    rehearsed,
    rows_of,
    shaped,
    told,
    usual,
)
from rushlight.dispatch.memory_views import view_at
from rushlight.engine.node import Severed, edge_of
from rushlight.kernels.dispatch import widened
from rushlight.levels import owned
from rushlight.ops.elementwise.convert import cast, copy
from rushlight.ops.elementwise.convert import unmade as late_casts
from rushlight.ops.shape.reshape import reshape_op
from rushlight.overrides.protocol import INERT
from rushlight.storage import UNSEEN, bytes_before, is_exposed, root_of
from rushlight.tensor import LEAF, Tensor, bare

BFLOAT16 = dtypes.bfloat16.numpy
FLOATS = (np.dtype(np.float32), np.dtype(np.float64), BFLOAT16)


class Limits:
    """From how many classes, and bytes of a result, on it is worth waiting."""

    classes, nbytes = 4096, 1 << 25


limits = Limits()
looked: dict[int, Any] = {}  # by id: weak references to weights whose products are looked at after all
plans: dict[Any, Taking] = {}
tables: dict[Any, dict[int, Any]] = {}


def unmade_mm(op: Op, input: Tensor, mat2: Tensor, shape: tuple[int, ...] | None = None) -> Tensor | None:
    """The product of matrices (M, K), (K, N), in another shape, as a tensor that is not made yet; None where it is to be made."""
    if not isinstance(input, Tensor) or not isinstance(mat2, Tensor):
        return None
    found = unmade_product(op, (input, mat2), (input._array, mat2._array), True)
    if found is not None and shape is not None:
        found = found.view(shape)
        found._view = None  # as `reshaped` does: nobody has the matrix
    return found


def unmade_product(op: Op, operands: tuple[Any, ...], arrays: tuple[Any, ...], columns: bool = False) -> Tensor | None:
    """The result of `op`, a linear layer, as a tensor that is not made yet; None where it is to be made at once.

    operands: input (*, K), weight (N, K), or (K, N) for columns, and bias (N) or None; arrays: theirs.
    """
    x, w = arrays[:2]
    script = w
    shape = (*x.shape[:-1], w.shape[1 if columns else 0])
    if math.prod(shape) * x.itemsize < limits.nbytes or not switch.on or not usual():
        return None
    if any(x.__class__ not in INERT for x in operands) or looked_at(w) or (modes.levels and owned(operands)):
        return None
    if modes.autocast is not None:
        operands = tuple(modes.autocast("lower", x) for x in operands)
        arrays = tuple(None if x is None else x._array for x in operands)
    if not all(map(ordinary, operands, arrays)) or any(a is not None and a.dtype != arrays[0].dtype for a in arrays):
        return None
    edges = [None if t is None else t._edge if t._view is None else edge_of(t) for t in operands]
    if all(e is None for e in edges) or any(e.__class__ is Severed for e in edges):
        return None
    level = rehearsed()
    try:
        made_of = tuple(map(kept, arrays)) if level is None else arrays
        product = Product(op.forward if level is None else by_shapes(op), made_of, shape, lambda: look_at(script))
    except OSError:  # not even addresses
        return None
    product.columns, product.wanted = columns, [e is not None for e in edges]
    product.comes_from(arrays)
    ends = tuple(t if e is LEAF else e for t, e in zip(operands, edges, strict=True))
    with Outlined(product):
        found: Tensor = told(op, operands, (), placed, op, operands, ends, product)
    if level is not None:
        level.noted(op, (found,), level.counted(op, arrays, ()))
    return found


def unmade_cast(input: Any, dtype: np.dtype[Any]) -> Tensor | None:
    """A product of bfloat16 in float32, as a tensor that is not made yet either; None where it is to be made."""
    place = place_of(input)
    if place is None or input._edge is None or not usual() or dtype != np.float32 or place.outline.dtype != BFLOAT16:
        return None
    product, outline = place.product, place.outline
    if outline.nbytes != product.outline.nbytes or bytes_before(outline) or 0 in outline.strides:
        return None
    level = rehearsed()

    def made(*of: Any) -> Any:
        if not of:
            product.make()
            of = (product.made,)
        return widened(*of) if level is None else level.again(cast.op, [*of], (dtype,))[0][0]

    try:
        later = Product(made, (), product.outline.shape, dtype=dtype, of=product)
    except OSError:
        return None
    with Outlined(product):
        found: Tensor = told(cast.op, (input,), (dtype,), converted, later, input, outline, dtype)
    if level is not None:
        level.noted(cast.op, (found,), 0)
    return found


def converted(later: Product, input: Tensor, outline: Array, dtype: np.dtype[Any]) -> Tensor:
    """The tensor on a product in another dtype, in the graph and laid out as `cast` does it."""
    whole = later.outline
    if outline.shape != whole.shape or outline.strides != tuple(
        s * outline.itemsize // dtype.itemsize for s in whole.strides
    ):
        whole = view_at(whole, outline.shape, tuple(s * dtype.itemsize // outline.itemsize for s in outline.strides), 0)
    return copied(cast.op, later, input, (dtype,), whole)


late_casts["cast"] = unmade_cast


def unmade_copy(op: Any, input: Any, statics: tuple[Any, ...], shape: tuple[int, ...]) -> Tensor | None:
    """Whole rows of what is not made, copied by `op` into `shape`, in memory's order: not made either; None where it is to be made."""
    place = place_of(input)
    if place is None or input._edge is None or not usual() or not 1 < len(shape) or not 1 < place.outline.ndim:
        return None
    product, outline = place.product, place.outline
    rows = rows_of(np.moveaxis(outline, -1, 1), product)
    if rows is None or shape[-1] != outline.shape[-1] or (product.known is not None):
        return None
    level = rehearsed()

    def made(*of: Any) -> Any:
        if not of:
            product.make()
            of = (product.made,)
        seen = view_at(of[0], outline.shape, outline.strides, bytes_before(outline))
        return op.forward(seen, *statics) if level is None else level.again(op, [seen], statics)[0][0]

    try:
        later = Product(made, (), shape, dtype=outline.dtype, of=product)
    except OSError:
        return None
    later.rows = rows
    with Outlined(product):
        found: Tensor = told(op, (input,), statics, copied, op, later, input, statics)
    if level is not None:
        level.noted(op, (found,), 0)
    return found


def copied(op: Any, later: Product, input: Tensor, statics: tuple[Any, ...], outline: Any = None) -> Tensor:
    """The tensor on a copy, or on its `outline`, in the graph as `op` puts it there."""
    t = bare()
    t._array, t._edge, t._view = later.outline if outline is None else outline, None, None
    t._storage = UnmadeStorage(later)
    fast.record(op, tables.setdefault(op, {}), t, (input,), statics, (edge_of(input),), 1, None)
    t._edge.plan = of_view(t._edge.plan)
    return later.take(t)


def unmade_contiguous(input: object, outline: Array) -> Tensor | None:
    """`input.contiguous()`, where that copies."""
    return unmade_copy(copy.op, input, (contiguous_format,), outline.shape)


def unmade_clone(input: object, outline: Array) -> Tensor | None:
    """`input.clone()`, where that lies in memory's order."""
    ordered = all(s >= t for s, t in pairwise(outline.strides))
    return unmade_copy(copy.op, input, (None,), outline.shape) if ordered else None


shaped.update(reshape=partial(unmade_copy, reshape_op.op), contiguous=unmade_contiguous, clone=unmade_clone)


def by_shapes(op: object) -> Callable[..., Any]:
    """What makes a result in an estimate, in place of the operator's forward."""
    return lambda *arrays: rehearsed().again(op, arrays, ())[0][0]


def placed(op: Any, operands: tuple[Any, ...], edges: tuple[Any, ...], product: Product) -> Tensor:
    """The tensor on a product, in the graph as `op` puts it there."""
    t = bare()
    t._array, t._edge, t._view = product.outline, None, None
    t._storage = UnmadeStorage(product)
    mask = sum(1 << i for i, e in enumerate(edges) if e is not None)
    fast.record(op, tables.setdefault(op, {}), t, operands, (), edges, mask, None)
    node = t._edge
    node.plan = plans.get(node.plan) or plans.setdefault(node.plan, Taking(node.plan, of_product))
    return product.take(t)


def ordinary(tensor: Tensor, array: Array) -> bool:
    """Whether an operand's memory is its own, so that whoever changes it says so; also of none."""
    if tensor is None:
        return True
    if tensor._unusual or tensor._meta or tensor._spread or tensor._tangents is not None:
        return False
    plain: bool = array.__class__ is np.ndarray and array.dtype in FLOATS
    return plain and (rehearsed() is not None or not is_exposed(array))


def kept(array: Any) -> Any:
    """An operand to be made of later: a copy of what is so small that nobody knows who sees it."""
    return array if array is None or root_of(array).nbytes >= UNSEEN else array.copy(order="K")


def look_at(weight: Array) -> None:
    """Note that the products of a weight are looked at: they are made at once from now on."""
    root = root_of(weight)
    key = id(root)
    looked[key] = weakref.ref(root, lambda _: looked.pop(key, None))


def looked_at(weight: Array) -> bool:
    """Whether they were."""
    root = root_of(weight)
    found = looked.get(id(root))
    return found is not None and found() is root
