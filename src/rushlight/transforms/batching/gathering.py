"""Slices at indices, embeddings, take and put, masks: as they are where the indices are the same for all samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.basics.state import Setting, modes
from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS
from rushlight.dispatch.dims import common_shape
from rushlight.levels.batch import dynamic
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.shape.reshape import broadcast, reshape_op
from rushlight.tensor import Tensor, wrap
from rushlight.transforms.batching.given import Given, Results, ranked, reshaped


def composed(c: Given, name: str, parts: tuple[int | Any, ...], statics: tuple[Any, ...]) -> Tensor:
    """The operator `name` of samples: parts are numbers of inputs, or tensors with the samples in front."""
    samples = [c.level.batched(c.full(p)) if isinstance(p, int) and c.batched[p] else c.values[p]
               if isinstance(p, int) else c.level.batched(p) for p in parts]  # fmt: skip
    with Setting("levels", (*modes.levels, c.level)):
        found = c.run(samples, statics, OPS[name])
    tensor, dim = c.level.whole(found)
    return tensor if dim == 0 else broadcast(tensor, (c.size, *tensor.shape))


def slots(dim: int) -> tuple[Any, ...]:
    """Those of one index along `dim`."""
    return (*[None] * dim, 0)


@families.index_select.batched
def index_select(c: Given) -> Results:
    """Slices at indices."""
    if c.batched[1]:
        return composed(c, "index", (0, 1), (slots(c["dim"]),))
    return c.run(c.values, (c["dim"] + 1,))


@families.index_select_adjoint.batched
def index_select_adjoint(c: Given) -> Results:
    """Zeros to which slices are added."""
    if c.batched[1]:
        return composed(c, "index_zeros", (0, 1), (c["size"], slots(c["dim"])))
    return c.run(c.values, ((c.size, *c["size"]), c["dim"] + 1))


@families.index_add.batched
def index_add(c: Given) -> Results:
    """Slices added."""
    if not c.batched[1]:
        return c.run((c.full(0), c.values[1], c.full(2)), c.changed(dim=c["dim"] + 1))
    source = c.full(2) if c["alpha"] == 1 else c.run((c.full(2), c["alpha"]), (), OPS["mul"])
    return composed(c, "index_put", (0, source, 1), (slots(c["dim"]), True))


@families.index_copy.batched
def index_copy(c: Given) -> Results:
    """Slices put."""
    if not c.batched[1]:
        return c.run((c.full(0), c.values[1], c.full(2)), (c["dim"] + 1,))
    return composed(c, "index_put", (0, 2, 1), (slots(c["dim"]), False))


@families.index_fill.batched
def index_fill(c: Given) -> Results:
    """Slices filled, which are named once however often an index repeats."""
    ndim, dim = len(c.shapes[0]), c["dim"]
    value = ranked(c.values[2], (), ndim) if c.batched[2] else c.values[2]
    if not c.batched[1] and not c.batched[2]:
        return c.run((c.full(0), c.values[1], value), (dim + 1, c["number"]))
    n, index = c.shapes[0][dim], c.full(1)
    numbers = reshape_op(index, (*index.shape, 1))
    hit = c.run((c.run((numbers, wrap(np.arange(n))), (), OPS["eq"]),), ("logical_or", (1,), False), OPS["truth"])
    hit = reshape_op(hit, (c.size, *[1] * dim, n, *[1] * (ndim - dim - 1)))
    return c.run((hit, value, c.full(0)), (), OPS["where"])


def flat(c: Given, i: int) -> Tensor:
    """Input `i` with each sample as a vector."""
    return reshaped(c.full(i), (c.size, math.prod(c.shapes[i])))


@families.take.batched
def take(c: Given) -> Tensor:
    """Elements at flat positions."""
    return composed(c, "index", (flat(c, 0), 1), ((0,),))


@families.take_adjoint.batched
def take_adjoint(c: Given) -> Tensor:
    """Zeros to which elements are added at flat positions."""
    size = tuple(c["size"])
    return reshaped(composed(c, "index_zeros", (0, 1), ((math.prod(size),), (0,))), (c.size, *size))


@families.put.batched
def put(c: Given) -> Tensor:
    """Elements put at flat positions."""
    source = reshaped(c.full(2), (c.size, *c.shapes[1]))
    return reshaped(composed(c, "index_put", (flat(c, 0), source, 1), ((0,), c["accumulate"])), (c.size, *c.shapes[0]))


@families.embedding.batched
def embedding(c: Given) -> Results:
    """Rows at indices: of one table, or of the tables of all samples, one below another."""
    if not c.batched[0]:
        return c.run(c.values)
    (count, width), skip = c.shapes[0], c["padding_idx"]
    found = c.run((reshaped(c.values[0], (c.size * count, width)), offset(c, 1, count)), c.changed(padding_idx=-1))
    if skip < 0 or not modes.grad:
        return found
    padding = c.run((reshaped(c.full(1), (*found.shape[:-1], 1)), skip), (), OPS["eq"])
    return c.run((padding, found.detach(), found), (), OPS["where"])  # rows of padding have no gradient


def offset(c: Given, i: int, count: int) -> Results:
    """Indices (input `i`) into tables of `count` rows, one below another."""
    starts = np.arange(c.size).reshape(-1, *[1] * len(c.shapes[i])) * count
    at = c.full(i)
    return c.run((at, wrap(starts.astype(at._array.dtype))), (), OPS["add"])


@families.embedding_backward.batched
def embedding_backward(c: Given) -> Tensor:
    """Rows added up by index."""
    grad, count, skip = c.full(0), c["count"], c["padding_idx"]
    if skip >= 0:
        kept = c.run((c.full(1), skip), (), OPS["ne"])
        grad = c.run((grad, reshaped(kept, (*kept.shape, 1))), (), OPS["keep"])
    found = c.run((grad, offset(c, 1, count)), c.changed(count=c.size * count, padding_idx=-1))
    return reshaped(found, (c.size, count, found.shape[-1]))


@families.masked_select.batched
def masked_select(c: Given) -> Results:
    """Elements where a mask is true, which must be the same for all samples."""
    if c.batched[1]:
        dynamic("masked_select")
    shape = common_shape(*c.shapes)
    whole = broadcast(ranked(c.values[0], c.shapes[0], len(shape)), (c.size, *shape))
    return c.run((whole, broadcast(c.values[1], shape)), ((None, 0),), OPS["index"])


@families.masked_put.batched
def masked_put(c: Given) -> Results:
    """Zeros with elements where a mask is true."""
    if c.batched[1]:
        dynamic("masked_put")
    return c.run(c.values, ((c.size, *c["size"]), (None, 0)), OPS["index_zeros"])


@families.masked_scatter.batched
def masked_scatter(c: Given) -> Results:
    """Consecutive elements of a source where a mask is true: by the number of each among those of its sample."""
    shape, count = c.shapes[0], math.prod(c.shapes[0])
    if not count:
        return c.full(0)
    mask = broadcast(ranked(c.full(2), c.shapes[2], len(shape)), (c.size, *shape))
    number = c.run((cast(reshaped(mask, (c.size, count)), np.dtype(np.int64)),), (1, False), OPS["cumsum"])
    index = c.run((number,), (1, max(math.prod(c.shapes[1]), 1)), OPS["clamp"]) - 1
    found = reshaped(c.run((flat(c, 1), index), (1,), OPS["gather"]), (c.size, *shape))
    return c.run((mask, found, c.full(0)), (), OPS["where"])
