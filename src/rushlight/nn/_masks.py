"""Masks of attention as `multi_head_attention_forward` takes them, for layers that programs write after PyTorch's."""

from __future__ import annotations

from rushlight.basics.caller import warn
from rushlight.basics.dtypes import dtype
from rushlight.ops.attention.multihead import added
from rushlight.tensor import Tensor


def _none_or_dtype(input: Tensor | None) -> dtype | None:
    """The dtype of a tensor, None of None.  Raises RuntimeError for anything else."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: dtype | None, other_name: str, target_type: dtype, check_other: bool = True
) -> Tensor | None:  # fmt: skip
    """A mask as numbers to add: minus infinity where a bool mask is True.

    other_type: the dtype of another mask that comes with it; another one than this mask's is warned of if `check_other`.
    Raises AssertionError for a mask that has neither bools nor numbers with a point.
    """
    made = added(mask, mask_name, target_type)
    if mask is not None and check_other and other_type is not None and mask.dtype is not other_type:
        warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    return made


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether queries, (L, N, E) or (L, E), come in a batch.  Raises AssertionError where keys, values or masks do not go with them."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    whose, dims = ("For batched (3-D)" if batched else "For unbatched (2-D)"), query.dim()
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"{whose} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"{whose} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"{whose} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() == 3 and not batched:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched
