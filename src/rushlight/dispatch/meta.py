"""Tensors on the device "meta": shape, strides and dtype, and no memory.

Such a tensor is of a subclass of the class that it says it is of (as those in `signs` are), in which `_array`, which
whoever computes reads, is one that refuses to be computed with.  `_held` is an array that says shape, strides and
dtype: all of them lie on the same addresses, which are reserved, cannot be written to, and have no memory behind
them.

While any such tensor is alive, operators take the general path, which asks `special.meta`: the level that makes results
by the rules for shapes with which memory is estimated.  What has no rule, and what asks for values, is refused by name.
"""

from __future__ import annotations

import copy
import importlib
import math
import mmap
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device as device_class
from rushlight.basics.naming import called
from rushlight.basics.state import modes, special
from rushlight.dispatch.compute import check_broadcast
from rushlight.dispatch.dims import check_output
from rushlight.dispatch.formats import preserve_format, shows_format
from rushlight.dispatch.options import META, WITHOUT, Nowhere, contiguous_strides, numpy_dtype, refuse
from rushlight.tensor import LEAF, Tensor, wrap

LEVEL = "rushlight.memory.estimates.on_meta"  # of a higher floor, imported when the first such tensor is made
_set_class: Any = object.__dict__["__class__"].__set__
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
_alive: dict[int, Any] = {}
_reserved: list[mmap.mmap] = []


def nowhere(shape: Iterable[int], dtype: np.dtype[Any], order: Sequence[int] | None = None) -> Array:
    """An array that says shape, strides and dtype, on memory that is not there.  order: dimensions by decreasing stride."""
    shape, dtype = tuple(shape), np.dtype(dtype)
    laid = shape if order is None else tuple(shape[i] for i in order)
    found = np.ndarray(
        laid, dtype, addresses(math.prod(laid) * dtype.itemsize + 1), 1
    )  # not aligned: no kernel takes it
    return found if order is None else found.transpose(np.argsort(order))


def addresses(count: int) -> mmap.mmap:
    """So many addresses, or more, that can be read as zeros and not be written to."""
    if not _reserved or len(_reserved[-1]) < count:
        size = max(1 << 36, 1 << count.bit_length())
        try:
            if sys.platform == "win32":  # no addresses without memory: what is asked for must fit
                _reserved.append(mmap.mmap(-1, max(count, 1), access=mmap.ACCESS_READ))
            else:
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
                _reserved.append(mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ))
        except OSError as error:
            raise MemoryError(f"device='meta': the operating system refuses {size:,} bytes of addresses that no memory is behind "
                              f"({error}); see ulimit -v") from error  # fmt: skip
    return _reserved[-1]


