"""Kernels of each element by itself: one declaration makes the call that takes the native twin of a NumPy function where there is one.

Every kernel takes arrays of one shape, any strides, float16 to float64, and returns a new array of that shape and dtype, or
writes into ``out`` (same shape and dtype; it may be one of the inputs) and returns that. Other dtypes go the way NumPy takes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

from numpy import argsort, asarray, empty_like, may_share_memory, ndarray, uint16

from rushlight.basics.naming import called
from rushlight.kernels.dispatch import (
    DENSE,
    Array,
    alike,
    bits,
    gapless,
    in_float32_blocks,
    is_half,
    memory_order,
    native,
    put,
    through_float32,
)
from rushlight.kernels.native import loader, ufuncs
from rushlight.kernels.native.signatures import MAPS, exports
from rushlight.kernels.pointwise.copies import copied

if TYPE_CHECKING:
    import numpy as np

PAIRED = 2048  # elements from which on a kernel of two arrays costs less than NumPy's call
LETTERS = {"Array": "a", "int": "i", "float": "d"}

Reference = Callable[..., Array]


class Kernel(Protocol):
    """A kernel of each element by itself."""

    reference: Reference

    def __call__(self, *arguments: Array | float, out: Array | None = None) -> Array:
        """Arrays, then numbers."""


def declared(reference: Reference, sixteen: bool) -> int:
    """Enter the native twin of a NumPy function: arrays, result, elements, numbers. Returns how many arrays it takes.

    The twin has the function's name, without an underscore before it. sixteen: whether there is one for 16 bits.
    """
    reference.__name__ = reference.__name__.lstrip("_")
    code, notes = reference.__code__, reference.__annotations__
    letters = "".join(LETTERS[notes[name]] for name in code.co_varnames[: code.co_argcount])
    arrays = letters.count("a")
    signature = {reference.__name__: letters[:arrays] + "an" + letters[arrays:]}
    exports(**signature)
    if sixteen:
        MAPS.update(signature)
    return arrays


def each(sixteen: bool = True, small: int = 0, single: np.ufunc | None = None) -> Callable[[Reference], Kernel]:
    """Declare a kernel by its NumPy reference, of one array or two and of numbers.

    sixteen: its native twin takes numbers of 16 bits too. small: elements below which NumPy's call is the cheaper
    one. single: NumPy's function, where its own loop of float32 is faster.
    """

    def declare(reference: Reference) -> Kernel:
        defaults = reference.__defaults__ or ()

        def two(x: Array, y: Array, *numbers: float, out: Array | None = None) -> Array:
            return map_pair(reference, x, y, out, *numbers, *defaults[len(numbers) :])

        def one(x: Array, *numbers: float, out: Array | None = None) -> Array:
            if single is not None and x.dtype.char == "f":
                return asarray(single(x, out=out))
            if x.size < small:
                return put(_plain(reference, x.dtype, x), out)
            return map_one(reference, x, out, *numbers, *defaults[len(numbers) :])

        made = cast(Kernel, functools.wraps(reference)(two if declared(reference, sixteen) == 2 else one))
        made.reference = reference
        return made

    return declare


def paired(plain: np.ufunc, by_number: bool = False, sixteen: bool = True) -> Callable[..., Any]:
    """A kernel in the place of NumPy's function of two, whose native twin has its name, for large arrays alike.

    All else, small and broadcast arrays among it, is left to NumPy's.  by_number: there is a twin, with ``_by`` at
    its name, of an array and one number, too.  sixteen: they take numbers of 16 bits.
    """
    name = plain.__name__
    signatures = {name: "aaan"} | ({f"{name}_by": "aand"} if by_number else {})
    exports(**signatures)
    if sixteen:
        MAPS.update(signatures)

    def run(x: Any, y: Any, out: Array | None = None) -> Any:
        table = _table_of_pairs(x, sixteen)
        if table is None or not gapless(x) or not (out is None or like(x, out)):
            return _by_numpy(plain, x, y, out, sixteen)
        if like(x, y):
            target = empty_like(x) if out is None else _target(out, x, y)
            getattr(table, name)(bits(x), bits(y), bits(target), x.size)
        elif by_number and _one(y, x):
            target = empty_like(x) if out is None else _target(out, x)
            getattr(table, f"{name}_by")(
                bits(x), bits(target), x.size, float(y.item() if y.__class__ is ndarray else y)
            )
        else:
            return _by_numpy(plain, x, y, out, sixteen)
        return put(target, out)

    return called(run, name, f"As :obj:`numpy.{name}`.  (*), (*) -> (*)")


def _table_of_pairs(x: Any, sixteen: bool) -> Any:
    if x.__class__ is not ndarray or x.size < PAIRED:
        return None
    if x.itemsize == 2:
        return maps_of(x.dtype) if sixteen and is_half(x.dtype) else None
    return native(x.dtype) if x.dtype.kind == "f" else None


def _by_numpy(plain: np.ufunc, x: Any, y: Any, out: Array | None, sixteen: bool) -> Any:
    """NumPy's function; of 16 bits in float32, beside a number or where NumPy goes number by number and may warn."""
    halves = [z.dtype for z in (x, y) if z.__class__ is ndarray and is_half(z.dtype)] if sixteen else []
    if not halves or (len(halves) == 2 and (plain.__name__, halves[0].num) in ufuncs.TAKEN):
        return plain(x, y, out=out)
    return put(through_float32(plain, halves[0], x, y), out)


