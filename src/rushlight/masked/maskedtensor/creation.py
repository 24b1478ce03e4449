"""What makes masked tensors."""

from __future__ import annotations

from rushlight.masked.maskedtensor.core import MaskedTensor, _check, masked
from rushlight.tensor import Tensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor that is a leaf of the graph: see `MaskedTensor`.  (*), (*) -> (*)

    >>> import rushlight as torch
    >>> masked_tensor(torch.tensor([1, 2]), torch.tensor([True, False]))
    MaskedTensor(
      [1,       --]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor through which gradients reach `data`, those of elements that do not count as zeros.  (*), (*) -> (*)

    >>> import rushlight as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> as_masked_tensor(x, torch.tensor([True, False])).exp().sum().backward()
    >>> x.grad
    tensor([2.7183, 0.0000])
    """
    _check(data, mask)
    return masked(data.clone(), mask.clone())
