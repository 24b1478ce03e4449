"""Attention of several heads over projections of query, key and value."""

from __future__ import annotations

import math
from typing import Any

from rushlight.basics import caller
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import function
from rushlight.ops.attention.attention import scaled_dot_product_attention
from rushlight.ops.linear.matmul import linear
from rushlight.ops.norm.softmax import softmax_op
from rushlight.ops.random.dropout import dropout
from rushlight.tensor import Tensor

F = "nn.functional"


def check_shapes(
    query: Tensor, key: Tensor, value: Any, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """Whether there is a batch.  Raises AssertionError where numbers of dimensions or shapes do not fit."""
    n = query.ndim
    if n not in (2, 3):
        raise AssertionError("multi_head_attention_forward: query should be unbatched 2D or batched 3D tensor but "
                             f"received {n}-D query tensor")  # fmt: skip
    kind = f"multi_head_attention_forward: For {'batched' if n == 3 else 'unbatched'} ({n}-D) `query`, expected"
    if key.ndim != n or value.ndim != n:
        raise AssertionError(f"{kind} `key` and `value` to be {n}-D but found {key.ndim}-D and {value.ndim}-D tensors")
    for name, x, dims, words in (("key_padding_mask", padding, (n - 1,), f" or {n - 1}-D"),
                                 ("attn_mask", mask, (2, 3), ", 2-D or 3-D")):  # fmt: skip
        if x is not None and x.ndim not in dims:
            raise AssertionError(f"{kind} `{name}` to be `None`{words} but found {x.ndim}-D tensor")
    if n == 2 and mask is not None and mask.ndim == 3:
        wanted = (heads, query.shape[0], key.shape[0])
        if tuple(mask.shape) != wanted:
            raise AssertionError(f"multi_head_attention_forward: Expected `attn_mask` shape to be {wanted} but got "
                                 f"{tuple(mask.shape)}")  # fmt: skip
    return bool(n == 3)


def added(mask: Tensor | None, name: str, dtype: dtype) -> Tensor | None:
    """A mask as numbers to add: a bool one becomes minus infinity where it is True."""
    if mask is None:
        return None
    if mask.dtype.is_floating_point:
        return mask
    if mask.dtype.name != "bool":
        raise AssertionError(f"multi_head_attention_forward: only bool and floating types of {name} are supported, got "
                             f"{mask.dtype}")  # fmt: skip
    return ops.masked_fill(ops.zeros_like(mask, dtype=dtype), mask, -math.inf)


def split_weight(weight: Tensor, bias: Tensor, parts: tuple[int, ...]) -> list[tuple[Any, Any]]:
    """Rows of a stacked projection: (weight, bias) of each part."""
    weights = ops.split(weight, list(parts))
    biases = (None,) * len(parts) if bias is None else ops.split(bias, list(parts))
    return list(zip(weights, biases, strict=True))


def project_packed(q: Tensor, k: Tensor, v: Tensor, weight: Tensor, bias: Tensor) -> tuple[Any, Any, Any]:
    """The projections of query, key and value with one matrix, in as few products as their identity allows."""
    e = q.shape[-1]
    if k is v:
        if q is k:
            return tuple(ops.chunk(linear(q, weight, bias), 3, -1))
        (wq, bq), (wkv, bkv) = split_weight(weight, bias, (e, 2 * e))
        return linear(q, wq, bq), *ops.chunk(linear(k, wkv, bkv), 2, -1)
    parts = split_weight(weight, bias, (e, e, e))
    return tuple(linear(x, w, b) for x, (w, b) in zip((q, k, v), parts, strict=True))


def project_apart(q: Any, k: Any, v: Any, weights: tuple[Any, Any, Any], bias: Tensor) -> tuple[Any, Any, Any]:
    """The projections with a matrix each."""
    for name, w in zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), weights, strict=True):
        if w is None:
            raise AssertionError(f"multi_head_attention_forward: use_separate_proj_weight is True but {name} is None")
    biases = (None, None, None) if bias is None else ops.chunk(bias, 3)
    return tuple(linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True))


