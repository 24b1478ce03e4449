"""Norms over the features of nested tensors, of both layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import Named
from rushlight.nested.layers import last
from rushlight.nested.strided import by_rows, each
from rushlight.nested.tensor import NestedTensor, StridedNested, answers
from rushlight.tensor import Tensor

F: Any = Named("nn.functional")


@answers(NestedTensor)
def layer_norm(input: NestedTensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> NestedTensor:  # fmt: skip
    """Each position at mean 0 and variance 1."""
    last("layer_norm", input, len(normalized_shape))
    return input._with(F.layer_norm(input._values, normalized_shape, weight, bias, eps))


@answers(NestedTensor)
def rms_norm(input: NestedTensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> NestedTensor:  # fmt: skip
    """Each position at mean square 1."""
    last("rms_norm", input, len(normalized_shape))
    return input._with(F.rms_norm(input._values, normalized_shape, weight, eps))


@answers(StridedNested, "layer_norm")
def of_parts(input: StridedNested, normalized_shape: Sequence[int], weight: Tensor | None = None,
             bias: Tensor | None = None, eps: float = 1e-5) -> StridedNested:  # fmt: skip
    """Each position at mean 0 and variance 1.  Raises ValueError without weight and bias."""
    if weight is None or bias is None:
        raise ValueError("layer_norm: expected weight and bias with a nested tensor in the layout torch.strided")
    if len(normalized_shape) == 1:
        return by_rows(input, lambda x: F.layer_norm(x, normalized_shape, weight, bias, eps))
    return each(input, lambda x: F.layer_norm(x, normalized_shape, weight, bias, eps))
