"""Numbers of 8 bits: conversions to them as PyTorch's, where those of ml_dtypes are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array

__all__ = ["EIGHTS", "narrowed", "refuse", "widened"]

NAMES = "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"
E4M3FN, E5M2, E4M3FNUZ, E5M2FNUZ, E8M0FNU = (np.dtype(getattr(ml_dtypes, name)) for name in NAMES)
EIGHTS = frozenset((E4M3FN, E5M2, E4M3FNUZ, E5M2FNUZ, E8M0FNU))
FLOAT32 = np.dtype(np.float32)

# Operators that are computed, in float32 and rounded, beside those that move elements; by dtype, those that are not.
COMPUTED = frozenset("mul eq ne abs mm bmm linear addmm index_put isinf isfinite".split())
FINITE = frozenset(("isinf", "isfinite"))
UNKNOWN = {
    E4M3FN: FINITE, E5M2: frozenset(), E4M3FNUZ: FINITE, E5M2FNUZ: FINITE,
    E8M0FNU: frozenset("abs mm bmm linear addmm index_put isinf".split()),
}  # fmt: skip


def widened(array: Array) -> Array:
    """The numbers in float32, which holds them all.  (*) -> (*)"""
    return array.astype(FLOAT32)


def narrowed(array: object, dtype: np.dtype[Any]) -> Array:
    """Real numbers rounded to 8 bits, from float32: whatever is beyond float8_e4m3fn is its greatest number.  (*) -> (*)"""
    with np.errstate(all="ignore"):
        x = np.asarray(array, dtype=FLOAT32) if array.__class__ is not np.ndarray else array.astype(FLOAT32, copy=False)
        if dtype == E8M0FNU:
            return powers_of_two(x)
        if dtype == E4M3FN:
            x = np.clip(x, -448, 448)
        made = np.asarray(x).astype(dtype)
        if dtype == E5M2:
            made.view(np.uint8)[np.isnan(x)] |= 1  # the one NaN that PyTorch writes
        return made


def powers_of_two(x: Array) -> Array:
    """The sizes of float32 numbers rounded to powers of two, halves up; NaN where they are not finite.  (*) -> (*)"""
    bits = x.view(np.uint32)
    power = (bits >> 23) & 0xFF
    up = (bits & 0x400000 != 0) & ((power > 0) | (bits & 0x3FFFFF != 0)) & (power < 0xFF)
    return np.asarray(power + up).astype(np.uint8).view(E8M0FNU)


def computes(name: str, dtype: np.dtype[Any]) -> bool:
    """Whether an operator that does more than move elements takes numbers of this dtype."""
    return name in COMPUTED and name not in UNKNOWN[dtype]


def refuse(name: str, dtype: np.dtype[Any]) -> NoReturn:
    """Raise NotImplementedError for what is not computed of numbers of 8 bits."""
    raise NotImplementedError(
        f"\"{name}\" not implemented for '{dtype.name.capitalize()}': numbers of 8 bits are kept and moved, not computed with; "
        "convert them with x.float()"
    )
