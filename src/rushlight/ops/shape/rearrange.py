"""Copies in another order: repeat, tile, repeat_interleave, flip, roll, rot90."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.dispatch import families, shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, by_keyword, listed, numpy_names, sizes, wrap_dim, wrap_dims
from rushlight.dispatch.formats import copied_like, empty_in_format
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import check_count
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.kernels.pointwise.copies import move
from rushlight.levels.batch import everything, of_one_shape
from rushlight.ops.elementwise.shared import is_unknown
from rushlight.ops.index.index_select import index_select_op
from rushlight.ops.reduce.sums import sum_op
from rushlight.ops.shape.reshape import reshape_op
from rushlight.ops.shape.views import transpose
from rushlight.tensor import Tensor, wrap


@op(
    aten=("repeat(input, repeats)",),
    linear=True,
    complex_half="moves",
    batch=families.repeated,
)
def repeat_op(input: Array, repeats: tuple[int, ...]) -> Array:
    """`input` several times along each dimension.  (*) -> (*)"""
    lead = len(repeats) - input.ndim
    shape = (*[1] * lead, *input.shape)
    spread = [k for n, r in zip(shape, repeats, strict=True) for k in (r, n)]
    whole = np.broadcast_to(input.reshape([k for n in shape for k in (1, n)]), spread)
    return move(whole, np.empty(spread, input.dtype)).reshape([n * r for n, r in zip(shape, repeats, strict=True)])


@repeat_op.shape
def _(input: Array, repeats: tuple[int, ...]) -> list[shapes.Made]:
    shape = (1,) * (len(repeats) - input.ndim) + input.shape
    return [shapes.Made(tuple(n * r for n, r in zip(shape, repeats, strict=True)), input.dtype)]


@repeat_op.grad("input")
def _(g: Array, input_shape: tuple[int, ...], repeats: tuple[int, ...]) -> Array:
    shape = (*[1] * (len(repeats) - len(input_shape)), *input_shape)
    if 0 in repeats:
        return np.zeros(input_shape, raw(g).dtype)
    spread = [(k, i) for pair in zip(repeats, shape, strict=True) for i, k in enumerate(pair) if k != 1]
    again = tuple(d for d, (_, i) in enumerate(spread) if not i)
    parts = sum_op(reshape_op(g, tuple(k for k, _ in spread)), again, False) if again else g
    return reshape_op(parts, input_shape)


@function(method=True, ns="Tensor")
def repeat(self: Tensor, *repeats: int | Sequence[int], **named: object) -> Tensor:
    """A copy with the tensor `repeats` times along each dimension; more repeats than dimensions add leading ones."""
    if named:
        repeats = by_keyword("repeat", "repeats", repeats, named)
    times = sizes(repeats, "repeat", "repeats")
    if len(times) < raw(self).ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got "
                           f"{len(times)} and {raw(self).ndim}")  # fmt: skip
    if any(r < 0 for r in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeats are {list(times)}")
    check_count([r * n for r, n in zip(times, (1,) * (len(times) - raw(self).ndim) + raw(self).shape, strict=True)])
    return repeat_op(self, times)


@function(method=True)
def tile(input: Tensor, *dims: int | Sequence[int], **named: object) -> Tensor:
    """As repeat; fewer `dims` than dimensions leave the first ones alone.  (*) -> (*)"""
    if named:
        dims = by_keyword("tile", "dims", dims, named)
    elif not dims:
        raise TypeError('tile() missing 1 required positional arguments: "dims"')
    times = sizes(dims, "tile", "dims")
    return repeat(input, (*[1] * (raw(input).ndim - len(times)), *times))


def torch_tile(input: Tensor, dims: Sequence[int]) -> Tensor:
    """As repeat; fewer `dims` than dimensions leave the first ones alone.  (*) -> (*)"""
    return tile(input, listed(dims, "tile", "dims"))


NAMESPACES[""]["tile"] = known_as(torch_tile, "tile")


ALL, BACK = slice(None), slice(None, None, -1)


@op(
    aten=("flip(input, dims)",),
    linear=True,
    grads={"input": lambda g, dims: flip_op(g, dims)},
    complex_half="moves",
    shape=shapes.same,
    repeatable=True,
    batch=families.shifted,
)
def flip_op(input: Array, dims: tuple[Any, ...]) -> Array:
    """A copy with dimensions in reverse order.  (*) -> (*)"""
    index: list[Any] = [BACK if d in dims else ALL for d in range(input.ndim)]
    return copied_like(input[(*index, ...)], input)


@function(method=True)
def flip(input: Tensor, *dims: int | Sequence[int], **named: object) -> Tensor:
    """A copy with the dimensions `dims` in reverse order.  (*) -> (*)"""
    if named:
        dims = by_keyword("flip", "dims", dims, named)
    elif not dims:
        raise TypeError('flip() missing 1 required positional arguments: "dims"')
    along = sizes(dims, "flip", "dims")
    return flip_op(input, wrap_dims(along, raw(input).ndim) if raw(input).ndim else _no_dims(along))


def torch_flip(input: Tensor, dims: Sequence[int]) -> Tensor:
    """A copy with the dimensions `dims` in reverse order.  (*) -> (*)"""
    return flip(input, listed(dims, "flip", "dims"))


NAMESPACES[""]["flip"] = known_as(torch_flip, "flip")


def _no_dims(dims: tuple[Any, ...]) -> tuple[Any, ...]:
    """The dimensions of a 0-d tensor: none, once they were checked."""
    wrap_dims(dims, 0)
    return ()


@function(method=True)
def fliplr(input: Tensor) -> Tensor:
    """A copy with the second dimension in reverse order.  (M, N, *) -> (M, N, *)"""
    if raw(input).ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip_op(input, (1,))


@function(method=True)
def flipud(input: Tensor) -> Tensor:
    """A copy with the first dimension in reverse order.  (M, *) -> (M, *)"""
    if raw(input).ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip_op(input, (0,))


@op(
    aten=("roll(input, shifts, dims=[])",),
    linear=True,
    complex_half="moves",
    shape=shapes.same,
    batch=families.shifted,
)
def roll_op(input: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """A copy with elements moved along dimensions, round the end.  (*) -> (*)"""
    if len(dims) != 1 or not input.size:
        return np.roll(input, shifts, dims)
    out, n, lead = empty_in_format(input, input.dtype, None), input.shape[dims[0]], (slice(None),) * dims[0]
    by = shifts[0] % n
    move(input[(*lead, slice(n - by, n))], out[(*lead, slice(by))])
    move(input[(*lead, slice(n - by))], out[(*lead, slice(by, n))])
    return out


roll_op.grad("input")(lambda g, shifts, dims: roll_op(g, tuple(-s for s in shifts), dims))


@function(method=True)
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy with elements moved by `shifts` along `dims`, round the end; without `dims`, of the flat tensor."""
    moves = sizes((shifts,), "roll", "shifts")
    if not moves:
        raise RuntimeError("`shifts` required")
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        if len(moves) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:0")
        shape = raw(input).shape
        return reshape_op(roll_op(reshape_op(input, (raw(input).size,)), moves, (0,)), shape)
    along = sizes((dims,), "roll", "dims")
    if not raw(input).ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if len(moves) != len(along):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(along)}")
    along = tuple(wrap_dim(d, raw(input).ndim) for d in along)
    return roll_op(input, moves, along)


