"""Indexing with tensors, lists and masks: `index`, `index_put`, and how an index is taken apart for them.

An index is carried out in two steps, as PyTorch does: first its ints, slices, None and Ellipsis, which give a view, then
the tensors among it, in the places that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import RECORDED, modes, special, way_of
from rushlight.dispatch import call, families, quick, shapes
from rushlight.dispatch.compute import fitted
from rushlight.dispatch.declare import Array, Arrays, Op
from rushlight.dispatch.operands import check_tensor, raw
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import in_pieces
from rushlight.engine import inplace
from rushlight.engine.conform import cast_array
from rushlight.kernels.pointwise.copies import copied_as_it_lies
from rushlight.ops.index.indexing import (
    ALL,
    as_int,
    checked_slice,
    getitem,
    setitem,
    takes,
    too_many,
    trimmed,
    value_array,
)
from rushlight.ops.index.raw_indices import accumulate_at
from rushlight.ops.shape.reshape import slice_op
from rushlight.storage import dependents
from rushlight.tensor import Tensor, wrap

Slots = tuple[Any, ...]  # for each part of a NumPy index: None for all of a dimension, else which of the indices


def index_of(slots: Slots, indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """The NumPy index."""
    return tuple([ALL if k is None else indices[k] for k in slots])


def reading(array: Array, slots: Slots, indices: tuple[Any, ...]) -> Array:
    """array[index], with PyTorch's errors."""
    try:
        if len(indices) == 1 and indices[0].dtype.kind != "b":
            return backend.take_slices(array, indices[0], slots.index(0))
        if is_mask_of(array, slots, indices):
            return backend.mask_take(array, indices[0])
        # In C order, also where the indices lie between other dimensions: NumPy then puts them in front.
        return np.asarray(array[index_of(slots, indices)], order="C")
    except IndexError as error:
        raise explained(error, array.shape, slots, indices) from None


def explained(error: IndexError, shape: tuple[int, ...], slots: Slots, indices: tuple[Any, ...]) -> IndexError:
    """The error for an index that does not fit, in terms of tensors."""
    d = 0
    for k in slots:
        part = None if k is None else indices[k]
        if part is None:
            d += 1
        elif part.dtype.kind == "b":
            if part.shape != shape[d : d + part.ndim]:
                return IndexError(f"The shape of the mask {list(part.shape)} at index {d} does not match the shape of the "
                                  f"indexed tensor {list(shape)} at index {d}")  # fmt: skip
            d += part.ndim
        else:
            bad = part[(part < -shape[d]) | (part >= shape[d])] if part.size else part
            if bad.size:
                return IndexError(
                    f"index {int(bad.reshape(-1)[0])} is out of bounds for dimension {d} with size {shape[d]}"
                )
            d += 1
    if "broadcast" in str(error):
        given = ", ".join(str(list(part.shape)) for part in indices)
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {given}")
    return IndexError(str(error).replace("indexing arrays", "indexing tensors"))


@op(
    aten=("index.Tensor",),
    aten_call="indexed",
    linear=True,
    complex_half="moves",
    batch=families.index,
)
def index_op(input: Array, indices: Arrays, slots: Slots) -> Array:
    """The elements at indices, broadcast together.  (*), [(*), ...] -> (*)"""
    return reading(input, slots, indices)


@index_op.shape
def _(input: Array, indices: tuple[Array, ...], slots: Slots) -> list[shapes.Made] | None:
    if any(x.dtype.kind == "b" for x in indices):
        return None  # how many are true says how many there are
    return [shapes.Made(indexed_shape(input.shape, slots, indices), input.dtype)]


def indexed_shape(shape: tuple[int, ...], slots: Slots, indices: tuple[Array, ...]) -> tuple[int, ...]:
    """The shape of the elements at indices of integers: theirs in the place of what they index, in front if that is apart."""
    common = np.broadcast_shapes(*(x.shape for x in indices))
    taken = [d for d, slot in enumerate(slots) if slot is not None]
    kept = [n for d, n in enumerate(shape) if d >= len(slots) or slots[d] is None]
    together = taken[-1] - taken[0] + 1 == len(taken)
    place = taken[0] if together else 0
    return (*kept[:place], *common, *kept[place:])


index_op.grad("input")(lambda g, indices, input_shape, slots: index_zeros(g, indices, input_shape, slots))


