"""Any view of an array's memory: another shape, strides, start or dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.storage import root_of


def view_at(
    array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, dtype: np.dtype[Any] | None = None
) -> Array:
    """The memory of `array` seen with another shape, strides and start, both in bytes from the start of `array`."""
    root = root_of(array)
    dtype, start = dtype or array.dtype, offset
    if not root.flags.forc:
        root = in_memory_order(root)
        if root is None:
            return elsewhere(array, shape, strides, offset, dtype)
    if root is not array:  # to ask for addresses takes longer than all else
        start += array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    try:
        out = np.ndarray(shape, dtype, root, start, strides)
    except ValueError as error:
        if 0 not in shape:
            raise RuntimeError(
                f"a view with shape {list(shape)} and strides {list(strides)} in bytes, {start} bytes from the start, is out of "
                f"bounds for memory of {root.nbytes} bytes: a gradient or tangent has room for what its tensor shows now, so "
                "make a view that is to be changed after the as_strided_ that makes its base smaller"
            ) from error
        out = np.ndarray(shape, dtype, root)  # no elements: they may begin behind the memory
    if root.flags.writeable and not array.flags.writeable:
        out.flags.writeable = False
    return out


def in_memory_order(array: Array) -> Array | None:
    """`array` with its dimensions in the order in which they lie in memory, if it has no gaps; else None."""
    order = sorted(range(array.ndim), key=lambda d: (-abs(array.strides[d]), -array.shape[d]))
    moved = array.transpose(order)
    return moved if moved.flags.c_contiguous else None


class Memory:
    """An address that NumPy reads as an array, and the array whose memory it is."""

    def __init__(self, owner: object, interface: dict[str, Any]):
        self.owner, self.__array_interface__ = owner, interface


def elsewhere(
    array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: np.dtype[Any]
) -> Array:
    """As `view_at`, for memory that NumPy knows only with gaps."""
    pointer, read_only = array.__array_interface__["data"]
    interface = {"version": 3, "shape": shape, "strides": strides, "data": (pointer + offset, read_only),
                 "typestr": f"|V{dtype.itemsize}" if dtype.kind == "V" else dtype.str}  # fmt: skip
    out = np.asarray(Memory(array, interface))
    return out if out.dtype == dtype else out.view(dtype)