def like(x: Array, y: Any) -> bool:
    """Whether `y` is an array of the dtype of `x` that lies as that does."""
    if y.__class__ is not ndarray or y.dtype != x.dtype:
        return False
    return bool(
        y.shape == x.shape and y.flags.aligned and (y.strides == x.strides or (x.flags.num & y.flags.num & 3) != 0)
    )


def _one(y: Any, x: Array) -> bool:
    """Whether `y` is a number beside an array of the dtype of `x`, or an array of one that leaves its shape."""
    if y.__class__ is ndarray:
        return bool(y.size == 1 and y.ndim <= x.ndim and (y.dtype == x.dtype or (not y.ndim and x.itemsize == 2)))
    return y.__class__ is float or y.__class__ is int


def map_one(kernel: Reference, x: Array, out: Array | None, *numbers: object) -> Array:
    """The native twin of `kernel`, by its name, of each element.  (*) -> (*)"""
    table = native(x.dtype)
    if table is None:
        if out is None and _is_turned(x):
            return in_memory_order(lambda y: map_one(kernel, y, None, *numbers), x)
        return put(_plain(kernel, x.dtype, x, *numbers, out=out), out)
    if not gapless(x):
        if x.ndim > 2 and out is None:
            return in_memory_order(lambda y: map_one(kernel, y, None, *numbers), x)
        x = copied(x)
    target = empty_like(x) if out is None else _target(out, x)
    getattr(table, kernel.__name__)(x, target, x.size, *numbers)
    return put(target, out)


def _is_turned(x: Array) -> bool:
    """Whether an array of three dimensions or more lies without gaps, but in another order than that of its dimensions, or the reverse."""
    return x.ndim > 2 and not gapless(x) and gapless(x.transpose(memory_order(x)))


def in_memory_order(run: Callable[..., Array], first: Array, *others: Array) -> Array:
    """`run` of arrays of one shape whose dimensions are in the order in which `first` lies; so does the result.

    What lies densely in another order than that of its dimensions is not copied for it.
    """
    order = memory_order(first)
    turned = first.transpose(order)
    if not gapless(turned):
        turned = copied(turned)
    return run(turned, *[x.transpose(order) for x in others]).transpose(argsort(order))


def _target(out: Array, *inputs: Array) -> Array:
    """`out` where a kernel may write at once, element by element as it reads; else an array to be copied into it."""
    first = inputs[0]
    if out.strides != first.strides or out.dtype != first.dtype or out.shape != first.shape or not out.flags.behaved:
        return empty_like(first)
    return out if all(out is x or _apart(out, x) for x in inputs) else empty_like(first)


def _apart(out: Array, x: Array) -> bool:
    """Whether two arrays of one layout are the same memory or share none."""
    if not may_share_memory(out, x):
        return True
    return bool(out.__array_interface__["data"][0] == x.__array_interface__["data"][0] and out.strides == x.strides)


