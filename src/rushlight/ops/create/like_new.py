"""Tensors made after another: zeros_like and the like, new_zeros and the like, strided and permuted memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import special
from rushlight.dispatch.dims import listed
from rushlight.dispatch.formats import empty_in_format, memory_format, order_in_format
from rushlight.dispatch.options import (
    META,
    Nowhere,
    blank,
    check_options,
    made,
    numpy_dtype,
    place_of,
    size_of,
    uninitialized,
)
from rushlight.dispatch.registry import function
from rushlight.ops.create.factories import fill_array, in_sparse_layout
from rushlight.ops.create.from_python import array_from, warn_of_copies
from rushlight.tensor import Tensor, layout, strided


def like(
    name: str,
    input: Array | Tensor,
    dtype: dtype | None,
    device: device | str | int | None,
    layout: object,
    memory_format: Any,
    pin_memory: bool = False,
) -> Array:
    """Uninitialized memory of the shape, dtype and order of `input` where these are not given."""
    if not isinstance(input, Tensor):
        if input.__class__ is np.ndarray:
            return np.empty(input.shape, input.dtype if dtype is None else numpy_dtype(name, dtype))
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind_of(input)}")
    where = place_of(name, input, device, layout, pin_memory)
    kind = input._held.dtype if dtype is None else numpy_dtype(name, dtype)
    if where is META:
        return blank(np.empty, input._held.shape, kind, where, order_in_format(input._held, memory_format))
    return empty_in_format(input._held, kind, memory_format)


def _finish(input: Any, array: Array, requires_grad: bool) -> Any:
    if input.__class__ is np.ndarray:
        return array
    if (
        array.__class__ is not Nowhere and input._held.__class__ is not np.ndarray
    ):  # inside vmap: as many samples as the input has
        return input._array.level.alike(input, array).requires_grad_(requires_grad)
    return made(array, requires_grad)


@function()
def empty_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None,
               device: device | str | int | None = None, requires_grad: bool = False,
               memory_format: memory_format | None = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Uninitialized memory of the shape of `input`."""
    if special.classes is not None and special.classes.owns((input,)):
        return special.classes.like("empty_like", input, (), requires_grad, dtype=dtype, layout=layout, device=device,
                                    memory_format=memory_format)  # fmt: skip
    array = uninitialized(like("empty_like", input, dtype, device, layout, memory_format, pin_memory))
    return _finish(input, array, requires_grad)


@function()
def zeros_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None,
               device: device | str | int | None = None, requires_grad: bool = False,
               memory_format: memory_format | None = None, pin_memory: bool = False) -> Array | Tensor:  # fmt: skip
    """Zeros of the shape of `input`."""
    if special.classes is not None and special.classes.owns((input,)):
        return special.classes.like("zeros_like", input, (), requires_grad, dtype=dtype, layout=layout, device=device,
                                    memory_format=memory_format)  # fmt: skip
    if layout is not None and layout is not strided:
        return in_sparse_layout(layout, input.shape, dtype or input.dtype, requires_grad)
    array = like("zeros_like", input, dtype, device, layout, memory_format, pin_memory)
    if array.__class__ is not Nowhere:
        array = np.zeros(array.shape, array.dtype) if array.flags.c_contiguous else np.zeros_like(array)
    return _finish(input, array, requires_grad)


@function()
def ones_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None,
              device: device | str | int | None = None, requires_grad: bool = False,
              memory_format: memory_format | None = None, pin_memory: bool = False) -> Array | Tensor:  # fmt: skip
    """Ones of the shape of `input`."""
    if special.classes is not None and special.classes.owns((input,)):
        return special.classes.like("ones_like", input, (), requires_grad, dtype=dtype, layout=layout, device=device,
                                    memory_format=memory_format)  # fmt: skip
    array = like("ones_like", input, dtype, device, layout, memory_format, pin_memory)
    if array.__class__ is not Nowhere:
        array.fill(1)
    return _finish(input, array, requires_grad)


@function()
def full_like(input: Tensor, fill_value: Tensor | complex, *, dtype: Any = None, layout: Any = None,
              device: device | str | int | None = None, requires_grad: bool = False, memory_format: Any = None,
              pin_memory: bool = False) -> Array | Tensor:  # fmt: skip
    """One value in the shape of `input`."""
    if special.classes is not None and special.classes.owns((input,)):
        return special.classes.like("full_like", input, (fill_value,), requires_grad, dtype=dtype, layout=layout, device=device,
                                    memory_format=memory_format)  # fmt: skip
    array = like("full_like", input, dtype, device, layout, memory_format, pin_memory)
    if array.__class__ is not Nowhere:
        fill_array("full_like", array, fill_value)
    return _finish(input, array, requires_grad)


def _of(
    name: str,
    self: Tensor,
    size: int | Sequence[int] | None,
    args: tuple[Any, ...],
    dtype: dtype | None,
    device: device | str | int | None,
    layout: Any,
    pin_memory: bool = False,
) -> tuple[Any, ...]:
    where = place_of(name, self, device, layout, pin_memory)
    return size_of(name, args, size), self._held.dtype if dtype is None else numpy_dtype(name, dtype), where


