"""Tensors of a given size: zeros, ones, full, empty, eye, arange, linspace, logspace, triangle indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.compute import check_numbers, fitted
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.formats import empty_in_format, memory_format
from rushlight.dispatch.options import (
    META,
    blank,
    check_count,
    check_options,
    dtype_with,
    filled,
    made,
    numpy_dtype,
    size_of,
    uninitialized,
)
from rushlight.dispatch.registry import function
from rushlight.engine.conform import tensor_functions
from rushlight.kernels.dispatch import recast
from rushlight.tensor import Tensor, layout, strided


def in_sparse_layout(kind: layout, size: tuple[int, ...], dtype: dtype | None, requires_grad: bool) -> Tensor:
    """A tensor of zeros in a layout that is not strided: it has no elements."""
    return tensor_functions["without_elements"](size, kind, dtype, requires_grad)


@function()
def zeros(*args: Any, size: int | Sequence[int] | None = None, out: Tensor | None = None, dtype: dtype | None = None,
          layout: layout | None = None, device: device | str | int | None = None, pin_memory: bool = False,
          requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of zeros of the size given as ints or one sequence.

    >>> import rushlight as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if layout is not None and layout is not strided:
        return in_sparse_layout(layout, size_of("zeros", args, size), dtype, requires_grad)
    where = check_options("zeros", device, layout, pin_memory)
    kind = dtype_with("zeros", dtype, out)
    return filled("zeros", out, made(blank(np.zeros, size_of("zeros", args, size), kind, where), requires_grad))


@function()
def ones(*args: int | Sequence[int], size: int | Sequence[int] | None = None, out: Tensor | None = None,
         dtype: dtype | None = None, layout: layout | None = None, device: device | str | int | None = None,
         pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of ones of the size given as ints or one sequence."""
    where = check_options("ones", device, layout, pin_memory)
    kind = dtype_with("ones", dtype, out)
    return filled("ones", out, made(blank(np.ones, size_of("ones", args, size), kind, where), requires_grad))


@function()
def empty(*args: int | Sequence[int], size: Any = None, out: Any = None, dtype: dtype | None = None,
          layout: Any = None, device: device | str | int | None = None, pin_memory: bool = False,
          requires_grad: bool = False, memory_format: memory_format | None = None) -> Tensor:  # fmt: skip
    """A tensor of uninitialized memory of the size given as ints or one sequence."""
    if layout is not None and layout is not strided:
        return in_sparse_layout(layout, size_of("empty", args, size), dtype, requires_grad)
    where = check_options("empty", device, layout, pin_memory)
    kind = dtype_with("empty", dtype, out)
    array = blank(np.empty, size_of("empty", args, size), kind, where)
    if memory_format is not None and where is not META:
        array = empty_in_format(array, kind, memory_format)
    return filled("empty", out, made(uninitialized(array), requires_grad))


