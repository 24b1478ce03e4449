"""Creating tensors from data: tensor, as_tensor, asarray, from_numpy, frombuffer, scalar_tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.options import META, check_options, made, no_values, numpy_dtype
from rushlight.dispatch.registry import function
from rushlight.ops.create.from_python import array_from, convert, warn_of_copies
from rushlight.ops.create.interchange import from_capsule, imported
from rushlight.storage import Storage, expose
from rushlight.tensor import Tensor, layout, wrap


@function()
def tensor(data: object, *, dtype: dtype | None = None, device: device | str | int | None = None,
           requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A new tensor with a copy of the data: a number, nested sequences of numbers, an array or a tensor.

    The dtype is inferred where it is not given: Python floats have the default dtype, ints int64. Raises TypeError,
    ValueError or RuntimeError for data that is no number, uneven or too large.

    >>> import rushlight as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).shape
    torch.Size([2, 2])
    """
    wanted = None if dtype is None else numpy_dtype("tensor", dtype)
    where = check_options("tensor", device, None, pin_memory)
    warn_of_copies(data)
    if isinstance(data, Tensor) and data._meta:
        if where is not None and where is not META:
            no_values("tensor")
        where = META
    return made(array_from(data, wanted), requires_grad, where)


@function()
def scalar_tensor(s: complex, *, dtype: dtype | None = None, device: device | str | int | None = None,
                  layout: layout | None = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A 0-d tensor of a number, in the default floating-point dtype unless another is given."""
    where = check_options("scalar_tensor", device, layout, pin_memory)
    if isinstance(s, Tensor):
        s = s.item()
    wanted = numpy_dtype("scalar_tensor", dtype)
    if wanted == np.uint64 and isinstance(s, int) and -(1 << 63) <= s < 0:
        s += 1 << 64  # wraps around, as in full()
    return made(array_from(s, wanted), requires_grad, where)


@function()
def as_tensor(data: object, dtype: dtype | None = None, device: device | str | int | None = None) -> Tensor:
    """The data as a tensor, without a copy where it is a tensor or array of this dtype already.  Keeps history."""
    where = check_options("as_tensor", device)
    if isinstance(data, Tensor):
        found = data if dtype is None else data.to(dtype)
        return found if where is None or data._meta is (where is META) else found.to(where)
    wanted = None if dtype is None else numpy_dtype("as_tensor", dtype)
    if isinstance(data, np.ndarray):
        t = from_numpy(data)
        if where is not META and (wanted is None or t._array.dtype == wanted):
            return t
        return made(t._array if wanted is None else convert(t._array, wanted), False, where)
    return made(array_from(data, wanted), False, where)


@function()
def asarray(obj: Any, *, dtype: dtype | None = None, device: device | str | int | None = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Tensor:  # fmt: skip
    """`obj` (tensor, array, storage, DLPack or buffer object, nested sequence) as a tensor, sharing memory where it can.

    copy: True always copies; False raises ValueError where a copy would be needed; None copies where needed.
    requires_grad: False takes a tensor out of its graph; unless it is given, a tensor that requires grad stays in it, with a
    warning.
    """
    where = check_options("asarray", device)
    if requires_grad is None:
        requires_grad = isinstance(obj, Tensor) and obj.requires_grad
        if requires_grad:
            warn_of_graph()
    wanted = None if dtype is None else numpy_dtype("asarray", dtype)
    shared = sharing(obj, wanted)
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return made(array_from(obj, wanted), requires_grad, where)
    if where is not None and shared._meta is not (where is META):
        if copy is False:
            raise ValueError(f"can't alias tensor from device '{shared.device}' to '{where}'.")
        shared, copy = shared.to(where), None
    if wanted is not None and shared._array.dtype != wanted:
        if copy is False:
            raise ValueError(f"can't alias tensor with dtype '{shared.dtype}' into dtype '{dtypes.of(wanted)}'.")
        foreign = not isinstance(obj, Tensor) and not shared._meta
        shared = made(convert(shared._array, wanted)) if foreign else shared.to(dtypes.of(wanted))
    elif copy:
        shared = shared.clone() if isinstance(obj, Tensor) else made(shared._array.copy())
    if not requires_grad:
        shared = shared.detach() if shared.requires_grad and isinstance(obj, Tensor) else shared
    elif shared.is_leaf:
        shared.requires_grad_()
    return shared


told: set[str] = set()  # warnings that are given once


def warn_of_graph() -> None:
    """Warn, once, that a tensor stays in its graph."""
    if "asarray" not in told or caller.settings["always"]:
        told.add("asarray")
        caller.warn("torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
                    "requires_grad=False explicitly to get the old behavior and silence this warning.")  # fmt: skip


def sharing(obj: Any, dtype: np.dtype[Any] | None) -> Tensor | None:
    """A tensor on the memory of `obj`, None where it has none to share."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, Storage):
        return wrap(elements(obj.bytes(), dtype))
    if isinstance(obj, np.generic):
        return None
    if hasattr(obj, "__dlpack__"):
        return wrap(imported(obj))
    if type(obj).__name__ == "PyCapsule":
        return wrap(from_capsule(obj))
    try:
        view = memoryview(obj)
    except TypeError:
        return None
    kind = dtype if dtype is not None else dtypes.get_default_dtype().numpy
    return wrap(np.frombuffer(view, kind))


def elements(memory: Array, dtype: np.dtype[Any] | None) -> Array:
    """Bytes as numbers of a dtype, int64 for None, in the same memory; what is left over is left out."""
    kind = dtypes.int64.numpy if dtype is None else dtype
    return memory[: memory.size // kind.itemsize * kind.itemsize].view(kind)


@function()
def from_numpy(ndarray: Array) -> Tensor:
    """A tensor on the memory of a NumPy array.  Raises TypeError for other objects and unsupported dtypes."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    found = dtypes.of(ndarray.dtype).numpy
    if not ndarray.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between "
                         "byte orders is currently not supported.")  # fmt: skip
    if min(ndarray.strides, default=0) < 0:
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides "
                         "are not currently supported. (You can probably work around this by making a copy of your "
                         "array with array.copy().)")  # fmt: skip
    if not ndarray.flags.c_contiguous and any(s % ndarray.itemsize for s in ndarray.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                         "reallocate the memory.")  # fmt: skip
    if not ndarray.flags.writeable:
        warn_read_only()
    array = np.asarray(ndarray)
    return wrap(expose(array if array.dtype == found and array.dtype.num == found.num else array.view(found)))


def warn_read_only() -> None:
    """Warn that a tensor's memory must not be written."""
    caller.warn(
        "The given NumPy array is not writable (it is read-only), and writing to this tensor will fail. You may want to copy "
        "the array to protect its data or make it writable before converting it to a tensor."
    )


@function()
def frombuffer(
    buffer: Any, *, dtype: dtype | None, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A 1-d tensor on the memory of an object with Python's buffer protocol.

    Raises ValueError where count or offset do not fit the buffer.
    """
    kind = numpy_dtype("frombuffer", dtype)
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError(f"object does not implement Python buffer protocol: got {type(buffer).__name__}") from None
    if view.nbytes <= 0 or count == 0:
        raise ValueError(f"both buffer length ({view.nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < view.nbytes:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
                         f"({view.nbytes} bytes) minus 1")  # fmt: skip
    if count < 0 and (view.nbytes - offset) % kind.itemsize:
        raise ValueError(f"buffer length ({view.nbytes - offset} bytes) after offset ({offset} bytes) must be a "
                         f"multiple of element size ({kind.itemsize})")  # fmt: skip
    if count > 0 and offset + count * kind.itemsize > view.nbytes:
        raise ValueError(f"requested buffer length ({count} * {kind.itemsize} bytes) after offset ({offset} bytes) "
                         f"must not be greater than actual buffer length ({view.nbytes} bytes)")  # fmt: skip
    if view.readonly:
        caller.warn(
            "The given buffer is not writable (it is read-only), and writing to this tensor will fail. You may want to copy "
            "the buffer to protect its data or make it writable before converting it to a tensor."
        )
    return made(np.frombuffer(view, kind, count, offset), requires_grad)


@function()
def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)
