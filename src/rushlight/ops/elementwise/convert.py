"""Copies and conversions: clone, dtype casts, to, copy_, detach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.basics.devices import device as device_class
from rushlight.basics.dtypes import COMPLEX_KINDS, dtype, is_complex_half, warn_of_lost_parts
from rushlight.basics.eights import EIGHTS, widened
from rushlight.basics.foreign import kind_of
from rushlight.basics.naming import called
from rushlight.basics.state import special
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import two_sizes
from rushlight.dispatch.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    empty_in_format,
    has_format,
    is_format,
    lies_channels_last,
    memory_format,
    order_in_format,
    preserve_format,
    shows_format,
)
from rushlight.dispatch.keeping.unmade import Unmade
from rushlight.dispatch.options import META, check_device, no_values, numpy_dtype
from rushlight.dispatch.registry import function, op
from rushlight.engine.conform import cast_array, tensor_functions
from rushlight.kernels.dispatch import is_half, narrow_into
from rushlight.kernels.pointwise.copies import copied, move
from rushlight.tensor import Tensor, alias, shown, wrap


@op(
    aten=("clone(input, *, format=None)",),
    name="clone",
    linear=True,
    grads={"input": lambda g: g},
    complex_half="moves",
    repeatable=True,
    batch=families.cloned,
)
def copy(input: Array, format: memory_format | None = None) -> Array:
    """A copy of the elements in a memory format.  input: (*) -> (*)"""
    if format is None or format is preserve_format:
        if input.flags.c_contiguous:
            return copied(input)
        if 0 not in input.strides:
            return move(input, np.empty_like(input, subok=False))
    return move(input, empty_in_format(input, input.dtype, format))


@copy.shape
def _(input: Array, format: Any) -> list[shapes.Made]:
    if format is None or getattr(format, "name", str(format)).endswith("preserve_format"):
        return [shapes.like(input)]
    order = order_in_format(input, format)
    return [shapes.packed(input) if order is None else shapes.Made(input.shape, input.dtype, tuple(order))]


@op(
    aten_call="copied",
    name="_to_copy",
    linear=True,
    grads={"input": lambda g: g},
    complex_half="moves",
    repeatable=True,
    batch=families.targeted,
)
def cast(input: Array, dtype: dtype | None) -> Array:
    """The elements in another NumPy dtype.  input: (*) -> (*)"""
    return converted(input, dtype) if dtype != input.dtype else copied(input)


@cast.shape
def _(input: Array, dtype: np.dtype[Any]) -> list[shapes.Made]:
    return [shapes.Made(input.shape, dtype, shapes.order_of(input))]


def converted(array: Any, dtype: Any) -> Array:
    """A copy of `array` in another dtype: numbers out of an integer's range as C converts them, without warnings."""
    if is_complex_half(array.dtype) or is_complex_half(dtype):
        return through_complex64(array, dtype)
    if array.dtype in EIGHTS:
        array = widened(array)
    if array.dtype.kind == "V" and dtype.kind in "iu":
        array = array.astype(np.float32)
    if array.dtype.kind == "f" and dtype.kind == "u" and dtype.itemsize < 8:
        array = array.astype(np.int64)
    if dtype.kind == "c" and array.dtype.kind == "V":
        array = array.astype(np.float32)
    made = cast_array(array, dtype)
    return made.copy() if made.base is not None and array.dtype.kind == "c" else made  # the real part is a view


def through_complex64(array: Array, dtype: Any) -> Array:
    """As `converted`, of complex32 to another dtype or the reverse: ml_dtypes has few of these casts."""
    if array.dtype == dtype:
        return array.copy()
    if is_complex_half(dtype):
        with np.errstate(over="ignore"):
            return converted(array, COMPLEX64).astype(dtype)
    return array.astype(dtype) if dtype.kind == "b" else converted(array.astype(COMPLEX64), dtype)


COMPLEX64 = np.dtype(np.complex64)


@op(
    aten=("copy",),
    linear=True,
    complex_half="moves",
    shape=shapes.same,
    batch=families.targeted,
    casts=True,
    direct=True,
)
def copy_into(input: Array, src: Array) -> Array:
    """`src`, broadcast to the shape of `input` and in its dtype.  (*), (*) -> (*)"""
    made = converted(src, input.dtype)
    return made if made.shape == input.shape else np.broadcast_to(made, input.shape)


