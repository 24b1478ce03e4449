"""What the families share: finding the native table, layouts, and half precision.

A family's public function asks `native` for its dtype's table.  With one it makes its arrays dense and
calls it; without one (no compiler, or another dtype) it calls its NumPy twin in ``reference``.  16-bit floats
are computed in float32 and rounded once at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import eights
from rushlight.basics.arrays import Array as Array
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_halves
from rushlight.kernels.pointwise.copies import cast, copied

exports_of_halves(
    # halves.cpp: input, output, elements
    widen="aan",
    narrow="aan",
    # two inputs, output, elements
    add="aaan",
    subtract="aaan",
    multiply="aaan",
    divide="aaan",
    # input, output, elements, a number on either side
    add_number="aand",
    subtract_number="aand",
    multiply_number="aand",
    divide_number="aand",
    number_subtract="aand",
    number_divide="aand",
    # input, places, rows, elements of each, whether of the least
    extremes_at="aanni",
)


FLOAT32 = np.dtype(np.float32)


def native(dtype: np.dtype[Any]) -> loader.Kernels | None:
    """The native kernels for ``dtype`` (float32, float64), None where there are none."""
    found = loader._tables
    if found is None:
        found = loader.tables()
    return found.get(dtype)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is float16 or bfloat16."""
    if dtype.itemsize != 2:  # of most calls: no more is asked
        return False
    return dtype.kind == "f" or dtype.name == "bfloat16"


def rows_of(dtype: np.dtype[Any]) -> loader.Kernels | None:
    """The native kernels of rows and their sums, which numbers of 16 bits have too: they take `bits`; None where there are none."""
    found = loader._tables
    if found is None:
        found = loader.tables()
    if dtype.itemsize != 2 or not is_half(dtype):
        return found.get(dtype)
    return found.get(("f16" if dtype.kind == "f" else "bf16", "rows"))


def bits(x: Array) -> Array:
    """An array as native code takes it: 16-bit floats as unsigned numbers."""
    return x.view(np.uint16) if x.itemsize == 2 and is_half(x.dtype) else x


def summed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a row's statistics and sums: float32 of 16 bits."""
    return FLOAT32 if dtype.itemsize == 2 and is_half(dtype) else dtype


def summed(subscripts: str, a: Array, b: Array) -> Array:
    """np.einsum of two arrays.  Of empty ones it may give what lies where one begins times 0, which is NaN of NaN."""
    made = np.einsum(subscripts, a, b)
    return made if a.size else np.zeros_like(made)


SMALL = 512  # numbers up to which NumPy's own conversion costs less


def _converter(half: np.dtype[Any]) -> loader.Kernels | None:
    found = loader._tables
    suffix = "f16" if half.kind == "f" else "bf16"
    return (loader.tables() if found is None else found).get((suffix, "halves"))


def widened(x: Array) -> Array:
    """A copy of a 16-bit array in float32, its elements in the same order in memory if they lie without gaps."""
    table = _converter(x.dtype) if x.size > SMALL else None
    if table is None:
        return x.astype(FLOAT32)
    x = x if gapless(x) else copied(x)
    out = np.empty_like(x, FLOAT32, subok=False)
    table.widen(x.view(np.uint16), out, x.size)
    return out


