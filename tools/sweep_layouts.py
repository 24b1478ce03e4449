"""Arrays of the same numbers in every layout, each in a buffer filled with what must not be read and watched for what must
not be written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = Any
Place = Callable[[Array, Any], tuple[Array, Array]]  # numbers, filler -> (array of the same numbers, its whole buffer)

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64), "float16": np.dtype(np.float16),
          "bfloat16": BFLOAT16}  # fmt: skip
FILLS = ("nan", "1e30")
GUARD = 17  # elements before and after


def filler(dtype: Any, fill: str) -> Any:
    """What lies around the numbers: NaN or a huge number; for integers, one that is no index."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).max - (fill == "nan")
    if dtype.kind == "b":
        return fill == "nan"
    with np.errstate(over="ignore"):
        return np.float64(float(fill)).astype(dtype)


def _within(values: Array, fill: Any, shape: tuple[int, ...], at: tuple[Any, ...]) -> tuple[Array, Array]:
    """The numbers at the places `at` of an array of `shape` in the middle of a longer buffer."""
    size = int(np.prod(shape))
    buffer = np.full(size + 2 * GUARD, fill, values.dtype)
    view = buffer[GUARD : GUARD + size].reshape(shape)[at]
    view[...] = values
    return view, buffer


def offset(values: Array, fill: Any) -> tuple[Array, Array]:
    return _within(values, fill, values.shape, (Ellipsis,))


def stepped(values: Array, fill: Any) -> tuple[Array, Array]:
    """Every second element of the last axis."""
    if not values.ndim:
        return offset(values, fill)
    return _within(values, fill, (*values.shape[:-1], 2 * values.shape[-1]), (Ellipsis, slice(None, None, 2)))


def stepped_first(values: Array, fill: Any) -> tuple[Array, Array]:
    """Every third element of the first axis."""
    if not values.ndim:
        return offset(values, fill)
    return _within(values, fill, (3 * values.shape[0], *values.shape[1:]), (slice(None, None, 3),))


def sliced(values: Array, fill: Any) -> tuple[Array, Array]:
    """The middle of an array that is larger on all sides."""
    at = tuple(slice(1, 1 + n) for n in values.shape)
    return _within(values, fill, tuple(n + 3 for n in values.shape), (*at, Ellipsis))


def _moved(order: Callable[[int], list[int]]) -> Place:
    def place(values: Array, fill: Any) -> tuple[Array, Array]:
        axes = order(values.ndim)
        found, buffer = offset(values.transpose(axes), fill)
        return found.transpose(np.argsort(axes).astype(int)), buffer

    return place


def flipped(values: Array, fill: Any) -> tuple[Array, Array]:
    """Negative strides in all axes."""
    at = (slice(None, None, -1),) * values.ndim
    found, buffer = offset(values[at], fill)
    return found[at] if at else found, buffer


def misaligned(values: Array, fill: Any) -> tuple[Array, Array]:
    """At an odd byte."""
    whole, buffer = offset(values, fill)
    memory = np.zeros(buffer.nbytes + 1, np.uint8)
    odd = memory[1:].view(values.dtype)
    odd[...] = buffer
    return odd[GUARD : GUARD + values.size].reshape(whole.shape), memory


def packed(values: Array, fill: Any) -> tuple[Array, Array]:
    """A field of records without padding: neither aligned nor gapless."""
    record = np.dtype({"names": ["a", "x", "b"], "formats": ["u1", f"V{values.itemsize}", "u1"],
                       "offsets": [0, 1, 1 + values.itemsize], "itemsize": 2 + values.itemsize})  # fmt: skip
    buffer = np.zeros(values.size + 2 * GUARD, record)
    buffer["x"] = np.full(buffer.shape, fill, values.dtype).view(f"V{values.itemsize}")
    field = buffer["x"].view(values.dtype)[GUARD : GUARD + values.size].reshape(values.shape)
    field[...] = values
    return field, buffer


def expanded(values: Array, fill: Any) -> tuple[Array, Array]:
    """One for all of the first axis, at stride 0: other numbers."""
    if not values.ndim or not values.size:
        return offset(values, fill)
    found, buffer = offset(values[:1].copy(), fill)
    return np.broadcast_to(found, values.shape), buffer


def expanded_last(values: Array, fill: Any) -> tuple[Array, Array]:
    """One for all of the last axis: other numbers."""
    if not values.ndim or not values.size:
        return offset(values, fill)
    found, buffer = offset(values[..., :1].copy(), fill)
    return np.broadcast_to(found, values.shape), buffer


def overlapping(values: Array, fill: Any) -> tuple[Array, Array]:
    """Each element of the first axis begins one element after the one before: other numbers."""
    if values.ndim < 2 or not values.size:
        return offset(values, fill)
    row = int(np.prod(values.shape[1:]))
    found, buffer = offset(values.reshape(-1)[: row + len(values) - 1].copy(), fill)
    inner = np.empty(values.shape[1:], values.dtype).strides
    shape, strides = values.shape, (values.itemsize, *inner)
    return np.lib.stride_tricks.as_strided(found, shape, strides), buffer


LAYOUTS: dict[str, Place] = {
    "contiguous": lambda values, fill: (values.copy(order="C"), np.zeros(0)),
    "offset": offset,
    "stepped": stepped,
    "stepped first": stepped_first,
    "sliced": sliced,
    "transposed": _moved(lambda n: list(range(n))[::-1]),
    "last two swapped": _moved(lambda n: [*range(n - 2), n - 1, n - 2] if n > 1 else list(range(n))),
    "channels last": _moved(lambda n: [0, *range(2, n), 1] if n > 2 else list(range(n))[::-1]),
    "first two swapped": _moved(lambda n: [1, 0, *range(2, n)] if n > 1 else list(range(n))),
    "flipped": flipped,
    "misaligned": misaligned,
    "packed": packed,
    "expanded": expanded,
    "expanded last": expanded_last,
    "overlapping": overlapping,
}
OTHER_NUMBERS = ("expanded", "expanded last", "overlapping")  # layouts that an array which is written cannot have


@dataclass
class Placed:
    """An array in a layout, and its buffer as it was."""

    array: Array
    buffer: Array
    before: bytes

    def written_outside(self) -> bool:
        """Whether a byte of the buffer has changed that is not the array's."""
        now = self.array.copy()
        after = self.buffer.copy()
        before = np.frombuffer(self.before, self.buffer.dtype).copy() if self.before else after
        changed = after.view(np.uint8) != before.view(np.uint8)
        if not changed.any():
            return False
        self.buffer.view(np.uint8)[...] = 0xA5  # which bytes are the array's: those that it writes
        self.array[...] = 0
        mine = self.buffer.view(np.uint8) != 0xA5
        self.buffer[...] = after
        self.array[...] = now
        return bool((changed & ~mine).any())

    def changed(self) -> bool:
        """Whether a byte of the buffer has changed."""
        return self.buffer.tobytes() != self.before


def place(values: Array, layout: str, fill: str) -> Placed:
    """Numbers in a layout, in a buffer full of something else."""
    array, buffer = LAYOUTS[layout](values, filler(values.dtype, fill))
    return Placed(array, buffer, buffer.tobytes())