def put_into(x: Array, src: Array) -> None:
    """`copy_into` where `x` is, without a copy of `src` where numbers become 16 bits."""
    if src.dtype is not x.dtype and is_half(x.dtype) and src.dtype.kind in "fiu" and not np.may_share_memory(src, x):
        narrow_into(src if src.shape == x.shape else np.broadcast_to(src, x.shape), x)
        return
    src = src if src.dtype is x.dtype else converted(src, x.dtype)
    move(src if src.shape == x.shape else np.broadcast_to(src, x.shape), x)


copy_into.into(put_into)
copy_into.grad("src")(lambda g: g)


@function(method=True)
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy of the tensor with a history.  input: (*) -> (*)"""
    return copy(input, memory_format)


@function(method=True, ns="Tensor")
def copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `src`, a tensor or number, broadcast and cast, into this tensor.  (*), (*) -> (*)"""
    if isinstance(src, call.NUMBERS):
        src = wrap(np.asarray(src))
    elif not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'src' (position 1) must be Tensor, not {kind_of(src)}")
    if src._meta and not input._meta:
        no_values("copy_")
    if src._held.dtype.kind in COMPLEX_KINDS:
        warn_of_lost_parts(src.dtype, input.dtype)
    try:
        return call.apply_inplace(copy_into.op, (input, src), ())
    except ValueError as error:
        words = two_sizes(tuple(input.shape), tuple(src.shape)) or "the source has more dimensions"
        raise RuntimeError(f"copy_: {words}: the shape of the source {list(src.shape)} cannot be broadcast to "
                           f"{list(input.shape)}") from error  # fmt: skip


@function(method=True)
def detach(input: Tensor) -> Tensor:
    """The same memory outside the graph.  input: (*) -> (*)"""
    if special.count and getattr(input._held, "interpreted", False):
        return input._held.level.detached(input)
    if special.classes is not None and special.classes.owns((input,)):
        return special.classes.detached(input)
    return alias(shown(input))


@function(method=True)
def detach_(input: Tensor) -> Tensor:
    """Take this tensor out of the graph, in place.  Raises RuntimeError for views."""
    if input._view is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    input._edge = None
    if input._tangents:
        input._tangents = None
    if special.count and getattr(input._held, "interpreted", False):
        input._held.tensor = input._held.tensor.detach()
    return input


@function(method=True)
def contiguous(input: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """`input` if its elements lie in this format, else a copy that does.  input: (*) -> (*)"""
    array = input._held if isinstance(input, Tensor) else input
    if memory_format is preserve_format and array.flags.c_contiguous:
        return input
    return input if has_format(array, memory_format) else copy(input, memory_format)


def in_order_of(made: Tensor, input: Tensor) -> Tensor:
    """`made`, in channels_last order where it has as many dimensions as `input` and that lies so."""
    array = input._array
    if array.flags.c_contiguous or made._array.ndim != array.ndim or not lies_channels_last(array):
        return made
    return contiguous(made, channels_last if array.ndim == 4 else channels_last_3d)


# to ------------------------------------------------------------------------------------------------


def target_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool, Any, Any]:
    """The dtype, copy, memory_format and device (META, or the CPU) that the arguments of `to` ask for: dtype, device, other tensor or keywords."""
    kwargs = dict(kwargs)
    dtype, where, rest = None, None, list(args)
    if (rest and isinstance(rest[0], (device_class, str))) or (rest and rest[0].__class__ is int):
        where = check_device(rest.pop(0))
        if rest and (rest[0] is None or isinstance(rest[0], dtypes.dtype)):
            dtype = rest.pop(0)
    elif rest and isinstance(rest[0], Tensor):
        where, dtype = rest[0].device, rest.pop(0).dtype
    elif rest and isinstance(rest[0], dtypes.dtype):
        dtype = rest.pop(0)
    elif rest and isinstance(rest[0], type):
        dtype = dtypes.of(numpy_dtype("to", rest.pop(0)))
    elif rest and rest[0] is None:
        rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], dtypes.dtype)):
            dtype = rest.pop(0)
    for name, value in zip(("non_blocking", "copy"), rest, strict=False):
        if not isinstance(value, bool) and value is not None:
            raise TypeError(f"to() received an invalid combination of arguments: {kind_of(value)} for {name!r}; "
                            "expected a dtype, a device, or a Tensor")  # fmt: skip
        kwargs.setdefault(name, value)
    return by_keyword(dtype, where, kwargs)