def map_pair(kernel: Reference, x: Array, y: Array, out: Array | None, *numbers: object) -> Array:
    """The native twin of `kernel`, by its name, of each pair of elements.  (*), (*) -> (*)"""
    table = native(x.dtype)
    if table is None or y.dtype != x.dtype:
        if out is None and x.shape == y.shape and x.strides == y.strides and _is_turned(x):
            return in_memory_order(lambda a, b: map_pair(kernel, a, b, None, *numbers), x, y)
        return put(_plain(kernel, x.dtype, x, y, *numbers, out=out), out)
    if x.shape != y.shape or x.flags.num & y.flags.num & DENSE != DENSE:
        order = _order_of_other(x, y) if out is None else None
        if order is not None:
            return _with_expanded(getattr(table, kernel.__name__), x, y, order, *numbers)
        if out is None and x.ndim > 2 and x.shape == y.shape and not gapless(x):
            return in_memory_order(lambda a, b: map_pair(kernel, a, b, None, *numbers), x, y)
        if out is None and x.shape == y.shape and gapless(y) and not gapless(x):  # no copy beside the result
            out = empty_like(y)
            out[...] = x
            x = out
        x, y = alike(x, y)
    target = empty_like(x) if out is None else _target(out, x, y)
    getattr(table, kernel.__name__)(x, y, target, x.size, *numbers)
    return put(target, out)


def _order_of_other(x: Array, y: Array) -> list[int] | None:
    """The order in memory of the dimensions of `y`, which has no gaps, where `x` is expanded and lies in no other; else None."""
    if 0 not in x.strides or x.shape != y.shape or not x.size:
        return None
    order = memory_order(y)
    dense = y.transpose(order).flags.num & DENSE == DENSE
    return order if dense and (not any(x.strides) or memory_order(x) == order) else None


def _with_expanded(run: Callable[..., object], x: Array, y: Array, order: list[int], *numbers: object) -> Array:
    """A kernel of pairs whose first elements are expanded, in the memory of the result: no copy beside that."""
    turned = y.transpose(order)
    made = empty_like(turned)
    made[...] = x.transpose(order)
    run(made, turned, made, made.size, *numbers)
    return made.transpose(argsort(order))


def _plain(kernel: Reference, dtype: np.dtype[Any], *arguments: object, out: Array | None = None) -> Array:
    """A kernel in NumPy, and of 16 bits as it is done best, perhaps in `out`."""
    if not is_half(dtype):
        return asarray(kernel(*arguments))
    arrays = [a for a in arguments if isinstance(a, ndarray)]
    numbers = arguments[len(arrays) :]
    found = _of_halves(kernel, dtype, arrays, numbers, out)
    if found is None and all(a.dtype == dtype for a in arrays):
        again = (map_one, map_pair)[len(arrays) - 1]
        found = in_float32_blocks(lambda *blocks: again(kernel, *blocks, None, *numbers), *arrays)
    return asarray(through_float32(kernel, dtype, *arguments)) if found is None else found


def maps_of(half: np.dtype[Any]) -> Any:
    """The native kernels of float16 or bfloat16 numbers; None where there are none."""
    tables = loader._tables
    return (loader.tables() if tables is None else tables).get(("f16" if half.kind == "f" else "bf16", "maps"))


def _of_halves(
    kernel: Reference, half: np.dtype[Any], arrays: list[Array], numbers: tuple[object, ...], out: Array | None
) -> Array | None:
    """The native twin of `kernel` that takes numbers of 16 bits, into `out` where it can be; None where there is none."""
    first, run = arrays[0], getattr(maps_of(half), kernel.__name__, None)
    if run is None or any(a.dtype != half or a.shape != first.shape for a in arrays):
        return None
    dense = [first if gapless(first) else first.copy(order="C")] if len(arrays) == 1 else alike(*arrays)
    made = empty_like(dense[0]) if out is None else _target(out, *dense)
    run(*(a.view(uint16) for a in dense), made.view(uint16), made.size, *numbers)
    return made
