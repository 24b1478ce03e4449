"""What forwards and formulas hold on the way to their results, where each element is of those at its place alone: learned by
running them on some elements.

How many temporaries a formula has, and how long they live, its code does not say: NumPy writes into some of them again, kernels
work in blocks, results take the place of what is no longer needed.  All of it is so many bytes for each element, beside blocks
of one size: what few elements take says what many will.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.state import Setting
from rushlight.dispatch.shapes import order_of
from rushlight.kernels import allocator
from rushlight.storage import root_of

ndarray = np.ndarray
FEW = 1 << 16  # elements: what takes nothing beside its results for so many takes nothing for more
SOME, MANY = 1 << 20, 1 << 21  # elements: from the first on blocks are no longer larger for larger arrays
NUMBERS = np.array(
    [0.3, 0.6, 0.9, 0.2, 0.1, 1.0, 0.0]
)  # probabilities of any kind: where all are alike, formulas take shorter ways


class Part(NamedTuple):
    """A result: which of the operands it is, or -1 and the dtype and order of a new array of the whole shape."""

    operand: int
    dtype: Any
    order: tuple[int, ...] | None


class Learned(NamedTuple):
    """The results, in their order, and the bytes beside them: at most at once, and with results that are new.

    parts: None where a result is neither a new array of the whole shape nor an operand.
    """

    parts: tuple[Part | None, ...] | None
    beside: int
    most: int


_known: dict[Any, Any] = {}


def learned(name: Any, fn: Callable[..., Any], args: Sequence[Any], like: Array, block: int = 0) -> Learned | None:
    """What fn(*args) makes and holds, `like` being an array of the whole shape and its order; None where that cannot be told.

    name: what tells `fn` and all of `args` that are no arrays from others.  block: how many elements it gets at once, 0: all.
    """
    key = name, block, *(outline(x) for x in (like, *args))
    if key not in _known:
        _known[key] = _tried(fn, args, like, block) if block else _learn(fn, args, like, like.size)
    return _known[key]  # type: ignore[no-any-return]


def outline(x: object) -> Any:
    """What of an operand decides how much memory is taken."""
    return (x.shape, x.strides, x.dtype) if isinstance(x, ndarray) else x.__class__


def _learn(fn: Callable[..., Any], args: Sequence[Any], like: Array, count: int) -> Learned | None:
    found = _tried(fn, args, like, min(count, FEW))
    if found is None or count <= FEW or not found.beside:
        return found
    if count <= MANY:
        return _tried(fn, args, like, count)
    some, many = _tried(fn, args, like, SOME), _tried(fn, args, like, MANY)
    if some is None or many is None:
        return None
    few, more = (math.prod(cut(like, n)) for n in (SOME, MANY))
    share = (count - more) / max(more - few, 1)
    return Learned(many.parts, *(b + int(share * max(b - a, 0)) for a, b in zip(some[1:], many[1:], strict=True)))


def _tried(fn: Callable[..., Any], args: Sequence[Any], like: Array, count: int) -> Learned | None:
    """What fn takes of about so many elements, in proportion; the least of two tries: the first may make what is kept."""
    sizes = cut(like, count)
    few, given = some_of(like, sizes), [some_of(x, sizes) for x in args]
    tries = []
    for _ in range(2):
        with Setting("levels", ()), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                (parts, new), most = allocator.taken(lambda: fn(*given), lambda made: _told(made, given, few, like))
            except Exception:  # of such numbers: what a run makes of its own is not known then
                return None
        tries.append(Learned(parts, max(most - new, 0), most))
    return min(tries, key=lambda each: each.beside)


def _told(made: Any, given: list[Any], few: Array, like: Array) -> tuple[tuple[Part | None, ...] | None, int]:
    """Results as `Learned` has them, and the bytes of those that are new."""
    results = made if made.__class__ is tuple else (made,)
    parts = tuple([_part(x, given, few, like) for x in results])
    roots = {id(root): root for root in (root_of(x) for x in results if isinstance(x, ndarray))}
    new = sum(
        root.nbytes for root in roots.values() if not any(root is root_of(y) for y in given if isinstance(y, ndarray))
    )
    told = all(x is None or part is not None for x, part in zip(results, parts, strict=True))
    return parts if told else None, new


def _part(x: Any, given: list[Any], few: Array, like: Array) -> Part | None:
    for i, y in enumerate(given):
        if x is y:
            return Part(i, None, None)
    if not isinstance(x, ndarray) or x.shape != few.shape or root_of(x).nbytes != x.nbytes:
        return None
    mine = any(root_of(x) is root_of(y) for y in given if isinstance(y, ndarray))
    order = order_of(x)
    return None if mine else Part(-1, x.dtype, order_of(like) if order == order_of(few) else order)


def cut(like: Array, count: int) -> list[int]:
    """The sizes of an array's first elements in memory, about so many."""
    sizes, left = list(like.shape), like.size
    for axis in sorted(range(like.ndim), key=lambda i: (-abs(like.strides[i]), i)):
        if left <= count:
            break
        rest = left // sizes[axis]
        sizes[axis] = max(count // rest, 1)
        left = rest * sizes[axis]
    return sizes


def some_of(x: Any, sizes: Sequence[int]) -> Any:
    """An operand with as many elements as belong to an array of these sizes, laid out as it is."""
    if not isinstance(x, ndarray) or not x.ndim:
        return x
    shape = [1 if n == 1 else size for n, size in zip(x.shape, sizes[len(sizes) - x.ndim :], strict=True)]
    kept = [1 if stride == 0 else n for n, stride in zip(shape, x.strides, strict=True)]
    numbers = np.resize(NUMBERS > 0 if x.dtype.kind == "b" else NUMBERS, kept).astype(x.dtype)
    order = order_of(x) or tuple(range(x.ndim))
    made = np.empty([kept[i] for i in order], x.dtype).transpose(np.argsort(order))
    if has_gaps(x) and min(x.strides) >= 0:
        reach = sum((n - 1) * stride for n, stride in zip(kept, x.strides, strict=True)) + x.itemsize
        made = np.ndarray(kept, x.dtype, np.empty(reach, np.uint8), 0, x.strides)
    made[...] = numbers
    return made if kept == shape else np.broadcast_to(made, shape)


def has_gaps(x: Array) -> bool:
    """Whether elements of other arrays lie between those of an array."""
    steps = sorted((abs(stride), n) for n, stride in zip(x.shape, x.strides, strict=True) if n > 1 and stride)
    reach: int = sum((n - 1) * step for step, n in steps) + x.itemsize
    return bool(math.prod([n for _, n in steps]) * x.itemsize < reach)
