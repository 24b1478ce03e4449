"""Rows added by index, cross entropy from logits, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.errors import explained
from rushlight.kernels.coins import coins
from rushlight.kernels.dispatch import (
    FLOAT32,
    Array,
    bits,
    blocks_of_rows,
    contiguous,
    dense,
    is_half,
    put,
    rounded,
    rows_of,
    summed_in,
    up,
    widened,
)
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes, exports_of_rows
from rushlight.kernels.pointwise.copies import WORDS
from rushlight.kernels.reference import gather as reference

__all__ = [
    "add_rows_of",
    "adds_rows_of",
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_backward",
    "embedding_backward",
    "index_add_rows",
    "index_add_slices",
    "index_join_slices",
]

PIECE = 1 << 16  # elements of rows that are copied at once where they do not lie side by side

JOINS = {"sum": 0, "prod": 1, "amax": 2, "amin": 3}  # as indices.h numbers them

exports_of_bytes(
    # joined_rows.cpp: elements, index, where they come from, extents
    put_rows="aaannnn>n",
)

exports_of_rows(
    # joined_rows.cpp: destination, its rows, values, extents and how they are joined
    index_join_rows="aaannnnn>n",
    # destination, its rows, table, rows of it, factors (float32 of 16 bits) or None
    add_rows_of="aaaaannnn>n",
)
exports_of_rows(
    # gather.cpp: of 16 bits weights, losses and sums are float32
    cross_entropy="aaaaaa" + "nnnnd" + ">n",
    cross_entropy_backward="aaaaaa" + "nnnnnd" + ">n",
    dropout_backward="aaand",
)

Maybe = Array | None
Order = tuple[int, ...] | None
INT64 = np.dtype(np.int64)


def _int64(idx: Array) -> Array:
    if idx.dtype is INT64 and dense(idx):
        return idx
    return contiguous(idx.astype(np.int64, copy=False))


def _first_outside(idx: Array, count: int, but: int = -(2**63)) -> int:
    """The first position whose index is outside [0, count) and not ``but``; -1 if all are fine."""
    wrong = ((idx < 0) | (idx >= count)) & (idx != but)
    return int(wrong.argmax()) if wrong.any() else -1


def _refuse_row(idx: Array, at: int, rows: int) -> None:
    if at >= 0:
        raise IndexError(f"index_add_rows: expected indices in [0, {rows}), got {idx[at]} at position {at}")


def _extents(x: Array) -> tuple[int, int, int]:
    """Of logits (R, C) or (O, C, I): O, C and I, 1 of the former."""
    return x.shape[0], x.shape[1], 1 if x.ndim == 2 else x.shape[2]


def _as_rows(x: Array) -> Array:
    """Logits (O, C, I) as a matrix (O * I, C), which is a copy where I is not 1."""
    return x if x.ndim == 2 else x.swapaxes(1, 2).reshape(-1, x.shape[1])


def _check_sizes(x: Array, target: Array, weight: Maybe) -> None:
    rows, classes, inner = _extents(x)
    if target.shape != (rows * inner,) or (weight is not None and weight.shape != (classes,)):
        got = f"target {target.shape}, weight {None if weight is None else weight.shape}"
        raise ValueError(f"cross_entropy: {got} do not fit logits of shape {x.shape}: expected one target a row")


def _refuse_target(target: Array, at: int, classes: int, ignore_index: int) -> None:
    if at >= 0:
        raise explained(
            IndexError(
                f"cross_entropy: Target {target[at]} is out of bounds: expected [0, {classes}) or "
                f"ignore_index={ignore_index}"
            ),
            "targets-of-cross-entropy",
        )


def index_add_rows(dst: Array, idx: Array, src: Array) -> Array:
    """dst[idx[i]] += src[i] for every i, in place; repeated rows add up in the order of ``idx``.

    dst: (R, C), idx: (N,) integers in [0, R), src: (N, C).  Returns dst.  Numbers of 16 bits are added in float32 and rounded once.
    IndexError for indices outside.
    """
    idx = _int64(idx)
    rows, width = dst.shape
    if src.shape != (len(idx), width):
        raise ValueError(f"index_add_rows: expected a source of shape {(len(idx), width)}, got {src.shape}")
    if src.size > PIECE and not src.flags.c_contiguous and not is_half(dst.dtype):
        step = max(PIECE // max(width, 1), 1)  # rows that are copied at once: a sum's gradient is one number everywhere
        for start in range(0, len(idx), step):
            index_add_rows(dst, idx[start : start + step], np.ascontiguousarray(src[start : start + step]))
        return dst
    if _joined(dst[None], idx, src, "sum"):
        return dst
    _refuse_row(idx, _first_outside(idx, rows), rows)
    if is_half(dst.dtype):
        wide = widened(dst)
        reference.index_add_rows(wide, idx, widened(src) if is_half(src.dtype) else src)
        rounded(wide, dst.dtype, dst)
    else:
        reference.index_add_rows(dst, idx, src)
    return dst


def index_add_slices(dst: Array, idx: Array, src: Array) -> Array:
    """As `index_add_rows` within each of several.  dst: (O, R, C), idx: (N,), src: (O, N, C)"""
    outer, rows, width = dst.shape
    if outer == 1:
        index_add_rows(dst[0], idx, src[0])
        return dst
    if src.size > PIECE and not src.flags.c_contiguous and not is_half(dst.dtype):
        step = max(PIECE // max(len(idx) * width, 1), 1)
        for start in range(0, outer, step):
            index_add_slices(dst[start : start + step], idx, np.ascontiguousarray(src[start : start + step]))
        return dst
    if _joined(dst, _int64(idx), src, "sum"):
        return dst
    front = np.ascontiguousarray(dst.swapaxes(0, 1)).reshape(rows, outer * width)
    given = np.ascontiguousarray(src.swapaxes(0, 1)).reshape(len(idx), outer * width)
    added = index_add_rows(front, idx, given).reshape(rows, outer, width)
    dst[...] = added.swapaxes(0, 1)
    return dst


def _joined(dst: Array, idx: Array, src: Array, how: str) -> bool:
    """Whether native code joined rows (O, N, C), or (N, C), with those of dst (O, R, C).  IndexError for indices outside."""
    table = rows_of(dst.dtype)
    if table is None or src.dtype != dst.dtype or not dense(dst):
        return False
    outer, rows, width = dst.shape
    sizes = outer, rows, len(idx), width
    _refuse_row(idx, table.index_join_rows(bits(dst), idx, bits(contiguous(src)), *sizes, JOINS[how]), rows)
    return True


def index_join_slices(dst: Array, idx: Array, src: Array, how: str) -> None:
    """As `index_add_slices`; how: products ("prod"), greatest ("amax") or least ("amin") numbers, of which NaN is all, or "last".

    Callers have checked that indices lie in [0, R).
    """
    if how == "last":
        _put_slices(dst, idx, src)
    elif _joined(dst, _int64(idx), src, how):
        pass
    elif is_half(dst.dtype):
        wide = widened(dst)
        reference.index_join_slices(wide, idx, widened(src) if is_half(src.dtype) else src, how)
        rounded(wide, dst.dtype, dst)
    else:
        reference.index_join_slices(dst, idx, src, how)


def _put_slices(dst: Array, idx: Array, src: Array) -> None:
    """dst[:, idx] = src, the last of repeats."""
    word, table = WORDS.get(dst.itemsize), loader.of_bytes()
    if word is None or table is None or src.dtype != dst.dtype or dst.dtype.hasobject or not dense(dst):
        dst[:, idx] = src
        return
    (outer, rows, width), at, given = dst.shape, _int64(idx), contiguous(src)
    _refuse_row(at, table.put_rows(dst.view(word), at, given.view(word), outer, rows, len(at), width), rows)


def add_rows_of(dst: Array, to: Array, table: Array, of: Array, scale: Maybe = None) -> bool:
    """dst[to[i]] += scale[i] * table[of[i]] for every i in their order, natively; False where there is no kernel for it.

    dst: (R, C), to: (N,), table: (V, C), of: (N,), scale: (N,), of 16 bits in float32, too.  IndexError for rows of
        the table that are none.
    """
    kernels = rows_of(dst.dtype)
    factors = scale if scale is None or not is_half(scale.dtype) else widened(scale)
    alike = table.dtype == dst.dtype and (factors is None or factors.dtype == summed_in(dst.dtype))
    if kernels is None or not alike or not dense(dst):
        return False
    (rows, width), of, by = dst.shape, _int64(of), None if factors is None else contiguous(factors)
    given = bits(contiguous(table))
    outside = kernels.add_rows_of(bits(dst), _int64(to), given, of, by, rows, len(table), len(of), width)
    _refuse_row(of, outside, len(table))
    return True


def adds_rows_of(dtype: np.dtype[Any]) -> bool:
    """Whether `add_rows_of` has a kernel for numbers of a dtype."""
    return rows_of(dtype) is not None


def embedding_backward(g: Array, idx: Array, num_rows: int, padding_idx: int = -1) -> Array:
    """Gradient (num_rows, C) of the table of an embedding.  g: (*, C), idx: (*) integers.

    Rows of ``g`` whose index is ``padding_idx`` count for nothing.
    """
    width = g.shape[-1]
    out = np.zeros((num_rows, width), g.dtype)
    index_add_rows(out, idx.reshape(-1), g.reshape(idx.size, width))
    if 0 <= padding_idx < num_rows:
        out[padding_idx] = 0
    return out


def cross_entropy(
    logits: Array, target: Array, weight: Maybe = None, ignore_index: int = -100, label_smoothing: float = 0.0
) -> tuple[Array, Array, Array]:
    """Loss of each row, without the logarithms of the probabilities in memory.

    logits: (R, C), or (O, C, I) of R = O * I, target: (R,) integers, weight: (C,).  Returns losses (R,), each already
    times its class's weight and 0 where the target is ``ignore_index``; denominator (R, 2), the greatest logit of each
    row and the sum of e^(logits - it), which the gradient needs (float32 for 16-bit inputs; apart they have all their
    digits); and (2,) in float64: the sum of the losses, and that of the weights of the rows that count (without
    weights their number).  IndexError for targets outside [0, C).
    """
    target = _int64(target)
    _check_sizes(logits, target, weight)
    if is_half(logits.dtype):
        w, logits = up(weight)[0], _as_rows(logits)
        if rows_of(logits.dtype) is None:
            return _in_blocks(logits, target, w, ignore_index, label_smoothing)
        loss, denominator, sums = _cross_entropy(logits, target, w, ignore_index, label_smoothing)
        return rounded(loss, logits.dtype), denominator, sums
    return _cross_entropy(logits, target, weight, ignore_index, label_smoothing)


def _in_blocks(x: Array, target: Array, weight: Maybe, ignore: int, smoothing: float) -> tuple[Array, Array, Array]:
    """`cross_entropy` of 16 bits without a kernel, some rows at a time."""
    sums, loss, denominator = np.zeros(2), np.empty(len(x), x.dtype), np.empty((len(x), 2), FLOAT32)
    for some in blocks_of_rows(x):
        loss[some], denominator[some], more = _cross_entropy(widened(x[some]), target[some], weight, ignore, smoothing)
        sums += more
    return loss, denominator, sums


def _cross_entropy(x: Array, target: Array, weight: Maybe, ignore: int, smoothing: float) -> tuple[Array, Array, Array]:
    table, own = rows_of(x.dtype), summed_in(x.dtype)
    if table is None or (weight is not None and weight.dtype != own):
        _refuse_target(target, _first_outside(target, x.shape[1], ignore), x.shape[1], ignore)
        return reference.cross_entropy(_as_rows(x), target, weight, ignore, smoothing)
    loss, denominator, sums = np.empty(len(target), own), np.empty((len(target), 2), own), np.empty(2)
    dense = None if weight is None else contiguous(weight)
    at = table.cross_entropy(
        bits(contiguous(x)), target, dense, loss, denominator, sums, *_extents(x), ignore, smoothing
    )
    if at >= 0:
        _refuse_target(target, at, x.shape[1], ignore)
    return loss, denominator, sums


def cross_entropy_backward(
    g: Array,
    logits: Array,
    denominator: Array,
    target: Array,
    weight: Maybe = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    out: Maybe = None,
) -> Array:
    """Gradient, of the shape of the logits, of `cross_entropy` by them; g: (R,), the gradient of each row's loss, or (1,).

    `out`, of the shape and dtype of logits and C-contiguous, is written instead of a new array; it may be logits.
    """
    target = _int64(target)
    _check_sizes(logits, target, weight)
    table, dtype = rows_of(logits.dtype), logits.dtype
    own = summed_in(dtype)
    if own != dtype:
        g, denominator, weight = up(g, denominator, weight)
    if (
        table is None
        or (own != dtype and logits.ndim > 2)
        or any(x is not None and x.dtype != own for x in (g, denominator, weight))
    ):
        return _by_rows(g, logits, denominator, target, weight, ignore_index, label_smoothing, out)
    out = np.empty(logits.shape, dtype) if out is None else out
    dense = None if weight is None else contiguous(weight)
    at = table.cross_entropy_backward(contiguous(g), bits(contiguous(logits)), contiguous(denominator), target, dense,
                                      bits(out), *_extents(logits), int(len(g) == len(target)), ignore_index,
                                      label_smoothing)  # fmt: skip
    if at >= 0:
        _refuse_target(target, at, logits.shape[1], ignore_index)
    return out


def _by_rows(
    g: Array, x: Array, denominator: Array, target: Array, weight: Maybe, ignore: int, smoothing: float, out: Maybe
) -> Array:
    """`cross_entropy_backward` without a kernel, logits of 16 bits some rows at a time."""
    if x.ndim > 2:
        rows = cross_entropy_backward(g, _as_rows(x), denominator, target, weight, ignore, smoothing)
        return put(rows.reshape(x.shape[0], x.shape[2], x.shape[1]).swapaxes(1, 2), out)
    if not is_half(x.dtype):
        _refuse_target(target, _first_outside(target, x.shape[1], ignore), x.shape[1], ignore)
        return reference.cross_entropy_backward(g, x, denominator, target, weight, ignore, smoothing, out)
    d, sums, w = up(g, denominator, weight)
    found = np.empty(x.shape, x.dtype) if out is None else out
    for some in blocks_of_rows(x):
        rows_of = d[some] if len(d) == len(x) else d, widened(x[some]), sums[some], target[some]
        rounded(cross_entropy_backward(*rows_of, w, ignore, smoothing), found.dtype, found[some])
    return found


def dropout(x: Array, p: float, state: Array, order: Order = None, out: Maybe = None) -> tuple[Array, Array]:
    """Each element times 1 / (1 - p) with probability 1 - p, else times 0.

    x: (*) float.  Returns out (*) and the mask as bits ((n + 7) // 8,) uint8, element 0 in the lowest bit of byte 0:
    one 32nd of a float32 mask.  state: that mask, or the state of a generator (see `coins`), which stays as it is: the same one
    gives the same mask.
    order: of the dimensions, outermost first, in which elements count and results lie; None as they are.  `out`, of the shape and
    dtype of x, is written instead of a new array; it may be x.
    """
    mask = state if state.dtype == np.uint8 else coins(state.copy(), 1 - p, 1, x.size)
    return dropout_backward(x, mask, p, order, out), mask


def dropout_backward(g: Array, mask: Array, p: float, order: Order = None, out: Maybe = None) -> Array:
    """g * mask / (1 - p), the mask as `dropout` returned it.  order, out: as there; `out` may be g."""
    if order is not None:
        into = None if out is None else out.transpose(order)
        return dropout_backward(g.transpose(order), mask, p, None, into).transpose(np.argsort(order))
    scale = 0.0 if p >= 1 else 1.0 / (1.0 - p)
    g = contiguous(g)
    table = rows_of(g.dtype)
    if mask.shape != ((g.size + 7) // 8,):
        raise RuntimeError(f"dropout: expected the mask of {g.size} elements, got one of {8 * mask.size}")
    if table is None:
        return put(reference.scale_by_bits(g, mask, scale), out)
    target = np.empty(g.shape, g.dtype) if out is None or not dense(out) else out
    table.dropout_backward(bits(g), contiguous(mask), bits(target), g.size, scale)
    return put(target, out)
