"""Operators on elements: inputs of different ranks are aligned behind the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.shape.reshape import broadcast
from rushlight.tensor import Tensor
from rushlight.transforms.batching.given import Given, Results, ranked


def aligned(c: Given, full: bool = False) -> list[Any]:
    """The inputs, all of one rank behind the samples; with `full`, each with the samples in front."""
    shapes = [s for s in c.shapes if s is not None]
    ndim = max(map(len, shapes))
    values = c.every() if full else c.values
    return [
        ranked(x, s, ndim) if s is not None and (full or batched) else x
        for x, s, batched in zip(values, c.shapes, c.batched, strict=True)
    ]


def pointwise(c: Given) -> Results:
    """The rule of elementwise operators."""
    return c.run(promoted(c, aligned(c)))


def promoted(c: Given, values: list[Any]) -> list[Any]:
    """The inputs cast to the dtype that one sample's would meet in: 0-d samples are not 0-d any more."""
    if c.op.promote is None:
        return values
    given = [x for i, x in enumerate(values) if x is not None and not c.op.free >> i & 1]
    of_sample = dtypes.result_dtype([placeholder(x, s) for x, s in zip(values, c.shapes, strict=True) if x is not None])
    if of_sample == dtypes.result_dtype([x._array if isinstance(x, Tensor) else x for x in given]):
        return values
    return [cast(x, of_sample.numpy) if isinstance(x, Tensor) and x._array.dtype != of_sample.numpy else x
            for x in values]  # fmt: skip


def placeholder(x: Tensor | float, shape: tuple[Any, ...] | None) -> Array | complex:
    """What stands for one sample of `x` in promotion."""
    array = x._array if isinstance(x, Tensor) else x
    return np.empty((1,) * len(shape), array.dtype) if hasattr(array, "dtype") and shape is not None else array


@families.targeted.batched
def targeted(c: Given) -> Results:
    """As `pointwise`, of operators whose result has the shape of the first input, however many samples it has."""
    if len(c.values) == 1:
        return c.run(c.values)
    values = aligned(c)
    values[0] = ranked(c.full(0), c.shapes[0], max(len(s) for s in c.shapes if s is not None))
    return c.run(promoted(c, values))


@families.filled.batched
def filled(c: Given) -> Results:
    """A number for each sample, as far as its shape goes."""
    shape, kind = c.shapes[0], c.values[0]._array.dtype
    return broadcast(ranked(cast(c.full(1), kind), (), len(shape)), (c.size, *shape))


@families.masked.batched
def masked(c: Given) -> Results:
    """A number, for all samples or one for each, where a mask is true."""
    x, mask, value = aligned(c)
    if not c.batched[2]:
        return c.run((ranked(c.full(0), c.shapes[0], max(len(c.shapes[0]), len(c.shapes[1]))), mask, value))
    return c.run((mask, cast(value, x._array.dtype), x), (), OPS["where"])
