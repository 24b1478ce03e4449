"""The cross entropy of logits that are not made yet: of a product that nobody has looked at, a few rows at a time.

Each block of logits gives its losses, and where gradients are wanted its part of the gradients of the product, and is forgotten. So
between forward and backward are the gradients of the product, up to a factor, in place of the logits, and no product is made
twice.  Where somebody looks after all (at the logits or their gradient, for second derivatives), they are made then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.arrays import Array
from rushlight.basics.state import Setting, modes
from rushlight.dispatch.call import make_node
from rushlight.dispatch.keeping.deferring import OfRows, Taking
from rushlight.dispatch.keeping.unmade import Outlined, Product, place_of, rehearsed, rows_of, told, usual
from rushlight.engine.node import edge_of
from rushlight.engine.saved import freed
from rushlight.kernels.dispatch import blocks_of_rows, rounded, widened
from rushlight.kernels.products import work_of_halves
from rushlight.levels import owned
from rushlight.ops.elementwise.floats import wide
from rushlight.ops.loss.cross_entropy import by_class, check_target, cross_entropy_op, over, unmade
from rushlight.storage import root_of
from rushlight.tensor import Tensor, wrap

BLOCK = 1 << 23  # logits at once, unless that is under 256 rows
WIDER = 6  # times as many of 16 bits, at most a quarter: each product of these packs the whole weight
CLASSES = 4096  # rows of the weight's gradient that are added at once


class Ready:
    """What a loss found of a product: the sums of its losses, and the gradients of the product by the loss's sum.

    product: that makes logits, which `shown` has in another dtype or some rows of; own: the rows in that. grads:
        those of input, weight and bias, None where not wanted. denominator: two numbers a row, which the gradient of logits
        needs.
    """

    def __init__(
        self, product: Product, rows: Array, target: Array, weight: Array | None, ignore: int, smoothing: float
    ):
        self.shown, self.own = product, rows
        self.product, rows = product.first(rows)
        x, w, _ = operands = self.product.operands()
        count, dtype = math.prod(x.shape[:-1]), wide(w.dtype)
        self.classes = len(w)
        self.rows = None if len(rows) == count and np.array_equal(rows, np.arange(count)) else rows
        self.target, self.weight, self.ignore, self.smoothing = target, weight, ignore, smoothing
        self.given: tuple[Any, ...] = ()  # the arrays of target and weight
        self.denominator, self.sums = np.empty((len(target), 2), dtype), np.zeros(2)
        level = rehearsed()
        make: Any = np.zeros if level is None else level.standing
        self.grads: Any = [make(operand.shape, dtype if i else w.dtype) if wanted else None
                           for i, (operand, wanted) in enumerate(zip(operands, self.product.wanted, strict=False))]  # fmt: skip
        if level is not None:
            self.rehearse(level)
        else:
            for at in self.blocks():
                self.add(at, x.reshape(count, -1), w)
        if dtype != w.dtype:  # what was added up in float32
            self.round(w.dtype)

    def round(self, dtype: np.dtype[Any]) -> None:
        """Have the gradients in 16 bits."""
        level = rehearsed()
        for i, g in enumerate(self.grads):
            if g is not None and g.dtype != dtype:
                self.grads[i] = rounded(g, dtype) if level is None else level.standing(g.shape, dtype)

    def rehearse(self, level: Any) -> None:
        """What an estimate has to know of the work."""
        w = self.product.operands()[1]
        arrays = [x for x in (*self.product.arrays, *self.grads) if x is not None]
        packed = work_of_halves(w.dtype, self.size(), *w.T.shape) if w.itemsize == 2 else 0
        flops = 2 * len(self.target) * w.size * (1 + sum(self.product.wanted[:2]))
        level.in_blocks(
            "cross_entropy", flops, arrays, w.itemsize * (self.size() * self.classes + CLASSES * w.shape[1]) + packed
        )
        self.sums[:] = len(self.target)

    def size(self) -> int:
        """How many rows are worked on together."""
        count = len(self.target)
        most = max(256, BLOCK // max(self.classes, 1))
        if self.product.outline.itemsize == 2:
            most = max(most, min(WIDER * most, -(-count // 4)))
            most = -(-count // -(-count // most)) if count else most  # blocks of a size
        return min(most, count)

    def blocks(self) -> Iterator[slice]:
        """The slices of rows that are worked on together."""
        size = self.size()
        return (slice(i, i + size) for i in range(0, len(self.target), size))

    def of(self, rows: Array, at: slice) -> Array:
        """Some rows of what has one for each row of the product."""
        return rows[at] if self.rows is None else rows[self.rows[at]]

    def logits(self, at: slice) -> Array:
        """Some rows of the logits, to be written over."""
        known = self.shown.known  # not what the product became since it was converted or copied
        if known is not None:
            return known.reshape(-1, self.classes)[self.own[at]]
        x, w, b = self.product.operands()
        rows = self.of(x.reshape(-1, x.shape[-1]), at)
        if b is not None and w.itemsize == 2:
            return backend.matmul(rows, w.T, None, b)
        out = backend.matmul(rows, w.T)
        if b is not None:
            backend.add_row(out, b)
        return out

    def add(self, at: slice, x: Array, w: Array) -> None:
        """Add what some rows contribute."""
        z = self.logits(at)
        _, self.denominator[at], sums = backend.cross_entropy(
            z, self.target[at], self.weight, self.ignore, self.smoothing
        )
        self.sums += sums
        self.slope(z, at)
        input, weight, *bias = self.grads
        if input is not None:
            input.reshape(x.shape)[at if self.rows is None else self.rows[at]] = backend.matmul(z, w)
        if weight is not None:
            some = self.of(x, at)
            for c in range(0, len(w), CLASSES):
                weight[c : c + CLASSES] += in_float32(backend.matmul(z[:, c : c + CLASSES].T, some))
        for total in [b for b in bias if b is not None]:
            for few in blocks_of_rows(z):
                total += backend.sum_rows(widened(z[few]) if z.itemsize == 2 else z[few])

    def slope(self, z: Array, at: slice) -> Array:
        """The gradient of the sum of losses by some logits, written over them."""
        found: Array = backend.cross_entropy_backward(np.ones(1, z.dtype), z, self.denominator[at], self.target[at],
                                                      self.weight, self.ignore, self.smoothing, z)  # fmt: skip
        return found

    def gradients(self, scale: object) -> list[Any]:
        """The product's gradients, times a number: given away, unless the graph is to be used again."""
        found = self.grads
        if modes.run is None or modes.run.keep:
            found = [None if g is None else self.times(g, scale) for g in found]
        else:
            self.grads = None
            for g in found:
                if g is not None and scale != 1 and rehearsed() is None:
                    multiplied(g, scale, g)
        return [g.T if i == 1 and g is not None and self.product.columns else g for i, g in enumerate(found)]

    def times(self, g: Array, scale: object) -> Array:
        """A gradient times a number, in memory of its own."""
        level = rehearsed()
        return multiplied(g, scale, np.empty_like(g)) if level is None else level.standing(g.shape, g.dtype)

    def whole(self, scale: Any, shape: tuple[int, ...]) -> Array:
        """The gradient of the logits (N, C, *) of the loss, times a number: in memory after all."""
        out = np.empty((len(self.target), self.classes), self.shown.outline.dtype)
        for at in self.blocks():
            z = self.logits(at)
            multiplied(self.slope(z if z.dtype == out.dtype else widened(z), at), scale, out[at])
        return by_class(out, shape)


