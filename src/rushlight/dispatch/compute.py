"""The forward on raw arrays: promotion, half precision, arrays in and arrays out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import as_number, older
from rushlight.basics.dtypes import is_complex, is_complex_half, real_of
from rushlight.basics.eights import EIGHTS, FINITE, computes, refuse
from rushlight.basics.errors import explained
from rushlight.dispatch.dims import two_sizes
from rushlight.kernels.dispatch import SMALL, in_float32_blocks, of_half_and_number, of_halves, recast, rounded, widened
from rushlight.kernels.native import ufuncs
from rushlight.kernels.pointwise.orders import by_rows

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op

ndarray = np.ndarray
HALVES = dtypes.HALVES
BFLOAT16 = dtypes.bfloat16.numpy.num  # NumPy's own dtypes have smaller numbers, others of ml_dtypes greater ones
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
LARGE_HALVES = 1 << 15  # bytes from which on arrays of 16 bits may be better gone through in blocks
COMPLEX64, COMPLEX32 = np.dtype(np.complex64), dtypes.complex32.numpy


def promoted(op: Op, arrays: list[Any]) -> list[Any]:
    """The arrays and numbers in the dtype in which `op` computes."""
    if alike(arrays) and (op.promote != "float" or arrays[0].dtype.kind in "fc"):
        return arrays
    target = dtypes.result_dtype([x for x in arrays if x is not None])
    if target.category < dtypes.FLOAT:
        check_wide(op, arrays)
    if op.promote == "float" and target.category < dtypes.FLOAT:
        target = dtypes.get_default_dtype()
    wanted = target.numpy
    if target is dtypes.complex32:
        return [x if x is None else cast(x, wanted if x.__class__ is ndarray else COMPLEX64) for x in arrays]
    if op.exact and wanted in HALVES:
        dimensions = any(x.__class__ is ndarray and x.ndim for x in arrays)
        return [x if x is None else cast(x, FLOAT32 if is_number(x, dimensions) else wanted) for x in arrays]
    found = [x if x is None or (x.__class__ is ndarray and x.dtype == wanted) else cast(x, wanted) for x in arrays]
    if (
        op.knows_numbers and target.category >= dtypes.FLOAT and target is not dtypes.float16
    ):  # in which a number is an array to PyTorch too
        found[1:] = [x if x.__class__ is float else y for x, y in zip(arrays[1:], found[1:], strict=True)]
    return found


def check_wide(op: Op, arrays: list[Any]) -> None:
    """Refuse Python integers beyond 64 bits beside integers, and unsigned ones beyond int64 beside bools.

    Raises OverflowError, RuntimeError.  Others wrap around, as those of PyTorch do.
    """
    for x in arrays:
        if x.__class__ is not int or -BEYOND <= x < BEYOND:
            continue
        if not -BEYOND <= x < 2 * BEYOND:
            raise OverflowError(
                f"{op.shown}: int too big to convert: {x} has more than 64 bits; convert it, or the tensor, to float"
            )
        if all(a.dtype.kind == "b" for a in arrays if a.__class__ is ndarray):
            raise RuntimeError(
                f"{op.shown}: Promotion for uint16, uint32, uint64 types is not supported: {x} beside bools is beyond int64"
            )


BEYOND = 1 << 63


def alike(arrays: list[Any]) -> bool:
    """Whether all are arrays of one dtype, of those that NumPy computes in: they decide it together."""
    kind = arrays[0].dtype if arrays[0].__class__ is ndarray else None
    if kind is None or kind.kind not in "biufc" or kind.itemsize == 2:
        return False
    for x in arrays:
        if x.__class__ is not ndarray or x.dtype is not kind:
            return False
    return True


def cast(x: Array | complex, dtype: np.dtype[Any]) -> Array:
    """An array or Python number as an array of `dtype`; integers wrap around as in C."""
    if x.__class__ is float and (dtype is FLOAT32 or dtype is FLOAT64) and -LARGEST <= x <= LARGEST:
        return np.array(x, dtype)
    if isinstance(x, (ndarray, np.generic)):
        if is_complex(x.dtype) and not is_complex(dtype) and dtype.kind != "b":
            x = real_of(x)
        return recast(np.asarray(x), dtype)
    if dtype.kind in "iu" and isinstance(x, (int, float)) and not isinstance(x, bool):
        bits = 8 * dtype.itemsize
        return np.array(int(x) & ((1 << bits) - 1), np.uint64).astype(dtype)
    return recast(np.asarray(float(x) if x.__class__ is int else x), dtype)  # integers of more than 64 bits are objects


def fitted(name: str, value: Any, dtype: np.dtype[Any], halves: bool = False) -> Array:
    """A number as a scalar of `dtype`.  Raises RuntimeError where that loses more than precision.

    halves: also where a finite number becomes infinite in 16 bits, which assigning to elements does not mind.
    """
    if value.__class__ in (int, float) and dtype in USUAL and -LARGEST <= value <= LARGEST:
        return np.array(value, dtype)
    if dtype.kind in "iu":
        return _fitted_integer(name, value, dtype)
    if isinstance(value, (complex, np.complexfloating)) and not is_complex(dtype) and dtype.kind != "b":
        if value.imag:
            refuse_overflow(name, dtype)
        value = value.real
    if value.__class__ is int and not -BEYOND <= value < BEYOND:
        value = float(value)  # of which NumPy makes numbers, not objects
    with np.errstate(all="ignore"):
        found = recast(np.asarray(value), dtype)
    if (dtype in OVERFLOWING or (halves and dtype in HALVES)) and _beyond(
        value, OVERFLOWING.get(dtype) or dtypes.finfo(dtypes.of(dtype)).max
    ):
        refuse_overflow(name, dtype)
    return found


def _beyond(value: Any, largest: float) -> bool:
    """Whether a finite number, or one of its parts, is greater than the largest of a dtype, and be it rounded to that."""
    return any(abs(part) > largest and not np.isinf(part) for part in (value.real, value.imag))


def check_numbers(name: str, dtype: np.dtype[Any], *numbers: Any) -> None:
    """Raise RuntimeError where a number, None aside, becomes infinite in a floating-point dtype."""
    if dtype.kind != "f":
        return
    for x in numbers:
        small = dtype in USUAL and (x is None or (not isinstance(x, complex) and -LARGEST <= x <= LARGEST))
        if not small and x is not None:
            fitted(name, x, dtype, True)


def check_factors(name: str, dtype: np.dtype[Any], *numbers: object) -> None:
    """Raise RuntimeError where a number, None aside, becomes infinite in what a dtype is computed in: 16 bits in float32."""
    if dtype in USUAL or dtype.itemsize == 2:
        check_numbers(name, dtype if dtype.itemsize == 8 else FLOAT32, *numbers)


OVERFLOWING = {
    d.numpy: dtypes.finfo(d).max for d in (dtypes.float32, dtypes.complex64, dtypes.complex32)
}  # and their largest numbers
USUAL = (FLOAT32, np.dtype(np.float64), np.dtype(np.int64))
LARGEST = float(1 << 62)  # numbers up to which all of them hold, rounded


def _fitted_integer(name: str, value: float, dtype: np.dtype[Any]) -> Array:
    if isinstance(value, (complex, np.complexfloating)):
        if value.imag:
            refuse_overflow(name, dtype)
        value = value.real
    finite = not isinstance(value, (float, np.floating)) or math.isfinite(value)
    info, number = np.iinfo(dtype), int(value) if finite else 0
    low = -info.max if dtype.kind == "u" else info.min
    exact = isinstance(value, (float, np.floating))  # of which none wraps around
    if not finite or not low <= number <= info.max or (exact and not info.min <= value <= info.max):
        refuse_overflow(name, dtype)
    return np.array(number & ((1 << 64) - 1), np.uint64).astype(dtype)


def refuse_overflow(name: str, dtype: np.dtype[Any]) -> NoReturn:
    """Raise RuntimeError for a number that a dtype cannot hold."""
    raise RuntimeError(f"{name}: value cannot be converted to type {as_number(dtypes.of(dtype))} without overflow")


def compute(op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Run the forward of `op`; the outputs and the auxiliary results, as arrays."""
    if op.check is not None:
        op.check(arrays)
    if op.scales is not None:
        scaled = beside_number(op.scales, *arrays)
        if scaled is not None:
            return (scaled,), ()
    if op.promote is not None:
        arrays = promoted(op, arrays)
    else:
        arrays = [np.asarray(x) if isinstance(x, np.generic) else x for x in arrays]
    if op.refuse:
        check_kind(op, arrays)
    for x in arrays:
        if x.__class__ is ndarray and x.dtype.num > BFLOAT16 and (op.complex_half != "moves" or op.name in FINITE):
            if not is_complex_half(x.dtype):
                return in_float32(op, arrays, statics)
            if op.complex_half != "moves":
                return in_complex64(op, arrays, statics)
    half = None
    if op.half is not None or op.ufunc is not None:
        for x in arrays:
            if x.__class__ is ndarray and x.dtype in HALVES:
                found = in_blocks(op, arrays, statics) if goes_in_blocks(op) else None
                if found is not None:
                    return (found,), ()
                if op.half is None:
                    break
                half = x.dtype
                arrays = [widened(a) if a.__class__ is ndarray and a.dtype in HALVES else a for a in arrays]
                break
    if op.broadcasts:
        try:
            result = in_rows(op, arrays, statics) if len(arrays) > 1 else None
            if result is None:
                result = op.forward(*arrays, *statics)
        except ValueError:
            check_broadcast(op.name, [arrays[i] for i in op.broadcasts])
            raise
    elif op.sequence is None:
        result = op.forward(*arrays, *statics)
    else:
        k = op.sequence
        result = op.forward(*arrays[:k], tuple(arrays[k:]), *statics)
    outs, aux = split(op, result)
    outs = tuple(x if x.__class__ is ndarray else np.asarray(x) for x in outs)
    if half is not None and op.promote != "compare":
        outs = tuple(rounded(x, half) if x.dtype == FLOAT32 else x for x in outs)
    return outs, aux


