"""MultiheadAttention."""

from __future__ import annotations

from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.state import modes
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn.init import constant_, xavier_normal_, xavier_uniform_
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor, strided


class MultiheadAttention(Module):
    """Attention of several heads over projections of query, key and value.

    Args:
        embed_dim: size of the query's features, split over `num_heads`.
        dropout: probability with which attention weights are dropped in training.
        add_bias_kv, add_zero_attn: append a learnt, or a zero, key and value.
        kdim, vdim: sizes of the features of key and value, `embed_dim` by default.
        batch_first: (N, L, E) instead of (L, N, E).

    Source: Vaswani et al., Attention Is All You Need (2017).  Raises ValueError for sizes that are not positive and
    AssertionError unless `num_heads` divides `embed_dim`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: device | str | int | None = None,
        dtype: Any = None,
    ) -> None:
        _check_sizes(embed_dim, num_heads)
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        options = {"device": device, "dtype": dtype}
        self._make_projections(options)
        self._optional("in_proj_bias", bias, (3 * embed_dim,), options)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            self.bias_k = Parameter(ops.empty((1, 1, embed_dim), **options))
            self.bias_v = Parameter(ops.empty((1, 1, embed_dim), **options))
        self._reset_parameters()

    def _make_projections(self, options: dict[str, Any]) -> None:
        """One matrix for all three projections, or one for each where their sizes differ."""
        same, size = self._qkv_same_embed_dim, self.embed_dim
        if same:
            self.in_proj_weight = Parameter(ops.empty((3 * size, size), **options))
        else:
            self.q_proj_weight = Parameter(ops.empty((size, size), **options))
            self.k_proj_weight = Parameter(ops.empty((size, self.kdim), **options))
            self.v_proj_weight = Parameter(ops.empty((size, self.vdim), **options))
        absent = ("q_proj_weight", "k_proj_weight", "v_proj_weight") if same else ("in_proj_weight",)
        for name in absent:
            self.register_parameter(name, None)

    def _optional(self, name: str, wanted: bool, shape: tuple[int, ...], options: dict[str, Any]) -> None:
        self.register_parameter(name, Parameter(ops.empty(shape, **options)) if wanted else None)

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention of `query` (L, N, E) to `key` (S, N, kdim) and `value` (S, N, vdim), or without N.

        Args:
            key_padding_mask: (N, S), True (or minus infinity) where a key is to be ignored.
            need_weights: also return the attention weights (N, L, S), the mean over heads if `average_attn_weights`.
            attn_mask: (L, S) or (N * num_heads, L, S), True (or a number added) where attention is not allowed.
            is_causal: a hint that `attn_mask` is causal.

        Returns (output (L, N, E), weights or None).
        """
        nested = query.is_nested or key.is_nested or value.is_nested
        if nested:
            self._check_nested(query, key, value, key_padding_mask, attn_mask)
        batched_first = self.batch_first and query.ndim == 3 and not nested
        if batched_first:
            query, key, value = _swap_first(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **self._separate(),
        )
        return (output.transpose(1, 0) if batched_first else output), weights

    def _check_nested(self, query: Tensor, key: Tensor, value: Tensor, *masks: Tensor | None) -> None:
        """Raise AssertionError for nested tensors where PyTorch has no attention of them."""
        wrong = {
            "in training": self.training,
            "where gradients flow": modes.grad and any(x.requires_grad for x in (query, *self.parameters())),
            "in the layout torch.jagged": query.layout is not strided,
            "without batch_first=True": not self.batch_first,
            "other than query, key and value in one": not (query is key is value),
            "with a mask": any(mask is not None for mask in masks),
            "without biases, with other sizes of features or an odd number of heads": self.in_proj_bias is None
            or not self._qkv_same_embed_dim or self.num_heads % 2 == 1,
        }  # fmt: skip
        for found in (words for words, holds in wrong.items() if holds):
            raise AssertionError(
                f"MultiheadAttention: nested tensors are taken in evaluation without gradients alone, got them {found}; "
                "compose linear() and scaled_dot_product_attention(), which take them always"
            )

    def _separate(self) -> dict[str, Any]:
        """Arguments for projections of their own."""
        if self._qkv_same_embed_dim:
            return {}
        return {
            "use_separate_proj_weight": True,
            "q_proj_weight": self.q_proj_weight,
            "k_proj_weight": self.k_proj_weight,
            "v_proj_weight": self.v_proj_weight,
        }

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and which kind it is: 0 attention, 1 key padding, 2 both, None none."""
        if attn_mask is None:
            return key_padding_mask, (None if key_padding_mask is None else 1)
        if key_padding_mask is None:
            return attn_mask, 0
        n, length = query.shape[0], key_padding_mask.shape[1]
        attention: Any = attn_mask
        shape = (n, -1, length, length) if attention.ndim == 3 else (1, 1, length, length)
        padding: Any = key_padding_mask
        return attention.view(shape).expand(n, self.num_heads, -1, -1) + padding.view(n, 1, 1, length), 2


def _check_sizes(embed_dim: int, num_heads: int) -> None:
    if embed_dim <= 0 or num_heads <= 0:
        raise ValueError(
            f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
            "instead"
        )
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")


def _swap_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, Any, Any]:
    """Length before batch; the same tensor stays the same tensor, so that its projections can be joined."""
    if key is value:
        if query is key:
            query = key = value = query.transpose(1, 0)
        else:
            query, key = query.transpose(1, 0), key.transpose(1, 0)
            value = key
        return query, key, value
    return query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)
