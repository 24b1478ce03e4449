"""The options that functions making tensors share: size, dtype, device, layout, requires_grad."""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from rushlight.basics import devices, dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import CPU, device
from rushlight.basics.devices import device as device_class
from rushlight.basics.dtype_words import older
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes, special
from rushlight.dispatch.dims import no_bool
from rushlight.kernels import pointwise
from rushlight.storage import InferenceStorage
from rushlight.tensor import LEAF, Tensor, strided, wrap


def size_of(name: str, args: tuple[Any, ...], size: object = None) -> tuple[int, ...]:
    """The size given as ints one by one, as one sequence, or by the keyword `size`."""
    if size is not None:
        if hasattr(size, "__index__"):
            raise TypeError(
                f"{name}(): argument 'size' must be tuple of ints, not {type(size).__name__}: write ({size},)"
            )
        args = (size,)
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    first = args[0]
    if isinstance(first, (tuple, list)):
        if len(args) > 1:
            raise TypeError(f"{name}() takes 1 positional argument but {len(args)} were given")
        args = tuple(first)
    result = tuple([index_of(name, n, i > 0) for i, n in enumerate(args)])
    if result and min(result) < 0:
        raise RuntimeError(
            f"{name}: Dimension size must be non-negative. Trying to create tensor with negative dimension "
            f"{min(result)}: {list(result)}"
        )
    return result


def index_of(name: str, n: int, bools: bool = False) -> int:
    """An int, NumPy integer or integer tensor of one element, as an int; bools: whether True passes for 1."""
    try:
        return operator.index(n if bools else no_bool(n))
    except TypeError:
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(n).__name__}"
        ) from None


def numpy_dtype(name: str, dtype: object, default: dtypes.dtype | None = None) -> np.dtype[Any]:
    """The NumPy dtype of the argument `dtype`; of None, `default` or else the default floating-point dtype."""
    if dtype is None:
        dtype = default or dtypes.get_default_dtype()
    elif isinstance(dtype, type):
        dtype = dtypes.PYTHON.get(dtype, dtype)
    if isinstance(dtype, dtypes.dtype):
        return dtype.numpy
    raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {kind_of(dtype)}")


def dtype_with(name: str, dtype: object, out: object, default: dtypes.dtype | None = None) -> np.dtype[Any]:
    """As `numpy_dtype`, beside `out=`, whose dtype it is unless one is given.  Raises RuntimeError where they disagree."""
    if out is None or not isinstance(out, Tensor):
        return numpy_dtype(name, dtype, default)
    have: np.dtype[Any] = out._held.dtype
    if dtype is not None and numpy_dtype(name, dtype) != have:
        raise RuntimeError(
            f"{name}(): dtype {older(numpy_dtype(name, dtype))} does not match dtype of out parameter ({older(have)})"
        )
    return have


META = device_class("meta")


WITHOUT = ("a tensor on device 'meta' has a shape and no values; make it on the CPU, or use Module.to_empty(device='cpu') "
           "and load values")  # fmt: skip


def refuse(name: str, why: str = WITHOUT) -> NoReturn:
    """Raise the error for what asks for the values of a tensor on the device meta, or of another that has no array."""
    raise NotImplementedError(f"{name}: {why}")


def no_values(name: str) -> NoReturn:
    """Raise the error for a copy of what has no values."""
    raise NotImplementedError(f"{name}: Cannot copy out of meta tensor; no data! It has a shape alone: make it on the CPU, or use "
                              "Module.to_empty(device='cpu') and load values")  # fmt: skip


_ASKED_BY_OTHERS = ("<__array", os.path.dirname(np.__file__), os.path.dirname(pointwise.__file__))