def strided(shape: tuple[int, ...], strides: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """As `nowhere`, with strides given in elements."""
    count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    base = nowhere((max(count, 1),), dtype)
    return np.ndarray(tuple(shape), dtype, base, 0, tuple(s * dtype.itemsize for s in strides))


class OnMeta:
    """What the class of a tensor without memory has before that of any other."""

    __slots__ = ()
    _unusual = True
    _elsewhere = True
    _meta = True
    _plain: type
    _held: Any
    is_meta, is_cpu = True, False

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """`type(parameter)(data)` makes what the class says that it is, where the data are."""
        return cls._plain(*args, **kwargs)

    @property
    def __class__(self) -> type[Any]:
        return self._plain

    @__class__.setter
    def __class__(self, value: type[Any]) -> None:
        _set_class(self, class_of(value))

    @property
    def _array(self) -> Array:
        return self._held.view(Nowhere)

    @_array.setter
    def _array(self, value: Array) -> None:
        self._held = value

    @property
    def device(self) -> device_class:
        """The device meta."""
        return META

    @property
    def data(self) -> Tensor:
        """The same shape outside the graph."""
        return meta_like(self, Tensor)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not getattr(value, "_meta", False):
            incompatible()
        self._held = value._held

    def _on_page(self, cls: type) -> tuple[Any, Any]:
        """The class and the array of a tensor that is to see what this one sees: see `tensor.alias`."""
        return class_of(cls), self._held

    def __setitem__(self, index: object, value: object) -> None:
        this: Any = self
        if modes.grad and (this.requires_grad or (isinstance(value, Tensor) and value.requires_grad)):
            refuse("__setitem__ that is recorded")
        parts = index if isinstance(index, tuple) else (index,)
        if isinstance(value, Tensor) and not any(isinstance(part, (Tensor, list, np.ndarray)) for part in parts):
            value.expand(this[index].shape)  # raises where it does not fit
        this._bump_version()

    def data_ptr(self) -> int:
        """0: there is no memory."""
        return 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        fresh = meta_like(self, self._plain)
        fresh.__dict__.update(copy.deepcopy(vars(self), memo))
        if self._edge is LEAF:  # type: ignore[attr-defined]
            fresh._edge = LEAF
        memo[id(self)] = fresh
        return fresh

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
        this: Any = self
        state = {name: value for name, value in vars(this).items() if not hasattr(Tensor, name)}
        return remade, (self._plain, this.dtype, tuple(this.shape), this.stride(), this.requires_grad, state)

    def __repr__(self, **options: object) -> str:
        parts = ["...", "device='meta'", f"size={tuple(self._held.shape)}"]
        dtype = dtypes.of(self._held.dtype)
        if dtype is not dtypes.get_default_dtype():
            parts.append(f"dtype={dtype}")
        if self.grad_fn is not None:  # type: ignore[attr-defined]
            parts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")  # type: ignore[attr-defined]
        elif self.requires_grad:  # type: ignore[attr-defined]
            parts.append("requires_grad=True")
        text = f"tensor({', '.join(parts)})"
        return text if self._plain is Tensor else f"{self._plain.__name__} containing:\n{text}"

    def to(self, *args: object, **kwargs: object) -> Tensor:
        """This tensor in another dtype; on another device there would be nothing to copy: NotImplementedError."""
        device, dtype = _wanted(args, kwargs)
        if device is not None and device.type != "meta":
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                "torch.nn.Module.to() when moving module from meta to a different device."
            )
        if dtype is None or dtype.numpy == self._held.dtype:
            return laid_out(self, kwargs.get("memory_format"), bool(kwargs.get("copy")))  # type: ignore[arg-type]
        return laid_out(special.meta.cast(self, dtype), kwargs.get("memory_format"))

    def cpu(self, memory_format: object = None) -> Tensor:
        """Refused: there is nothing to copy."""
        return self.to("cpu")

    def cuda(self, device: object = None, non_blocking: bool = False, memory_format: object = None) -> Tensor:
        """Refused: there is nothing to copy."""
        return self.to("cuda")


def laid_out(tensor: Tensor, format: Any, fresh: bool = False) -> Tensor:
    """`tensor` in a memory format, or another one like it where it is to be a `fresh` one."""
    lies = format in (None, preserve_format) or shows_format(tensor._held, format)
    return tensor if lies and not fresh else tensor.clone(memory_format=format)


def _wanted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The device and the dtype that the arguments of `to` ask for; None for what they leave."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    for x in (*args, kwargs.get("other")):
        if isinstance(x, Tensor):
            device, dtype = x.device, x.dtype
        elif isinstance(x, dtypes.dtype):
            dtype = x
        elif isinstance(x, (str, device_class)):
            device = x
    found = None if device is None else device_class(device)
    return found, dtype if dtype is None or isinstance(dtype, dtypes.dtype) else dtypes.of(numpy_dtype("to", dtype))


def incompatible() -> NoReturn:
    """Raise the error for the memory of one device in a tensor of another."""
    raise RuntimeError(
        "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
    )


def _method(name: str) -> Callable[..., Any]:
    """A method that asks for values."""

    def refused(self: Tensor, *args: object, **kwargs: object) -> NoReturn:
        if name == "item":
            raise RuntimeError("Tensor.item() cannot be called on meta tensors")
        refuse(f"Tensor.{name}")

    return called(refused, name)


