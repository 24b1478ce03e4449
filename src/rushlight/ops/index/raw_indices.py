"""Reading and adding at indices, on raw arrays: what gather, scatter and advanced indexing are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import real_of
from rushlight.dispatch.options import Nowhere
from rushlight.levels.batch import everything

UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def check_bounds(index: Array, size: int, name: str, dim: int, error: type[Any] = RuntimeError, also: str = "") -> None:
    """Raise `error` unless all of `index` lie in [0, size): one pass, negatives read as huge unsigned numbers.

    Indices on the device meta are not known to be anywhere. also: what the message says besides.
    """
    index = everything(index)
    if isinstance(index, Nowhere):
        return
    if index.size and np.maximum.reduce(index.view(UNSIGNED.get(index.dtype, index.dtype)), None) >= size:
        bad = index[(index < 0) | (index >= size)].reshape(-1)[0]
        raise error(f"{name}(): index {int(bad)} is out of bounds for dimension {dim} with size {size}{also}")


def wrapped(index: Array, size: int, name: str) -> Array:
    """`index` with negative entries counted from the end.  Raises IndexError for those out of range."""
    if not index.size or isinstance(index, Nowhere):
        return index
    low, high = int(np.minimum.reduce(index, None)), int(np.maximum.reduce(index, None))
    if low < -size or high >= size:
        raise IndexError(f"{name}(): out of range: tried to access index {high if high >= size else low} on a tensor of "
                         f"{size} elements.")  # fmt: skip
    return index if low >= 0 else np.where(index < 0, index + size, index)


RUNS = 16  # pieces of ascending neighbours up to which an index is looked at as slices
LARGE = 1 << 14  # elements from which on that pays


def runs_of(index: Array, size: int, elements: int) -> list[tuple[slice, slice]] | None:
    """Where an index of neighbours in few pieces takes its slices to and from; None where it is another, or `elements` few."""
    if elements < LARGE or index.size < 8 or np.count_nonzero(np.diff(index[: 4 * RUNS]) != 1) > RUNS:
        return None
    starts = np.flatnonzero(np.diff(index, prepend=index[0]) != 1)
    if len(starts) > RUNS or index.min() < 0 or index.max() >= size:
        return None
    pieces = zip(starts.tolist(), index[starts].tolist(), np.diff(starts, append=index.size).tolist(), strict=True)
    return [(slice(a, a + n), slice(first, first + n)) for a, first, n in pieces]


def add_rows(out: Array, index: Array, rows: Array) -> None:
    """out[index[i]] += rows[i], repeats adding up.  out: (R, C) contiguous, index: (N), rows: (N, C)"""
    if not rows.size:
        return
    if out.dtype.kind == "c":
        real = real_of(out).dtype
        wide = np.ascontiguousarray(rows).view(real).reshape(len(index), -1)
        kernels.index_add_rows(out.view(real).reshape(out.shape[0], -1), index, wide)
    elif out.dtype.kind == "b":
        hit, column = rows.nonzero()
        out[index[hit], column] = True
    else:
        kernels.index_add_rows(out, index, rows)


def of_rows(index: Array, dim: int, shape: tuple[int, ...]) -> Array | None:
    """The rows that an index along the first dimension is of, where it is one for each row that was expanded; else None."""
    if dim or index.ndim < 2 or index.shape[1:] != shape[1:]:
        return None
    repeated = all(n == 1 or not stride for n, stride in zip(index.shape[1:], index.strides[1:], strict=True))
    first: tuple[Any, ...] = (slice(None), *([0] * (index.ndim - 1)))
    return index[first] if repeated else None


def gather_along(array: Array, index: Array, dim: int) -> Array:
    """array at `index` along `dim`; other dimensions of `index` may be shorter.  (*), (*) -> shape of index"""
    if not index.size:
        return np.empty(index.shape, array.dtype)
    if not array.ndim or not index.ndim:
        flat = array.reshape(-1)
        return flat[index]
    rows = of_rows(index, dim, array.shape)
    return kernels.gather_along(array, index, dim) if rows is None else kernels.take_slices(array, rows, 0)


def put_along(out: Array, index: Array, dim: int, values: object) -> None:
    """out at `index` along `dim` = values (an array of the shape of index, or a number), in place."""
    if not index.size:
        return
    if not out.ndim:
        out[...] = values.reshape(-1)[-1] if isinstance(values, np.ndarray) else values
        return
    if not index.ndim:  # one place of a vector
        out[int(index)] = values
        return
    if values.__class__ is np.ndarray and values.shape == index.shape:
        kernels.put_along(out, index, dim, values)
        return
    cut = tuple([slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape)])
    out[cut][kernels.along(index, dim)] = values


def add_along(out: Array, index: Array, dim: int, values: Array) -> None:
    """out at `index` along `dim` += values, repeats adding up, in place.  values: the shape of index."""
    if not index.size:
        return
    if out.dtype.kind not in "cb" and out.ndim:
        rows = of_rows(index, dim, out.shape) if out.flags.c_contiguous else None
        if rows is None:
            kernels.add_along(out, index, dim, values)
        else:
            add_rows(out.reshape(len(out), -1), rows, values.reshape(len(rows), -1))
        return
    whole = out if out.flags.c_contiguous else np.ascontiguousarray(out)
    where = kernels.element_index(out.shape, index, dim).reshape(-1)
    add_rows(whole.reshape(-1, 1), where, values.reshape(-1, 1))
    if whole is not out:
        out[...] = whole


def pointed(index: tuple[Any, ...], ndim: int) -> list[tuple[int, Any]]:
    """The integer indices of an index tuple by dimension; masks become the positions where they are true."""
    found: list[tuple[int, Any]] = []
    d = 0
    for part in index:
        if part.__class__ is slice:
            d += 1
        elif part.dtype.kind == "b":
            if part.ndim == 0:
                raise IndexError("a zero-dimensional mask cannot be mixed with indices here")
            found += [(d + k, where) for k, where in enumerate(part.nonzero())]
            d += part.ndim
        else:
            found.append((d, part))
            d += 1
    return found


def accumulate_at(out: Array, index: tuple[Any, ...], values: Array) -> None:
    """out[index] += values, repeats adding up, in place.

    index: full slices, integer arrays and masks; values broadcast to the shape of out[index].
    """
    places = pointed(index, out.ndim)
    dims, where = [d for d, _ in places], [part for _, part in places]
    if len(where) > 1:
        where = list(np.broadcast_arrays(*where))
    lead = where[0].ndim
    rest = [d for d in range(out.ndim) if d not in dims]
    flat: Any = wrapped(where[0], out.shape[dims[0]], "index")
    for d, part in zip(dims[1:], where[1:], strict=True):
        flat = flat * out.shape[d] + wrapped(part, out.shape[d], "index")
    flat = np.asarray(flat, np.int64).reshape(-1)
    together = dims == list(range(dims[0], dims[-1] + 1))
    at = dims[0] if together else 0
    shape = (*[out.shape[d] for d in rest[:at]], *where[0].shape, *[out.shape[d] for d in rest[at:]])
    rows = values if values.shape == shape else np.broadcast_to(values, shape)
    height, width = math.prod(out.shape[d] for d in dims), math.prod(out.shape[d] for d in rest)
    if at:
        rows = np.moveaxis(rows, range(at, at + lead), range(lead))
    front = out.transpose(*dims, *rest) if at or not together else out
    whole = np.ascontiguousarray(front)
    add_rows(whole.reshape(height, width), flat, rows.reshape(len(flat), width).astype(out.dtype, copy=False))
    if whole is not out and not np.may_share_memory(whole, out):
        front[...] = whole
