"""Formulas and forwards of elementwise operators on large arrays: block by block, so that what they make on the way stays small.

A formula such as `g / (input * input + 1)` makes arrays of the size of the gradient and lets them go. In blocks they stay in
the processor's cache, and the gradient is all that is made in memory; every element is computed as it would be at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import FLOAT32, is_half, rounded

ndarray = np.ndarray
BLOCK = 1 << 17  # elements of a block, at most; of a smaller array an eighth
LARGE = 1 << 18  # elements of a gradient from which on blocks are worth their calls
STEPS = frozenset(("BINARY_OP", "CALL", "CALL_KW", "COMPARE_OP", "UNARY_INVERT", "UNARY_NEGATIVE"))
FREE = frozenset(("conj", "outside", "over", "own_conj", "raw", "times"))  # that make no array of real numbers
PLAIN = FREE | {"by", "per"}  # and that make their result alone
WHOLE = (int, float, complex, bool, str, tuple, type(None), np.generic)  # what every block is given as it is
EVERY = slice(None)


def steps(fn: Callable[..., Any]) -> int:
    """How many things a formula does to arrays, as its code says; functions of unknown doing count as several."""
    import dis

    code = list(dis.get_instructions(fn))
    called = [str(each.argval) for each in code if each.opname == "LOAD_GLOBAL"]
    helped = any(fn.__globals__.get(name).__class__ is FunctionType and not hasattr(fn.__globals__[name], "op")
                 for name in called if name not in PLAIN)  # fmt: skip
    return 2 * helped + sum(each.opname in STEPS for each in code) - sum(name in FREE for name in called)


def by_blocks(fn: Callable[..., Any], g: Array, *args: object) -> Any:
    """fn(*args) of arrays that broadcast to the shape of `g`, block by block; all at once where that cannot be."""
    like = layout(g, args)
    if not go_together(like, args):
        return fn(*args)
    flat = like.flags.c_contiguous and all(
        x.__class__ is not ndarray or not x.ndim or (x.flags.c_contiguous and x.shape == g.shape) for x in args
    )
    given = [x.reshape(-1) if flat and x.__class__ is ndarray and x.ndim else x for x in args]
    results: list[Any] = []
    several = False
    for where, shape in _blocks(like.reshape(-1) if flat else like):
        made = fn(*[x[where] if flat and x.__class__ is ndarray and x.ndim else _piece(x, where) for x in given])
        several = made.__class__ is tuple
        parts = made if several else (made,)
        if not results:
            if not all(_is_new(part, shape) for part in parts):
                return fn(*args)
            results = [None if part is None else np.empty_like(like, part.dtype) for part in parts]
            into = [x.reshape(-1) if flat and x is not None else x for x in results]
        for result, part in zip(into, parts, strict=True):
            if part is not None:
                result[where] = part
        del made, parts, part  # before the next block is made
    return tuple(results) if several else results[0]


def gradient_by_blocks(fn: Callable[..., Any], g: Array, *args: object) -> Any:
    """As `by_blocks`; gradients are of 16 bits where that of the result is."""
    return by_blocks(narrowing(fn, g), g, *args)


def narrowing(fn: Callable[..., Any], g: Array) -> Callable[..., Any]:
    """A formula that gives 16 bits where `g` is of them: NumPy makes float32 of bfloat16 and Python's numbers."""
    if not is_half(g.dtype):
        return fn

    def narrow(*args: object) -> Any:
        made = fn(*args)
        return tuple([_narrowed(part, g) for part in made]) if made.__class__ is tuple else _narrowed(made, g)

    return narrow


def _narrowed(part: Any, g: Array) -> Any:
    return rounded(part, g.dtype) if part.__class__ is ndarray and part.dtype == FLOAT32 else part


def elements(like: Array) -> int:
    """How many elements a block has of an array that is gone through in such."""
    return min(BLOCK, max(like.size // 8, 1))


def in_blocks(fn: Callable[..., Any], like: Array, *args: object) -> Any:
    """fn(*args), block by block where `like`, whose shape the result has, is large."""
    return by_blocks(fn, like, *args) if like.size >= LARGE else fn(*args)


def cut(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The forward of an elementwise operator, block by block where an input of the result's shape is large."""

    def forward(*args: Any) -> Any:
        like = max((x for x in args if x.__class__ is ndarray), key=_size, default=None)
        return fn(*args) if like is None or like.size < LARGE else by_blocks(fn, like, *args)

    return forward


def _size(x: Array) -> int:
    return x.size


def layout(g: Array, args: tuple[Any, ...]) -> Array:
    """What results are laid out as: the gradient, or where that is one of few numbers repeated, an operand of its shape."""
    if _repeats(g):
        return next((x for x in args if x.__class__ is ndarray and x.shape == g.shape and x.flags.c_contiguous), g)
    return g


def _repeats(x: Array) -> bool:
    return 0 in x.strides


def go_together(like: Array, args: Iterable[Any]) -> bool:
    """Whether all operands can be cut as `like`."""
    return all(_goes_with(like, x) for x in args)


def _goes_with(like: Array, x: object) -> bool:
    """Whether `x` can be cut as `like`: a number, an array of the same layout, or one that broadcasts to it."""
    if x.__class__ is not ndarray:
        return isinstance(x, WHOLE)
    if x.shape == like.shape:
        return _repeats(x) or all(
            a * x.itemsize == b * like.itemsize for a, b in zip(like.strides, x.strides, strict=True)
        )
    return x.ndim <= like.ndim and all(n in (1, m) for n, m in zip(x.shape[::-1], like.shape[::-1], strict=False))


def _is_new(part: object, shape: tuple[int, ...]) -> bool:
    """Whether a formula made an array of the block's shape, and not a view or a gradient as it is."""
    return part is None or (part.__class__ is ndarray and part.shape == shape and part.base is None)


def _blocks(like: Array) -> Iterator[tuple[tuple[slice, ...], tuple[int, ...]]]:
    """Where the blocks of an array lie, in the order of memory, and their shapes."""
    size = elements(like)
    if like.ndim == 1:
        for i in range(0, like.size, size):
            yield (slice(i, i + size),), (min(size, like.size - i),)
        return
    ranges, steps, left = [range(1)] * like.ndim, list(like.shape), like.size
    for axis in sorted(range(like.ndim), key=lambda a: -like.strides[a]):
        left //= like.shape[axis]
        steps[axis] = max(size // left, 1)
        ranges[axis] = range(0, like.shape[axis], steps[axis])
        if left <= size:
            break
    for starts in itertools.product(*ranges):
        ends = [min(start + step, n) for start, step, n in zip(starts, steps, like.shape, strict=True)]
        yield tuple(map(slice, starts, ends)), tuple([end - start for start, end in zip(starts, ends, strict=True)])


def _piece(x: object, where: tuple[slice, ...]) -> object:
    """The part of an operand that belongs to a block."""
    if x.__class__ is not ndarray or x.ndim == 0:
        return x
    return x[tuple([EVERY if n == 1 else w for n, w in zip(x.shape, where[-x.ndim :], strict=True)])]