def asker() -> str:
    """The name of the function of an operator that asks for values, for messages."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_ASKED_BY_OTHERS):
        frame = frame.f_back
    return "?" if frame is None else str(frame.f_code.co_name.strip("_"))


class Nowhere(np.ndarray):
    """What the arrays of tensors on the device meta are to whoever looks: shape, strides and dtype, and no values.

    NumPy computes nothing with them, and the kernels refuse them, since they are not aligned.
    """

    nowhere = unread = True
    why = WITHOUT

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> NoReturn:
        refuse(asker(), self.why)

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if function not in _OF_SHAPES:
            refuse(asker(), self.why)
        return _plainly(function, args, kwargs)


def _plainly(function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> object:
    return function(*(a.view(np.ndarray) if isinstance(a, Nowhere) else a for a in args), **kwargs)


_OF_SHAPES = {np.shape, np.ndim, np.size, np.result_type, np.may_share_memory, np.shares_memory, np.can_cast}


def _valueless(name: str) -> Callable[..., Any]:
    def refused(self: Nowhere, *args: object, **kwargs: object) -> NoReturn:
        refuse(asker(), self.why)

    refused.__name__ = name
    return refused


for _name in (
    "__array__",
    "__bool__",
    "__complex__",
    "__contains__",
    "__float__",
    "__index__",
    "__int__",
    "__iter__",
    "__setitem__",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "astype",
    "copy",
    "dump",
    "dumps",
    "fill",
    "flatten",
    "item",
    "max",
    "min",
    "nonzero",
    "put",
    "sort",
    "sum",
    "take",
    "tobytes",
    "tofile",
    "tolist",
):
    setattr(Nowhere, _name, _valueless(_name))


def values(name: str, tensor: Tensor) -> Array:
    """The array of a tensor, for what NumPy copies without asking.  Refused on the device meta."""
    if tensor._meta:
        refuse(name)
    return tensor._array


def check_count(shape: Sequence[int]) -> None:
    """Raise RuntimeError for sizes of more elements than there are addresses."""
    if math.prod(shape) >= 1 << 60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


def blank(make: Callable[..., Array], shape: tuple[int, ...], dtype: np.dtype[Any], where: object = None,
          order: Sequence[int] | None = None) -> Array:  # fmt: skip
    """`make(shape, dtype)`, a function of NumPy, or while memory is estimated, or on meta, what stands in its place.

    order: of what is on meta, its dimensions by decreasing stride.
    """
    if where is META:
        from rushlight.dispatch.meta import nowhere

        check_count(shape)
        return nowhere(shape, dtype, order).view(Nowhere)
    if special.count:
        for level in modes.levels:
            if getattr(level, "dry", False):
                return level.blank(make, shape, dtype)
    try:
        return make(shape, dtype)
    except ValueError:
        if len(shape) > 64:  # as many as NumPy's arrays have
            raise RuntimeError(f"only tensors with up to 64 dims are supported, got sizes of {len(shape)}") from None
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}") from None


def on_meta_alone(*given: object) -> bool:
    """Whether a tensor among these is on the device meta: what a function computes of it has a shape alone."""
    return special.meta is not None and any(getattr(x, "_meta", False) for x in given)


def shape_alone(shape: Sequence[int], dtype: np.dtype[Any] | type[Any]) -> Tensor:
    """What a function makes of tensors on the device meta: a tensor there."""
    return made(blank(np.empty, tuple(shape), np.dtype(dtype), META))


fills = {"deterministic": False, "uninitialized": True}  # whether memory that would be anything is filled: if both


def uninitialized(array: Array) -> Array:
    """Memory that may hold anything; where determinism is asked for, NaN or the largest integer."""
    if fills["deterministic"] and fills["uninitialized"] and array.__class__ is not Nowhere:
        kind = array.dtype.kind
        array[...] = np.iinfo(array.dtype).max if kind in "iu" else True if kind == "b" else np.nan
    return array


def check_device(device: object) -> device:
    """Raise an error unless tensors can be made on `device`."""
    if device is None:
        device = modes.default_device
        if device is None:
            return CPU
    found = device if isinstance(device, device_class) else device_class(device)
    if found.type == "cuda":
        if devices.instead_of_cuda is None:
            raise explained(AssertionError("Torch not compiled with CUDA enabled"), "no-cuda")
        devices.instead_of_cuda()
        return CPU
    if found.type == "meta":
        return META
    if found.type != "cpu":
        raise RuntimeError(f"tensors cannot be made on device '{found}': it has no memory for them. Use device='cpu'; "
                           "to know sizes before allocating, see rushlight.memory.estimate")  # fmt: skip
    return CPU


def check_layout(name: str, layout: object) -> None:
    """Raise RuntimeError for layouts other than strided."""
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name}(): layout {layout} is not supported: all tensors are torch.strided")


def check_pinned(name: str) -> None:
    """Raise RuntimeError for `pin_memory=True`: no GPU reads memory by itself, unless "cuda" means the CPU."""
    if devices.instead_of_cuda is None:
        raise RuntimeError(f"{name}(): pin_memory=True needs a GPU that would read the memory by itself: leave it out")


def check_options(name: str, device: object, layout: object = None, pin_memory: bool = False) -> device_class | None:
    """Raise an error unless a tensor of this device and layout can be made.  META where it shall be on that device."""
    if pin_memory:
        check_pinned(name)
    if layout is not None:
        check_layout(name, layout)
    if device is not None or modes.default_device is not None:
        return check_device(device)
    return None


def place_of(
    name: str, input: Tensor, device: object, layout: object = None, pin_memory: bool = False
) -> device_class | None:
    """As `check_options`, for a tensor made after another, on whose device it is unless one is given."""
    if pin_memory:
        check_pinned(name)
    if device is None:
        check_layout(name, layout)
        return META if input._meta else None
    return check_options(name, device, layout)


def made(array: Array, requires_grad: bool = False, where: device | None = None) -> Tensor:
    """A new leaf on `array`, which nobody else uses.  where: META for one on that device, which leaves the values."""
    if requires_grad is not False and requires_grad is not True and requires_grad is not None:
        raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if array.__class__ is Nowhere:
        from rushlight.dispatch.meta import on_meta

        return on_meta(array.view(np.ndarray), requires_grad)
    if where is META:
        from rushlight.dispatch.meta import meta_like

        return meta_like(wrap(array)).requires_grad_(requires_grad)
    t = wrap(array)
    if requires_grad:
        if array.dtype.kind in "biu":
            raise explained(RuntimeError("Only Tensors of floating point and complex dtype can require gradients, got "
                               f"{dtypes.of(array.dtype)}"), "integers-have-no-grad")  # fmt: skip
        t._edge = LEAF
    if modes.inference:
        t._inference, t._unusual, t._storage = True, True, InferenceStorage(array)
    return t


DRAWN = ("rand", "randn", "randint", "randperm")  # what makes tensors of random numbers


def filled(name: str, out: Tensor | None, t: Tensor, by_count: bool = False) -> Tensor:
    """`t`, or the tensor `out` with its values.  by_count: `out` of as many elements keeps its shape."""
    if out is None:
        return t
    from rushlight.dispatch.call import write_out

    if special.count and any(hasattr(level, "randomness") for level in modes.levels) and name in DRAWN:
        raise RuntimeError(
            f"vmap: {name}(): random numbers with out= are not possible inside vmap: use what it returns"
        )
    if by_count and isinstance(out, Tensor) and out._held.size == t._array.size:
        t._array = t._array.reshape(out._held.shape)

    if isinstance(out, Tensor) and out._meta:
        from rushlight.dispatch.meta import placed

        t = placed(t, META)
    return write_out(name, out, t, warns=name == "arange")


def strides_of(array: Array) -> tuple[int, ...]:
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


def dense_order(array: Array) -> Sequence[int] | None:
    """The order of dimensions, outermost first, of memory without gaps and overlaps; None where there are any."""
    return _dense_order(array.shape, strides_of(array))


@lru_cache(1024)
def _dense_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], -shape[i], i))
    expected = 1
    for i in reversed(order):
        if shape[i] > 1 and strides[i] != expected:
            return None
        expected *= max(shape[i], 1)
    return tuple(order)
