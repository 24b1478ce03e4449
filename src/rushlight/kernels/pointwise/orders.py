"""Elementwise functions of large arrays whose elements lie in different orders: a block at a time, in which all lie alike.

NumPy goes through such arrays element by element, on one thread, each in another line of the cache: `x > y.T` takes eight times as
long as `x > y`.  What lies in another order is copied by squares, on all threads, into memory of a block that is used again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.naming import called
from rushlight.kernels.pointwise.copies import LARGE, WORDS, move

__all__ = ["by_rows", "in_one_order"]

BLOCK = 1 << 17  # elements of a block


def by_rows(fn: Callable[..., Any], arrays: Sequence[Any]) -> Array | None:
    """fn(*arrays) in C order, or None where NumPy does it as well: of what is small, and of what lies alike.

    fn: an elementwise function whose results have one dtype.  arrays: arrays that broadcast to the shape of the
        largest, and numbers.
    """
    largest = max(arrays, key=lambda x: x.size if x.__class__ is np.ndarray else 0)
    if largest.__class__ is not np.ndarray or largest.nbytes < LARGE or largest.ndim < 2:
        return None
    others = [x for x in arrays if x.__class__ is np.ndarray and _lies_otherwise(x, largest.shape)]
    if not others or not any(
        x.__class__ is np.ndarray and x.shape == largest.shape and x.flags.c_contiguous for x in arrays
    ):
        return None
    return _blocks(fn, arrays, largest.shape) if _fits(arrays, largest.shape) else None


def in_one_order(fn: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function of two or three arrays, or of an array and a number, by rows where these lie in different orders."""

    def run(*arrays: Any) -> Any:
        found = by_rows(fn, arrays)
        return fn(*arrays) if found is None else found

    return called(run, f"{fn.__name__}_in_one_order", f"As :obj:`{fn.__name__}`.  (*), (*) -> (*)")


def _lies_otherwise(x: Array, shape: tuple[int, ...]) -> bool:
    """Whether elements that are neighbours in C order are none in `x`; one that stands for a row is no matter."""
    if x.itemsize < 2 or x.itemsize not in WORDS or x.dtype.hasobject or not x.flags.aligned or x.ndim < 2:
        return False
    step = x.strides[-1]
    return bool(step and x.shape == shape and step != x.itemsize and not x.flags.c_contiguous and x.shape[-1] > 1)


def _fits(arrays: Sequence[Any], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(*(x.shape for x in arrays if x.__class__ is np.ndarray)) == shape
    except ValueError:
        return False


def _blocks(fn: Callable[..., Any], arrays: Sequence[Any], shape: tuple[int, ...]) -> Array:
    parts = [_part(x, shape) if x.__class__ is np.ndarray else lambda at, x=x: x for x in arrays]
    out = None
    for at in _places(shape):
        found = fn(*(part(at) for part in parts))
        out = np.empty(shape, found.dtype) if out is None else out
        out[at] = found
    assert out is not None
    return out


def _places(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Where blocks of up to BLOCK elements lie: some rows of the outermost dimension whose rows are no larger, for each place before it."""
    axis = next(d for d in range(len(shape)) if math.prod(shape[d + 1 :]) <= BLOCK)
    rows = BLOCK // math.prod(shape[axis + 1 :])
    for lead in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], rows):
            yield (*(slice(i, i + 1) for i in lead), slice(start, start + rows))


def _part(x: Array, shape: tuple[int, ...]) -> Callable[[tuple[slice, ...]], Array]:
    """What gives an array's part of a block; of one that lies in another order, a copy in memory that the next ones take."""
    wide = np.broadcast_to(x, shape)
    if not _lies_otherwise(x, shape):
        return lambda at: wide[at]
    room, word = np.empty(min(BLOCK, wide.size), x.dtype), WORDS[x.itemsize]

    def part(at: tuple[slice, ...]) -> Array:
        given = wide[at]
        some = room[: given.size].reshape(given.shape)
        move(given.view(word), some.view(word))
        return some

    return part
