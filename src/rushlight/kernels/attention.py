"""Scaled dot product attention, a block of scores at a time.

The (L, S) scores of a few heads, or of a few rows of one, exist at once; BLAS makes and takes them, a fused
kernel does what lies between.  From forward to backward go the inputs, the output and one number a row (lse):
the probabilities are computed anew from it (as in FlashAttention, Dao et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rushlight.kernels import products
from rushlight.kernels.coins import coins
from rushlight.kernels.dispatch import FLOAT32, Array, contiguous, is_half, native, rounded, up
from rushlight.kernels.gather import dropout_backward
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports, exports_of_bfloat16
from rushlight.kernels.reference import attention as reference

__all__ = ["sdpa", "sdpa_backward", "sdpa_dropout_mask"]

exports_of_bfloat16(
    # attention_pairs.h: as the others, in and out of bfloat16
    attention="aaaaaaid",
    attention_backward="a" * 9 + "id",
)

exports(
    # attention.cpp: scores (heads, rows, columns), mask (heads or 1, rows, columns) or None, ...
    attention_softmax="aaand",
    attention_again="aaand",
    attention_slope="aad",
    # attention_fused.cpp: operands, results, whether causal, scale
    attention="aaaaaaid",
    attention_backward="a" * 9 + "id",
)

_BLOCK = 1 << 18  # scores at once: 1 MB of float32, within the second-level cache


Drop = tuple[float, Array] | None  # the probability, and the state from which is drawn which are dropped


class _Block(NamedTuple):
    """Heads [h0, h1) of batch elements [b0, b1), rows [r0, r1), columns [0, columns)."""

    b: slice
    heads: slice
    rows: slice
    columns: int
    first: int  # the block's first row under a causal mask, else -1


def blocks_of(shape: tuple[int, int, int, int], causal: bool, in_order: bool = False) -> Iterator[_Block]:
    """The blocks of scores (B, H, L, S) that exist one after the other.  in_order: each behind the former in memory, too."""
    batch, heads, length, width = shape
    rows = max(1, min(length, _BLOCK // max(width, 1)))
    if causal:
        rows = min(rows, max(64, length // 4))  # what lies right of the diagonal is skipped by blocks
    together = max(1, min(heads, _BLOCK // max(rows * width, 1))) if rows >= length or not in_order else 1
    many = max(1, min(batch, _BLOCK // max(rows * width * heads, 1))) if rows >= length else 1
    for b in range(0, batch, many):
        for h in range(0, heads, together):
            for r in range(0, length, rows):
                end = min(r + rows, length)
                columns = min(width, end) if causal else width
                at = slice(b, min(b + many, batch)), slice(h, min(h + together, heads)), slice(r, end)
                yield _Block(*at, columns, r if causal else -1)


class _Scores:
    """The score blocks of one call: their buffers, mask and scale."""

    def __init__(self, q: Array, k: Array, mask: Array | None, scale: float) -> None:
        self.q, self.k, self.scale = q, k, scale
        self.kernels = native(q.dtype) or reference
        self.mask = None if mask is None else np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
        if self.mask is not None and self.mask.dtype != bool:
            self.mask = self.mask.astype(q.dtype, copy=False) if mask is not None else None

    def products(self, block: _Block, left: Array, right: Array, buffer: Array) -> Array:
        """left @ right^T for the block's rows and columns, in ``buffer``."""
        a = left[block.b, block.heads, block.rows]
        b = right[block.b, block.heads, : block.columns]
        shape = (*a.shape[:3], block.columns)
        out = buffer[: math.prod(shape)].reshape(shape)
        return np.matmul(a, b.swapaxes(-1, -2), out=out)

    def arguments(self, block: _Block, scores: Array, lse: Array) -> tuple[Any, ...]:
        """What the kernels between the products take: the batch elements' heads one after another."""
        flat = _heads_together(scores)
        return flat, self.mask_block(block), lse.reshape(flat.shape[:2]), block.first, self.scale

    def mask_block(self, block: _Block) -> Array | None:
        """The mask of a block, (heads, rows, columns); one head stands for all where they share it."""
        if self.mask is None:
            return None
        part = self.mask[block.b, block.heads, block.rows, : block.columns]
        if all(size == 1 or stride == 0 for size, stride in zip(part.shape[:2], part.strides, strict=False)):
            part = part[:1, :1]
        return _gapless_rows(_heads_together(part))


def _heads_together(a: Array) -> Array:
    """(B, H, L, S) as (B * H, L, S)."""
    return a.reshape(a.shape[0] * a.shape[1], *a.shape[2:])


