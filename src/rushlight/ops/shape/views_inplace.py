"""Views in place: transpose_, squeeze_ and their like change what a tensor sees of its memory, not the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rushlight.basics.arrays import Array
from rushlight.basics.state import modes
from rushlight.dispatch.options import strides_of
from rushlight.dispatch.registry import function
from rushlight.engine import inplace
from rushlight.engine.conform import tensor_functions
from rushlight.ops.shape.strided import as_strided_op, geometry
from rushlight.ops.shape.views import squeeze, t, transpose, unsqueeze
from rushlight.storage import bytes_before, root_of, storage_of
from rushlight.tensor import Tensor


def become(tensor: Tensor, made: Callable[..., Any]) -> Tensor:
    """Make `tensor` what the view `made` of it is."""
    inplace.check(tensor, tensor.requires_grad)
    result = made(tensor)
    if result is not tensor:
        storage_of(tensor)
        info = tensor._view
        if info is not None:
            tensor._view = result._view
            tensor._view.kind = info.kind
        tensor._held = result._held
        if result._tangents:
            tensor._tangents = result._tangents
        if modes.grad:
            tensor._edge = result._edge
            if info is not None and result._edge is not None:  # else it follows a base that comes to require grad
                tensor._view.version = storage_of(tensor).version + 1
    inplace.written(tensor, "a view in place")
    return tensor


def restride(array: Array, now: Array) -> Any:
    """A step that shows the memory of an array like `now` as `array` lies in it."""
    unit = array.itemsize
    start = bytes_before(array) - bytes_before(now)
    offset = start // unit if array.size else 0
    if root_of(array) is not root_of(now):  # the base has been given other memory: as if the view were on that
        check_within(array, now)
    stride, own = (tuple([s // unit for s in a.strides]) for a in (array, now))
    return partial(as_strided_op.op.call, size=array.shape, stride=stride, offset=offset, own=own)


def check_within(array: Array, now: Array) -> None:
    """Raise RuntimeError unless what lies as `array` does would fit in the memory of `now`."""
    last = (
        bytes_before(array) + array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    )
    if array.size and last > root_of(now).nbytes:
        raise RuntimeError(f"setStorage: sizes {list(array.shape)}, strides {list(strides_of(array))} of a view are out of "
                           f"bounds for the storage of size {root_of(now).nbytes} that its base has been given: make the "
                           "view anew from the base")  # fmt: skip


tensor_functions["restride"] = restride


@function(method=True)
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place version of `transpose`."""
    return become(input, lambda x: transpose(x, dim0, dim1))


@function(method=True)
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """In-place version of `swapaxes`."""
    return transpose_(input, axis0, axis1)


@function(method=True)
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place version of `swapdims`."""
    return transpose_(input, dim0, dim1)


@function(method=True)
def t_(input: Tensor) -> Tensor:
    """In-place version of `t`."""
    return become(input, t)


@function(method=True)
def squeeze_(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """In-place version of `squeeze`."""
    return become(input, lambda x: squeeze(x, dim))


@function(method=True)
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """In-place version of `unsqueeze`."""
    return become(input, lambda x: unsqueeze(x, dim))


@function(method=True)
def as_strided_(
    input: Tensor, size: int | Sequence[int], stride: int | Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """In-place version of `as_strided`."""
    found = geometry("as_strided_", input, size, stride, storage_offset)
    return become(input, lambda x: as_strided_op(x, *found))
