"""``torch.nested._internal.nested_tensor``: the class of nested tensors in the layout torch.jagged, and how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.nested.build import nested_tensor_from_jagged, packed
from rushlight.nested.ragged import NestedInt, ragged
from rushlight.nested.tensor import NestedTensor
from rushlight.tensor import Tensor

__all__ = ["NestedTensor", "ViewBufferFromNested", "ViewNestedFromBuffer", "buffer_from_jagged", "get_tensor_symint",
           "jagged_from_list", "nested_view_from_values_offsets",
           "nested_view_from_values_offsets_lengths"]  # fmt: skip


def jagged_from_list(
    tensors: Sequence[Tensor],
    offsets: Tensor | None,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
) -> tuple[NestedTensor, Tensor]:
    """A nested tensor of a list, and its offsets: those given, where there are any."""
    found: Any = packed([x if dtype is None else x.to(dtype) for x in tensors])
    if offsets is not None:
        found = nested_tensor_from_jagged(found.values(), offsets, jagged_dim=found._ragged_idx)
    return found, found.offsets()


def nested_view_from_values_offsets(values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: int | None = None,
                                    max_seqlen: int | None = None) -> NestedTensor:  # fmt: skip
    """As `torch.nested.nested_tensor_from_jagged` of values and offsets."""
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """As `torch.nested.nested_tensor_from_jagged` of values, offsets and lengths."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def buffer_from_jagged(jagged: NestedTensor) -> Tensor:
    """The values."""
    return jagged.values()


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> NestedInt:
    """What stands for the sizes that offsets say."""
    return ragged(tensor).symbol * coeff


class ViewBufferFromNested:
    """`apply(nested)` gives its values, with gradients: a custom function in PyTorch."""

    @staticmethod
    def apply(x: NestedTensor) -> Tensor:
        """The values."""
        return x.values()


class ViewNestedFromBuffer:
    """`apply(values, offsets)` gives a nested tensor of them, with gradients: a custom function in PyTorch."""

    @staticmethod
    def apply(values: Tensor, offsets: Tensor, metadata_cache: dict[str, Any] | None = None) -> NestedTensor:
        """As `torch.nested.nested_tensor_from_jagged`; metadata_cache: the shortest and longest, where they are known."""
        known = metadata_cache or {}
        return nested_tensor_from_jagged(values, offsets, None, 1, known.get("min_seqlen"), known.get("max_seqlen"))