@op(half=None, linear=True, complex_half="widens", shape=shapes.sized, batch=families.index_zeros)
def index_zeros(input: Array, indices: Arrays, size: tuple[int, ...], slots: Slots) -> Array:
    """Zeros of shape `size` to which `input` is added at indices: the adjoint of `index`.  (*) -> size"""
    if slots == (0,) and indices[0].dtype.kind == "b" and indices[0].shape == size and input.ndim == 1:
        return backend.mask_put(input, indices[0])
    out = np.zeros(size, input.dtype)
    add_at(out, slots, indices, input)
    return out


@index_zeros.work
def _(input: Array) -> int:
    return in_pieces(input)


index_zeros.grad("input")(lambda g, indices, slots: index_op(g, indices, slots))


def add_at(out: Array, slots: Slots, indices: tuple[Any, ...], values: Array) -> None:
    """out[index] += values; a mask alone has no repeats."""
    index = index_of(slots, indices)
    if len(indices) == 1 and indices[0].dtype.kind == "b":
        out[index] += values
    else:
        accumulate_at(out, index, values)


@op(
    aten_call="put",
    linear=True,
    half=None,
    complex_half="widens",
    shape=shapes.same,
    batch=families.index_put,
)
def index_put_op(input: Array, values: Array, indices: Arrays, slots: Slots, accumulate: bool) -> Array:
    """`input` with `values` at indices, put or added.  (*), (*), [(*), ...] -> (*)"""
    out = copied_as_it_lies(input)
    write_at(out, values, indices, slots, accumulate)
    return out


def write_at(out: Array, values: Array, indices: tuple[Any, ...], slots: Slots, accumulate: bool) -> None:
    """out[index] = values, or += with repeats adding up."""
    try:
        if accumulate:
            add_at(out, slots, indices, values)
        elif values.size == 1 and is_mask_of(out, slots, indices) and out.flags.c_contiguous:
            backend.choose(indices[0], values.reshape(()), out, out=out)
        elif values.ndim == 1 and is_mask_of(out, slots, indices):
            backend.mask_write(out, indices[0], values)
        else:
            out[index_of(slots, indices)] = values
    except IndexError as error:
        raise explained(error, out.shape, slots, indices) from None
    except ValueError as error:
        raise RuntimeError(
            f"index_put: shape mismatch: values of shape {list(values.shape)} do not fit: {error}"
        ) from None


def is_mask_of(out: Array, slots: Slots, indices: tuple[Any, ...] | list[Any]) -> bool:
    """Whether an index is one mask, of all elements of an array."""
    return slots == (0,) and indices[0].dtype.kind == "b" and indices[0].shape == out.shape and out.ndim > 0


index_put_op.into(write_at)


@index_put_op.grad("input")
def _(g: Array, indices: tuple[Array, ...], slots: tuple[int | None, ...], accumulate: bool) -> Array:
    zero = np.zeros((), raw(g).dtype)
    return g if accumulate else index_put_op(g, zero, indices, slots, False)


index_put_op.grad("values")(lambda g, indices, slots: index_op(g, indices, slots))


# Taking an index apart -----------------------------------------------------------------------------

INT64 = np.dtype(np.int64)
INDICES = (np.int64, np.int32, np.bool_)  # and bytes, which are masks


def as_index(part: Tensor) -> Tensor:
    """A part of an index as a tensor of integers or a mask.  Raises TypeError for what is no number."""
    given = part
    if isinstance(part, bool):
        return wrap(np.asarray(part))
    if isinstance(part, np.bool_):
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                         f"(got {kind_of(part)}): bool(x) is Python's")  # fmt: skip
    if not isinstance(part, Tensor):
        array = np.asarray(unwrapped(part))
        part = wrap(array.astype(np.int64) if array.size == 0 and array.dtype.kind == "f" else array)
    kind = part._array.dtype.kind
    if kind in "US":
        raise TypeError(f"indices are ints, slices, ..., None, bools, or tensors and lists of these, got {given!r:.40}")
    if kind not in "biu" and not isinstance(given, (Tensor, np.ndarray, list, tuple)):
        words = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices"
        raise IndexError(f"{words} (got {kind_of(given)})")
    if kind not in "biu":
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {part.dtype}")
    if part is given and part._array.ndim and part._array.dtype not in INDICES and part._array.dtype != np.uint8:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors: convert it with .long()")
    if part._array.dtype == np.uint8:
        caller.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
        return wrap(part._array.astype(np.bool_))
    return part


def unwrapped(part: object) -> Any:
    """A list with the tensors in it as arrays."""
    if isinstance(part, (list, tuple)):
        return [unwrapped(p) for p in part]
    return part._array if isinstance(part, Tensor) else part


