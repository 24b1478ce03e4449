"""Views by strides: as_strided, unfold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, listed, wrap_dim
from rushlight.dispatch.keeping.shown import note
from rushlight.dispatch.memory_views import view_at
from rushlight.dispatch.operands import held, raw
from rushlight.dispatch.registry import function, op
from rushlight.ops.index.raw_indices import add_rows
from rushlight.ops.shape.reshape import reshape_op, slice_op
from rushlight.storage import offset_of, root_of
from rushlight.tensor import Tensor


def positions(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array:
    """The position in memory, in elements, of each element.  -> shape"""
    found = np.full(shape, offset, np.int64)
    for d, (n, step) in enumerate(zip(shape, strides, strict=True)):
        found += (np.arange(n) * step).reshape(n, *[1] * (len(shape) - d - 1))
    return found


def overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements may be one memory location."""
    reach = 0
    for step, n in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


@op(
    aten=("as_strided(input, size, stride, offset=0)",),
    view=True,
    linear=True,
    batch=families.strided,
    by_memory=True,
)
def as_strided_op(
    input: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int, own: tuple[int, ...]
) -> Array:
    """The memory of `input` with other sizes and strides; offset: from its first element; own: its strides."""
    unit = input.itemsize
    return view_at(input, size, tuple([s * unit for s in stride]), offset * unit)


@as_strided_op.grad("input")
def _(
    g: Array | Tensor,
    input_shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    own: tuple[int, ...],
) -> Array | Tensor:
    return as_strided_adjoint(g, input_shape, size, stride, offset, own)


@op(
    half=None,
    linear=True,
    complex_half="widens",
    shape=shapes.shaped,
    batch=families.by_position,
    by_memory=True,
)
def as_strided_adjoint(
    input: Array,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    own: tuple[int, ...],
) -> Array:
    """What a gradient of as_strided's result is to its input, of `shape`: added up by memory location, read back.

    Where several elements of the input are one memory location, each gets its share.
    """
    if input.size and not (overlaps(size, stride) or overlaps(shape, own) or min((0, *stride, *own)) < 0):
        return _put_apart(input, shape, size, stride, offset, own)
    at, there = positions(size, stride, offset), positions(shape, own, 0)
    low = min(int(at.min(initial=0)), int(there.min(initial=0)))
    length = max(int(at.max(initial=0)), int(there.max(initial=0))) - low + 1
    memory = np.zeros((length, 1), input.dtype)
    add_rows(memory, at.reshape(-1) - low, input.reshape(-1, 1))
    found = memory.reshape(-1)[there - low]
    if overlaps(shape, own):
        found = found / np.bincount(there.reshape(-1) - low, minlength=length)[there - low].astype(found.real.dtype)
    return np.asarray(found).astype(input.dtype, copy=False)


@as_strided_adjoint.work
def _(
    input: Array, shape: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...], own: tuple[int, ...]
) -> int:
    if overlaps(size, stride) or overlaps(shape, own):  # positions of both, and the memory
        return 8 * (3 * input.size + 3 * math.prod(shape)) + input.itemsize * math.prod(shape)
    return 0


def _put_apart(
    x: Array,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    own: tuple[int, ...],
) -> Array:
    """`as_strided_adjoint` where no two elements are one memory location: put there, and read as the input lies."""

    def reach(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
        return sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1

    def laid(size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Array:
        return view_at(memory, size, tuple([step * x.itemsize for step in stride]), start * x.itemsize)

    low = min(offset, 0)
    memory = np.zeros(max(offset + reach(size, stride), reach(shape, own)) - low, x.dtype)
    laid(size, stride, offset - low)[...] = x
    whole = laid(shape, own, -low)
    return (
        memory.reshape(shape) if whole.flags.c_contiguous and whole.size == memory.size else np.array(whole, order="C")
    )


@as_strided_adjoint.grad("input")
def _(
    g: Tensor, shape: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...], offset: int, own: tuple[int, ...]
) -> Tensor:
    return as_strided_read(g, shape, size, stride, offset, own)


@op(linear=True, complex_half="moves", batch=families.by_position, by_memory=True)
def as_strided_read(
    input: Array,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    own: tuple[int, ...],
) -> Array:
    """What as_strided gives of an input that lies in memory with strides `own`, as a copy: the adjoint's adjoint."""
    at, there = positions(size, stride, offset), positions(shape, own, 0)
    low = min(int(at.min(initial=0)), int(there.min(initial=0)))
    length = max(int(at.max(initial=0)), int(there.max(initial=0))) - low + 1
    memory = np.zeros(length, input.dtype)
    if overlaps(shape, own):
        share = np.bincount(there.reshape(-1) - low, minlength=length)[there - low].astype(input.real.dtype)
        add_rows(memory.reshape(-1, 1), there.reshape(-1) - low, np.asarray(input / share).reshape(-1, 1))
    else:
        memory[there - low] = input
    return memory[at - low]


@as_strided_read.grad("input")
def _(
    g: Tensor, shape: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...], offset: int, own: tuple[int, ...]
) -> Tensor:
    return as_strided_adjoint(g, shape, size, stride, offset, own)


