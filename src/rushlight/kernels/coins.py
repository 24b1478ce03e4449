"""Which elements dropout keeps: a bit each, of the words that PyTorch's generator would take for them."""

from __future__ import annotations

import math

import numpy as np

from rushlight.kernels.dispatch import Array
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes

__all__ = ["coins"]

exports_of_bytes(
    # twister.cpp: state, where its bits go, rows, how many are drawn for each and kept of them, below what a number sets its bit
    coins="aannnu",
)

ONE = 1 << 53  # numbers in [0, 1) are multiples of its inverse


def coins(state: Array, p: float, rows: int, width: int, columns: int | None = None) -> Array:
    """Bits, the lowest of a byte first, that are set with probability p, ((rows * columns + 7) // 8) uint8.

    state: (625) uint32, of a Mersenne Twister, which goes on by two words for each of `rows` times `width` coins.
    columns: how many of each row's are kept, all by default.
    """
    columns = width if columns is None else columns
    limit = math.ceil(p * ONE)
    table = loader.of_bytes()
    if table is None:
        from rushlight.kernels.twister import tossed

        kept = tossed(state, limit, rows * width).reshape(rows, width)[:, :columns]
        return np.packbits(kept, axis=None, bitorder="little")
    bits = np.empty((rows * columns + 7) // 8, np.uint8)
    table.coins(state, bits, rows, width, columns, limit)
    return bits