def advanced_index(parts: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[tuple[Any, ...], list[Any], Slots]:
    """The basic index, the tensors, and the places of these after the basic index was taken."""
    basic: list[Any] = []
    indices: list[Any] = []
    slots: list[Any] = []
    used = 0
    known = [p if is_basic(p) else as_index(p) for p in parts]
    total = sum(width(p) for p in known)
    if total > len(shape):
        too_many(parts, shape)
    skipped = len(shape) - total
    for position, p in enumerate(known):
        if p is Ellipsis and Ellipsis in known[:position]:
            # It goes on by as many dimensions as the first one: there is nothing left behind it.
            if skipped and any(q is not Ellipsis and not (isinstance(q, slice) and q == ALL) for q in known[position:]):
                too_many(parts, shape)
        elif p is Ellipsis:
            basic += [ALL] * skipped
            slots += [None] * skipped
            used += skipped
        elif p is None:
            basic.append(None)
            slots.append(None)
        elif isinstance(p, slice):
            basic.append(checked_slice(p))
            slots.append(None)
            used += 1
        elif isinstance(p, Tensor) and as_int(p) is None:
            if (
                p._array.ndim == 0 and p._array.dtype.kind == "b"
            ):  # True or False: a dimension of size 1, kept or emptied
                basic.append(None)
                p = wrap(p._array.reshape(1))
            else:
                n = width(p)
                if p._array.dtype.kind == "b" and not p._array.size:
                    check_mask(p._array.shape, shape, used)
                basic += [ALL] * n
                used += n
            slots.append(len(indices))
            indices.append(p)
        else:
            i = as_int(p)
            if not -shape[used] <= i < shape[used]:
                raise IndexError(f"index {i} is out of bounds for dimension {used} with size {shape[used]}")
            basic.append(i)
            used += 1
    return (*basic, Ellipsis), indices, tuple(slots)


def check_mask(mask: tuple[int, ...], shape: tuple[int, ...], first: int) -> None:
    """Raise IndexError for a mask without elements over dimensions that have some, which NumPy takes."""
    for d, (have, want) in enumerate(zip(mask, shape[first:], strict=False)):
        if have != want:
            raise IndexError(f"The shape of the mask {list(mask)} at index {d} does not match the shape of the indexed tensor "
                             f"{list(shape)} at index {first + d}")  # fmt: skip


def is_basic(part: object) -> bool:
    """Whether a part of an index is an int, a slice, None or Ellipsis."""
    return part is None or part is Ellipsis or isinstance(part, slice) or as_int(part) is not None


def width(part: Tensor | int | slice) -> int:
    """How many dimensions a part of an index takes."""
    if isinstance(part, Tensor) and part._array.dtype.kind == "b":
        return int(part._array.ndim)
    return takes(part)


SEQUENCE_DEPRECATED = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated: its elements are the indices of several "
    "dimensions here. Use x[tuple(seq)] for that, or x[torch.tensor(seq)] for one index."
)