def geometry(name: str, input: Tensor, size: object, stride: object, storage_offset: int | None) -> tuple[Any, ...]:
    """The statics of as_strided, checked to lie within the storage."""
    array = held(input)
    size, stride = listed(size, name, "size"), listed(stride, name, "stride")
    if len(size) != len(stride):
        raise RuntimeError(f"{name}: mismatch in length of strides and shape: {list(size)} and {list(stride)}")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"{name}: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"{name}: sizes must not be negative, got {list(size)}")
    memory = array.memory() if getattr(array, "interpreted", False) else array  # inside vmap that of all samples
    root, unit, start = root_of(memory), array.itemsize, offset_of(memory)
    first = start if storage_offset is None else as_int(storage_offset, name, "storage_offset")
    if first < 0:
        raise RuntimeError(f"{name}: Tensor: invalid storage offset {first}")
    end = first + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and end * unit > root.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {first}, and itemsize {unit} requiring "
            f"a storage size of {end * unit} are out of bounds for storage of size {root.nbytes} ({name})"
        )
    return size, stride, first - start if 0 not in size else 0, tuple([s // unit for s in array.strides])


@function(method=True)
def as_strided(
    input: Tensor, size: int | Sequence[int], stride: int | Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A view of the storage of `input` with the given sizes, strides and offset, in elements.

    Raises RuntimeError where it would leave the storage.
    """
    made = as_strided_op(input, *geometry("as_strided", input, size, stride, storage_offset))
    note(made, storage_offset=storage_offset)
    return made


@function()
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: int | Sequence[int],
    stride: int | Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy of `input` with `src` in the part that as_strided would give.  (*), size -> (*)"""
    found = geometry("as_strided_scatter", input, size, stride, storage_offset)
    if raw(src).shape != found[0]:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(raw(src).shape)}, "
                           f"slice size = {list(found[0])}")  # fmt: skip
    return as_strided_scatter_op(input, src, *found)


Tensor.as_strided_scatter = as_strided_scatter  # type: ignore[assignment, method-assign]


@op(
    saved_as={"storage_offset": "offset"},
    linear=True,
    complex_half="moves",
    shape=shapes.dense,
    batch=families.by_position,
    by_memory=True,
)
def as_strided_scatter_op(
    input: Array, src: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int, own: tuple[int, ...]
) -> Array:
    """`input` with `src` at memory locations.  (*), size -> (*)"""
    at, there = positions(size, stride, offset), positions(input.shape, own, 0)
    low = min(int(at.min(initial=0)), int(there.min(initial=0)))
    length = max(int(at.max(initial=0)), int(there.max(initial=0))) - low + 1
    memory = np.zeros(length, input.dtype)
    memory[there - low] = input
    memory[at - low] = src
    return memory[there - low]


@as_strided_scatter_op.work
def _(input: Array, src: Array) -> int:
    return 16 * (input.size + src.size) + 2 * input.nbytes


@as_strided_scatter_op.grad("input")
def _(
    g: Array | Tensor,
    src_shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    own: tuple[int, ...],
) -> Array:
    return as_strided_scatter_op(g, np.zeros(src_shape, raw(g).dtype), size, stride, offset, own)


@as_strided_scatter_op.grad("src")
def _(
    g: Array | Tensor,
    input_shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    own: tuple[int, ...],
) -> Array | Tensor:
    return as_strided_read(g, input_shape, size, stride, offset, own)


NARROW = 16  # elements beside each other from which on they are added up together


# Windows -------------------------------------------------------------------------------------------


@op(saved_as={"dimension": "dim"}, view=True, linear=True, batch=families.shifted)
def unfold_op(input: Array, dim: int, size: int, step: int) -> Array:
    """Windows of `size` every `step` along `dim`, a new last dimension: a view.  (*) -> (*, size)"""
    n = (input.shape[dim] - size) // step + 1
    shape = (*input.shape[:dim], n, *input.shape[dim + 1 :], size)
    s = input.strides
    return view_at(input, shape, (*s[:dim], s[dim] * step, *s[dim + 1 :], s[dim]))


unfold_op.grad("input")(lambda g, input_shape, dim, size, step: unfold_adjoint(g, input_shape, dim, size, step))


@op(half=None, linear=True, complex_half="widens", shape=shapes.shaped, batch=families.shifted)
def unfold_adjoint(input: Array, shape: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    """Windows added up in zeros of `shape`: the adjoint of unfold.  (*, size) -> shape"""
    out = np.zeros(shape, input.dtype)
    lead, n = (slice(None),) * dim, input.shape[dim]
    if step >= size and n:  # the windows are apart
        view_at_windows = unfold_op.op.forward(out, dim, size, step)
        view_at_windows[...] = input
        return out
    if step < NARROW:  # each place of a window at once
        for k in range(size if n else 0):
            beside = out[(*lead, slice(k, k + step * n, step))]
            beside += input[..., k]
        return out
    for start in range(0, size if n else 0, step):  # parts of windows that lie beside each other
        part = input[..., start : start + step]
        beside = unfold_op.op.forward(out[(*lead, slice(start, None))], dim, part.shape[-1], step)[(*lead, slice(n))]
        beside += part
    return out


unfold_adjoint.grad("input")(lambda g, dim, size, step: unfold_op(g, dim, size, step))


@function(method=True, ns="Tensor")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` elements of `dimension`, every `step`, as a new last dimension: a view.  (*) -> (*, size)"""
    whole = self if held(self).ndim else reshape_op(self, (1,))
    dim = wrap_dim(dimension, held(whole).ndim)
    n = held(whole).shape[dim]
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {n} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    found = unfold_op(whole, dim, size, step)
    return found if held(self).ndim else slice_op(found, (0, ...))