@function()
def full(size: int | Sequence[int], fill_value: Tensor | complex, *, out: Tensor | None = None,
         dtype: dtype | None = None, layout: layout | None = None, device: device | str | int | None = None,
         pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of one value; its dtype follows from the value unless it is given."""
    where = check_options("full", device, layout, pin_memory)
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    kind = None if out is None else dtype_with("full", dtype, out)
    kind = kind or (None if dtype is None else numpy_dtype("full", dtype))
    array = blank(np.empty, size_of("full", (tuple(size),)), kind or value_dtype("full", fill_value), where)
    if where is not META:
        fill_array("full", array, fill_value)
    return filled("full", out, made(array, requires_grad))


def value_dtype(name: str, value: Tensor | complex) -> np.dtype[Any]:
    """The dtype of a fill value."""
    if isinstance(value, Tensor):
        return dtypes.default_of_category(value.dtype.category).numpy
    if isinstance(value, np.generic) and not isinstance(value, (float, complex)):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"{name}(): argument 'fill_value' must be Number, not {kind_of(value)}")
    return dtypes.default_of_category(dtypes.scalar_category(value)).numpy


def fill_array(name: str, array: Array, value: Tensor | complex) -> None:
    """Set all elements of `array` to a number or 0-d tensor.  Raises RuntimeError where the value does not fit."""
    if isinstance(value, Tensor):
        if name == "full" and (value._array.ndim or value.requires_grad):
            raise TypeError("full(): argument 'fill_value' (position 2) must be Number, not Tensor")
        if value._array.ndim:
            raise RuntimeError(f"{name} only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
                               "dimensions.")  # fmt: skip
        value = value._array[()]
    elif not isinstance(value, (bool, int, float, complex, np.generic)):
        raise TypeError(f"{name}(): argument 'value' must be Number, not {kind_of(value)}")
    array[...] = fitted(name, value, array.dtype, True)


@function()
def eye(n: int, m: int | None = None, *, out: Tensor | None = None, dtype: dtype | None = None,
        layout: layout | None = None, device: device | str | int | None = None, pin_memory: bool = False,
        requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The n x m matrix (m = n by default) with ones on its diagonal."""
    where = check_options("eye", device, layout, pin_memory)
    for name, size in (("n", n), ("m", m)):
        if isinstance(size, int) and size < 0:
            raise RuntimeError(f"eye: {name} must be greater or equal to 0, got {size}")
        if size is not None and (isinstance(size, bool) or not hasattr(size, "__index__")):
            raise TypeError(f"eye(): argument '{name}' must be int, not {type(size).__name__}")
    rows, columns = int(n), int(n if m is None else m)
    check_count((rows, columns))
    kind = dtype_with("eye", dtype, out)
    return filled("eye", out, made(np.eye(rows, columns, dtype=kind), requires_grad, where))


@function()
def arange(*args: float, start: Tensor | complex | None = None, end: Tensor | complex | None = None, step: Any = None,
           out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None,
           device: device | str | int | None = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Numbers from start (0 by default) up to but without end, by step: arange(end), arange(start, end, step=1).

    Integers give int64, unless dtype is given.

    >>> import rushlight as torch
    >>> torch.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    where = check_options("arange", device, layout, pin_memory)
    lo, hi, by = [number("arange", x) for x in range_of(args, start, end, step)]
    whole = dtype is None and isinstance(lo, int) and isinstance(hi, int) and isinstance(by, int)
    kind = no_bools("arange", dtype_with("arange", dtype, out, dtypes.int64 if whole else None))
    return filled("arange", out, made(arange_array(lo, hi, by, kind), requires_grad, where), True)


def no_bools(name: str, kind: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a range.  Raises NotImplementedError for bools, which have no steps."""
    if kind.kind == "b":
        raise NotImplementedError(
            f"{name}: not implemented for torch.bool: make numbers, and convert them with .bool()"
        )
    return kind


def range_of(
    args: tuple[Any, ...], start: Tensor | complex | None, end: Tensor | complex | None, step: object
) -> tuple[Any, Any, Any]:
    """start, end and step of arange's overloads."""
    if len(args) > 3:
        raise TypeError(f"arange() takes at most 3 positional arguments but {len(args)} were given")
    if len(args) == 1 and end is None and start is None:
        args = (0, args[0])
    elif len(args) == 1 and end is None:
        raise TypeError("arange() got multiple values for argument 'start'")
    if start is end is step is None:
        lo, hi, by = (*args, 1)[:3] if len(args) > 1 else (None, None, 1)
    else:
        given = dict(zip(("start", "end", "step"), args, strict=False))
        lo = given.get("start", 0 if start is None else start)
        hi, by = given.get("end", end), given.get("step", 1 if step is None else step)
    if hi is None:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    return lo, hi, by


def number(name: str, x: Tensor | complex) -> Any:
    """A Python number of a number or 0-d tensor."""
    if x.__class__ is int or x.__class__ is float:
        return x
    if isinstance(x, Tensor):
        return x._array.item()
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, (bool, int, float, complex)):
        return int(x) if isinstance(x, bool) else x
    raise TypeError(f"{name}(): argument must be Number, not {type(x).__name__}")


@cache
def bounds_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest number of a dtype of integers."""
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def arange_array(lo: float, hi: float, by: float, dtype: np.dtype[Any]) -> Array:
    """start, start + step, ... below end."""
    if by == 0:
        raise RuntimeError("arange: step must be nonzero")
    check_range("arange", lo, hi, by)
    if (hi - lo) * by < 0:
        raise RuntimeError(f"arange: upper bound and lower bound inconsistent with step sign: start {lo}, end {hi}, "
                           f"step {by}")  # fmt: skip
    if dtype.kind in "iu" and (dtype == np.int64 or all(isinstance(x, int) for x in (lo, hi, by))):
        lo, hi, by = int(lo), int(hi), int(by)
        if by == 0:
            raise ValueError("arange: step must be nonzero, and is 0 in the dtype of the result")
        least, most = bounds_of(dtype)
        held = least <= min(lo, hi) and max(lo, hi) <= most
        return np.arange(lo, hi, by, dtype=dtype) if held else np.arange(lo, hi, by).astype(dtype)  # which wraps
    if dtype.kind in "iu":  # of smaller integers the numbers as they are given say how many there are
        return (np.arange(max(math.ceil((hi - lo) / by), 0)) * int(by) + int(lo)).astype(dtype)
    count = max(math.ceil((hi - lo) / by), 0)
    values = np.arange(count, dtype=np.float64)
    values *= by
    values += lo
    return recast(values, dtype)


def check_range(name: str, lo: float, hi: float, by: float) -> None:
    """Raise RuntimeError for ends that are complex or not finite, and for more numbers than there may be."""
    if any(isinstance(x, complex) for x in (lo, hi, by)):
        raise RuntimeError(
            f"{name}: value cannot be converted to type double without overflow: start, end or step is complex"
        )
    if not (math.isfinite(lo) and math.isfinite(hi)):
        raise RuntimeError(f"{name}: unsupported range: {lo} -> {hi}")
    if not abs(hi - lo) < abs(by) * 2**63:
        raise RuntimeError(f"{name}: invalid size, possible overflow? start {lo}, end {hi}, step {by}")


@function(name="range")
def range_(start: Tensor | complex = 0, end: Tensor | complex | None = None, step: float = 1, *,
           out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None,
           device: device | str | int | None = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Numbers from start up to and including end, by step, of the default floating-point dtype."""
    caller.warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
                "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).")  # fmt: skip
    where = check_options("range", device, layout)
    lo, hi, by = (number("range", x) for x in ((0, start, step) if end is None else (start, end, step)))
    if by == 0:
        raise RuntimeError("range: step must be nonzero")
    check_range("range", lo, hi, by)
    if (hi - lo) * by < 0:
        raise RuntimeError(
            f"range: upper bound and lower bound inconsistent with step sign: start {lo}, end {hi}, step {by}"
        )
    kind = dtype_with("range", dtype, out)
    if kind.kind in "iu":
        lo, hi, by = int(lo), int(hi), int(by) or refuse_no_step()
    values = np.arange(math.floor((hi - lo) / by) + 1, dtype=np.float64) * by + lo
    return filled("range", out, made(values.astype(kind), requires_grad, where), True)


def refuse_no_step() -> int:
    """Raise ValueError for a step that is 0 as an integer."""
    raise ValueError("range: step must be nonzero, and is 0 in the dtype of the result")


def ends(
    name: str, start: Tensor | complex, end: Tensor | complex, steps: int, dtype: dtype | None, out: Any
) -> tuple[Any, Any, int, Any]:
    """The checked arguments of linspace and logspace: start, end, steps, dtype."""
    for which, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor) and x._array.ndim:
            raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {which} with "
                               f"{x._array.ndim} dimension(s).")  # fmt: skip
    lo, hi = number(name, start), number(name, end)
    if not hasattr(steps, "__index__"):
        got = ", ".join(type(x).__name__ for x in (start, end, steps) if x is not None)
        lacks = "the argument 'steps' is missing" if steps is None else "argument 'steps' must be int"
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({got}): {lacks}")
    count = steps.__index__()
    if count < 0:
        raise RuntimeError(f"{name}: number of steps must be non-negative, got {count}")
    if dtype is None:
        default = dtypes.get_default_dtype()
        kind = dtype_with(name, None, out)
        if out is None and (isinstance(lo, complex) or isinstance(hi, complex)):
            kind = default.to_complex().numpy
    else:
        kind = dtype_with(name, dtype, out)
        if not dtypes.is_complex(kind) and (isinstance(lo, complex) or isinstance(hi, complex)):
            raise RuntimeError(
                f"torch.{name}(): inferred dtype complex can't be safely cast to passed dtype {dtypes.of(kind)}"
            )
    return lo, hi, count, no_bools(name, kind)