def parts_of(index: Tensor | tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of an index.  A sequence that is no tuple is one part, unless one of its elements is more than a number:
    then, as in old NumPy, its elements are the parts; one of 32 elements and more is one part always."""
    if isinstance(index, tuple):
        return index
    if is_sequence(index) and len(index) < 32 and any(is_part(p) for p in index):
        caller.warn(SEQUENCE_DEPRECATED)
        return tuple(index)
    return (index,)


def spread(whole: object, parts: tuple[Any, ...]) -> bool:
    """Whether the parts of an index are the elements of a sequence, which may turn out to be of the basic kind."""
    return whole.__class__ is not tuple and not isinstance(whole, tuple) and parts[0] is not whole


def is_sequence(x: Tensor) -> bool:
    """Whether `x` is a sequence, and no tensor or array."""
    return not isinstance(x, (Tensor, np.ndarray, str, dict)) and hasattr(x, "__len__") and hasattr(x, "__getitem__")


def is_part(x: Any) -> bool:
    """Whether an element of a sequence stands for an index of its own rather than for one number."""
    return x is None or x is Ellipsis or isinstance(x, (slice, Tensor, np.ndarray)) or is_sequence(x)


def basic_part(self: Tensor, basic: tuple[Any, ...]) -> Tensor:
    """The view that the basic part of an index gives; the tensor itself if it names all of it."""
    return self if all(p == ALL or p is Ellipsis for p in basic if p is not None) and None not in basic else \
        slice_op(self, basic)  # fmt: skip


def getitem_advanced(self: Tensor, whole: Tensor | tuple[Any, ...]) -> Tensor:
    """`self[whole]` where tensors, lists or masks are among the parts of the index."""
    parts = parts_of(whole)
    if spread(whole, parts):
        return getitem(self, parts)
    usual = not special.count or (not special.observing and way_of((self, *parts)))
    if usual and isinstance(self, Tensor):
        array = self._array
        if len(parts) == 1 and isinstance(parts[0], Tensor):
            index = parts[0]._array
            if index.ndim and (index.dtype == np.int64 or index.dtype in INDICES) and array.ndim and index.size:
                return made(index_op.op, (self, parts[0]), (ONE,), reading(array, ONE, (index,)))
        elif len(parts) <= array.ndim:
            slots, tensors, given = usual_slots(parts)
            if slots:
                return made(index_op.op, (self, *tensors), (slots,), reading(array, slots, given))
    basic, indices, slots = advanced_index(parts, raw(self).shape)
    part = basic_part(self, basic)
    return index_op(part, indices, trailing(slots)) if indices else part


ONE = (0,)


def usual_slots(parts: tuple[Any, ...]) -> tuple[Slots, list[Tensor], tuple[Array, ...]]:
    """Slots, the tensors and their arrays of an index of nothing but `:` and tensors of int64 with dimensions; else no slots."""
    slots: list[int | None] = []
    tensors: list[Tensor] = []
    for p in parts:
        if p.__class__ is slice and p == ALL:
            slots.append(None)
        elif isinstance(p, Tensor) and p._array.dtype is INT64 and p._array.size and p._array.ndim:
            slots.append(len(tensors))
            tensors.append(p)
        else:
            return (), tensors, ()
    return trailing(tuple(slots)), tensors, tuple([p._array for p in tensors])


def made(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], array: Array) -> Tensor:
    """The tensor on `array`, which is what `op` makes of the inputs `flat`, with its history if there is any."""
    t = wrap(array)
    if special.count and not modes.grad:
        return quick.made(t)
    if op.formulas and not flat[0]._inference:
        call.record(op, flat, statics, (t,), ())
    return t


def trailing(slots: Slots) -> Slots:
    """Slots without the Nones at the end, which say nothing."""
    n = len(slots)
    while n and slots[n - 1] is None:
        n -= 1
    return slots[:n]


def setitem_advanced(self: Tensor, whole: Any, value: Any) -> None:
    """`self[whole] = value` where tensors, lists or masks are among the parts of the index."""
    parts = parts_of(whole)
    if spread(whole, parts):
        setitem(self, parts, value)
        return
    if whole is False or _number_put(self, parts, value):
        return  # the former names nothing, whatever the value
    basic, indices, slots = advanced_index(parts, self._array.shape)
    if not indices:  # NumPy's arrays of one number, which are integers
        setitem(self, basic, value)
        return
    target = basic_part(self, basic)
    if not isinstance(value, Tensor):
        value = wrap(value_array(self, value))
    slots = trailing(slots)
    if special.classes is not None and special.classes.owns((target, value, *indices)):  # who may hold the indices
        value = value if value.dtype == self.dtype else value.to(self.dtype)
        call.apply_inplace(index_put_op.op, (target, value, indices), (slots, False))
        return
    shape = result_shape(target._array.shape, slots, indices)
    value = trimmed(value, shape, True)
    if value._held.dtype != self._held.dtype:
        if whole is not True and whole is not False:  # which stand for all elements, or none
            check_put("__setitem__", self, value, indices)
        value = to_dtype(value, self._array.dtype)
    call.apply_inplace(index_put_op.op, (target, value, indices), (slots, False))


def _number_put(self: Tensor, parts: tuple[Any, ...], value: Any) -> bool:
    """Whether `self[index] = value` was done at once: of a number and one tensor, in the usual case, where nothing is recorded."""
    if value.__class__ is not float and value.__class__ is not int:
        return False
    if len(parts) != 1 or not isinstance(parts[0], Tensor) or parts[0]._unusual or self._unusual:
        return False
    way = way_of((self, *parts)) if special.count else RECORDED
    if not way or special.observing or dependents or (way is RECORDED and self.requires_grad):
        return False
    index, array = parts[0]._array, self._array
    if not index.ndim or index.dtype not in PLAIN_INDICES or not array.ndim or 0 in array.strides:
        return False
    write_at(array, value_array(self, value), (index,), ONE, False)
    inplace.written(self, index_put_op.op.writes)
    return True


PLAIN_INDICES = (INT64, np.dtype(np.bool_))


def to_dtype(value: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """The value in the dtype of the tensor that it is stored in; a constant directly."""
    from rushlight.ops.elementwise.convert import cast

    return cast(value, dtype) if value.requires_grad else wrap(cast_array(value._array, dtype))


def result_shape(shape: tuple[int, ...], slots: Slots, indices: list[Any]) -> tuple[int, ...]:
    """The shape of what an index names, without reading it."""
    probe, places = np.broadcast_to(np.zeros((), np.bool_), shape), tuple([places_of(i) for i in indices])
    if is_mask_of(probe, slots, places) and places[0].__class__ is np.ndarray:
        return (int(np.count_nonzero(places[0])),)
    return tuple(reading(probe, slots, places).shape)


def places_of(index: Tensor) -> Array:
    """An index as an array: of numbers that each sample of `vmap` has its own of, the first place stands for all."""
    held = index._held
    if getattr(held, "interpreted", False) and held.dtype.kind != "b":
        return np.zeros(held.shape, np.intp)
    return index._array


def put_indices(name: str, input: Tensor, indices: tuple[Tensor, ...]) -> tuple[list[Any], Slots]:
    """The arguments of index_put: a tuple of tensors or Nones, as tensors and slots."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 2) must be tuple of Tensors, not {type(indices).__name__}"
        )
    for k, p in enumerate(indices):
        if p is not None and not isinstance(p, (Tensor, np.ndarray)):
            raise TypeError(f"{name}(): expected Tensor as element {k} in argument 'indices', but got {kind_of(p)}")
    parts = [None if p is None else as_index(p) for p in indices]
    if sum(1 if p is None else max(width(p), 0) for p in parts) > raw(input).ndim:
        too_many(tuple(parts), raw(input).shape)
    found = [p for p in parts if p is not None]
    if not found:
        raise RuntimeError(f"{name}(): argument 'indices' has no tensor: copy_() writes to all elements")
    slots, k = [], 0
    for p in parts:
        slots.append(None if p is None else k)
        k += p is not None
    return found, trailing(tuple(slots))


