"""Sums, means and maxima of bags of embeddings, without the embeddings in memory between forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller
from rushlight.dispatch import shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.keeping.blocks import BLOCK
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.options import on_meta_alone
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.dispatch.rules import Making
from rushlight.kernels.dispatch import parts_of_rows, up
from rushlight.ops.index.embedding import (
    check_frequency,
    check_table,
    embedding_backward,
    embedding_op,
    embedding_renorm_,
    no_graph,
    rows_of,
    table_shapes,
    used_rows,
    wrapped_padding,
)
from rushlight.tensor import Tensor, wrap

F = "nn.functional"
BAGS = 1 << 14  # numbers of bags that are made together
FEW = 2  # how many times as many members as there are bags a bag may have for these to be made together


@op(name="embedding_bag", half=None, masks=("indices", "bag"))
def bag_op(weight: Array, scale: Array | None, indices: Array, bag: Array, bags: int, by_freq: bool,
           sparse: bool = False) -> Array:  # fmt: skip
    """Sums of scale[i] * weight[indices[i]] over the i of each bag.  (V, D), (N,), (N,), (N,) -> (bags, D)"""
    out = np.zeros((bags, weight.shape[1]), weight.dtype)
    _add_rows(out, bag, weight, indices, scale)
    return out


def _add_rows(out: Array, to: Array, table: Array, of: Array, scale: Array | None) -> None:
    """out[to[i]] += scale[i] * table[of[i]] for every i in their order, some at a time where each is added by itself."""
    try:
        if backend.add_rows_of(out, to, table, of, scale):
            return
    except IndexError:
        rows_of("embedding_bag", table, of)
    sums, by = up(out, scale)
    for some in parts_of_rows(len(of), out.shape[1], sums.dtype):
        rows = up(rows_of("embedding_bag", table, of[some]))[0]
        if by is not None:
            rows *= by[some, None]
        backend.index_add_rows(sums, to[some], rows)
        del rows  # before the next are read
    if sums is not out:
        out[...] = sums


def _part(count: int, width: int, dtype: Any) -> int:
    """The bytes of rows that are in memory together, of so many: none where they are added as they are read."""
    if backend.adds_rows_of(np.dtype(dtype)):
        return 0
    some = parts_of_rows(count, width, dtype)[0]
    return int((some.stop - some.start) * width * dtype.itemsize)


@bag_op.work
def _(weight: Array, indices: Array) -> int:
    return _part(indices.size, weight.shape[1], weight.dtype)


@bag_op.shape
def _(weight: Array, bags: int) -> list[shapes.Made]:
    return [shapes.Made((bags, weight.shape[1]), weight.dtype)]


def _of_table(
    g: Array | Tensor,
    scale: Array | Tensor | None,
    indices: Any,
    bag: Array | Tensor,
    weight_shape: Any,
    by_freq: bool,
    sparse: bool,
) -> object:
    check_frequency("embedding_bag", sparse, by_freq)
    rows = embedding_op(g, bag, -1, False)
    if scale is not None:
        rows = rows * ops.unsqueeze(scale, -1) if isinstance(rows, Tensor) else rows * scale[:, None]
    if sparse and no_graph(rows):
        return used_rows(rows, indices, weight_shape)
    return embedding_backward(rows, indices, weight_shape[0], -1, by_freq)


def _of_table_raw(
    g: Array,
    scale: Array | None,
    indices: Array,
    bag: Array,
    weight_shape: tuple[int, ...],
    by_freq: bool,
    sparse: bool,
) -> object:
    if sparse or by_freq or (scale is not None and scale.dtype != g.dtype):
        return _of_table(g, scale, indices, bag, weight_shape, by_freq, sparse)
    out = np.zeros(weight_shape, g.dtype)
    _add_rows(out, indices, g, bag, scale)
    return out


def _table_shapes(g: Array, indices: Array, weight_shape: tuple[int, ...], sparse: bool, make: Making) -> object:
    if not sparse:
        beside = weight_shape[0] * weight_shape[1] * g.dtype.itemsize
        make.work(beside + _part(indices.size, weight_shape[1], g.dtype))
    return table_shapes(g, indices, weight_shape, False, sparse, make)


bag_op.grad("weight", raw=_of_table_raw, shapes=_table_shapes)(_of_table)


@bag_op.grad("scale")
def _(g: Array | Tensor, weight: Array | Tensor, indices: Array | Tensor, bag: Array | Tensor) -> Array | Tensor:
    rows = embedding_op(g, bag, -1, False) * embedding_op(weight, indices, -1, False)
    return ops.sum(rows, -1)


@op(name="embedding_bag_max", half=None, aux=("chosen",), masks=("indices", "bag"))
def bag_max_op(weight: Array, indices: Array, bag: Array, bags: int) -> tuple[Array, ...]:
    """Maxima over each bag, 0 for empty ones.  (V, D), (N,), (N,) ascending -> (bags, D)

    Keeps which row each maximum is of, -1 in empty bags.
    """
    width = weight.shape[1]
    kind = np.int32 if len(weight) < 1 << 31 else np.int64
    out, chosen = np.zeros((bags, width), weight.dtype), np.full((bags, width), -1, kind)
    limits = np.searchsorted(bag, np.arange(bags + 1))
    some = max(1, BAGS // max(1, width))
    for b in range(0, bags, some):
        part = slice(b, min(b + some, bags))
        _put_maxima(out[part], chosen[part], weight, indices, limits[part], np.diff(limits[b : part.stop + 1]))
    return out, chosen


def _put_maxima(out: Array, chosen: Array, weight: Array, indices: Array, starts: Array, sizes: Array) -> None:
    """The maxima of some bags, and which rows they are of: all first members are compared with all second ones, and so on."""
    if sizes.max() > FEW * len(sizes):
        return _put_maxima_by_bag(out, chosen, weight, indices, starts, sizes)
    order = np.argsort(-sizes, kind="stable")  # so that bags that have a k-th member come first
    order = order[: np.count_nonzero(sizes)]
    best, which = weight[:0], np.zeros((len(order), weight.shape[1]), np.int32)
    for k in range(int(sizes.max())):
        many = np.count_nonzero(sizes > k)
        rows = rows_of("embedding_bag", weight, indices[starts[order[:many]] + k])
        if k == 0:
            best = rows
            continue
        former = best[:many]
        greater = rows > former  # which a NaN is not, nor what comes after one that is the first
        backend.choose(greater, rows, former, former)
        backend.choose(greater, np.full(1, k, np.int32), which[:many], which[:many])
    out[order], chosen[order] = best, indices[starts[order, None] + which]


def _put_maxima_by_bag(out: Array, chosen: Array, weight: Array, indices: Array, starts: Array, sizes: Array) -> None:
    """`_put_maxima` of bags of which one has most members."""
    for b in np.flatnonzero(sizes):
        own = indices[starts[b] : starts[b] + sizes[b]]
        rows = rows_of("embedding_bag", weight, own)
        at = np.where(np.isnan(rows[0]), 0, np.where(np.isnan(rows), -np.inf, rows).argmax(0))
        out[b], chosen[b] = rows[at, np.arange(weight.shape[1])], own[at]


bag_max_op.grad("weight")(lambda g, chosen, weight_shape: put_rows(g, chosen, weight_shape[0]))


@op(masks=("chosen",))
def put_rows(grad: Array, chosen: Array, count: int) -> Array:
    """out[chosen[i, j], j] += grad[i, j], but for negative ones.  (B, D), (B, D) -> (count, D)"""
    out = np.zeros((count, grad.shape[1]), grad.dtype)
    step = max(1, BLOCK // max(1, grad.shape[1]))
    for start in range(0, len(grad) if count else 0, step):
        some, given = chosen[start : start + step], grad[start : start + step]
        none = some < 0
        if none.any():
            some, given = np.where(none, 0, some), np.where(none, 0, given)
        backend.add_along(out, np.ascontiguousarray(some, np.int64), 0, given)
    return out


put_rows.grad("grad")(lambda g, chosen: take_rows(g, chosen))


@op(masks=("chosen",))
def take_rows(input: Array, chosen: Array) -> Array:
    """input[chosen[i, j], j], 0 for negative ones.  (V, D), (B, D) -> (B, D)"""
    return np.where(chosen >= 0, input[chosen, np.arange(input.shape[1])], input.dtype.type(0))


take_rows.grad("input")(lambda g, chosen, input_shape: put_rows(g, chosen, input_shape[0]))


class Bags:
    """Which of the flat indices belong to which bag.  bag: (N,) ascending; keep: those not padding, None for all."""

    def __init__(self, indices: Any, offsets: Any, last: bool, padding_idx: int, mode: str):
        if indices.ndim == 2:
            self.count = indices.shape[0]
            starts = np.arange(self.count + 1) * indices.shape[1]
        else:
            self.count = len(offsets) - bool(last)
            starts = offsets if last else np.append(offsets, indices.size)
            if last and self.count > 0 and (padding_idx >= 0 or mode == "max"):  # the last bag has all that is left
                starts = np.append(offsets[:-1], indices.size)
        self.indices, self.starts = indices.reshape(-1), starts
        self.bag = np.repeat(np.arange(self.count), np.diff(starts[: self.count + 1]))
        if last:
            self.indices = self.indices[: len(self.bag)]
        self.keep = None
        if padding_idx >= 0:
            self.keep = np.nonzero(self.indices != padding_idx)[0]
            self.indices, self.bag = self.indices[self.keep], self.bag[self.keep]

    def means(self) -> Array:
        """By index, 1 / the size of its bag."""
        return 1 / np.maximum(np.bincount(self.bag, minlength=self.count), 1)[self.bag]


def check_offsets(indices: Tensor, offsets: Tensor | None, last: bool) -> None:
    """Raise ValueError, RuntimeError or TypeError unless `offsets` fits `indices`."""
    if indices.ndim == 2:
        if offsets is not None:
            raise ValueError(f"embedding_bag: if input is 2D, then offsets has to be None, as input is treated is a "
                             f"mini-batch of fixed length sequences. However, found {type(offsets)}")  # fmt: skip
        return
    if indices.ndim != 1:
        raise ValueError(f"embedding_bag: input has to be 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}")
    if offsets is None:
        raise ValueError("embedding_bag: offsets has to be a 1D Tensor but got None: a 1-D input needs it")
    if offsets.ndim != 1:
        raise ValueError(f"embedding_bag: offsets has to be a 1D Tensor, got {offsets.ndim} dimensions")
    check_offset_values(indices, offsets._array, last)


def check_offset_values(indices: Tensor, values: Array, last: bool) -> None:
    """Raise RuntimeError unless the first offset is 0 and the last within the indices."""
    if last and not len(values):
        raise RuntimeError("embedding_bag: include_last_offset: number of offset should be at least 1, got none")
    if len(values) and values[0] != 0:
        raise RuntimeError(f"embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to "
                           f"start from position 0. However, got {values[0]}")  # fmt: skip
    if len(values) and values[-1] > indices.numel():
        raise RuntimeError(f"embedding_bag: offsets[-1] can not be greater than input's length({indices.numel()}), but "
                           f"got offsets[-1] of {values[-1]}")  # fmt: skip


def check_scale(scale: Tensor | None, indices: Tensor, weight: Tensor, mode: str) -> None:
    """Raise ValueError or RuntimeError unless the per-sample weights fit the indices, the table and the mode."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if scale is None:
        return
    if scale.shape != indices.shape:
        raise ValueError(f"embedding_bag: If per_sample_weights ({list(scale.shape)}) is not None, then it must have "
                         f"the same shape as the input ({list(indices.shape)})")  # fmt: skip
    if mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                                  f"supported for mode='sum' (got mode='{mode}').")  # fmt: skip
    if scale.dtype != weight.dtype:
        raise RuntimeError("embedding_bag: Expected tensor for argument #1 'weight' to have the same type as "
                           f"'per_sample_weights', got {weight.dtype} and {scale.dtype}")  # fmt: skip