def in_complex64(op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """As `compute`, of complex32 arrays: in complex64, the results rounded.

    Raises NotImplementedError for operators that are not declared to be right for them: NumPy does not know that the
    elements are complex, so that a formula would take them for real numbers.
    """
    if not op.complex_half:
        refuse_complex32(op.shown)
    wide = [x.astype(COMPLEX64) if x.__class__ is ndarray and is_complex_half(x.dtype) else x for x in arrays]
    outs, aux = compute(op, wide, statics)
    narrow = {COMPLEX64: COMPLEX32, FLOAT32: dtypes.float16.numpy}
    with np.errstate(over="ignore"):
        return tuple(x.astype(narrow[x.dtype]) if x.dtype in narrow else x for x in outs), aux


def in_float32(op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """As `compute`, of arrays of 8 bits: in float32, the results rounded.

    Raises NotImplementedError for all but a few operators, as PyTorch does: most numbers that follow are none of 8 bits.
    """
    small = next(x.dtype for x in arrays if x.__class__ is ndarray and x.dtype in EIGHTS)
    if not computes(op.name, small):
        refuse(op.shown, small)
    wide = [recast(x, FLOAT32) if x.__class__ is ndarray and x.dtype in EIGHTS else x for x in arrays]
    outs, aux = compute(op, wide, statics)
    return tuple(recast(x, small) if x.dtype == FLOAT32 else x for x in outs), aux


def refuse_complex32(name: str) -> NoReturn:
    """Raise NotImplementedError for what is not computed of complex32."""
    raise NotImplementedError(
        f"\"{name}\" not implemented for 'ComplexHalf': compute in complex64 with x.cfloat(), and convert the result with "
        "chalf()"
    )


def beside_number(fn: Callable[..., Any] | np.ufunc, a: Array, b: Array | complex) -> Array | None:
    """fn(a, b) of a 16-bit array and a number that its dtype does not hold: in float32, rounded at the end; else None.

    A tensor without dimensions beside one that has some is a number.
    """
    for x, n in ((a, b), (b, a)):
        if x.__class__ is ndarray and x.dtype in HALVES and is_number(n, bool(x.ndim)):
            number = np.asarray(n).astype(FLOAT32)
            if number.astype(x.dtype) != number:
                made = of_half_and_number(fn, x, float(number), x is b) if x.flags.c_contiguous else None
                if made is not None:
                    return made
                out = np.empty_like(x, order="C")
                fn(*((x, number) if x is a else (number, x)), out=out, casting="unsafe", dtype=FLOAT32)
                return out
    return None


def is_number(x: object, beside_dimensions: bool) -> bool:
    """Whether `x` is a real number, or a tensor without dimensions, which counts as one beside others."""
    if x.__class__ is ndarray:
        return bool(beside_dimensions and not x.ndim and x.dtype.kind in "iufV")
    return x.__class__ is float or x.__class__ is int


def goes_in_blocks(op: Op) -> bool:
    """Whether large 16-bit inputs of an operator become float32 block by block."""
    return bool(op.elementwise and not op.aux and op.out_count == 1 and op.promote != "compare" and op.sequence is None)


def in_rows(op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> Array | None:
    """The result of an elementwise operator on large arrays that lie in different orders; None where they need no copies."""
    if not op.elementwise or op.aux or op.out_count != 1 or op.sequence is not None:
        return None
    return by_rows(lambda *rows: op.forward(*rows, *statics), arrays)


def in_blocks(op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> Array | None:
    """The result of an elementwise operator on 16-bit arrays that are not small, without float32 copies of all of them; else
    None.

    Also of what NumPy computes in 16 bits, number by number: to do it in float32 and round gives the same, since float32 has
    more than twice the digits (Figueroa, "When is double rounding innocuous?", 1995).
    """
    if any(x.__class__ is not ndarray for x in arrays) or max(x.size for x in arrays) <= SMALL:
        return None
    number = arrays[0].dtype.num
    if op.ufunc is not None and (op.ufunc, number) in ufuncs.TAKEN and all(x.dtype.num == number for x in arrays):
        fn = getattr(np, op.ufunc)
        found: Array | None = by_rows(fn, arrays)
        return fn(*arrays) if found is None else found
    if op.ufunc is not None and len(arrays) == 2:
        pair = of_halves(getattr(np, op.ufunc), *arrays)
        if pair is not None:
            return pair
    return in_float32_blocks(lambda *blocks: op.forward(*blocks, *statics), *arrays)


def halves_of(op: Op) -> Set[np.dtype[Any]]:
    """The dtypes of 16 bits that the forward of a closed record takes as they are; of NumPy's functions those for which there are loops of ours."""
    if op.ufunc is not None:
        return ufuncs.DTYPES[op.ufunc]
    return frozenset(HALVES if op.half is None else ())


def held(dtype: np.dtype[Any], number: float) -> Array | None:
    """A number as an array without dimensions; None where the dtype does not hold it, so that it has to be computed with in float32."""
    if not number:  # zeros of both signs are equal, and would be kept as one
        return np.asarray(np.float32(number)).astype(dtype)
    return _held(dtype, number)


@lru_cache(maxsize=256)
def _held(dtype: np.dtype[Any], number: float) -> Array | None:
    with np.errstate(all="ignore"):
        try:
            found = np.asarray(np.float32(number)).astype(dtype)
        except OverflowError:
            return None
    return found if float(found) == number else None


def check_broadcast(name: str, arrays: list[Any] | tuple[Any, ...]) -> None:
    """Raise RuntimeError if the shapes of these arrays and numbers cannot be broadcast together."""
    shapes = [x.shape for x in arrays if hasattr(x, "shape")]
    for a, b in itertools.combinations(shapes, 2):
        words = two_sizes(a, b)
        if words:
            raise explained(
                RuntimeError(f"{words}: {name}() got shapes {list(a)} and {list(b)}"), "shapes-that-do-not-broadcast"
            ) from None


def check_kind(op: Op, arrays: list[Any]) -> None:
    """Raise if the first tensor is of a kind that `op` refuses."""
    for x in arrays:
        if isinstance(x, (ndarray, np.generic)):
            kind = "bifc"[dtypes.of(x.dtype).category]
            if kind in op.refuse:
                words = {"b": "bool", "i": "integer", "f": "floating-point", "c": "complex"}
                taken = ", ".join(word for letter, word in words.items() if letter not in op.refuse)
                also = f", {op.name} is not implemented for complex tensors" if kind == "c" else ""
                raise op.refusal(
                    f"\"{op.name}\" not implemented for '{older(dtypes.of(x.dtype))}'{also}: expected a tensor of {taken} "
                    f"dtype, got {dtypes.of(x.dtype)}"
                )
            return


def split(op: Op, result: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What a forward returned as (outputs, auxiliaries)."""
    if op.out_count is None:
        return tuple(result), ()
    if op.out_count == 1 and not op.aux:
        return (result,), ()
    return tuple(result[: op.out_count]), tuple(result[op.out_count :])