def puttable(name: str, input: Tensor, indices: Any, values: Tensor, accumulate: bool) -> tuple[list[Any], Slots, Any]:
    """The arguments of index_put, checked: (indices, slots, values)."""
    for each, x in (("input", input), ("values", values)):
        check_tensor(name, each, x)
    found, slots = put_indices(name, input, indices)
    check_dimensions(input, values, found)
    if input._held.dtype != values._held.dtype:
        check_put(name, input, values, () if accumulate else found)
        values = to_dtype(values, input._array.dtype)
    return found, slots, values


def check_dimensions(input: Tensor, values: Tensor, indices: Sequence[Tensor]) -> None:
    """Raise RuntimeError for values of more dimensions than the place that they are put in, which only `x[i] = y` takes."""
    arrays = [raw(x) for x in indices]
    taken = sum(x.ndim if x.dtype.kind == "b" else 1 for x in arrays)
    place = max((1 if x.dtype.kind == "b" else x.ndim for x in arrays), default=0) + raw(input).ndim - taken
    if raw(values).ndim > place:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of {place} dimensions"
        )


def check_put(name: str, input: Tensor, values: Tensor, indices: Sequence[Tensor]) -> None:
    """Raise unless values of another dtype than `input` may be put into it: one number, where a mask says so.

    It is converted as `masked_fill` does: RuntimeError for one that the dtype cannot hold.
    """
    if len(indices) == 1 and indices[0]._array.dtype.kind == "b" and raw(values).size == 1:
        if values._array.__class__ is np.ndarray:
            fitted(name, values._array.item(), input._held.dtype, True)
        return
    raise RuntimeError(
        f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and "
        f"{values.dtype} for the source: convert the source, with .to({input.dtype})"
    )


@function(method=True)
def index_put(input: Tensor, indices: tuple[Any, ...], values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `values`, broadcast, at the places that the tuple of index tensors names; with `accumulate` added.

    (*), [(*), ...], (*) -> (*)
    """
    found, slots, values = puttable("index_put", input, indices, values, accumulate)
    return index_put_op(input, values, found, slots, accumulate)


@function(method=True)
def index_put_(input: Tensor, indices: tuple[Any, ...], values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of `index_put`."""
    found, slots, values = puttable("index_put_", input, indices, values, accumulate)
    return call.apply_inplace(index_put_op.op, (input, values, found), (slots, accumulate))