def by_keyword(dtype: dtype | None, where: device | None, kwargs: dict[str, Any]) -> tuple[Any, bool, Any, Any]:
    """The same from the keywords of `to`."""
    kwargs.pop("non_blocking", None)
    copy_, format_ = bool(kwargs.pop("copy", False)), kwargs.pop("memory_format", None)
    if "other" in kwargs:
        where, dtype = kwargs["other"].device, kwargs.pop("other").dtype
    if kwargs.get("device") is not None:
        where = check_device(kwargs["device"])
    kwargs.pop("device", None)
    given = kwargs.pop("dtype", None)
    dtype = given if given is not None else dtype
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    if dtype is not None and not isinstance(dtype, dtypes.dtype):
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {kind_of(dtype)}")
    if format_ is not None and not is_format(format_):
        raise TypeError(f"to(): argument 'memory_format' must be torch.memory_format, not {type(format_).__name__}")
    return dtype, copy_, format_, where


def to(self: Tensor, *args: object, **kwargs: object) -> Tensor:
    """This tensor in another dtype, on another device or in another memory format; itself where nothing changes.

    Forms: to(dtype), to(device, dtype=None), to(other); keywords copy, non_blocking, memory_format.
    """
    dtype, fresh, format_, where = target_of(args, kwargs)
    if where is META:
        from rushlight.dispatch.meta import placed

        return placed(self, META).to(dtype=dtype, copy=fresh and self._meta, memory_format=format_)
    return to_dtype(self, dtype, fresh, format_)


unmade: dict[str, Any] = {}  # what converts what is not made: `unmade_products` sets that


def to_dtype(self: Tensor, dtype: dtype | None, fresh: bool = False, format_: Any = None) -> Tensor:
    """This tensor in `dtype` and a memory format; a copy where that is asked for or something changes."""
    if type(self) is Unmade and not fresh and format_ in (None, preserve_format):
        late: Tensor | None = self if dtype in (None, self.dtype) else unmade["cast"](self, dtype.numpy)
        if late is not None:
            return late
    result = self
    if dtype is not None and dtype.numpy != self._held.dtype:
        if self._held.dtype.kind in COMPLEX_KINDS:
            warn_of_lost_parts(self.dtype, dtype)
        result = cast(self, dtype.numpy)
    if format_ is not None and format_ is not preserve_format and not shows_format(result._held, format_):
        result = copy(result, format_)
    return copy(result, None) if fresh and result is self else result


Tensor.to = to  # type: ignore[assignment, method-assign]


def _shorthand(name: str, dtype: dtype) -> Callable[..., Any]:
    def method(self: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
        return to_dtype(self, dtype, False, memory_format)

    return called(method, name, f"This tensor in {dtype}; itself where it has that dtype.")


SHORTHANDS = {"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
              "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8,
              "byte": dtypes.uint8, "bool": dtypes.bool, "chalf": dtypes.complex32, "cfloat": dtypes.complex64,
              "cdouble": dtypes.complex128}  # fmt: skip
for _name, _dtype in SHORTHANDS.items():
    setattr(Tensor, _name, _shorthand(_name, _dtype))


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor in the dtype of another."""
    return to_dtype(self, other.dtype)


def cpu(self: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """This tensor on the CPU."""
    return to_dtype(self, None, False, memory_format)


def cuda(self: Tensor, device: device | str | int | None = None, non_blocking: bool = False,
         memory_format: memory_format | None = None) -> Tensor:  # fmt: skip
    """This tensor on a CUDA device.  Raises AssertionError where there is none."""
    check_device("cuda" if device is None else device)
    return self


for _method in (type_as, cpu, cuda):
    setattr(Tensor, _method.__name__, _method)


def _add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


tensor_functions["cast"] = cast
tensor_functions["add"] = _add