def _gapless_rows(a: Array) -> Array:
    """`a` if its last axis is gapless and its elements aligned, else a copy without the axes along which it repeats."""
    if _rows_lie_well(a):
        return a
    once = a[tuple(slice(1) if stride == 0 else slice(None) for stride in a.strides[:-1])]
    return np.broadcast_to(once.copy(order="C"), a.shape)


def _rows_lie_well(a: Array) -> bool:
    return a.flags.aligned and (a.shape[-1] <= 1 or a.strides[-1] == a.itemsize)


def _buffer(q: Array, k: Array, causal: bool) -> Array:
    shape = (*q.shape[:3], k.shape[2])
    sizes = (math.prod(s.stop - s.start for s in (b.b, b.heads, b.rows)) * b.columns for b in blocks_of(shape, causal))
    return np.empty(max(sizes, default=0), q.dtype)


def _heads_last(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """(B, H, L, E) with E, H, L, B from the fastest axis on: joining the heads afterwards copies nothing."""
    b, h, length, e = shape
    return np.empty((b, length, h, e), dtype).transpose(0, 2, 1, 3)


def order_of_gradient(a: Array) -> tuple[int, ...]:
    """The dimensions of the gradient of (..., L, E) by decreasing stride: as its array lies, or with heads last."""
    n = a.ndim
    order = tuple(sorted(range(n), key=lambda i: (-a.strides[i], i)))
    whole = order[-1] == n - 1 and not any(
        stride == 0 < size - 1 for size, stride in zip(a.shape, a.strides, strict=True)
    )
    return order if whole or n < 4 else (*range(n - 3), n - 2, n - 3, n - 1)


def _laid_as(a: Array, dtype: np.dtype[Any]) -> Array:
    """An array for the gradient of one."""
    order = order_of_gradient(a)
    return np.empty([a.shape[i] for i in order], dtype).transpose(np.argsort(order))


def _gradients(q: Array, k: Array, v: Array) -> list[Array]:
    """Arrays for the gradients of q, k and v; slices of one where these are, laid out as they are.

    Where one product made all three, its gradient is then whole without a copy.
    """
    starts = [a.__array_interface__["data"][0] for a in (q, k, v)]
    step = starts[1] - starts[0]
    alike = q.shape == k.shape == v.shape and q.strides == k.strides == v.strides
    if not alike or q.base is None or not (q.base is k.base is v.base) or step <= 0 or starts[2] - starts[1] != step:
        return [_laid_as(a, q.dtype) for a in (q, k, v)]
    strides, shape = (step, *q.strides), (3, *q.shape)
    order = sorted(range(5), key=lambda i: -strides[i])
    return list(np.empty([shape[i] for i in order], q.dtype).transpose(np.argsort(order)))


def _fused(arrays: tuple[Array, ...], mask: Array | None) -> tuple[Any, Any] | None:
    """The native kernels for whole heads, and the mask as they want it: None where they do not apply.

    arrays: q, k, v, and out or those of the backward (g, gq, gk, gv).
    """
    q, k = arrays[:2]
    table = native(q.dtype)
    if table is None or math.prod(q.shape[:2]) < loader.get_num_threads() or not q.size or not k.size:
        return None
    if mask is not None:
        mask = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
        mask = mask if mask.dtype == bool else mask.astype(q.dtype, copy=False)
        mask = _gapless_rows(mask)
    if not all(a.dtype == q.dtype and _rows_lie_well(a) for a in arrays):
        return None
    return table, mask


def has_own_kernels(dtype: np.dtype[Any]) -> bool:
    """Whether attention of 16 bits is computed as it is, by instructions for them."""
    return dtype == products.BFLOAT16 and bool(products.ways())


def _in_pairs(arrays: tuple[Array, ...], mask: Array | None) -> tuple[products.Way, Array | None] | None:
    """The kernels for whole heads of bfloat16, and the mask as they want it: None where they do not apply."""
    q, k = arrays[:2]
    found = products.ways() if q.dtype == products.BFLOAT16 else []
    if not found or math.prod(q.shape[:2]) < loader.get_num_threads() or 0 in (*q.shape, *k.shape, arrays[2].shape[-1]):
        return None
    if not all(a.dtype == q.dtype and _rows_lie_well(a) for a in arrays):
        return None
    if mask is not None:
        mask = mask if mask.dtype == bool else up(mask)[0].astype(FLOAT32, copy=False)
        mask = _gapless_rows(np.broadcast_to(mask, (*q.shape[:3], k.shape[2])))
    return found[0], mask


def _of_bfloat16(
    q: Array, k: Array, v: Array, mask: Array | None, is_causal: bool, scale: float | None
) -> tuple[Array, Array] | None:
    """`sdpa` by instructions for bfloat16, where there are such."""
    found = _in_pairs((q, k, v), mask)
    if found is None:
        return None
    way, mask = found
    out, lse = _heads_last((*q.shape[:3], v.shape[-1]), q.dtype), np.empty(q.shape[:3], FLOAT32)
    way.attention(
        *_bits(q, k, v), mask, out.view(np.uint16), lse, is_causal, q.shape[-1] ** -0.5 if scale is None else scale
    )
    return out, lse


def _slopes_of_bfloat16(
    g: Array, q: Array, k: Array, v: Array, lse: Array, mask: Array | None, is_causal: bool, scale: float | None
) -> tuple[Array, ...] | None:
    """`sdpa_backward` by instructions for bfloat16, where there are such."""
    found = _in_pairs((q, k, v, g), mask)
    if found is None:
        return None
    way, mask = found
    grads = _gradients(q, k, v)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    way.attention_backward(*_bits(g, q, k, v), mask, contiguous(lse), *_bits(*grads), is_causal, scale)
    return tuple(grads)


def _bits(*arrays: Array) -> list[Array]:
    return [a.view(np.uint16) for a in arrays]


def _batches(q: Array, drop: Drop) -> list[slice]:
    """The elements of a 16-bit batch, one at a time; all at once where the numbers drawn depend on their places."""
    return [slice(None)] if drop is not None else [slice(b, b + 1) for b in range(len(q))]


def _of_batch(mask: Array | None, b: slice) -> Array | None:
    return mask[b] if mask is not None and mask.ndim == 4 and len(mask) > 1 else mask


def sdpa(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    drop: Drop = None,
) -> tuple[Array, Array]:
    """softmax(q k^T scale + mask) v.

    q: (B, H, L, E), k: (B, H, S, E), v: (B, H, S, Ev); heads that share keys may be views (stride 0).
    mask: broadcastable to (B, H, L, S); added, or bool, true where a column counts.  With ``is_causal`` row i
    sees columns 0 to i.  scale: 1 / sqrt(E) by default.  Rows that see nothing come out as 0.
    drop: (p, state) drops probabilities as dropout does from the state of a generator (see `coins`), block by block.
    Returns out (B, H, L, Ev) and lse (B, H, L), the logarithm of each row's sum (float32 for 16-bit inputs).
    """
    found = _of_bfloat16(q, k, v, mask, is_causal, scale) if is_half(q.dtype) and drop is None else None
    if found is not None:
        return found
    if is_half(q.dtype):
        out, lse = _heads_last((*q.shape[:3], v.shape[-1]), q.dtype), np.empty(q.shape[:3], FLOAT32)
        for b in _batches(q, drop):
            q32, k32, v32, m32 = up(q[b], k[b], v[b], _of_batch(mask, b))
            made, lse[b] = sdpa(q32, k32, v32, m32, is_causal, scale, drop)
            rounded(made, out.dtype, out[b])
        return out, lse
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    out = _heads_last((*q.shape[:3], v.shape[-1]), q.dtype)
    lse = np.empty(q.shape[:3], q.dtype)
    fused = None if drop is not None else _fused((q, k, v, out), mask)
    if fused is not None:
        table, mask = fused
        table.attention(q, k, v, mask, out, lse, is_causal, scale)
        return out, lse
    scores = _Scores(q, k, mask, scale)
    buffer = _buffer(q, k, is_causal)
    state = None if drop is None else drop[1].copy()
    for block in blocks_of((*q.shape[:3], k.shape[2]), is_causal, drop is not None):
        p = scores.products(block, q, k, buffer)
        part = np.empty(p.shape[:3], q.dtype)
        scores.kernels.attention_softmax(*scores.arguments(block, p, part))
        at = (block.b, block.heads, block.rows)
        lse[at] = part
        if drop is not None:
            dropout_backward(p, _kept(p, drop[0], state, k.shape[2]), drop[0], out=p)
        np.matmul(p, v[block.b, block.heads, : block.columns], out=out[at])
    return out, lse


def sdpa_backward(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    lse: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    mask_grad: bool = False,
    drop: Drop = None,
) -> tuple[Array | None, ...]:
    """Gradients (gq, gk, gv) of `sdpa`, each of its input's shape.

    With ``mask_grad`` a fourth: that of an added mask, of the mask's shape.
    """
    if not g.strides[-1]:  # of a sum: a row stands for all
        g = _gapless_rows(g)
    if is_half(q.dtype) and mask_grad:
        g32, q32, k32, v32, m32 = up(g, q, k, v, mask)
        found = sdpa_backward(g32, q32, k32, v32, lse, m32, is_causal, scale, mask_grad, drop)
        return tuple(a if a is None else rounded(a, q.dtype) for a in found)
    slopes = _slopes_of_bfloat16(g, q, k, v, lse, mask, is_causal, scale) if is_half(q.dtype) and drop is None else None
    if slopes is not None:
        return slopes
    if is_half(q.dtype):
        halves = _gradients(q, k, v)
        for b in _batches(q, drop):
            g32, q32, k32, v32, m32 = up(g[b], q[b], k[b], v[b], _of_batch(mask, b))
            parts = sdpa_backward(g32, q32, k32, v32, lse[b], m32, is_causal, scale, False, drop)
            for half, part in zip(halves, parts, strict=True):
                if part is not None:
                    rounded(part, half.dtype, half[b])
        return tuple(halves)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    grads = _gradients(q, k, v)
    fused = None if drop is not None or mask_grad else _fused((q, k, v, g, *grads), mask)
    if fused is not None:
        table, mask = fused
        table.attention_backward(g, q, k, v, mask, contiguous(lse), *grads, is_causal, scale)
        return tuple(grads)
    scores = _Scores(q, k, mask, scale)
    grads[1][...] = 0
    grads[2][...] = 0
    gmask = np.zeros(mask.shape, q.dtype) if mask_grad and mask is not None else None
    buffers = _buffer(q, k, is_causal), _buffer(q, k, is_causal)
    going = None if drop is None else (drop[0], drop[1].copy())
    for block in blocks_of((*q.shape[:3], k.shape[2]), is_causal, drop is not None):
        d = _backward_block(block, scores, (g, q, k, v, lse), grads, buffers, going)
        if gmask is not None:
            _add_mask_grad(gmask, d, block, scores)
    return (*grads, gmask) if mask_grad else tuple(grads)


def _backward_block(
    block: _Block,
    scores: _Scores,
    saved: tuple[Array, ...],
    grads: list[Array],
    buffers: tuple[Array, Array],
    drop: Drop,
) -> Array:
    """One block's part of the gradients; returns the gradient of its scores (before the scale)."""
    g, q, k, v, lse = saved
    rows, columns = (block.b, block.heads, block.rows), (block.b, block.heads, slice(0, block.columns))
    p = scores.products(block, q, k, buffers[0])
    scores.kernels.attention_again(*scores.arguments(block, p, contiguous(lse[rows])))
    bits = None if drop is None else _kept(p, *drop, k.shape[2])
    kept = p if drop is None or bits is None else dropout_backward(p, bits, drop[0])
    grads[2][columns] += np.matmul(kept.swapaxes(-1, -2), g[rows])
    d = scores.products(block, g, v, buffers[1])
    if drop is not None and bits is not None:
        d = dropout_backward(d, bits, drop[0])
    flat = _heads_together(p)
    # The mean of d by p is the sum of g * out too.  But where one p is all it is its d to the bit, and the gradient 0; and
    # of 16 bits the result was rounded.
    scores.kernels.attention_slope(flat, d.reshape(flat.shape), scores.scale)
    np.matmul(d, k[columns], out=grads[0][rows])
    grads[1][columns] += np.matmul(d.swapaxes(-1, -2), q[rows])
    return d


def _kept(scores: Array, p: float, state: Any, width: int) -> Array:
    """Bits for a block of scores: of rows of `width` the first ones, which it has.  `state` goes on."""
    return coins(state, 1 - p, math.prod(scores.shape[:3]), width, scores.shape[3])


def sdpa_dropout_mask(shape: tuple[int, int, int, int], drop: tuple[float, Array]) -> Array:
    """Which of the probabilities (B, H, L, S) `sdpa` keeps, bool."""
    bits = coins(drop[1].copy(), 1 - drop[0], 1, math.prod(shape))
    return np.unpackbits(bits, count=math.prod(shape), bitorder="little").astype(bool).reshape(shape)


def _add_mask_grad(gmask: Array, d: Array, block: _Block, scores: _Scores) -> None:
    """Add a block's score gradient to the mask's, summed over the axes along which the mask was repeated."""
    full = (4 - gmask.ndim) * (1,) + gmask.shape
    part = gmask.reshape(full)[
        slice(None) if full[0] == 1 else block.b,
        slice(None) if full[1] == 1 else block.heads,
        slice(None) if full[2] == 1 else block.rows,
        slice(None) if full[3] == 1 else slice(0, block.columns),
    ]
    axes = tuple(i for i in range(4) if full[i] == 1)
    part += (d / scores.scale).sum(axis=axes, keepdims=True)