def reduced(weight: Tensor, bags: Bags, mode: str, by_freq: bool, scale: Tensor | None, sparse: bool = False) -> Tensor:
    """The bags of `weight` in one of the modes."""
    if sparse and mode == "max":
        raise ValueError("embedding_bag: max mode does not support sparse weights: give sparse=False")
    indices, bag = wrap(bags.indices), wrap(bags.bag)
    if mode == "max":
        if by_freq:
            raise ValueError("embedding_bag: max mode does not support scaling the gradient by the frequency: give "
                             "scale_grad_by_freq=False")  # fmt: skip
        return bag_max_op(weight, indices, bag, bags.count)
    if mode == "mean":
        scale = wrap(bags.means().astype(weight._array.dtype))
    elif scale is not None:
        scale = scale.reshape(-1)
        if bags.keep is not None:
            scale = ops.index_select(scale, 0, wrap(bags.keep))
        elif scale.shape[0] != len(bags.bag):
            scale = scale[: len(bags.bag)]
    return bag_op(weight, scale, indices, bag, bags.count, by_freq, sparse)


@function(ns=F)
@per_sample
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:  # fmt: skip
    """Sums, means or maxima of the rows of `weight` (V, D) whose indices are in one bag -> (B, D)

    input: (B, N), a bag each row; or (N,) with `offsets` (B,), where each bag begins (and, with include_last_offset,
    one more, where the last ends). per_sample_weights: factors of the rows, like `input`, for mode "sum".
    padding_idx: an index that counts for nothing. Others as `embedding`. Raises ValueError for what does not fit.
    """
    if isinstance(weight, Tensor) and isinstance(input, Tensor) and weight.dtype.category <= 1 and \
            input.dtype.is_floating_point:  # fmt: skip
        caller.warn("Argument order of nn.functional.embedding_bag was changed: got (weight, input), expected (input, "
                    "weight), where `input` are the indices")  # fmt: skip
        input, weight = weight, input
    check_table("embedding_bag", weight, input)
    check_offsets(input, offsets, include_last_offset)
    check_scale(per_sample_weights, input, weight, mode)
    padding = bags_padding(padding_idx, weight)
    if on_meta_alone(input, weight):
        count = input.shape[0] if offsets is None else len(offsets) - bool(include_last_offset)
        flat = input.reshape(-1)
        return bag_op(weight, None, flat, flat, count, False, False)
    if max_norm is not None:
        embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    bags = Bags(input._array, None if offsets is None else offsets._array, include_last_offset, padding, mode)
    return reduced(weight, bags, mode, bool(scale_grad_by_freq), per_sample_weights, bool(sparse))


def bags_padding(padding_idx: int | None, weight: Tensor) -> int:
    """`padding_idx` counted from the front, -1 for None.  Raises RuntimeError if it is out of range."""
    count = weight._array.shape[0]
    words = "padding_idx must be within the number of embeddings"
    return wrapped_padding("embedding_bag", padding_idx, count, RuntimeError, words)


def torch_embedding_bag(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
                        sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> tuple[Any, ...]:  # fmt: skip
    """(result, bag of each index, size of each bag, offsets); mode 0 sum, 1 mean, 2 max."""
    check_table("embedding_bag", weight, indices)
    padding = bags_padding(padding_idx, weight)
    way = ("sum", "mean", "max")[mode]
    bags = Bags(indices._array, offsets._array, include_last_offset, padding, way)
    result = reduced(weight, bags, way, bool(scale_grad_by_freq), per_sample_weights, bool(sparse))
    sizes = np.bincount(bags.bag, minlength=bags.count)
    return result, wrap(bags.bag), wrap(sizes), offsets


NAMESPACES[""]["embedding_bag"] = torch_embedding_bag
known_as(torch_embedding_bag, "embedding_bag")
