"""``torch.nested``: batches of tensors of several sizes, without padding."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.engine.rows import Rows
from rushlight.nested import attention as _attention
from rushlight.nested import autograd as _autograd
from rushlight.nested import elementwise as _elementwise
from rushlight.nested import layers as _layers
from rushlight.nested import norms as _norms
from rushlight.nested import reductions as _reductions
from rushlight.nested import shapes as _shapes
from rushlight.nested import strided as _strided
from rushlight.nested.build import as_nested_tensor, masked_select, narrow, nested_tensor, nested_tensor_from_jagged
from rushlight.tensor import Tensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

Rows.composed = True
_ROOMS = (
    _attention,
    _autograd,
    _elementwise,
    _layers,
    _norms,
    _reductions,
    _shapes,
    _strided,
)  # they enter what functions do


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """A dense tensor of all components, filled up with a number: to the longest in each dimension, or to output_size.

    Raises RuntimeError for a nested tensor with holes, and for what is not nested.

    >>> import rushlight as torch
    >>> nt = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged)
    >>> torch.nested.to_padded_tensor(nt, 0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    found = input.to_padded_tensor(padding, output_size)
    return found if out is None else out.copy_(found)