def new_empty(self: Tensor, *args: int | Sequence[int], size: int | Sequence[int] | None = None, dtype: Any = None,
              device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Uninitialized memory of this size, in the dtype of this tensor."""
    if layout is not None and layout is not strided:
        return in_sparse_layout(layout, size_of("new_empty", args, size), dtype or self.dtype, requires_grad)
    array = uninitialized(blank(np.empty, *_of("new_empty", self, size, args, dtype, device, layout, pin_memory)))
    return _finish(self, array, requires_grad)


def new_zeros(self: Tensor, *args: Any, size: Any = None, dtype: Any = None, device: Any = None,
              requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Zeros of this size, in the dtype of this tensor."""
    if layout is not None and layout is not strided:
        return in_sparse_layout(layout, size_of("new_zeros", args, size), dtype or self.dtype, requires_grad)
    return _finish(
        self, blank(np.zeros, *_of("new_zeros", self, size, args, dtype, device, layout, pin_memory)), requires_grad
    )


def new_ones(self: Tensor, *args: Any, size: Any = None, dtype: Any = None, device: Any = None,
             requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Ones of this size, in the dtype of this tensor."""
    return _finish(
        self, blank(np.ones, *_of("new_ones", self, size, args, dtype, device, layout, pin_memory)), requires_grad
    )


def new_full(self: Tensor, size: int | Sequence[int], fill_value: Tensor | complex, *, dtype: Any = None,
             device: device | str | int | None = None, requires_grad: bool = False, layout: Any = None,
             pin_memory: bool = False) -> Tensor:  # fmt: skip
    """One value in this size, in the dtype of this tensor."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"new_full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    array = blank(np.empty, *_of("new_full", self, None, (size,), dtype, device, layout, pin_memory))
    if array.__class__ is not Nowhere:
        fill_array("new_full", array, fill_value)
    return _finish(self, array, requires_grad)


def new_tensor(self: Tensor, data: Any, *, dtype: dtype | None = None, device: device | str | int | None = None,
               requires_grad: bool = False, layout: layout | None = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A copy of the data in the dtype of this tensor."""
    where = place_of("new_tensor", self, device, layout, pin_memory)
    kind = self._held.dtype if dtype is None else numpy_dtype("new_tensor", dtype)
    warn_of_copies(data)
    if where is META:
        return made(array_from(data, kind), requires_grad, where)
    return _finish(self, array_from(data, kind), requires_grad)


for _method in (new_empty, new_zeros, new_ones, new_full, new_tensor):
    setattr(Tensor, _method.__name__, _method)


def strided_memory(name: str, size: Any, stride: Any, dtype: np.dtype[Any], where: device | None = None) -> Array:
    """Uninitialized memory with strides given in elements."""
    shape, steps = size_of(name, (size,)), listed(stride, name, "stride")
    if len(shape) != len(steps):
        raise RuntimeError(f"{name}: dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
                           f"({len(steps)})")  # fmt: skip
    if any(s < 0 for s in steps):
        raise RuntimeError(f"{name}: negative strides are not supported, got strides {list(steps)}")
    count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    base = uninitialized(blank(np.empty, (count,), dtype, where))
    bytes_ = tuple(s * dtype.itemsize for s in steps)
    return np.ndarray(shape, dtype, base, strides=bytes_)


@function()
def empty_strided(size: int | Sequence[int], stride: int | Sequence[int], *, dtype: dtype | None = None,
                  layout: layout | None = None, device: device | str | int | None = None, requires_grad: bool = False,
                  pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Uninitialized memory of this size with these strides, in elements."""
    where = check_options("empty_strided", device, layout, pin_memory)
    return made(
        strided_memory("empty_strided", size, stride, numpy_dtype("empty_strided", dtype), where), requires_grad, where
    )


def new_empty_strided(self: Tensor, size: int | Sequence[int], stride: int | Sequence[int], dtype: dtype | None = None,
                      layout: layout | None = None, device: device | str | int | None = None,
                      requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Uninitialized memory of this size with these strides, in the dtype of this tensor."""
    where = place_of("new_empty_strided", self, device, layout, pin_memory)
    kind = self._held.dtype if dtype is None else numpy_dtype("new_empty_strided", dtype)
    array = strided_memory("new_empty_strided", size, stride, kind, where)
    if where is META:
        return made(array, requires_grad, where)
    return _finish(self, array, requires_grad)


Tensor.new_empty_strided = new_empty_strided  # type: ignore[assignment, method-assign]


def check_layout(order: list[int], ndim: int) -> None:
    """Raise RuntimeError where `order` is no permutation of the dimensions of a tensor."""
    if len(order) != ndim:
        raise RuntimeError("empty_permuted: Number of dimensions in size does not match the length of the physical_layout, "
                           f"got {ndim} and {len(order)}")  # fmt: skip
    for i, d in enumerate(order):
        if not 0 <= d < ndim:
            raise RuntimeError(f"empty_permuted: Dimension out of range (expected to be between 0 and {ndim - 1}, but got {d} "
                               f"at index {i})")  # fmt: skip
    if len(set(order)) != ndim:
        raise RuntimeError(f"empty_permuted: Duplicate dim not allowed, got {order}")


@function()
def empty_permuted(size: int | Sequence[int], physical_layout: Sequence[int], *, dtype: dtype | None = None,
                   layout: layout | None = None, device: device | str | int | None = None, requires_grad: bool = False,
                   pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Uninitialized memory of this size whose dimensions lie in memory in the order `physical_layout`."""
    where = check_options("empty_permuted", device, layout, pin_memory)
    shape, order = size_of("empty_permuted", (size,)), [*listed(physical_layout, "empty_permuted", "physical_layout")]
    check_layout(order, len(shape))
    laid = tuple(shape[i] for i in order)
    array = uninitialized(blank(np.empty, laid, numpy_dtype("empty_permuted", dtype), where))
    return made(array.transpose(np.argsort(order)), requires_grad, where)