@function(method=True)
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """A copy turned `k` times by 90 degrees in the plane of two dimensions, from the first to the second."""
    ndim = raw(input).ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = (wrap_dim(d, ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = as_int(k, "rot90", "k") % 4
    if turns == 2:
        return flip_op(input, (a, b))
    if turns == 0:
        return flip_op(input, ())
    return transpose(flip_op(input, (b,)), a, b) if turns == 1 else flip_op(transpose(input, a, b), (b,))


# repeat_interleave ---------------------------------------------------------------------------------


def check_total(output_size: object, total: int) -> None:
    """Raise RuntimeError where the repeats do not sum up to the `output_size` that was given."""
    if output_size is not None and as_int(output_size, "repeat_interleave", "output_size") != total:
        raise RuntimeError(
            f"repeat_interleave: allocated size does not match required size: output_size={output_size} is not the "
            f"{total} that the repeats sum up to"
        )


@function(method=True)
@per_sample
@numpy_names
def repeat_interleave(
    input: Tensor,
    repeats: Tensor | int | None = None,
    dim: int | Sequence[int] | None = None,
    *,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    """Each slice of `dim` (each element without it) `repeats` times in a row; repeats: an int or a vector of counts.

    With a vector alone: how often to repeat its positions 0, 1, ...
    """
    if repeats is None:
        counts = check_counts(of_one_shape("repeat_interleave", raw(input)))
        check_total(output_size, int(counts.sum()))
        return wrap(np.repeat(np.arange(len(counts)), counts).astype(raw(input).dtype, copy=False))
    if dim is None:
        input, dim = reshape_op(input, (raw(input).size,)), 0
    dim = wrap_dim(dim, raw(input).ndim)
    size = raw(input).shape[dim] if raw(input).ndim else 1
    whole = input if raw(input).ndim else reshape_op(input, (1,))
    if not isinstance(raw(repeats), np.ndarray):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        times = as_int(repeats, "repeat_interleave", "repeats")
        check_total(output_size, size * times)
        return evenly(whole, times, dim)
    counts = check_counts(raw(repeats))
    unread = isinstance(repeats, Tensor) and (repeats._meta or is_unknown(counts))
    if unread and output_size is not None:  # else they decide how many there are
        many = as_int(output_size, "repeat_interleave", "output_size")
        return index_select_op(whole, np.zeros(many, np.int64), dim)
    of_one_shape("repeat_interleave", counts)
    if counts.size != 1 and counts.size != size:
        raise RuntimeError("repeats must have the same size as input along dim, but got repeats.size(0) = "
                           f"{counts.size} and input.size({dim}) = {size}")  # fmt: skip
    if counts.size == 1:
        check_total(output_size, size * int(counts.reshape(-1)[0]))
        return evenly(whole, int(counts.reshape(-1)[0]), dim)
    where = np.repeat(np.arange(size), counts)
    check_total(output_size, len(where))
    return index_select_op(whole, where, dim)


def evenly(input: Tensor, repeats: int, dim: int) -> Tensor:
    """Each slice of `dim` equally often in a row: a repeat of a dimension of size 1, put behind it."""
    shape = raw(input).shape
    spread = (*shape[: dim + 1], 1, *shape[dim + 1 :])
    many = repeat_op(reshape_op(input, spread), tuple(repeats if d == dim + 1 else 1 for d in range(len(spread))))
    return reshape_op(many, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))


def check_counts(repeats: Array) -> Array:
    """The counts of repeat_interleave, a vector of integers that are not negative."""
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.dtype not in (np.int64, np.int32):
        raise NotImplementedError("repeat_interleave: repeats has to be Long or Int tensor")
    if (everything(repeats) < 0).any():
        raise RuntimeError("repeats can not be negative")
    return repeats
