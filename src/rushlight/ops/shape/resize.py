"""Sizes changed in place: resize_, and what `out=` does to a tensor of another size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rushlight.basics import caller
from rushlight.basics.arrays import Array
from rushlight.basics.state import modes
from rushlight.dispatch.dims import by_keyword, sizes
from rushlight.dispatch.formats import contiguous_format, empty_in_format, memory_format, preserve_format
from rushlight.dispatch.memory_views import view_at
from rushlight.dispatch.options import contiguous_strides, uninitialized
from rushlight.dispatch.registry import function
from rushlight.engine import inplace
from rushlight.engine.conform import tensor_functions
from rushlight.engine.node import edge_of
from rushlight.ops.shape.reshape import reshape
from rushlight.ops.shape.strided import as_strided_op
from rushlight.storage import alone, bytes_before, root_of, storage_of
from rushlight.tensor import Tensor, ViewInfo


def resized(tensor: Tensor, shape: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    """An array of another shape on a tensor's memory; where that is too small, on new memory after a copy of it.

    steps: its strides in bytes. RuntimeError where others would stay behind on memory that is too small.
    """
    growable = alone(tensor)
    array = tensor._held
    root, unit, start = root_of(array), array.itemsize, bytes_before(array)
    reach = unit + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if math.prod(shape) else 0
    dense = root.flags.c_contiguous or root.flags.f_contiguous
    if reach <= root.nbytes - start and dense:
        return view_at(array, shape, steps)
    if root.nbytes and not (growable and root.flags.owndata):
        raise RuntimeError(
            "Trying to resize storage that is not resizable: other tensors or arrays lie on the same memory, and would not grow "
            f"with this one from {list(array.shape)} to {list(shape)}. Give it memory of its own first, with clone()."
        )
    old = view_at(root, ((root.nbytes if dense else 0) // unit,), (unit,), 0, array.dtype)
    memory = uninitialized(np.zeros((start + reach) // unit, array.dtype))
    memory[: len(old)] = old
    if not dense:
        memory[: array.size] = array.reshape(-1)[: len(memory)]
    storage_of(tensor).root = memory
    return view_at(memory, shape, steps, start)


def resize_to(tensor: Tensor, shape: tuple[int, ...], steps: tuple[int, ...]) -> None:
    """Change what a tensor sees of its memory; a view remains one."""
    former, array, info = tensor._held.strides, resized(tensor, shape, steps), tensor._view
    if info is not None:
        tensor._view = made = ViewInfo()
        counted = [tuple(step // array.itemsize for step in of) for of in (steps, former)]
        made.op, made.statics, made.position = as_strided_op.op, (shape, counted[0], 0, counted[1]), None
        made.parent = info
        made.base, made.array, made.kind, made.version = info.base, info.array, info.kind, info.version
    tensor._held = array


def steps_of(shape: tuple[int, ...], unit: int) -> tuple[int, ...]:
    """The strides in bytes of contiguous memory."""
    return tuple(unit * s for s in contiguous_strides(shape))


def resize_(
    self: Tensor, *size: int | Sequence[int], memory_format: memory_format | None = contiguous_format, **named: object
) -> Tensor:
    """Change the shape in place: on the same memory if it is large enough, else on more memory with the old elements.

    Elements that are new are zero. Raises RuntimeError for tensors that require grad, except in inference mode, and where
    more memory is needed and others lie on the same: they would not grow with this tensor.
    """
    if edge_of(self) is not None and not modes.inference:
        raise RuntimeError("cannot resize variables that require grad")
    if named:
        size = by_keyword("resize_", "size", size, named)
    elif not size:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    shape = sizes(size, "resize_", "size")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"resize_: sizes must not be negative, got {list(shape)}")
    if memory_format is preserve_format:
        raise RuntimeError("resize_: unsupported memory format preserve_format")
    if shape == self._held.shape and memory_format is contiguous_format:
        return self
    if math.prod(shape) * self._held.itemsize >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    steps = steps_of(shape, self._held.itemsize)
    if memory_format is not contiguous_format:
        steps = empty_in_format(np.empty(shape, self._held.dtype), self._held.dtype, memory_format).strides
    inplace.check(self, False)
    resize_to(self, shape, steps)
    inplace.written(self, "resize_")
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Change the shape in place to that of another tensor; see `resize_`."""
    if memory_format is None or memory_format is preserve_format:
        return resize_(self, the_template._held.shape)
    return resize_(self, the_template._held.shape, memory_format=memory_format)


def resize(self: Tensor, *size: object) -> Tensor:
    """Another shape of as many elements on the same memory, deprecated: use `reshape`."""
    caller.warn("non-inplace resize is deprecated")
    if not size:
        raise TypeError('resize() missing 1 required positional arguments: "size"')
    return of_as_many("resize", self, sizes(size, "resize", "size"))


def resize_as(self: Tensor, other: Tensor) -> Tensor:
    """Another tensor's shape of as many elements on the same memory, deprecated: use `reshape_as`."""
    caller.warn("non-inplace resize_as is deprecated")
    return of_as_many("resize_as", self, other._held.shape)


def of_as_many(name: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`tensor` in another shape.  Raises RuntimeError where that has another number of elements."""
    if math.prod(shape) != tensor._held.size:
        raise RuntimeError(f"{name}: shape {list(shape)} has not the {tensor._held.size} elements of the tensor of shape "
                           f"{list(tensor._held.shape)}: use resize_() to change their number")  # fmt: skip
    return reshape(tensor, shape)


def resize_like(out: Tensor, result: Array) -> None:
    """Give what `out=` names the shape of a result, and its order in memory."""
    resize_to(out, result.shape, empty_in_format(result, out._held.dtype, preserve_format).strides)


tensor_functions["resize_like"] = resize_like
function()(resize_as_)
for _method in (resize_, resize_as_, resize, resize_as):
    setattr(Tensor, _method.__name__, _method)
