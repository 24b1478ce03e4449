"""Operators along dimensions: these are counted one further."""

from __future__ import annotations

import math
from typing import Any

from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS
from rushlight.ops.shape.reshape import reshape_op
from rushlight.tensor import Tensor
from rushlight.transforms.batching.given import Given, Results, each, ranked, reshaped
from rushlight.transforms.batching.pointwise import aligned

ALONG = ("dim", "dims")


def further(d: int | tuple[Any, ...] | None, ndim: int) -> int | tuple[int, ...]:
    """One dimension, or several, or None for all, behind the samples."""
    if d is None:
        return tuple(range(1, ndim + 1))
    if isinstance(d, (tuple, list)):
        return tuple(further(k, ndim) for k in d)
    return d + 1 if d >= 0 else d


def moved(c: Given, ndim: int) -> tuple[Any, ...]:
    """The static arguments with every dimension counted behind the samples, and sizes that begin with them."""
    changes: dict[str, Any] = {}
    for name, value in zip(c.op.static_names, c.statics, strict=True):
        if name in ALONG or name in ("dim0", "dim1", "dim2"):
            changes[name] = further(value, ndim)
        elif name in ("shape", "size") and isinstance(value, (tuple, list)):
            changes[name] = (c.size, *value)
        elif name == "index":
            changes[name] = (slice(None), *value)
        elif name == "pads":
            changes[name] = ((0, 0), *value)
    return c.changed(**changes)


def line(value: int | tuple[int, ...]) -> int | tuple[int, ...]:
    """The dimension of a 0-d sample that was made a vector of one element."""
    return (1,) if value is None or isinstance(value, (tuple, list)) else 1


@families.shifted.batched
def shifted(c: Given) -> Results:
    """The rule of operators whose static arguments say by their names how they speak of dimensions."""
    several = len(c.values) > 1
    values = c.every() if several else c.values
    first = c.shapes[0]
    if first == () and any(c.has(name) for name in ALONG):
        return on_scalars(c, values)
    return c.run(values, moved(c, len(first)))


def on_scalars(c: Given, values: list[Any]) -> Results:
    """Operators along the dimension that 0-d samples are treated as having."""
    vectors = [x if s is None else reshaped(x, (c.size, 1) if s == () else x.shape)
               for x, s in zip(values, c.shapes, strict=True)]  # fmt: skip
    changes = {name: line(c[name]) for name in ALONG if c.has(name)}
    if c.has("size"):
        changes["size"] = (c.size, *(c["size"] or (1,)))
    found = c.run(vectors, c.changed(**changes))
    flat = all(s is None or s == () for s in c.shapes)
    return each(found, lambda t: reshaped(t, (c.size,)) if flat and tuple(t.shape) == (c.size, 1) else t)


@families.permuted.batched
def permuted(c: Given) -> Results:
    """The dimensions of each sample in another order."""
    ndim = len(c.shapes[0])
    return c.run(c.values, ((0, *(d % ndim + 1 for d in c["dims"])),))


@families.expanded.batched
def expanded(c: Given) -> Results:
    """Each sample broadcast."""
    size = tuple(c["size"])
    return c.run([ranked(c.values[0], c.shapes[0], len(size))], ((c.size, *size),))


@families.summed.batched
def summed(c: Given) -> Tensor:
    """Each sample summed to a size."""
    size = tuple(c["size"])
    pad = len(c.shapes[0]) - len(size)
    return reshaped(c.run(c.values, ((c.size, *[1] * pad, *size),)), (c.size, *size))


@families.repeated.batched
def repeated(c: Given) -> Results:
    """Each sample several times along its dimensions."""
    repeats = tuple(c["repeats"])
    return c.run([ranked(c.values[0], c.shapes[0], len(repeats))], ((1, *repeats),))


@families.placed.batched
def placed(c: Given) -> Results:
    """Where an extremum is; without `dim`, in the flat sample."""
    shape = c.shapes[0]
    if c["dim"] is not None:
        return shifted(c)
    found = c.run([reshape_op(c.values[0], (c.size, -1 if c.size else 0))], c.changed(dim=1, keepdim=False))
    return reshaped(found, (c.size, *[1] * len(shape))) if c["keepdim"] else found


def flattened(c: Given) -> Tensor:
    """The only input with each sample as a vector."""
    count = 1
    for n in c.shapes[0]:
        count *= n
    return reshaped(c.values[0], (c.size, count))


@families.greatest.batched
def greatest(c: Given) -> Results:
    """The greatest of all elements of each sample."""
    return c.run([flattened(c)], ((1,), False), OPS["amax"])


@families.least.batched
def least(c: Given) -> Any:
    """The least of all elements of each sample."""
    return c.run([flattened(c)], ((1,), False), OPS["amin"])


@families.middle.batched
def middle(c: Given) -> Results:
    """The median of all elements of each sample."""
    return c.run([flattened(c)], (1, False, c["skip_nan"]), OPS["median"])[0]


@families.along_both.batched
def along_both(c: Given) -> Results:
    """Along a dimension of two inputs broadcast together."""
    values = aligned(c, True)
    return c.run(values, moved(c, len(values[0].shape) - 1))


@families.joined.batched
def joined(c: Given) -> Results:
    """Samples joined along a dimension; empty vectors, which join with anything, are left out as PyTorch does."""
    dim = c["dim"]
    rank = max(len(s) for s in c.shapes)
    values = [c.full(i) for i, s in enumerate(c.shapes) if len(s) == rank or s != (0,)]
    return c.run(values, (further(dim, 0),))


@families.padded.batched
def padded(c: Given) -> Results:
    """Zeros that begin with the elements of each sample."""
    size, count = tuple(c["size"]), c.shapes[0][0]
    total = math.prod(size)
    found = c.run(c.values, ((c.size, total), (slice(None), slice(0, count), ...)), OPS["slice_scatter_zeros"])
    return reshaped(found, (c.size, *size))