def rounded(x: Array, half: np.dtype[Any], out: Array | None = None) -> Array:
    """A float32 array rounded to a 16-bit dtype, to nearest; into `out`, of its shape, if there is one."""
    table = _converter(half) if x.size > SMALL and x.dtype == FLOAT32 else None
    if table is not None and not gapless(x):
        x = x.copy()
    if table is None:
        if out is None:
            return x.astype(half)
        out[...] = x
    elif out is None:
        out = np.empty_like(x, half, subok=False)  # of axes of one element the strides may differ, which say nothing
        table.narrow(x, out.view(np.uint16), x.size)
    elif out.dtype != half:
        out[...] = x
    elif not gapless(out) or out.strides != tuple(n // 2 for n in x.strides):
        out[...] = rounded(x, half)
    else:
        table.narrow(x, out.view(np.uint16), x.size)
    return out


def place_of_extreme(name: str, x: Array, dim: int | None, keepdims: bool) -> Array:
    """np.argmax or np.argmin, by its name, of which rows of 16 bits have a kernel: what is no number is the greatest, or the least.  (*) -> (*) of int64"""
    whole = dim is None
    by_rows = is_half(x.dtype) and x.size > SMALL and dense(x) and (whole or dim in (-1, x.ndim - 1))
    table = _converter(x.dtype) if by_rows else None
    if table is None:
        found = np.asarray(getattr(np, name)(widened(x) if is_half(x.dtype) else x, axis=dim, keepdims=keepdims))
        return found.astype(np.int64, copy=False)
    out = np.empty((1,) * x.ndim if whole else (*x.shape[:-1], 1), np.int64)
    table.extremes_at(x.view(np.uint16), out, out.size, x.size // out.size, name == "argmin")
    return out if keepdims else out.reshape(() if whole else x.shape[:-1])


PAIRED = frozenset((np.add, np.subtract, np.multiply, np.divide))


def of_halves(fn: np.ufunc, x: Any, y: Any, out: Array | None = None) -> Array | None:
    """A sum, product or quotient of two large arrays of one 16-bit dtype that lie alike, natively; None of any others.

    out: one of them, or None. In float32 and rounded, which is what NumPy does number by number (see `compute.in_blocks`).
    """
    if x.__class__ is not np.ndarray or y.__class__ is not np.ndarray or x.size <= SMALL or not is_half(x.dtype):
        return None
    if (
        x.dtype != y.dtype
        or x.shape != y.shape
        or x.strides != y.strides
        or not gapless(x)
        or not y.flags.aligned
        or fn not in PAIRED
    ):
        return None
    table = _converter(x.dtype)
    if table is None:
        return None
    made = np.empty_like(x) if out is None else out
    getattr(table, fn.__name__)(x.view(np.uint16), y.view(np.uint16), made.view(np.uint16), x.size)
    return made


def of_half_and_number(fn: Any, x: Array, number: float, first: bool) -> Array | None:
    """A sum, difference, product or quotient of a 16-bit array and a number of float32, natively; None of any other.

    first: whether the number comes before the array.
    """
    table = _converter(x.dtype) if fn in PAIRED and gapless(x) and x.size > SMALL else None
    if table is None:
        return None
    turned = first and fn in (np.subtract, np.divide)
    made = np.empty_like(x)
    kernel = getattr(table, f"number_{fn.__name__}" if turned else f"{fn.__name__}_number")
    kernel(x.view(np.uint16), made.view(np.uint16), x.size, number)
    return made


def recast(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x.astype(dtype, copy=False)``, between 16 bits and float32 by native code; what has more digits than float32 is rounded to it first."""
    if dtype.itemsize == 2 and x.itemsize >= 4 and x.dtype != FLOAT32 and x.dtype.kind in "fiu" and is_half(dtype):
        if x.size > AT_ONCE and any(x.strides):
            return narrow_into(x, ordered(x, dtype) if 0 in x.strides else np.empty_like(x, dtype))
        x = recast(x, FLOAT32)
    if x.size > SMALL and x.dtype != dtype:
        if not any(x.strides):  # one number everywhere, which a kernel would lay out first
            return np.full(x.shape, recast(np.asarray(x[(0,) * x.ndim]), dtype), dtype)
        if dtype == FLOAT32 and is_half(x.dtype):
            return widened(x)
        if x.dtype == FLOAT32 and is_half(dtype):
            return rounded(x, dtype)
    if x.itemsize == 1 or dtype.itemsize == 1:
        if dtype.kind == "b" and is_half(x.dtype):
            return as_truths(x)
        if x.dtype.kind == "b" and is_half(dtype):
            return chosen_bits(x, np.ones((), dtype))
        x = of_eights(x, dtype)
    if 0 in x.strides and x.dtype != dtype and x.size > 1:
        out = ordered(x, dtype)
        np.copyto(out, x, casting="unsafe")
        return out
    return x if x.dtype == dtype else cast(x, dtype)


def narrow_into(x: Array, out: Array) -> Array:
    """Real numbers into 16 bits, of their shape and apart from them, through float32: of those that have more digits some at a time."""
    at_once = x.dtype == FLOAT32 and gapless(x) and out.strides == tuple(n // 2 for n in x.strides)
    if at_once or x.size <= AT_ONCE:
        return rounded(recast(x, FLOAT32), out.dtype, out)
    order = memory_order(x)
    given, to = x.transpose(order), out.transpose(order)
    if given.flags.c_contiguous and to.flags.c_contiguous:
        given, to = given.reshape(-1), to.reshape(-1)
    some = AT_ONCE // given[0].size
    for i in range(0, len(given), max(some, 1)):
        part = slice(i, i + some) if some else i
        narrow_into(given[part], to[part])
    return out


def chosen_bits(mask: Array, number: Array) -> Array:
    """A 16-bit number where a mask of 0 and 1 is 1, else 0: by its bits, where NumPy would convert one by one.  (*), () -> (*)"""
    return np.asarray(np.multiply(mask, number.view(np.uint16), dtype=np.uint16)).view(number.dtype)


def as_truths(x: Array) -> Array:
    """``x.astype(bool)``, which of 16 bits NumPy does number by number."""
    return np.not_equal(x, 0) if is_half(x.dtype) else x.astype(np.bool_, copy=False)


def of_eights(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x``, on its way to ``dtype``: numbers of 8 bits in float32, and rounded to 8 bits where ``dtype`` asks for that."""
    if x.dtype == dtype:
        return x
    if x.dtype in eights.EIGHTS:
        x = eights.widened(x)
    return eights.narrowed(x, dtype) if dtype in eights.EIGHTS else x


def memory_order(x: Array) -> list[int]:
    """The dimensions of an array as they lie in memory, outermost first.

    Those with strides of 0, along which it is expanded, stay where they are; NumPy would put them innermost.
    """
    order = list(range(x.ndim))
    for i in range(x.ndim - 2, -1, -1):
        for k in range(i + 1, x.ndim):
            out, inner = order[i], order[k]
            a, b = abs(x.strides[out]), abs(x.strides[inner])
            if a == 0 or b == 0 or (a == b and x.shape[inner] <= x.shape[out]):
                continue
            if a > b:
                break
            order[i], order[k], i = inner, out, k
    return order


def ordered(x: Array, dtype: np.dtype[Any]) -> Array:
    """Uninitialized memory without gaps, in the order of an array that has some or overlaps itself."""
    order = memory_order(x)
    made = np.empty([x.shape[i] for i in order], dtype)
    return made.transpose(np.argsort(order)) if order != sorted(order) else made


def room(x: Array, dtype: np.dtype[Any]) -> Array:
    """Uninitialized memory of the shape of an array, without gaps and in its order."""
    return np.empty(x.shape, dtype) if x.flags.c_contiguous else ordered(x, dtype)


def packed(x: Array) -> Array:
    """The array, or a copy of one whose elements lie in another order than its dimensions."""
    return x if x.flags.c_contiguous else x.copy()


def up(*arrays: Array | None) -> list[Any]:
    """The arrays in float32, for 16-bit ones; None stays None."""
    return [a if a is None or not is_half(a.dtype) else widened(a) for a in arrays]


def through_float32(kernel: Callable[..., Any], dtype: np.dtype[Any], *arguments: object) -> Any:
    """``kernel`` on float32 copies of the 16-bit arrays among ``arguments``; array results back in ``dtype``."""
    out = kernel(*(widened(a) if isinstance(a, np.ndarray) and is_half(a.dtype) else a for a in arguments))
    if isinstance(out, tuple):
        return tuple(a if a is None else rounded(a, dtype) for a in out)
    return rounded(out, dtype)


BLOCK = 1 << 16  # elements whose float32 copies are made at once
AT_ONCE = (
    1 << 18
)  # the same of elementwise operators: of fewer the calls take as long as the work, and threads have none


def in_float32_blocks(kernel: Callable[..., Any], *arrays: Array) -> Array | None:
    """An elementwise kernel on float32 copies of 16-bit arrays of one shape, or of one element, block by block.

    The result is rounded to the dtype of the first array.  None where the shapes are others, or the kernel makes no float32.
    The copies are made in the same memory again: what the kernel is given is its own until it returns.
    """
    shape = max((a.shape for a in arrays), key=lambda s: (math.prod(s), len(s)))
    if any(a.size != 1 and a.shape != shape for a in arrays):
        return None
    parts = [parts_in_float32(a, AT_ONCE) for a in arrays]
    out = np.empty(math.prod(shape), next(a.dtype for a in arrays if is_half(a.dtype)))
    for start in range(0, out.size, AT_ONCE):
        found = kernel(*(part(start) for part in parts))
        if found.__class__ is not np.ndarray or found.dtype != FLOAT32:
            return None
        rounded(found, out.dtype, out[start : start + AT_ONCE])
    return out.reshape(shape)


def parts_in_float32(a: Array, size: int = BLOCK) -> Callable[[int], Array]:
    """What gives the block of `size` of an array that begins at a place, 16-bit floats in float32; of one element that each time."""
    if a.size == 1:
        one = (widened(a) if is_half(a.dtype) else a).reshape(())
        return lambda start: one
    flat = (a if a.flags.c_contiguous else copied(a)).reshape(-1)
    table = _converter(a.dtype) if is_half(a.dtype) and dense(flat) else None
    if table is None:
        return lambda start: _wide(flat[start : start + size])
    given, room = flat.view(np.uint16), np.empty(min(size, a.size), FLOAT32)

    def part(start: int) -> Array:
        some = given[start : start + size]
        wide = room[: some.size]
        table.widen(some, wide, some.size)
        return wide

    return part


def _wide(a: Array) -> Array:
    return widened(a) if is_half(a.dtype) else a


def blocks_of_rows(x: Array) -> list[slice]:
    """The rows of a matrix (R, C), some at a time, so that float32 copies of them are small; one block if there are none."""
    some = max(BLOCK // max(x.shape[1], 1), 1)
    return [slice(i, i + some) for i in range(0, len(x) or 1, some)]


PART = 1 << 17  # numbers of rows that are made to be added


def parts_of_rows(count: int, width: int, dtype: np.dtype[Any]) -> list[slice]:
    """`count` rows to be added one after the other, some at a time; all together where no kernel adds each by itself."""
    some = max(PART // max(width, 1), 1) if native(dtype) is not None else max(count, 1)
    return [slice(i, min(i + some, count)) for i in range(0, count or 1, some)]


DENSE = 0x101  # NumPy's flags C_CONTIGUOUS and ALIGNED
_ALIGNED = 0x100


def dense(x: Array) -> bool:
    """Whether ``x`` is C-contiguous and aligned: fields of packed records, and numbers at an odd place of a buffer, are not."""
    return x.flags.num & DENSE == DENSE


def gapless(x: Array) -> bool:
    """Whether ``x`` is aligned, and C-contiguous or Fortran-contiguous."""
    flags = x.flags
    return flags.forc and flags.num & _ALIGNED != 0


def contiguous(x: Array) -> Array:
    """``x`` itself if C-contiguous and aligned, else a copy of the same shape that is (0-d stays 0-d)."""
    return x if x.flags.num & DENSE == DENSE else copied(x)


def agree(kernel: str, shape: tuple[int, ...], *arrays: Array | None) -> None:
    """Raise RuntimeError unless all arrays (None aside) have this shape: what is saved may have been replaced since."""
    for a in arrays:
        if a is not None and a.shape != shape:
            raise RuntimeError(f"{kernel}: expected an array of shape {list(shape)}, got one of {list(a.shape)}: was a "
                               "tensor's data replaced by another shape between forward and backward?")  # fmt: skip


def alike(x: Array, y: Array) -> tuple[Array, Array]:
    """Two equally shaped arrays whose elements lie in the same order in memory without gaps."""
    if x.shape != y.shape:
        x, y = np.broadcast_arrays(x, y)
    elif x.strides == y.strides and gapless(x) and y.flags.aligned:
        return x, y
    return contiguous(x), contiguous(y)


def put(result: Array, out: Array | None) -> Array:
    """``result``, copied into ``out`` if there is one."""
    if out is None or result is out:
        return result
    out[...] = result
    return out
