"""Tensors as arrays that a channel takes, and results brought back into tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex_half
from rushlight.dispatch.options import values
from rushlight.storage import bump, settle
from rushlight.tensor import Tensor, wrap

# What MPI has no type for travels as integers of its size; where it is added up, in a wider type.
MOVED = {2: np.uint16, 4: np.uint32, 8: np.uint64}
PLAIN = "biufc"


def plain(dtype: np.dtype[Any]) -> bool:
    """Whether MPI has a type for these numbers."""
    return dtype.kind in PLAIN and not (dtype.kind == "f" and dtype.itemsize == 2) and dtype.name in KNOWN


KNOWN = frozenset({"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
                   "complex64", "complex128"})  # fmt: skip


def moved(x: Array) -> Array:
    """A contiguous array as one that can be sent: on the same memory."""
    return x if plain(x.dtype) else x.view(np.uint8 if x.itemsize == 1 else MOVED[x.itemsize])


def readable(tensor: Tensor) -> Array:
    """What a tensor shows, C-contiguous; its own memory where that is so.  (*) -> (*)"""
    return np.ascontiguousarray(values("torch.distributed", tensor.detach()))


class Place:
    """Where a channel writes for a tensor: the tensor's memory where it can, else an array that `put` copies from.

    sums: whether numbers are added up there, which 16-bit ones are in float32 and truth values as integers.
    """

    def __init__(self, tensor: Tensor, sums: bool = False, read: bool = True) -> None:
        self.tensor = tensor.detach()
        held = self.tensor._array
        self.wide = sums and not (plain(held.dtype) and held.dtype.kind != "b")
        self.direct = bool(held.flags.c_contiguous and held.flags.writeable and not self.tensor._bits and not self.wide
                           and not self.tensor._elsewhere)  # fmt: skip
        if self.direct:
            settle(self.tensor._held)
            self.array = self.tensor._held
        elif self.wide:
            self.array = held.astype(np.int64 if held.dtype.kind == "b" else np.complex64 if is_complex_half(held.dtype) else np.float32,
                order="C")  # fmt: skip
        else:
            self.array = np.array(held, order="C") if read else np.empty(held.shape, held.dtype)

    def wire(self) -> Array:
        """The array for the channel."""
        return self.array if self.wide else moved(self.array)

    def put(self) -> None:
        """Bring what came into the tensor, and count the change."""
        if self.direct:
            bump(self.tensor)
        else:
            self.tensor.copy_(wrap(self.array))
