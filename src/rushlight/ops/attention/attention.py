"""Scaled dot product attention.

What is saved: query, key, value, the result, and one number a row.  The probabilities are never in memory as a whole;
the backward computes them anew, a block at a time, and drops the same ones again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.state import special
from rushlight.dispatch import costs, families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.operands import check_tensor
from rushlight.dispatch.randomness import innermost
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import Making
from rushlight.kernels.attention import blocks_of, has_own_kernels, order_of_gradient
from rushlight.levels import owned
from rushlight.ops.norm.softmax import softmax_op
from rushlight.ops.random.dropout import draw, dropout, scaled
from rushlight.tensor import Tensor, wrap

F = "nn.functional"


class Heads:
    """The arrays of one call as (B, H, L, E), heads that share a key side by side, copied only where needed."""

    def __init__(self, q: Array, k: Array, v: Array, groups: int):
        self.groups = groups
        self.batch = joint_batch(q.shape[:-2], k.shape[:-2], v.shape[:-2], groups)

    def queries(self, x: Array) -> Array:
        """(*, L, E) as (B, H, L, E)."""
        if x.shape[:-2] != self.batch:
            x = np.broadcast_to(x, (*self.batch, *x.shape[-2:]))
        if self.groups > 1:
            return x.reshape(-1, self.groups, *x.shape[-2:])
        return self.folded(x)

    def keys(self, x: Array) -> Array:
        """The same of keys and values, those of each group once."""
        if self.groups == 1:
            return self.queries(x)
        x = np.broadcast_to(x, (*self.batch[:-1], self.batch[-1] // self.groups, *x.shape[-2:]))
        x = x.reshape(-1, 1, *x.shape[-2:])
        return np.broadcast_to(x, (x.shape[0], self.groups, *x.shape[2:]))

    def mask(self, x: Array | None, whole: bool) -> Any:
        """A mask that broadcasts with (B, H, L, S).  whole: with every head's own rows, for its gradient."""
        if x is None or (self.groups == 1 and len(self.batch) <= 2):
            return x
        if x.ndim <= 2 and not whole:
            return x
        x = x.reshape((1,) * (len(self.batch) + 2 - x.ndim) + x.shape)
        heads = self.batch[-1] if self.groups == 1 or x.shape[-3] > 1 or whole else self.batch[-1] // self.groups
        x = np.broadcast_to(x, (*self.batch[:-1], heads, *x.shape[-2:]))
        if self.groups == 1:
            return self.folded(x)
        return x.reshape(math.prod(self.batch) // self.groups, heads * self.groups // self.batch[-1], *x.shape[-2:])

    def folded(self, x: Array) -> Array:
        """Leading dimensions folded into two."""
        if x.ndim == 4:
            return x
        if len(self.batch) < 2:
            return x.reshape((1,) * (4 - x.ndim) + x.shape)
        return x.reshape(-1, *x.shape[-3:])

    def unfolded(self, x: Array, summed: bool = False) -> Array:
        """(B, H, L, E) with the leading dimensions of the call; summed: over the heads of each group."""
        if summed and self.groups > 1:
            total = x.sum(1)
            return total.reshape(*self.batch[:-1], self.batch[-1] // self.groups, *x.shape[-2:])
        return x if len(self.batch) == 2 and self.groups == 1 else x.reshape(*self.batch, *x.shape[-2:])


def joint_batch(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], groups: int) -> tuple[int, ...]:
    """The leading dimensions of query, key and value broadcast, with the query's number of heads."""
    if groups > 1:
        k, v = ((*s[:-1], s[-1] * groups) for s in (k, v))
    return q if q == k == v else np.broadcast_shapes(q, k, v)


@op(
    autocast="lower",
    half=None,
    name="scaled_dot_product_attention",
    aux=("lse",),
    masks=("mask",),
    counted=costs.Counted("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward", 2.5),
    aten=(
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
    ),
    aten_call="attention",
    aten_more=True,
    aten_gradient="attention",
    batch=families.attention,
)
def attention_op(query: Array, key: Array, value: Array, mask: Array | None, is_causal: bool, scale: float,
                 groups: int, drop: tuple[Any, ...] | None) -> tuple[Array, ...]:  # fmt: skip
    """softmax(query key^T scale + mask) value.  (*, L, E), (*, S, E), (*, S, V), broadcast (*, L, S) -> (*, L, V)

    groups: how many heads of the query share one of the key. drop: None, or the probability of dropout and the state
        from which is drawn.
    """
    heads = Heads(query, key, value, groups)
    q, k, v = heads.queries(query), heads.keys(key), heads.keys(value)
    out, lse = backend.sdpa(q, k, v, heads.mask(mask, False), is_causal, scale, drop)
    return heads.unfolded(out), lse


@attention_op.shape
def _(query: Array, key: Array, value: Array, groups: int) -> list[shapes.Made]:
    batch = query.shape[:-2] if groups > 1 else np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    shape = (*batch, query.shape[-2], value.shape[-1])
    n = len(shape)
    order = (*range(n - 3), n - 2, n - 3, n - 1) if n >= 4 and groups == 1 else None
    four = (math.prod(batch[:-1]), *batch[-1:], query.shape[-2])
    return [shapes.Made(shape, query.dtype, order), shapes.Made(four, shapes.statistics_dtype(query.dtype))]


def block_of_scores(query: Array, key: Array, is_causal: bool) -> int:
    """Bytes of the scores that exist at once where attention is computed block by block."""
    shape = (math.prod(query.shape[:-3]), query.shape[-3] if query.ndim > 2 else 1, query.shape[-2], key.shape[-2])
    spans = [(b.b, b.heads, b.rows) for b in blocks_of(shape, bool(is_causal))]
    sizes = [math.prod(s.stop - s.start for s in span) * key.shape[-2] for span in spans]
    return int(max(sizes, default=0) * max(query.itemsize, 4))


@attention_op.costs
def _(query: Any, key: Any, value: Any) -> int:
    (*lead, rows, width), keys = query.shape, key.shape[-2]
    return int(2 * math.prod(lead) * rows * keys * (width + value.shape[-1]))


@attention_op.work
def _(query: Array, key: Array, value: Array, is_causal: bool, drop: object) -> int:
    scores = 0 if drop is None else block_of_scores(query, key, is_causal) * 17 // 16  # and the bits of the mask
    return scores + in_float32(query, key, value, drop is not None, 1)


def in_float32(query: Array, key: Array, value: Array, at_once: bool, times: int) -> int:
    """Bytes of the float32 copies of 16 bits: operands, so often, and a result; of one batch after the other unless all are at once."""
    if query.itemsize != 2 or (not at_once and has_own_kernels(query.dtype)):
        return 0
    total = 4 * (times * (query.size + key.size + value.size) + query.size // query.shape[-1] * value.shape[-1])
    return total if at_once else total // max(math.prod(query.shape[:-3]), 1)


def _attention_raw(g: Array, query: Array, key: Array, value: Array, mask: Array | None, lse: Array, is_causal: bool,
                   scale: float, groups: int, drop: tuple[Any, ...] | None, needs: tuple[bool, ...]) -> list[Any]:  # fmt: skip
    heads = Heads(query, key, value, groups)
    of_mask = heads.mask(mask, needs[3])
    grads = backend.sdpa_backward(heads.queries(g), heads.queries(query), heads.keys(key), heads.keys(value),
                             lse, of_mask, is_causal, scale, needs[3], drop)  # fmt: skip
    found = [heads.unfolded(grads[0]), heads.unfolded(grads[1], True), heads.unfolded(grads[2], True), None]
    if needs[3]:
        found[3] = grads[3] if of_mask is mask else heads.unfolded(grads[3])
    return found


def _attention_shapes(query: Array, key: Array, value: Array, is_causal: bool, drop: object, needs: tuple[bool, ...],
                      make: Making) -> tuple[Array | None, ...]:  # fmt: skip
    heads = (query, key, value)
    starts = [x.__array_interface__["data"][0] for x in heads]
    step = starts[1] - starts[0]
    alike = (
        query.shape == key.shape == value.shape and query.strides == key.strides == value.strides and query.ndim == 4
    )
    of_one = isinstance(query.base, np.ndarray) and query.base is key.base is value.base
    if alike and of_one and 0 < step == starts[2] - starts[1]:
        strides = (step, *query.strides)
        grads = list(make.array((3, *query.shape), query.dtype, sorted(range(5), key=lambda i: -strides[i])))
    else:
        grads = [make.array(x.shape, query.dtype, order_of_gradient(x)) for x in heads]
    of_mask = make.gradient(3) if needs[3] else None
    if drop is not None or needs[3]:  # block by block: scores, their gradient, and what dropout makes of both
        make.work(block_of_scores(query, key, is_causal) * 4 + query.nbytes // 3 + in_float32(*heads, True, 2))
    else:
        make.work(in_float32(*heads, False, 2))
    return (*grads, of_mask)


@attention_op.grad("query", "key", "value", "mask", raw=_attention_raw, shapes=_attention_shapes)
def _(g: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float,
      groups: int, drop: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:  # fmt: skip
    many, kept = (tuple(key.shape), tuple(value.shape)), None
    if drop is not None:
        kept = kept_probabilities(query, key, value, groups, drop)
    key, value = repeated(key, groups), repeated(value, groups)
    p = probabilities(query, key, mask, is_causal, scale)
    gp = ops.matmul(g, value.mT)
    gp = gp if kept is None else scaled(gp, kept, 1 / (1 - drop[0]))
    d = p * (gp - ops.sum(gp * p, -1, True))
    p = p if kept is None else scaled(p, kept, 1 / (1 - drop[0]))
    gk, gv = ops.matmul(d.mT, query) * scale, ops.matmul(p.mT, g)
    return (ops.matmul(d, key) * scale, gathered(gk, many[0], groups), gathered(gv, many[1], groups),
            d if needs[3] else None)  # fmt: skip


def scores_of(query: Tensor, key: Tensor, value: Tensor, groups: int) -> int:
    """How many scores (*, L, S) there are."""
    q, k, v = (x._array.shape[:-2] for x in (query, key, value))
    batch = joint_batch(q, k, v, groups)
    return math.prod(batch) * query._array.shape[-2] * key._array.shape[-2]


def kept_probabilities(query: Tensor, key: Tensor, value: Tensor, groups: int, drop: tuple[float, Array]) -> Tensor:
    """Which probabilities (*, L, S) dropout keeps."""
    heads = Heads(query._array, key._array, value._array, groups)
    shape = *heads.queries(query._array).shape[:3], key.shape[-2]
    return wrap(heads.unfolded(backend.sdpa_dropout_mask(shape, drop)))


def repeated(x: Any, groups: int) -> Tensor:
    """Each head of `x` repeated for the heads of its group."""
    if groups == 1:
        return x
    *lead, heads, rows, width = x.shape
    spread = x.unsqueeze(-3).expand(*lead, heads, groups, rows, width)
    return spread.reshape(*lead, heads * groups, rows, width)


def gathered(x: Tensor, shape: tuple[int, ...], groups: int) -> Tensor:
    """The gradient of `repeated`."""
    if groups == 1:
        return x
    *lead, heads, rows, width = x.shape
    return ops.sum(x.reshape(*lead, heads // groups, groups, rows, width), -3)


def probabilities(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Tensor:
    """softmax(query key^T scale + mask), 0 in rows that see nothing."""
    scores = ops.matmul(query, key.mT) * scale
    rows, columns = scores.shape[-2:]
    if mask is None and not is_causal:
        return softmax_op(scores, scores.ndim - 1)
    if is_causal:
        scores = ops.masked_fill(scores, wrap(~np.tril(np.ones((rows, columns), bool))), -math.inf)
    if mask is not None:
        mask = mask if isinstance(mask, Tensor) else wrap(mask)
        hides = mask._array.dtype == bool
        scores = ops.masked_fill(scores, ~mask, -math.inf) if hides else scores + mask
    if getattr(scores._array, "interpreted", False) or getattr(scores._array, "unread", False):
        blind = ops.all(scores == -math.inf, -1, True)
        return ops.masked_fill(softmax_op(scores, scores.ndim - 1), blind, 0.0)
    p, blind = softmax_op(scores, scores.ndim - 1), (scores._array == -np.inf).all(-1, keepdims=True)
    return ops.masked_fill(p, wrap(blind), 0.0) if blind.any() else p


def check_attention(query: Any, key: Any, value: Any, mask: Any) -> None:
    """Raise TypeError or RuntimeError where dimensions, dtypes or masks do not fit."""
    name, given = "scaled_dot_product_attention", (("query", query), ("key", key), ("value", value))
    for argument, x in given:
        check_tensor(name, argument, x)
    arrays = [x._array for _, x in given]
    if min(a.ndim for a in arrays) < 2:
        raise RuntimeError(f"{name}: Expected query, key, and value to all be at least 2 dimensional, but got "
                           f"{', '.join(f'{n}.dim: {x.ndim}' for n, x in given)}")  # fmt: skip
    if not arrays[0].dtype == arrays[1].dtype == arrays[2].dtype:
        raise RuntimeError(f"{name}: Expected query, key, and value to have the same dtype, but got "
                           f"{', '.join(f'{n}.dtype: {x.dtype}' for n, x in given)}")  # fmt: skip
    if not query.dtype.is_floating_point:
        raise RuntimeError(f"{name}: expected a floating-point dtype but found {query.dtype}")
    if arrays[0].shape[-1] != arrays[1].shape[-1] or arrays[1].shape[-2] != arrays[2].shape[-2]:
        raise RuntimeError(f"{name}: Expected query (*, L, E), key (*, S, E) and value (*, S, V), but got shapes "
                           f"{', '.join(str(list(a.shape)) for a in arrays)}")  # fmt: skip
    if mask is not None and mask.dtype != query.dtype and mask._array.dtype != bool and mask._array.dtype != np.float32:
        raise RuntimeError(f"{name}: Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                           f"attn_mask.dtype: {mask.dtype} and query.dtype: {query.dtype} instead.")  # fmt: skip


def groups_of(query: Tensor, key: Tensor, value: Any, enable_gqa: bool) -> int:
    """How many heads of the query share one of the key.  Raises RuntimeError where they do not divide."""
    if not enable_gqa:
        return 1
    if min(x.ndim for x in (query, key, value)) < 3:
        raise IndexError("scaled_dot_product_attention: enable_gqa needs a dimension of heads, the third from the end")
    heads = [x.shape[-3] for x in (query, key, value)]
    if heads[1] != heads[2] or heads[0] % heads[1]:
        raise RuntimeError("scaled_dot_product_attention: Number of heads in key and value must divide the number of "
                           f"heads in query, got {heads[1]}, {heads[2]} and {heads[0]}")  # fmt: skip
    return int(heads[0] // heads[1])


def check_broadcast(query: Tensor, key: Tensor, value: Any, mask: Tensor | None, groups: int) -> None:
    """Raise RuntimeError where leading dimensions or the mask do not broadcast."""
    try:
        leads = [x._array.shape[:-2] for x in (query, key, value)]
        batch = joint_batch(leads[0], leads[1], leads[2], groups)
        if mask is not None:
            full = (*batch, query.shape[-2], key.shape[-2])
            if np.broadcast_shapes(full, tuple(mask.shape)) != full:
                raise ValueError
    except ValueError:
        shapes = ", ".join(str(list(x.shape)) for x in (query, key, value))
        seen = "" if mask is None else f" and attn_mask {list(mask.shape)}"
        raise RuntimeError(f"scaled_dot_product_attention: The size of query, key and value {shapes}{seen} must match "
                           "or be 1 in every dimension before the last two") from None  # fmt: skip


@function(ns=F, autocast="lower")
def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """softmax(query key^T scale + attn_mask) value.  (*, L, E), (*, S, E), (*, S, V) -> (*, L, V)

    attn_mask: broadcast to (*, L, S); bool, True where a key takes part, or added. is_causal: row i sees keys 0 to i,
    of which attn_mask, if given too, hides or weighs some.
    scale: 1 / sqrt(E) by default. dropout_p: with which probabilities are dropped. enable_gqa: heads of the key are
    shared by several of the query. Rows that see nothing give 0. Raises RuntimeError where shapes or dtypes do not fit.
    Source: Vaswani et al., Attention Is All You Need (2017); computed as in Dao et al., FlashAttention (2022).
    """
    check_attention(query, key, value, attn_mask)
    groups = groups_of(query, key, value, enable_gqa)
    check_broadcast(query, key, value, attn_mask, groups)
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(
            f"scaled_dot_product_attention: dropout probability has to be between 0 and 1, but got {dropout_p}"
        )
    if is_causal and getattr(attn_mask, "variant", None) is not None:
        raise ValueError(
            "scaled_dot_product_attention: CausalBias should not be used with causal=True: it is causal itself"
        )
    if scale is None:
        width = query._array.shape[-1]
        scale = 1 / math.sqrt(width) if width else 1.0
    if not (query._array.size and key._array.size and value._array.size) or dropout_p == 1:
        p = probabilities(query, repeated(key, groups), attn_mask, is_causal, scale)
        return ops.matmul(dropout(p, dropout_p), repeated(value, groups))
    if dropout_p > 0 and special.count and (innermost() is not None or owned((query, key, value, attn_mask))):
        p = probabilities(query, repeated(key, groups), attn_mask, is_causal, scale)
        return ops.matmul(dropout(p, dropout_p), repeated(value, groups))
    drop = (float(dropout_p), draw(scores_of(query, key, value, groups), query)) if dropout_p > 0 else None
    return attention_op(query, key, value, attn_mask, bool(is_causal), float(scale), groups, drop)