def in_heads(x: Tensor, heads: int) -> Tensor:
    """(L, N, E) as (N, heads, L, E / heads), a view."""
    length, n, e = x.shape
    return x.reshape(length, n, heads, e // heads).permute(1, 2, 0, 3)


def given_heads(x: Any, name: str, n: int, heads: int, width: int) -> Any:
    """(N * heads, S, E) as (N, heads, S, E).  Raises AssertionError for other shapes."""
    if x.shape[0] != n * heads or x.shape[2] != width:
        raise AssertionError(f"multi_head_attention_forward: expecting {name}.size(0) of {n * heads} and size(2) of "
                             f"{width}, but got {tuple(x.shape)}")  # fmt: skip
    return x.reshape(n, heads, x.shape[1], width)


def one_more(mask: Any) -> Any:
    """A mask with a further key that takes part."""
    return None if mask is None else ops.cat((mask, mask.new_zeros(*mask.shape[:-1], 1)), -1)


def attn_by_head(mask: Tensor | None, n: int, heads: int, rows: int, columns: int) -> Tensor | None:
    """A mask (L, S) or (N * heads, L, S) that broadcasts with (N, heads, L, S).  Raises RuntimeError for others."""
    if mask is None:
        return None
    wanted = (rows, columns) if mask.ndim == 2 else (n * heads, rows, columns)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"multi_head_attention_forward: The shape of the {mask.ndim}D attn_mask is "
                           f"{mask.shape}, but should be {wanted}.")  # fmt: skip
    return mask if mask.ndim == 2 else mask.reshape(n, heads, rows, columns)


def joined_masks(mask: Tensor | None, padding: Tensor | None, n: int, columns: int) -> Tensor | None:
    """Both masks as one that broadcasts with (N, heads, L, S)."""
    if padding is None:
        return mask
    if tuple(padding.shape) != (n, columns):
        raise AssertionError(f"multi_head_attention_forward: expecting key_padding_mask shape of {(n, columns)}, but "
                             f"got {tuple(padding.shape)}")  # fmt: skip
    padding = padding.reshape(n, 1, 1, columns)
    return padding if mask is None else mask + padding


def weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> tuple[Any, Any]:
    """Attention and its weights after dropout.  (N, heads, L, E), ... -> (N, heads, L, E), (N, heads, L, S)"""
    scores = ops.matmul(q * math.sqrt(1 / q.shape[-1]), k.mT)
    weights = softmax_op(scores if mask is None else scores + mask, 3)
    weights = dropout(weights, p)
    return ops.matmul(weights, v), weights


def check_embedding(query: Tensor, key: Tensor, value: Any, size: int, heads: int, apart: bool) -> None:
    """Raise AssertionError where sizes of features do not fit."""
    if query.shape[-1] != size:
        raise AssertionError(f"multi_head_attention_forward: was expecting embedding dimension of {size}, but got "
                             f"{query.shape[-1]}")  # fmt: skip
    if size % heads:
        raise AssertionError(f"multi_head_attention_forward: embed_dim {size} not divisible by num_heads {heads}")
    if apart and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"multi_head_attention_forward: key's sequence and batch dims {tuple(key.shape[:2])} do "
                             f"not match value's {tuple(value.shape[:2])}")  # fmt: skip
    if not apart and key.shape != value.shape:
        raise AssertionError(f"multi_head_attention_forward: key shape {tuple(key.shape)} does not match value shape "
                             f"{tuple(value.shape)}")  # fmt: skip


def masks_of(
    query: Tensor, padding: Tensor | None, mask: Tensor | None, is_causal: bool, need_weights: bool
) -> tuple[Any, Any, bool]:
    """(padding mask, attention mask, whether the kernel is to mask causally), as numbers to add."""
    if is_causal and mask is None:
        raise RuntimeError("multi_head_attention_forward: Need attn_mask if specifying the is_causal hint.")
    if padding is not None and mask is not None and padding.dtype is not mask.dtype:
        caller.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead."
        )
    padding = added(padding, "key_padding_mask", query.dtype)
    if is_causal and padding is None and not need_weights:
        return None, None, True
    return padding, added(mask, "attn_mask", query.dtype), False


