"""Integers that are drawn into floating-point dtypes: which of them a dtype holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.basics import caller, dtypes
from rushlight.basics.dtype_words import in_c

if TYPE_CHECKING:
    import numpy as np

EXACT = {2: 11, 4: 24, 8: 53}  # digits, by the number of bytes


def exact(kind: np.dtype[Any]) -> int:
    """One more than the largest integer below which a floating-point dtype, bfloat16 too, holds all of them."""
    return 1 << (EXACT[kind.itemsize] if kind.kind == "f" else 8)


def held(name: str, low: int, high: int, kind: np.dtype[Any]) -> tuple[int, int]:
    """The ends of [low, high) whose numbers stay in it once a floating-point dtype has rounded them.

    Raises RuntimeError for ends beyond the dtype, and warns where it leaves integers out.
    """
    dtype, top = dtypes.of(kind), exact(kind)
    for each, bound in (("from", low), ("to - 1", high - 1)):
        if abs(bound) > dtypes.finfo(dtype).max:
            raise RuntimeError(f"{each} is out of bounds for {in_c(dtype)}: {name} got from={low} and to={high}")
        if abs(bound) > top:
            caller.warn(
                f"{each} is out of bounds [-{top}, {top}]. Due to precision limitations {dtype} can support discrete uniform "
                "distribution only within this range."
            )
    return _rounded(low, high, kind, top.bit_length() - 1)


def _rounded(low: int, high: int, kind: np.dtype[Any], digits: int) -> tuple[int, int]:
    first, last = (int(kind.type(x)) for x in (low + 1, high - 1))
    if first < low:
        low = first + (1 << (abs(low + 1).bit_length() - digits))
    return low, last - (1 << ((high - 1).bit_length() - digits)) if last >= high else high