def check_written(name: str, target: Tensor, others: tuple[Any, ...]) -> None:
    """Raise RuntimeError if what is made of `target` and the tensors among `others` does not have the shape of `target`."""
    arrays = [x._held for x in (target, *others) if isinstance(x, Tensor)]
    check_broadcast(name, arrays)
    check_output(name, target._held.shape, np.broadcast_shapes(*(x.shape for x in arrays)))


def _in_place(name: str) -> Callable[..., Any]:
    """A method that writes values: there is nowhere to write them."""

    def nothing(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        for x in (*args, *kwargs.values()):
            if name == "copy_" and isinstance(x, Tensor):
                check_written(name, self, (x,))
        self._bump_version()
        return self

    return called(nothing, name)


def _exported(name: str, kind: type[Exception]) -> Callable[..., Any]:
    """A method that would show values to others, which is refused as PyTorch does; with `force` as any other."""

    def refused(self: Tensor, *args: object, force: bool = False, **kwargs: object) -> NoReturn:
        if force:
            refuse(f"Tensor.{name}")
        raise kind(f"Tensor.{name}: can't convert meta device type tensor to numpy: {WITHOUT}")

    return called(refused, name)


for _name, _kind in (("numpy", TypeError), ("__array__", TypeError), ("__dlpack__", BufferError)):
    setattr(OnMeta, _name, _exported(_name, _kind))
for _name in (
    "item",
    "tolist",
    "__bool__",
    "__float__",
    "__int__",
    "__index__",
    "__complex__",
    "__contains__",
    "nonzero",
    "unique",
    "masked_select",
    "untyped_storage",
    "storage",
    "equal",
    "allclose",
):
    setattr(OnMeta, _name, _method(_name))
for _name in ("bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_", "log_normal_", "normal_", "random_",
              "uniform_", "zero_"):  # fmt: skip
    setattr(OnMeta, _name, _in_place(_name))


def class_of(cls: type[Any]) -> type[Any]:
    """The class of the tensors of class `cls` on the device meta."""
    known: type[Any] | None = cls.__dict__.get("_on_meta")
    if known is None:
        names = {"__slots__": (), "_plain": cls, "__module__": cls.__module__, "__doc__": cls.__doc__}
        known = cls._on_meta = type(cls)(cls.__name__, (OnMeta, cls), names)
    return known


def on_meta(array: Array, requires_grad: bool = False, cls: type = Tensor) -> Tensor:
    """A leaf on the device meta of the shape, strides and dtype of `array`, which is one of `nowhere`."""
    if special.meta is None:
        special.meta = importlib.import_module(LEVEL).MetaLevel()
    t = wrap(array)
    _set_class(t, class_of(cls))
    note(t)
    if requires_grad:
        t.requires_grad_()
    return t


def note(tensor: Tensor) -> None:
    """From now on until it is gone, operators look for such tensors."""
    key = id(tensor)

    def gone(_: object) -> None:
        del _alive[key]
        special.add(-1)

    _alive[key] = weakref.ref(tensor, gone)
    special.add(1)


def remade(
    cls: type,
    dtype: dtypes.dtype,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    state: dict[str, Any],
) -> Tensor:
    """A tensor on the device meta as a pickle describes it."""
    t = on_meta(strided(size, stride, dtype.numpy), requires_grad, cls)
    t.__dict__.update(state)
    return t


def meta_like(tensor: Any, cls: type = Tensor) -> Tensor:
    """A leaf on the device meta that is laid out as a tensor."""
    held = tensor._held
    steps = tuple(s // held.itemsize for s in held.strides) if held.size else contiguous_strides(held.shape)
    return on_meta(strided(held.shape, steps, held.dtype), cls=cls)


def beside(made: Tensor, like: Tensor) -> Tensor:
    """What was made for a computation with `like`: on the device meta, if that is."""
    return meta_like(made) if like._meta else made


def placed(tensor: Tensor, where: object) -> Tensor:
    """`tensor`, or what stands for it on the device meta, if that is `where` it shall be."""
    if where is not META or tensor._meta:
        return tensor
    found = meta_like(tensor, tensor.__class__)
    if tensor.requires_grad:
        found.requires_grad_()
    return found
