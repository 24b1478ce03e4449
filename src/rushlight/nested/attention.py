"""Attention of nested sequences: each attends to its own."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.named import Named
from rushlight.dispatch.named import named as torch
from rushlight.nested.build import packed
from rushlight.nested.tensor import Nested, NestedTensor, StridedNested, answers
from rushlight.tensor import Tensor, strided

F: Any = Named("nn.functional")


def scaled_dot_product_attention(
    query: Nested,
    key: Nested,
    value: Nested,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Nested:
    """softmax(q k^T / sqrt(E)) v of each component.  (B, H, ragged L, E), (B, H, ragged S, E), (B, H, ragged S, V) -> (B, H, ragged L, V)

    There is no larger temporary than for the longest sequence.  Raises RuntimeError for a mask, and unless all three
    are nested alike.
    """
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: expected no attn_mask with nested tensors: sequences attend to themselves alone"
        )
    if isinstance(query, NestedTensor) and query.dim() != 4:
        raise RuntimeError(f"scaled_dot_product_attention: expected (B, H, ragged L, E), got {query.dim()} dimensions")
    kinds = {type(x) for x in (query, key, value)}
    if len(kinds) > 1 or len({len(x) for x in (query, key, value)}) > 1:
        raise RuntimeError(
            f"scaled_dot_product_attention: expected query, key and value nested alike, got {[k.__name__ for k in kinds]}"
        )
    each = [F.scaled_dot_product_attention(q, k, v, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
            for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)]  # fmt: skip
    if isinstance(query, StridedNested):
        return packed(each, strided)
    return _in_order(query, each)  # type: ignore[arg-type]


def _in_order(query: NestedTensor, each: list[Tensor]) -> NestedTensor:
    """Results as a nested tensor in whose memory the heads of a position lie side by side, as layers want them."""
    at = query._ragged_idx - 1
    if at != 1:
        return query._with(torch.cat(each, at))
    return query._with(torch.cat([x.transpose(0, 1) for x in each]).transpose(0, 1))


@answers(StridedNested)
def multi_head_attention_forward(query: StridedNested, key: StridedNested, value: StridedNested, *args: object,
                                 **kwargs: object) -> tuple[Nested, Tensor | None]:  # fmt: skip
    """Attention of several heads of each sequence to itself; weights are filled up with 0 to the longest."""
    each = [F.multi_head_attention_forward(x, x, x, *args, **kwargs) for x in query.unbind()]
    weights = None if each[0][1] is None else packed([w for _, w in each], strided).to_padded_tensor(0.0)
    return packed([x for x, _ in each], strided), weights


for _kind in (NestedTensor, StridedNested):
    answers(_kind)(scaled_dot_product_attention)