def in_float32(part: Array) -> Array:
    """A product to be added up: of 16 bits in float32."""
    return widened(part) if part.itemsize == 2 else part


def multiplied(x: Array, by: Any, out: Array) -> Array:
    """An array times a number, into `out` of its dtype; 16-bit ones through float32, some rows at a time."""
    if x.itemsize > 2:
        return np.multiply(x, by, out=out)
    rows, into = (y.reshape(len(y), -1) if y.ndim > 1 else y.reshape(1, -1) for y in (x, out))
    for some in blocks_of_rows(rows):
        part = widened(rows[some])
        rounded(np.multiply(part, by, out=part), x.dtype, into[some])
    return out


class Found(tuple[Any, ...]):
    """The auxiliary results of the loss, with what it found of the product."""

    ready: Ready

    @property
    def held(self) -> list[Array]:
        """What it keeps beside."""
        return [g for g in self.ready.grads or () if g is not None]


def of_loss(usual: Any, wanted: int, node: Any, g: Array) -> Any:
    """The gradient of logits as what their product's gradients are; what is saved is looked at as ever."""
    if node.saved is None:
        freed(node)
    (denominator, total), edge = node.aux, node.edges[0]
    if not wanted & 1 or not total or g.__class__ is not np.ndarray or not as_found(node, node.aux.ready):
        return usual(node, g)
    scale = (g.reshape(()) / g.dtype.type(total)).astype(denominator.dtype)
    return [OfRows(node.aux.ready, scale, edge.shape, edge.dtype, edge.shape), None, None]


