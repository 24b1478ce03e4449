"""Masks of attention as `multi_head_attention_forward` takes them, for layers that programs write after PyTorch's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.basics.caller import warn
from rushlight.ops.attention.multihead import added
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.dtypes import dtype


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
