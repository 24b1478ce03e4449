"""The options that functions making tensors share: size, dtype, device, layout, requires_grad."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from rushlight.basics import devices, dtypes
from rushlight.basics.devices import CPU
from rushlight.basics.devices import device as device_class
from rushlight.basics.state import modes, special
from rushlight.storage import InferenceStorage
from rushlight.tensor import LEAF, Tensor, strided, wrap


def size_of(name: str, args: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """The size given as ints one by one, as one sequence, or by the keyword `size`."""
    if size is not None:
        args = (size,)
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    first = args[0]
    if isinstance(first, (tuple, list)):
        if len(args) > 1:
            raise TypeError(f"{name}() takes 1 positional argument but {len(args)} were given")
        args = tuple(first)
    result = tuple([index_of(name, n) for n in args])
    if result and min(result) < 0:
        raise RuntimeError(f"{name}: trying to create tensor with negative dimension {min(result)}: {list(result)}")
    return result


def index_of(name: str, n: Any) -> int:
    """An int, NumPy integer or integer tensor of one element, as an int."""
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(n).__name__}"
        ) from None


def numpy_dtype(name: str, dtype: Any, default: Any = None) -> Any:
    """The NumPy dtype of the argument `dtype`; of None, `default` or else the default floating-point dtype."""
    if dtype is None:
        return (default or dtypes.get_default_dtype()).numpy
    if isinstance(dtype, dtypes.dtype):
        return dtype.numpy
    if dtype in (float, int, bool, complex):
        return {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool, complex: dtypes.complex128}[dtype].numpy
    raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")


def blank(make: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """`make(shape, dtype)`, a function of NumPy, or while memory is estimated what stands in its place."""
    if special.count:
        for level in modes.levels:
            if getattr(level, "dry", False):
                return level.blank(make, shape, dtype)
    return make(shape, dtype)


fills = {"deterministic": False, "uninitialized": True}  # whether memory that would be anything is filled: if both


def uninitialized(array: Any) -> Any:
    """Memory that may hold anything; where determinism is asked for, NaN or the largest integer."""
    if fills["deterministic"] and fills["uninitialized"]:
        kind = array.dtype.kind
        array[...] = np.iinfo(array.dtype).max if kind in "iu" else True if kind == "b" else np.nan
    return array


def check_device(device: Any) -> Any:
    """Raise an error unless tensors can be made on `device`."""
    if device is None:
        device = modes.default_device
        if device is None:
            return CPU
    found = device if isinstance(device, device_class) else device_class(device)
    if found.type == "cuda":
        if devices.instead_of_cuda is None:
            raise AssertionError("Torch not compiled with CUDA enabled")
        devices.instead_of_cuda()
        return CPU
    if found.type != "cpu":
        raise RuntimeError(f"tensors cannot be made on device '{found}': it has no memory for them. Use device='cpu'; "
                           "to know sizes before allocating, see rushlight.memory.estimate")  # fmt: skip
    return CPU


def check_layout(name: str, layout: Any) -> None:
    """Raise RuntimeError for layouts other than strided."""
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name}(): layout {layout} is not supported: all tensors are torch.strided")


def check_options(name: str, device: Any, layout: Any = None) -> None:
    """Raise an error unless a tensor of this device and layout can be made."""
    if device is not None or modes.default_device is not None:
        check_device(device)
    if layout is not None:
        check_layout(name, layout)


def made(array: Any, requires_grad: bool = False) -> Tensor:
    """A new leaf on `array`, which nobody else uses."""
    t = wrap(array)
    if requires_grad:
        if array.dtype.kind in "biu":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients, got "
                               f"{dtypes.of(array.dtype)}")  # fmt: skip
        t._edge = LEAF
    if modes.inference:
        t._inference, t._unusual, t._storage = True, True, InferenceStorage(array)
    return t


def filled(name: str, out: Any, t: Tensor, by_count: bool = False) -> Tensor:
    """`t`, or the tensor `out` with its values.  by_count: `out` of as many elements keeps its shape."""
    if out is None:
        return t
    from rushlight.dispatch.call import write_out

    if by_count and isinstance(out, Tensor) and out._held.size == t._array.size:
        t._array = t._array.reshape(out._held.shape)

    return write_out(name, out, t)  # type: ignore[no-any-return]


def strides_of(array: Any) -> tuple[int, ...]:
    """Strides in elements."""
    step = array.itemsize
    if not array.size and array.ndim and not any(array.strides):  # NumPy's, of new memory without elements
        return contiguous_strides(array.shape)
    return tuple(s // step for s in array.strides)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides in elements of contiguous memory; sizes of 0 count as 1."""
    step, found = 1, []
    for n in reversed(shape):
        found.append(step)
        step *= max(n, 1)
    return tuple(reversed(found))


def dense_order(array: Any) -> Any:
    """The order of dimensions, outermost first, of memory without gaps and overlaps; None where there are any."""
    shape, strides = array.shape, strides_of(array)
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], -shape[i], i))
    expected = 1
    for i in reversed(order):
        if shape[i] > 1 and strides[i] != expected:
            return None
        expected *= max(shape[i], 1)
    return order
