"""Masks and small codes that operators keep beside their result, as bits: a byte for an element says no more than one or two bits.

An operator says with `planes` how many bits its auxiliary result takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.state import modes
from rushlight.dispatch.keeping.rebuilt import LARGE, switch
from rushlight.engine.saved import PackedResults

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.levels import Rehearsal

BLOCK = 1 << 18  # elements packed together


class Bits(PackedResults):
    """The auxiliary result of an operator as bits, of whatever hooks made of them; an index gives it as it was.

    items: an array of shape (planes, (n + 7) // 8) of uint8, as `numpy.packbits` lays out each plane.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, items: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype[Any]):
        super().__init__(items)
        self.shape, self.dtype = shape, dtype

    def replaced(self, items: tuple[Any, ...]) -> Bits:
        return Bits(items, self.shape, self.dtype)

    def __getitem__(self, k: int) -> Array:
        bits, level = super().__getitem__(k), rehearsed()
        if level is not None:
            return level.standing(self.shape, self.dtype)
        first, *others = (np.unpackbits(plane, count=math.prod(self.shape)) for plane in bits)
        for i, plane in enumerate(others, 1):
            first |= np.left_shift(plane, i, out=plane)
        return first.view(self.dtype).reshape(self.shape)


def rehearsed() -> Rehearsal | None:
    """The level of the estimate that this thread makes; None where it makes none."""
    return modes.levels[-1] if modes.levels and modes.levels[-1].dry else None


def narrowed(op: Op, aux: tuple[Any, ...]) -> tuple[Any, ...] | Bits:
    """The auxiliary result of an operator as its node keeps it: as bits, where it is large."""
    found = aux[0]
    if found.__class__ is not np.ndarray or found.nbytes < LARGE or not found.flags.c_contiguous or not switch.on:
        return aux
    level = rehearsed()
    size = (op.planes, (found.size + 7) // 8)
    bits = packed(found, np.empty(size, np.uint8)) if level is None else level.standing(size, np.uint8)
    return Bits((bits,), found.shape, found.dtype)


def packed(codes: Array, out: Array) -> Array:
    """Write the lowest bits of elements, a plane of bits for each, into `out`."""
    flat = codes.reshape(-1).view(np.uint8)
    for start in range(0, flat.size, BLOCK):
        some = flat[start : start + BLOCK]
        for i, plane in enumerate(out):
            plane[start // 8 : (start + BLOCK) // 8] = np.packbits(some if len(out) == 1 else some & (1 << i))
    return out
