"""Indexing with tensors: the samples are one index more where the indices differ from sample to sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.dispatch import families
from rushlight.levels.batch import dynamic
from rushlight.ops.shape.reshape import permute_op
from rushlight.tensor import Tensor, wrap
from rushlight.transforms.batching.given import Given, Results, ranked
from rushlight.transforms.batching.loop import looped


def is_mask(x: Tensor) -> bool:
    """Whether an index is a mask."""
    return bool((x._array if isinstance(x, Tensor) else x).dtype.kind == "b")


class Plan:
    """Where the dimensions of the indices lie in what an index names.

    For one sample: `lead` dimensions, then `rank` of the indices, then the others. With the samples the indices come
    first (`apart`: NumPy puts them there where they are not next to each other), so dimensions must be exchanged.
    """

    def __init__(self, c: Given, first: int):
        self.c, self.first, self.slots = c, first, tuple(c["slots"])
        shapes = c.shapes[first:]
        kinds = [is_mask(x) for x in c.values[first:]]
        self.batched = any(c.batched[first:])
        self.masked = any(kinds)
        if any(m and b for m, b in zip(kinds, c.batched[first:], strict=True)):
            dynamic("indexing with a boolean mask")
        self.rank = max(1 if m else len(s) for m, s in zip(kinds, shapes, strict=True))
        used = [i for i, k in enumerate(self.slots) if k is not None]
        apart = used != list(range(used[0], used[0] + len(used)))
        self.lead = 0 if apart else used[0]
        # whether NumPy puts the dimensions of the indices in front of the samples
        self.before = apart and not self.batched

    def indices(self) -> list[Any]:
        """The indices with the samples in front; then, where any has them, the numbers of the samples."""
        found = list(self.c.values[self.first :])
        if not self.batched:
            return found
        shapes, batched = self.c.shapes[self.first :], self.c.batched[self.first :]
        found = [ranked(x, s, self.rank) if b else x for x, s, b in zip(found, shapes, batched, strict=True)]
        return [*found, wrap(np.arange(self.c.size).reshape(-1, *[1] * self.rank))]

    def places(self) -> tuple[Any, ...]:
        """The slots of these indices."""
        return (len(self.c.values) - self.first if self.batched else None, *self.slots)

    def order(self, ndim: int) -> tuple[int, ...]:
        """The dimensions of NumPy's result in the order of samples, leading dimensions, indices, others."""
        rest = range(1 + self.rank + self.lead, ndim)
        if self.before:
            return (self.rank, *range(self.rank), *range(self.rank + 1, ndim))
        if self.batched:
            return (0, *range(1 + self.rank, 1 + self.rank + self.lead), *range(1, 1 + self.rank), *rest)
        return tuple(range(ndim))

    def outward(self, x: Tensor) -> Any:
        """NumPy's result with the samples in front."""
        return permuted(x, self.order(len(x.shape)))

    def inward(self, x: Array | Tensor) -> Any:
        """The reverse."""
        order = self.order(len(x.shape))
        back = [0] * len(order)
        for i, d in enumerate(order):
            back[d] = i
        return permuted(x, tuple(back))


def permuted(x: Array | Tensor, order: tuple[int, ...]) -> Any:
    """Dimensions in another order; the tensor itself where that is the same."""
    return x if order == tuple(range(len(order))) else permute_op(x, order)


def plain(c: Given, first: int) -> Plan | None:
    """The plan, or None for masks beside indices that differ from sample to sample."""
    plan = Plan(c, first)
    return None if plan.masked and plan.batched else plan


@families.index.batched
def index(c: Given) -> Results:
    """The elements at indices."""
    plan = plain(c, 1)
    if plan is None:
        return looped(c)
    return plan.outward(c.run((c.full(0), *plan.indices()), (plan.places(),)))


@families.index_zeros.batched
def index_zeros(c: Given) -> Results:
    """Zeros to which elements are added at indices."""
    plan = plain(c, 1)
    if plan is None:
        return looped(c)
    return c.run((plan.inward(c.full(0)), *plan.indices()), ((c.size, *c["size"]), plan.places()))


@families.index_put.batched
def index_put(c: Given) -> Results:
    """Elements put, or added, at indices."""
    plan = plain(c, 2)
    if plan is None:
        return looped(c)
    taken = sum(x._array.ndim if is_mask(x) and isinstance(x, Tensor) else 1 for x in c.values[2:])
    rank = len(c.shapes[0]) - taken + plan.rank
    if len(c.shapes[1]) > rank:
        return looped(c)
    values = plan.inward(ranked(c.full(1), c.shapes[1], rank))
    return c.run((c.full(0), values, *plan.indices()), (plan.places(), c["accumulate"]))
