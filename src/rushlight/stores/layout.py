"""How a tensor lies in the memory that it shares: which stretch of it, and how to make the tensor from that again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rushlight.storage import bytes_before, memory_of, root_of

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.stores.recipes import Source


class Layout(NamedTuple):
    """A stretch of memory, [start, stop) in bytes of the owning array, and a view of it.

    compact: the view has gaps and is small beside its owner, so that a copy of its elements, in the order in which they lie,
    stands for the stretch.
    """

    start: int
    stop: int
    offset: int  # of the view's first element, from `start`
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    compact: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes that are stored."""
        return math.prod(self.shape) * int(self.dtype.itemsize) if self.compact else self.stop - self.start

    @property
    def order(self) -> list[int]:
        """The axes of the view as they lie in memory, outermost first."""
        return sorted(range(len(self.shape)), key=lambda d: -abs(self.strides[d]))

    def within(self, start: int) -> Layout:
        """The same view of a stretch that begins at `start`."""
        return self._replace(start=start, offset=self.offset + self.start - start)


def extremes(array: Array | Source) -> tuple[int, int]:
    """Bytes from the first element of an array down to its lowest, and up to the end of its highest."""
    low = high = 0
    for n, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return low, high + array.itemsize


def layout_of(array: Array) -> Layout:
    """The layout of an array in its owner: the stretch that it spans; of a view with gaps, all of the owner, unless it is
    less than a quarter of that: then the view's elements alone, as a copy.

    What a view of all of a stretch shares with others is stored once; what is broadcast, as few times as memory has it.
    """
    root, shape, dtype = root_of(array), array.shape, array.dtype
    if array.size == 0:
        return Layout(0, 0, 0, shape, array.strides, dtype, True)
    low, high = extremes(array)
    first = bytes_before(array)
    start, stop = first + low, first + high
    dense = gapless(root) and (stop - start) % dtype.itemsize == 0
    if dense and stop - start <= array.nbytes:
        return Layout(start, stop, -low, shape, array.strides, dtype)
    if dense and 4 * array.nbytes >= root.nbytes and root.dtype == dtype:
        return Layout(0, root.nbytes, first, shape, array.strides, dtype)
    return Layout(start, stop, 0, shape, array.strides, dtype, True)


def gapless(root: Array) -> bool:
    """Whether the elements of an owner, whose axes may lie in any order, are all of its memory."""
    return bool(root.flags.forc or (root.flags.owndata and extremes(root) == (0, root.nbytes)))


def stretch(array: Array, layout: Layout) -> Any:
    """The memory of a layout as a flat array of its dtype: no copy, unless the layout is compact."""
    if layout.compact:
        return np.ascontiguousarray(array.transpose(layout.order)).reshape(-1)
    return memory_of(root_of(array))[layout.start : layout.stop].view(layout.dtype)


def remaining(root: Array, layout: Layout) -> Array:
    """What a layout describes of the memory of its owner, as `viewed` takes it: no copy."""
    if not layout.compact or not root.size:
        found: Array = stretch(root, layout)
        return found
    low = sum((n - 1) * step for n, step in zip(layout.shape, layout.strides, strict=True) if step < 0)
    return np.ndarray(layout.shape, layout.dtype, memory_of(root), layout.start - low, layout.strides)


def viewed(flat: Array, layout: Layout) -> Array:
    """The view that a layout describes, of the flat array of its stretch."""
    if not layout.compact:
        return np.ndarray(layout.shape, layout.dtype, flat.view(np.uint8), layout.offset, layout.strides)
    if flat.shape == layout.shape and flat.strides == layout.strides:  # the memory itself
        return flat
    made, order = spaced(layout), layout.order
    made.transpose(order)[...] = flat.reshape([layout.shape[d] for d in order])
    return made


def spaced(layout: Layout) -> Array:
    """Memory for the elements of a view, with gaps between them where the view has some: sums of what lies otherwise are added
    up in another order, and so rounded otherwise."""
    item = int(layout.dtype.itemsize)
    steps, reach, theirs = [item] * len(layout.shape), item, item
    for d in reversed(layout.order):
        if layout.shape[d] > 1:
            steps[d] = reach if abs(layout.strides[d]) == theirs else reach + item
            reach, theirs = steps[d] * layout.shape[d], abs(layout.strides[d]) * layout.shape[d]
    return np.ndarray(layout.shape, layout.dtype, np.empty(reach // item, layout.dtype), 0, tuple(steps))