def linspace_array(lo: Any, hi: Any, count: int, dtype: np.dtype[Any]) -> Array:
    """`count` numbers evenly from lo to hi; integers truncate.  Raises RuntimeError for an end that does not fit."""
    if dtype.kind in "iuf":
        lo, hi = (fitted("linspace", x, dtype, True)[()] for x in (lo, hi if count > 1 else lo))
    if count > 1 and dtype.kind in "iu":
        step = np.longdouble((int(hi) - int(lo)) / (count - 1))
        values = np.trunc(from_both_ends(np.longdouble(lo), np.longdouble(hi), step, count).astype(np.float64))
    elif count > 1 and dtype.kind == "f" and dtype.itemsize > 2 and np.isfinite(hi - lo):
        wide = np.float64 if dtype.itemsize == 4 else np.longdouble
        values = from_both_ends(wide(lo), wide(hi), wide((hi - lo) / dtype.type(count - 1)), count)
    else:
        lo, hi = (x if dtypes.is_complex(dtype) else float(x) for x in (lo, hi))
        values = np.linspace(lo, hi, count, dtype=np.complex128 if dtypes.is_complex(dtype) else np.float64)
    with np.errstate(all="ignore"):
        return recast(values, dtype)


def from_both_ends(lo: Any, hi: Any, step: Any, count: int) -> Array:
    """`count` numbers by equal steps, each half from its own end, so that they are symmetric."""
    k = np.arange(count)
    values = lo + step * k
    values[count // 2 :] = hi - step * (count - 1 - k[count // 2 :])
    return values


@function()
@per_sample
def linspace(start: Tensor | complex, end: Tensor | complex, steps: Any = None, *, out: Tensor | None = None,
             dtype: dtype | None = None, layout: layout | None = None, device: device | str | int | None = None,
             pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`steps` numbers evenly spaced from start to end, both included."""
    where = check_options("linspace", device, layout, pin_memory)
    lo, hi, count, kind = ends("linspace", start, end, steps, dtype, out)
    check_count((count,))
    return filled("linspace", out, made(linspace_array(lo, hi, count, kind), requires_grad, where), True)


@function()
@per_sample
def logspace(start: Tensor | complex, end: Tensor | complex, steps: Any = None, base: float = 10.0, *,
             out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None,
             device: device | str | int | None = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`steps` numbers from base**start to base**end, both included, evenly spaced on a logarithmic scale."""
    where = check_options("logspace", device, layout, pin_memory)
    lo, hi, count, kind = ends("logspace", start, end, steps, dtype, out)
    exact = np.dtype(np.complex128 if dtypes.is_complex(kind) else np.float64)
    check_numbers("logspace", kind, lo, hi)
    if kind.kind in "iu":
        lo, hi = int(lo), int(hi)
    with np.errstate(all="ignore"):
        values = np.power(np.asarray(base, exact), linspace_array(lo, hi, count, exact)).astype(kind)
    return filled("logspace", out, made(values, requires_grad, where), True)


def triangle(
    name: str,
    row: int,
    col: int,
    dtype: dtype | None,
    device: device | str | int | None,
    layout: layout | None,
    pin_memory: bool,
    offset: int,
    upper: bool,
) -> Tensor:
    """The indices of a triangle as a 2 x N tensor."""
    where = check_options(name, device, layout, pin_memory)
    for which, n in (("row", row), ("col", col)):
        if as_int(n, name, which) < 0:
            raise RuntimeError(f"{name}: {which} must be non-negative, got {n}")
    kind = numpy_dtype(name, dtype, dtypes.int64)
    if kind.kind not in "iu":
        raise NotImplementedError(f"{name}: not implemented for {dtypes.of(kind)}: indices are integers")
    below = np.tri(row, col, as_int(offset, name, "offset") - upper, dtype=bool)
    return made(np.stack(np.nonzero(~below if upper else below)).astype(kind, copy=False), False, where)


@function()
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: dtype | None = None,
                 device: device | str | int | None = None, layout: layout | None = None,
                 pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Row and column indices (2 x N) of the lower triangle of a row x col matrix, on and below diagonal `offset`."""
    return triangle("tril_indices", row, col, dtype, device, layout, pin_memory, offset, False)


@function()
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: dtype | None = None,
                 device: device | str | int | None = None, layout: layout | None = None,
                 pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Row and column indices (2 x N) of the upper triangle of a row x col matrix, on and above diagonal `offset`."""
    return triangle("triu_indices", row, col, dtype, device, layout, pin_memory, offset, True)
