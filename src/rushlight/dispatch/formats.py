"""Memory formats: in which order the elements of a tensor lie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.dispatch.options import dense_order
from rushlight.dispatch.registry import NAMESPACES
from rushlight.dispatch.shapes import Made
from rushlight.kernels.dispatch import ordered
from rushlight.kernels.pointwise.copies import LARGE, copied, move
from rushlight.storage import root_of


class memory_format:
    """An order of a tensor's elements in memory."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
NUMPY_2_0 = np.__version__.startswith("2.0.")  # whose reshape() has no copy=
PIECES = 8  # in which images change their order where they lie
_RANK = {channels_last: 4, channels_last_3d: 5}


def rank_of(format: object) -> int:
    """The number of dimensions that a memory format is for.  Raises TypeError for what is none."""
    if format not in (channels_last, channels_last_3d):
        got = type(format).__name__
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {got}: as torch.channels_last")
    return _RANK[format]


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Dimensions from outermost to innermost: batch, space, channels."""
    return (0, *range(2, rank), 1)


def lies_channels_last(array: Array) -> bool:
    """Whether an image or volume lies with its channels innermost, gaps between its elements allowed.

    By strides alone, from the innermost dimension outwards, as PyTorch decides which order a result is to have; a stride that
    says nothing (one image, one channel) is not taken for a sign of it.
    """
    if array.ndim not in _RANK.values() or 0 in array.shape:
        return False
    channels, least = array.strides[1], 0
    for d in reversed(channels_last_order(array.ndim)):
        stride = array.strides[d]
        if (stride == 0 and d == 1) or stride < least or (d == 0 and least == channels):
            return False
        least = stride * max(array.shape[d], 1)
    return True


def kept_order(made: Array, *given: Array | None) -> Array:
    """`made`, which nobody else holds, in channels_last order if it has as many dimensions as one of `given` that lies so: else as it is."""
    if made.flags.c_contiguous and _is_turned(made.ndim, given):
        order = channels_last_order(made.ndim)
        turned = made.transpose(order)
        whole = made.flags.owndata or root_of(made).nbytes == made.nbytes
        there = _by_images(made, turned) if whole and made.flags.writeable and _worth_it(made) else copied(turned)
        return turned_back(there, order)
    return made


def _is_turned(ndim: int, given: tuple[Array | None, ...]) -> bool:
    return any(x is not None and x.ndim == ndim and lies_channels_last(x) for x in given)


def _worth_it(images: Array | Made) -> bool:
    return images.nbytes >= LARGE and images.shape[0] > 1


def kept_made(made: Made, *given: Array | None) -> Made:
    """What `kept_order` gives."""
    return made._replace(order=channels_last_order(len(made.shape))) if _is_turned(len(made.shape), given) else made


def turning(made: Made, *given: Array | None) -> int:
    """The bytes of the copies that `kept_order` takes: of some images at a time, or of all."""
    if not _is_turned(len(made.shape), given):
        return 0
    return -(-made.shape[0] // PIECES) * (made.nbytes // made.shape[0]) if _worth_it(made) else made.nbytes


def _by_images(memory: Array, turned: Array) -> Array:
    """The elements of `turned` in C order, in the `memory` that they lie in image by image: some are copied at a time, never all."""
    there, some = memory.reshape(turned.shape), -(-len(turned) // PIECES)
    for first in range(0, len(turned), some):
        there[first : first + some] = copied(turned[first : first + some])
    return there


def turned_back(array: Array, order: Sequence[int]) -> Array:
    """What was transposed by `order`, with its dimensions as they were."""
    return array.transpose(_inverse(tuple(order)))


@lru_cache(256)
def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def copied_like(array: Array, like: Array) -> Array:
    """A copy of `array` whose elements lie in the order of `like`, of its shape and dtype."""
    return move(array, empty_in_format(like, like.dtype, None))


def in_shape(array: Array, shape: Sequence[int]) -> Array:
    """The elements in another shape: a view where strides allow, else a copy."""
    if array.nbytes < LARGE or array.flags.c_contiguous or NUMPY_2_0:
        return array.reshape(shape)
    try:
        return array.reshape(shape, copy=False)
    except ValueError:
        return copied(array).reshape(shape)


def in_order(shape: tuple[int, ...], strides: tuple[int, ...], step: int) -> bool:
    """Whether elements of `step` bytes lie in C order without gaps."""
    if 0 in shape:
        return True
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True


def viewable(array: Array, shape: tuple[int, ...]) -> bool:
    """Whether the elements can be seen in another shape where they lie."""
    runs: list[
        list[int]
    ] = []  # (elements, bytes from one to the next) of what lies at equal distances, innermost first
    for n, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if n == 0:
            return True
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= n
        elif n != 1:
            runs.append([n, stride])
    sizes = [n for n in reversed(shape) if n != 1]
    for count, _ in runs:
        while count > 1 and sizes and count % sizes[0] == 0:
            count //= sizes.pop(0)
        if count != 1:
            return False
    return True


def has_format(array: Array, format: memory_format) -> bool:
    """Whether the elements, inside vmap those of each sample, lie in this format without gaps."""
    if getattr(array, "interpreted", False) and format is not preserve_format:
        order = range(array.ndim) if format is contiguous_format else channels_last_order(rank_of(format))
        fits = format is contiguous_format or array.ndim == rank_of(format)
        shape, strides = (tuple([x[i] for i in order]) for x in (array.shape, array.strides)) if fits else ((), ())
        return fits and in_order(shape, strides, array.itemsize)
    if format is contiguous_format:
        return bool(array.flags.c_contiguous)
    if format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    rank = rank_of(format)
    return array.ndim == rank and bool(array.transpose(channels_last_order(rank)).flags.c_contiguous)


def shows_format(array: Array, format: memory_format) -> bool:
    """Whether elements lie in this format, and strides say so where sizes of 1 leave them free: what `to` keeps as it is."""
    if not has_format(array, format):
        return False
    if 1 not in array.shape or not array.size or array.ndim not in _RANK.values() or not isinstance(array, np.ndarray):
        return True
    return lies_channels_last(array) is (format is not contiguous_format)


def order_in_format(array: Array, format: memory_format | None) -> Sequence[int] | None:
    """The dimensions by decreasing stride of what is made of the shape of `array` in a memory format; None: in C order, or with gaps."""
    if format is contiguous_format:
        return None
    if format is None or format is preserve_format:
        return dense_order(array) if not array.flags.c_contiguous else None
    rank = rank_of(format)
    if array.ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {format.name} format, got rank {array.ndim}")
    return channels_last_order(rank)


def empty_in_format(array: Array, dtype: np.dtype[Any], format: memory_format | None) -> Array:
    """Uninitialized memory of the shape of `array`, in a memory format; None and preserve_format keep its order."""
    order = order_in_format(array, format)
    if order is None and (format is None or format is preserve_format) and isinstance(array, np.ndarray):
        if not array.flags.c_contiguous:
            return ordered(array, dtype)
    if order is None:
        return np.empty(array.shape, dtype)
    made = np.empty([array.shape[i] for i in order], dtype)
    return turned_back(made, order)


def is_format(value: object) -> bool:
    """Whether `value` is a memory format."""
    return isinstance(value, memory_format)


NAMESPACES.setdefault("", {}).update(
    memory_format=memory_format, contiguous_format=contiguous_format, preserve_format=preserve_format,
    channels_last=channels_last, channels_last_3d=channels_last_3d)  # fmt: skip
