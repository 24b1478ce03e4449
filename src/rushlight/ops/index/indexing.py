"""`tensor[index]` and `tensor[index] = value`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex, is_complex_half, real_of, warn_of_lost_parts
from rushlight.basics.foreign import is_theirs, kind_of
from rushlight.basics.state import modes, special
from rushlight.dispatch.call import check_single_writes
from rushlight.dispatch.compute import fitted
from rushlight.dispatch.dims import unexpandable
from rushlight.dispatch.fast_views import at_once, made_view
from rushlight.dispatch.operands import held
from rushlight.dispatch.options import no_values
from rushlight.engine import inplace
from rushlight.kernels.dispatch import is_half
from rushlight.ops.elementwise.convert import copy_, put_into
from rushlight.ops.shape.reshape import reshape_op, select_op, slice_op
from rushlight.overrides.public import Unnoticed, met, of_method, retried, unfit
from rushlight.tensor import Tensor, wrap

ALL = slice(None)
ndarray = np.ndarray
USUAL = frozenset((Tensor, slice, int, list, type(None), type(Ellipsis)))  # parts of an index that override nothing


def getitem(self: Tensor, index: Any) -> Tensor:
    """The part of a tensor that `index` names.

    ints, slices, None and Ellipsis give a view; tensors, lists and masks a copy (see `index`).
    """
    kind = index.__class__
    if at_once(self) and (kind is int or (kind is slice and index.step is None) or (kind is tuple and plain(index))):
        key = index if kind is tuple else (index,)
        if Ellipsis not in key:
            key = (*key, Ellipsis)
        try:
            result = self._held[key]
        except IndexError:
            pass  # the errors are raised below
        else:
            last = key[-1] if key[-1] is not Ellipsis or len(key) == 1 else key[-2]
            op = select_op if last.__class__ is int else slice_op
            return made_view(op.op, self, result, (key,))
    parts = index if kind is tuple else (index,)
    basic = basic_index(parts, held(self).shape)
    if basic is None:
        from rushlight.ops.index.indexing_advanced import getitem_advanced

        if not USUAL.issuperset(map(type, parts)) and met(index):
            return Tensor.__getitem__(self, index)
        return getitem_advanced(self, index)
    found, single = basic
    return select_op(self, found) if single else slice_op(self, found)


def plain(parts: tuple[Any, ...]) -> bool:
    """Whether a tuple holds only ints, slices without a step, None, and at most one Ellipsis."""
    ellipses = 0
    for p in parts:
        kind = p.__class__
        if kind is int or p is None or (kind is slice and p.step is None):
            continue
        if p is not Ellipsis or ellipses:
            return False
        ellipses = 1
    return bool(parts)


def basic_index(parts: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """(NumPy index with an Ellipsis, whether its last part is an int), or None if `parts` holds more than basic ones.

    Raises IndexError for ints out of range and too many parts, ValueError for steps that are not positive.
    """
    found: list[Any] = []
    ndim, d, seen, twice, single, skipped = len(shape), 0, False, False, False, 0
    for p in parts:
        kind = p.__class__
        if kind is slice:
            if d < ndim or not twice:
                found.append(p if p == ALL else checked_slice(p))
            elif p != ALL:
                too_many(parts, shape)
            d, single = d + 1, False
        elif p is None:
            if d > ndim:
                too_many(parts, shape)
            found.append(p)
            single = False
        elif p is Ellipsis:
            if not seen:
                found.append(p)
                skipped = ndim - sum(takes(q) for q in parts)
            else:
                found += [ALL] * min(skipped, ndim - d)
            # Each Ellipsis goes on by as many dimensions: behind a second one there are none left, unless that is none.
            d, seen, twice = d + skipped, True, seen
        else:
            i = p if kind is int else as_int(p)
            if i is None:
                return None
            if d >= ndim:
                too_many(parts, shape)
            if not -shape[d] <= i < shape[d]:
                raise IndexError(f"index {i} is out of bounds for dimension {d} with size {shape[d]}")
            found.append(i)
            d, single = d + 1, True
    if d > ndim and not twice:
        too_many(parts, shape)
    if twice:
        at = found.index(Ellipsis)
        found[at : at + 1] = [ALL] * skipped  # NumPy's would stand for what the parts left out behind it take
    if twice or not seen:
        found.append(Ellipsis)
    return tuple(found), single


def too_many(parts: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    """Raise the error for an index with more parts than dimensions."""
    if not shape and len(parts) == 1:
        what = (
            "slice() cannot be applied to a 0-dim tensor"
            if isinstance(parts[0], slice)
            else "invalid index of a 0-dim tensor"
        )
        raise IndexError(f"{what}. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a "
                         "number")  # fmt: skip
    raise IndexError(f"too many indices for tensor of dimension {len(shape)}")


def takes(part: object) -> int:
    """How many dimensions a part of a basic index takes."""
    return 0 if part is None or part is Ellipsis else 1


def as_int(part: object) -> Any:
    """An index part as an int, or None where it is a mask (bool or uint8), a list or a tensor of indices.

    A number that each sample of `vmap` has its own of is a tensor of indices.
    """
    if isinstance(part, Tensor):
        if getattr(part._held, "interpreted", False):
            return None
        array = part._array
        return int(array) if array.ndim == 0 and array.dtype.kind in "iu" and array.dtype != np.uint8 else None
    if isinstance(part, (bool, np.bool_, np.ndarray)) or not hasattr(part, "__index__"):
        return None
    if is_theirs(type(part)):
        raise TypeError(f"indices must be Tensors, ints, slices, None or Ellipsis, not {kind_of(part)}")
    return part.__index__()


def checked_slice(part: slice) -> slice:
    """A slice with Python ints as bounds.  Raises ValueError for steps that are not positive."""
    start, stop, step = (bound(b) for b in (part.start, part.stop, part.step))
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    return slice(start, stop, step)


def bound(value: int | None) -> int | None:
    """A bound of a slice as an int or None."""
    if value is None or value.__class__ is int:
        return value
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value.__index__()


def delitem(self: Tensor, index: object) -> NoReturn:
    """Refused: TypeError.  A tensor has its elements for good."""
    raise TypeError("Tensor does not support deleting items: index what is to stay")


def setitem(self: Tensor, index: object, value: Any) -> None:
    """Copy `value`, broadcast and cast, into the part of a tensor that `index` names."""
    parts = index if index.__class__ is tuple else (index,)
    basic = basic_index(parts, self._held.shape)
    if basic is None:
        from rushlight.ops.index.indexing_advanced import setitem_advanced

        if met(index, value):
            Tensor.__setitem__(self, index, value)
        else:
            setitem_advanced(self, index, value)
        return
    found, _ = basic
    try:
        source = value_array(self, value)
    except Unnoticed as error:
        retried(of_method("__setitem__"), error, self, index, value)
        return
    tracked = modes.grad and (self.requires_grad or (isinstance(value, Tensor) and value.requires_grad))
    if not (tracked or modes.levels or special.observing or self._bits):
        inplace.check(self, False)
        part = self._array[found]
        check_single_writes("__setitem__", part)
        put(fitting(source, part.shape), part)
        inplace.written(self, "setitem")
        return
    part = self if takes_all(found, self._held.shape) else slice_op(self, found)
    copy_(part, trimmed(value if isinstance(value, Tensor) else wrap(source), part._held.shape))


def put(source: Array, part: Array) -> None:
    """part[...] = source: where either has 16 bits, as every other conversion makes them."""
    have, want = source.dtype, part.dtype
    if have is not want and (is_half(want) or is_half(have) or is_complex_half(want)):
        put_into(part, source)
    else:
        part[...] = source


def takes_all(found: Any, shape: tuple[int, ...]) -> bool:
    """Whether a NumPy index with an Ellipsis names every element as it lies, by slices: the tensor itself, then."""
    at = next(i for i, part in enumerate(found) if part is Ellipsis)
    before, after = found[:at], found[at + 1 :]
    sizes = (*shape[:at], *shape[len(shape) - len(after) :])
    return all(
        part.__class__ is slice and part.indices(n) == (0, n, 1)
        for part, n in zip((*before, *after), sizes, strict=False)
    ) and len(before) + len(after) <= len(shape)


def value_array(self: Tensor, value: Tensor | float) -> Array:
    """The value to assign as an array; numbers in the dtype of the tensor."""
    if isinstance(value, Tensor):
        if value._meta and not self._meta:
            no_values("__setitem__")
        array = value._array
        if is_complex(array.dtype) and not is_complex(self._held.dtype) and self._held.dtype.kind != "b":
            warn_of_lost_parts(value.dtype, self.dtype)
            return real_of(array)
        return array
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, (int, float, complex, np.generic)):
        raise unfit(value)(f"can't assign a {kind_of(value)} to a {self.type()}, a tensor of {self.dtype}")
    return fitted("__setitem__", value, self._held.dtype)


def lead_ones(have: tuple[int, ...], want: tuple[int, ...]) -> int:
    """How many leading dimensions of size 1 a value has beyond those of the place it goes to."""
    extra = 0
    while len(have) - extra > len(want) and have[extra] == 1:
        extra += 1
    return extra


def fitting(array: Array, shape: tuple[int, ...], by_tensors: bool = False) -> Array:
    """`array` without leading ones that are too many.  Raises RuntimeError where it does not broadcast to `shape`.

    by_tensors: whether that is of an index with tensors or lists, of which PyTorch has other words.
    """
    have = array.shape[lead_ones(array.shape, shape) :]
    words = unexpandable(have, shape)
    if words and by_tensors:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(array.shape)} cannot be broadcast to indexing "
                           f"result of shape {list(shape)}")  # fmt: skip
    if words:
        raise RuntimeError(
            f"__setitem__: {words}: a value of shape {list(array.shape)} for a part of shape {list(shape)}"
        )
    return array if have == array.shape else array.reshape(have)


def trimmed(value: Tensor, shape: tuple[int, ...], by_tensors: bool = False) -> Tensor:
    """As `fitting`, for a tensor."""
    have = fitting(value._held, shape, by_tensors).shape
    return value if have == value._held.shape else reshape_op(value, have)


Tensor.__getitem__ = getitem  # type: ignore[method-assign]
Tensor.__setitem__ = setitem  # type: ignore[method-assign]
Tensor.__delitem__ = delitem  # type: ignore[attr-defined]