def as_found(node: Any, ready: Ready) -> bool:
    """Whether what a loss saved is what it was computed of: of the same version, and no other memory by `.data`."""
    logits, *others = node.saved
    if place_of(logits) is None and root_of(logits._held) is not root_of(ready.shown.made):
        return False
    if any(x is not None and x._array is not given for x, given in zip(others, ready.given, strict=True)):
        return False
    expected = node.versions or [0] * len(node.saved)
    kept = [(x, n) for x, n in zip(node.saved, expected, strict=True) if x is not None and x._storage is not None]
    return all(x._storage.version == n for x, n in kept)


plans: dict[Any, Taking] = {}


def unmade_cross_entropy(
    input: Tensor, target: Tensor, weight: Any, reduction: str, ignore: int, smoothing: float
) -> Any:
    """`cross_entropy` of logits (N, C, *) that are not made, without making them; None where that cannot be.

    Raises what `cross_entropy` does.
    """
    place = place_of(input)
    if place is None or not usual() or reduction == "none" or not plain(target, weight) or place.outline.ndim < 2:
        return None
    if modes.autocast is not None:
        input, weight = modes.autocast("float32", input), modes.autocast("float32", weight)
        place = place_of(input)
        if place is None:
            return None
    product, outline = place.product, place.outline
    if input._edge is None or (input._view is not None and input._view.kind):
        return None
    if target._array.dtype.kind not in "iu" or tuple(target._array.shape) == outline.shape:
        return None
    check_target("cross_entropy", outline.shape, target, weight)
    rows = rows_of(outline, product)
    if rows is None or not len(rows) or product.known is not None:
        return None
    inputs, statics = (input, target, weight), (reduction, ignore, smoothing)
    with Outlined(product):
        return told(cross_entropy_op.op, inputs, statics, recorded, product, rows, inputs, statics)


def recorded(product: Product, rows: Array, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Tensor:
    """The loss, in the graph as `cross_entropy_op` puts it there."""
    (input, target, weight), (reduction, ignore, smoothing) = inputs, statics
    op, by = (
        cross_entropy_op.op,
        None if weight is None else weight._array.astype(wide(product.outline.dtype), copy=False),
    )
    ready = Ready(product, rows, target._array.reshape(-1), by, ignore, smoothing)
    product.done = ready.product.done = True
    total = float(ready.sums[1]) if reduction == "mean" else 1.0
    aux = Found((ready.denominator, total))
    aux.ready, ready.given = ready, tuple(None if x is None else x._array for x in (target, weight))
    loss = wrap(np.array(over(float(ready.sums[0]), total), product.outline.dtype))
    with Setting("saved_hooks", ()):  # of a budget, whose pages these are not: the loss knows them by their memory
        node = make_node(op, (input, target, weight), statics, (edge_of(input), None, None), 1, aux)
    loss._edge, node.shape, node.dtype = node, (), loss._held.dtype
    node.plan = plans.get(node.plan) or plans.setdefault(node.plan, Taking(node.plan, of_loss))
    return loss


def plain(*operands: Any) -> bool:
    """Whether operands beside the logits are ordinary tensors on arrays, or None."""
    return not (modes.levels and owned(operands)) and all(
        x is None or (x.__class__ is Tensor and x._edge is None and x._array.__class__ is np.ndarray) for x in operands
    )


unmade["cross_entropy"] = unmade_cross_entropy