def with_batch(query: Tensor, key: Any, value: Any, padding: Any) -> tuple[Any, Any, Any, Any]:
    """Inputs without a batch as a batch of one; the same tensor stays the same."""
    same_key, same_value = key is query, value is key
    query = query.unsqueeze(1)
    key = query if same_key else key.unsqueeze(1)
    value = key if same_value else value.unsqueeze(1)
    return query, key, value, None if padding is None else padding.unsqueeze(0)


def project(
    query: Tensor, key: Tensor, value: Any, packed: Tensor | None, apart: Any, bias: Any
) -> tuple[Any, Any, Any]:
    """The projections with one matrix, or with `apart`, one for each.  Raises AssertionError if it is missing."""
    if apart is not None:
        return project_apart(query, key, value, apart, bias)
    if packed is None:
        raise AssertionError("multi_head_attention_forward: in_proj_weight is None without use_separate_proj_weight")
    return project_packed(query, key, value, packed, bias)


@function(ns=F)
def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor | complex, embed_dim_to_check: int,
                                 num_heads: int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None,
                                 bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
                                 out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
                                 key_padding_mask: Tensor | None = None, need_weights: bool = True,
                                 attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
                                 q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
                                 v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
                                 static_v: Tensor | None = None, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> tuple[Any, Any]:  # fmt: skip
    """Attention of several heads.  query: (L, N, E) or (L, E), key, value: (S, N, *) -> (L, N, E), weights

    in_proj_weight: (3E, E), or with use_separate_proj_weight the three others. bias_k, bias_v: a further key and value.
    add_zero_attn: a further one of zeros. static_k, static_v: (N * num_heads, S, E / num_heads) for the projected ones.
    key_padding_mask (N, S), attn_mask (L, S) or (N * num_heads, L, S): True where attention is not allowed, or added.
    is_causal: a hint that attn_mask is causal. need_weights: return weights too, (N, L, S), their mean over heads, or
    without average_attn_weights (N, num_heads, L, S).
    Source: Vaswani et al., Attention Is All You Need (2017).
    """
    batched, padding = check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads), key_padding_mask
    if not batched:
        query, key, value, padding = with_batch(query, key, value, padding)
    rows, n, size = query.shape
    padding, mask, causal = masks_of(query, padding, attn_mask, is_causal, need_weights)
    check_embedding(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    apart = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = project(query, key, value, in_proj_weight, apart, in_proj_bias)
    if (static_k is None and k.shape[1] != n) or (static_v is None and v.shape[1] != n):
        raise RuntimeError(f"multi_head_attention_forward: expected keys and values of as many batches as queries, {n}, got "
                           f"{k.shape[1]}")  # fmt: skip
    mask = attn_by_head(mask, n, num_heads, rows, key.shape[0])
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("multi_head_attention_forward: bias cannot be added to static key or value.")
        k, v = ops.cat((k, bias_k.expand(1, n, -1))), ops.cat((v, bias_v.expand(1, n, -1)))
        mask, padding = one_more(mask), one_more(padding)
    width = size // num_heads
    q = in_heads(q, num_heads)
    k = in_heads(k, num_heads) if static_k is None else given_heads(static_k, "static_k", n, num_heads, width)
    v = in_heads(v, num_heads) if static_v is None else given_heads(static_v, "static_v", n, num_heads, width)
    if add_zero_attn:
        zero = k.detach().new_zeros(n, num_heads, 1, width)
        k, v, mask, padding = ops.cat((k, zero), 2), ops.cat((v, zero), 2), one_more(mask), one_more(padding)
    mask, p = joined_masks(mask, padding, n, k.shape[2]), dropout_p if training else 0.0
    if need_weights:
        out, weights = weighed(q, k, v, mask, p)
        weights = ops.mean(weights, 1) if average_attn_weights else weights
    else:
        out, weights = scaled_dot_product_attention(q, k, v, mask, p, causal), None
    out = linear(out.permute(2, 0, 1, 3).reshape(rows, n, size), out_proj_weight, out_proj_bias)
    if not batched:
        return out.squeeze(1), None if weights is None else weights.squeeze(0)
    return out, weights
